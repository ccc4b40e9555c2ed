"""ACLs in snapshots and audits of fleets: one row for each binding."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.acl.collector import build_acl_state
from kdeclare.providers.kafka.acl.diff import parse_field
from kdeclare.providers.kafka.acl.fleet import AclCodec
from kdeclare.providers.kafka.acl.kind import AclKind
from kdeclare.providers.kafka.acl.record import AclRecord
from kdeclare.providers.kafka.acl.spec import AclBody
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.fleets import make_desired
from tests.unit.fleet.quotas import QuotaCluster

READ, WRITE = (f"ALLOW User:a {operation} topic:orders from *" for operation in ("READ", "WRITE"))
NOWHERE = PlanContext()


def make_cluster(
    desired: Sequence[DesiredResource], owned: Mapping[str, Sequence[str]], live: Sequence[str]
) -> QuotaCluster:
    records: dict[str, OwnedRecord] = {
        text: AclRecord(tuple(map(parse_binding, texts))) for text, texts in owned.items()
    }
    made = QuotaCluster(desired=desired, owned=records)
    made.cluster.create_acls(list(map(parse_binding, live)))
    return made


def acl(name: str, *operations: str, **spec: Any) -> DesiredResource:
    entries = [{"topic": "orders", "allow": list(operations)}] if operations else []
    return make_desired("Acl", name, principal=f"User:{name}", bindings=entries, **spec)


def audit(made: QuotaCluster) -> list[Row]:
    return [row for row in audit_rows(made.declared_rows(), made.live_rows()) if row["kind"] == "Acl"]


def shorten(rows: list[Row]) -> list[tuple[str, str, str | None, str | None]]:
    return [(row["name"], row["finding"], row["path"], row["op"]) for row in rows]


def test_deleted_binding_is_changed() -> None:
    """P-ACL-09."""
    made = make_cluster([acl("a", "READ")], {"Acl/a": [READ]}, [])
    (row,) = audit(made)
    assert (row["name"], row["finding"]) == ("a", "changed")
    assert (row["path"], row["op"]) == ("bindings.topic:orders", "APPEND")
    assert json.loads(row["after"]) == ["ALLOW User:a READ from *"]


def test_audit_finds_drift_of_every_kind() -> None:
    others = [f"ALLOW User:z READ topic:t{n} from *" for n in range(3)]
    made = make_cluster(
        [acl("a", "READ", "WRITE"), acl("left"), acl("good", "READ")],
        {
            "Acl/a": [READ],
            "Acl/left": ["ALLOW User:left READ topic:x from *"],
            "Acl/good": ["ALLOW User:good READ topic:orders from *"],
            "Acl/old": ["ALLOW User:old READ topic:x from *"],
        },
        [
            READ,
            "ALLOW User:left READ topic:x from *",
            "ALLOW User:good READ topic:orders from *",
            "ALLOW User:old READ topic:x from *",
            *others,
        ],
    )
    assert sorted(shorten(audit(made)), key=str) == [
        ("User:z", "unmanaged", None, None),
        ("a", "pending", "bindings.topic:orders", "APPEND"),
        ("left", "pending", "bindings.topic:x", "SUBTRACT"),
        ("old", "orphaned", None, "delete"),
    ]


def test_removals_of_unmanaged_bindings_are_pending() -> None:
    """One row for each binding. The bindings are not also counted as unmanaged."""
    other = "ALLOW User:b READ topic:orders from *"
    made = make_cluster(
        [
            acl("a", "READ", unmanagedBindings="remove"),
            acl("b", "READ"),
            acl("c", unmanagedBindings="remove"),
        ],
        {"Acl/a": [READ], "Acl/b": [other], "Acl/old": ["ALLOW User:a READ topic:x from *"]},
        [
            READ,
            WRITE,
            "DENY User:a ALL group:g from *",
            "ALLOW User:a READ topic:x from *",  # an orphan owns it, so it is not unmanaged
            other,
            "ALLOW User:b WRITE topic:orders from *",
            "ALLOW User:c READ topic:x from *",
        ],
    )
    assert sorted(shorten(audit(made)), key=str) == [
        ("User:b", "unmanaged", None, None),
        ("a", "pending", "bindings.group:g", "SUBTRACT"),
        ("a", "pending", "bindings.topic:orders", "SUBTRACT"),
        ("c", "pending", "bindings.topic:x", "SUBTRACT"),
        ("old", "orphaned", None, "delete"),
    ]
    removed = [row for row in audit(made) if row["finding"] == "pending"]
    assert {binding for row in removed for binding in _read_bindings(row)} == {
        parse_binding(text)
        for text in (WRITE, "DENY User:a ALL group:g from *", "ALLOW User:c READ topic:x from *")
    }
    assert {row["message"] for row in removed} == {"Declared, but not applied yet."}


def test_binding_is_removed_by_first_of_several_resources() -> None:
    first, second = (
        make_desired("Acl", name, principals=["User:a"], unmanagedBindings="remove") for name in ("x", "y")
    )
    made = make_cluster([second, first], {}, [READ])
    assert shorten(audit(made)) == [("x", "pending", "bindings.topic:orders", "SUBTRACT")]


def test_resource_outside_selector_removes_nothing() -> None:
    made = make_cluster([], {}, [READ])
    made.left_out = [acl("a", unmanagedBindings="remove")]
    assert shorten(audit(made)) == [("User:a", "unmanaged", None, None)]


def test_audit_without_permission_audits_the_rest() -> None:
    made = make_cluster([acl("a", "READ"), make_desired("Topic", "orders", partitions=3)], {}, [])
    refused = Fault("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")
    made.cluster.faults.fail(refused, nth=None, method="acls")
    found = {(row["kind"], row["finding"]) for row in audit_rows(made.declared_rows(), made.live_rows())}
    assert found == {("Acl", "unreachable"), ("Topic", "pending")}


operations = st.lists(st.sampled_from(["READ", "WRITE", "CREATE"]), unique=True)


@given(operations, operations, operations, st.booleans())
def test_audit_agrees_with_plan(
    declared: list[str], owned: list[str], live: list[str], removes: bool
) -> None:
    def make_texts(found: list[str]) -> list[str]:
        return [f"ALLOW User:a {operation} topic:orders from *" for operation in found]

    item = acl("a", *declared, **({"unmanagedBindings": "remove"} if removes else {}))
    made = make_cluster([item], {"Acl/a": make_texts(owned)} if owned else {}, make_texts(live))
    state = LiveState(build_acl_state(map(parse_binding, make_texts(live))))
    difference = AclKind().diff(item.id, item, state, made.owned.get("Acl/a"), NOWHERE)
    fields = difference.change.fields if difference.change is not None else ()
    planned = {(field.op.value, binding) for field in fields for binding in parse_field(field)}
    audited = {
        (row["op"], binding)
        for row in audit(made)
        if row["finding"] in ("changed", "pending")
        for binding in _read_bindings(row)
    }
    assert audited == planned
    unmanaged = {row["name"] for row in audit(made) if row["finding"] == "unmanaged"}
    assert bool(unmanaged) is bool(difference.unmanaged)


def _read_bindings(row: Row) -> list[Binding]:
    elements = json.loads(row["after"] if row["op"] == "APPEND" else row["before"])
    resource = row["path"].removeprefix("bindings.")
    return [parse_binding(element.replace(" from ", f" {resource} from ")) for element in elements]


@given(operations)
def test_body_of_element_round_trips(declared: list[str]) -> None:
    item, kind = acl("a", *declared), AclKind()
    for element in kind.list_elements("a", item.body, None):
        assert isinstance(element.body, AclBody)
        assert kind.from_json(kind.to_json("a", element.body)) == element.body
        assert kind.find_live_key("a", element.body, None) == element.key
    assert ResourceId("Acl", "a") == item.id


def test_cluster_without_authorizer_is_read_as_one_without_acls() -> None:
    cluster = MemoryCluster()
    cluster.has_authorizer = False
    assert list(AclCodec().list_objects(connections_to(cluster)).objects) == []
