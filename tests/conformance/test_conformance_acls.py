"""Conformance cases for ACLs, through the command line. Every case is named in the docstring of its test.

The principals of the cases have a prefix, because the tests share a broker.
"""

import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from kafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest

from kdeclare.engine.state.document import decode_state
from kdeclare.fleet.in_process_audit import audit_rows
from kdeclare.fleet.tables.row_builder import build_declared_cluster_row, build_declared_rows, read_live_rows
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.client.wire import Wire
from kdeclare.testing.world import declare
from tests.conformance.kinds_bed import KindsBed, get_only, pick
from tests.connections import connections_to
from tests.jsontypes import Json

READ: Json = {"topic": "orders", "allow": ["READ"]}
READ_WRITE: Json = {"topic": "orders", "allow": ["READ", "WRITE"]}


def acl(bed: KindsBed, short: str, *bindings: Json, **spec: Json) -> tuple[str, str, Json]:
    """Declare rights of one principal."""
    own: dict[str, Json] = {"principal": bed.user(short), **spec}
    return "Acl", short, own | ({"bindings": list(bindings)} if bindings else {})


def test_roles_expand_to_fewest_bindings(kinds_bed: KindsBed) -> None:
    """P-ACL-01."""
    bed = kinds_bed
    roles: dict[str, Json] = {
        "produce": ["orders", "payments.*"],
        "consume": {"topics": ["orders"], "groups": ["checkout-*"]},
        "transactions": ["checkout-*"],
        "observe": {"topics": ["*"]},
    }
    bed.declare(acl(bed, "checkout", **roles))
    code, plan = bed.plan()
    assert code == 2
    change = get_only(plan["changes"])
    assert pick(change, "id", "action", "risk") == ("Acl/checkout", "create", "safe")
    expected = {
        f"ALLOW {bed.user('checkout')} {right} from *"
        for right in (
            "WRITE topic:orders",
            "WRITE topic:payments.*",
            "READ topic:orders",
            "READ group:checkout-*",
            "WRITE transactionalId:checkout-*",
            "DESCRIBE topic:*",
            "DESCRIBE_CONFIGS topic:*",
        )
    }
    assert {text for op in plan["operations"] for text in op["args"]["bindings"]} == expected
    bed.apply()
    assert bed.acls("checkout") == expected
    patterns = {(b.name, b.pattern) for b in bed.bindings(bed.user("checkout"))}
    assert patterns == {
        ("orders", "literal"),
        ("payments.", "prefixed"),
        ("checkout-", "prefixed"),
        ("*", "literal"),
    }
    bed.expect_up_to_date()


def test_existing_binding_is_adopted_without_request(kinds_bed: KindsBed) -> None:
    """P-ACL-02."""
    bed = kinds_bed
    binding = f"ALLOW {bed.user('a')} READ topic:orders from *"
    bed.grant(binding)
    bed.declare(acl(bed, "a", READ))
    ran = bed("apply", "--yes")
    assert (ran.code, ran.out.startswith("No changes.")) == (0, True)
    assert bed.requests == []
    assert bed.owned() == {"Acl/a": {"bindings": [binding]}}


def test_binding_that_left_its_manifest_is_subtracted(kinds_bed: KindsBed) -> None:
    """P-ACL-03."""
    bed = kinds_bed
    a, b = bed.user("a"), bed.user("b")
    bed.grant(f"ALLOW {b} WRITE topic:orders from *")
    bed.declare(acl(bed, "a", READ_WRITE))
    bed.apply()
    bed.declare(acl(bed, "a", READ))
    _, plan = bed.plan()
    change = get_only(plan["changes"])
    assert pick(change, "id", "action", "risk") == ("Acl/a", "update", "disruptive")
    field = get_only(change["fields"])
    assert pick(field, "path", "op", "value") == (
        "bindings.topic:orders",
        "SUBTRACT",
        [f"ALLOW {a} WRITE from *"],
    )
    assert [op["verb"] for op in plan["operations"]] == ["acls.delete"]
    bed.apply()
    assert bed.acls("a", "b") == {
        f"ALLOW {a} READ topic:orders from *",
        f"ALLOW {b} WRITE topic:orders from *",
    }
    assert [request.method for request in bed.sent()] == ["delete_acls"]


def test_rights_granted_by_others_are_kept_and_shown(kinds_bed: KindsBed) -> None:
    """P-ACL-04."""
    bed = kinds_bed
    alter = f"ALLOW {bed.user('a')} ALTER cluster:kafka-cluster from *"
    bed.grant(
        f"ALLOW {bed.user('a')} READ topic:orders from *", alter, f"ALLOW {bed.user('z')} READ topic:x from *"
    )
    bed.declare(acl(bed, "a", READ))
    code, plan = bed.plan()
    assert (code, plan["operations"], plan["changes"]) == (0, [], [])
    assert plan["unmanaged_configs"] == {"Acl/a": [alter]}
    bed.expect_up_to_date()
    assert alter in bed("plan").out


def test_unmanaged_bindings_remove_deletes_those_of_its_principals(kinds_bed: KindsBed) -> None:
    """P-ACL-05."""
    bed = kinds_bed
    read, other = (
        f"ALLOW {bed.user('a')} READ topic:orders from *",
        f"ALLOW {bed.user('z')} READ topic:x from *",
    )
    bed.grant(read, other, f"ALLOW {bed.user('a')} ALTER cluster:kafka-cluster from *")
    bed.declare(acl(bed, "a", READ, unmanagedBindings="remove"))
    bed.apply()
    assert bed.acls("a", "z") == {read, other}


def test_manifest_that_leaves_is_an_orphan(kinds_bed: KindsBed) -> None:
    """P-ACL-06."""
    bed = kinds_bed
    binding = f"ALLOW {bed.user('a')} READ topic:orders from *"
    bed.declare(acl(bed, "a", READ))
    bed.apply()
    bed.declare()
    code, plan = bed.plan("--allow-empty")
    assert (code, plan["operations"], plan["summary"]["orphaned"]) == (0, [], 1)
    bed.requests.clear()
    assert bed("plan", "--allow-empty").out.startswith("No changes.")
    _, plan = bed.plan("--allow-empty", "--forget", "Acl/a")
    assert [pick(change, "id", "action") for change in plan["changes"]] == [("Acl/a", "forget")]
    assert plan["operations"] == []
    _, plan = bed.plan("--allow-empty", "--allow-deletes")
    assert [pick(change, "id", "action") for change in plan["changes"]] == [("Acl/a", "delete")]
    assert [op["verb"] for op in plan["operations"]] == ["acls.delete"]
    assert (bed.sent(), bed.acls("a")) == ([], {binding})
    bed.apply("--allow-empty", "--allow-deletes")
    assert (bed.acls("a"), bed.owned()) == (set(), {})


def test_bindings_that_never_match_are_refused_offline(kinds_bed: KindsBed) -> None:
    """P-ACL-07. The principals have no prefix, because nothing reaches the broker."""
    bed = kinds_bed
    specs: dict[str, Json] = {
        "no-colon": {"principal": "alice", "produce": ["t"]},
        "lower": {"principal": "user:alice", "produce": ["t"]},
        "nameless": {"principal": "User:", "produce": ["t"]},
        "host-name": {"principal": "User:a", "hosts": ["example.org"], "produce": ["t"]},
        "cidr": {"principal": "User:a", "hosts": ["10.0.0.0/8"], "produce": ["t"]},
        "operation": {"principal": "User:a", "bindings": [{"topic": "t", "allow": ["CREATE_TOKENS"]}]},
        "any": {"principal": "User:a", "bindings": [{"topic": "t", "allow": ["ANY"]}]},
        "star-inside": {"principal": "User:a", "produce": ["a*b"]},
        "empty": {"principal": "User:a", "produce": [""]},
        "not-a-topic": {"principal": "User:a", "produce": ["a b/c"]},
    }
    bed.declare(*(("Acl", name, spec) for name, spec in specs.items()))
    expect_errors_in_each_file(bed)


def expect_errors_in_each_file(bed: KindsBed) -> str:
    """Check that `validate` reports an error with a position in each manifest. Return its output."""
    ran = bed("validate")
    output = ran.out + ran.err
    assert (ran.code, bed.requests) == (1, [])
    for file in (bed.folder / "manifests").iterdir():
        assert f"manifests/{file.name}:" in output, file.name
    return output


def test_brokers_without_authorizer_are_reported_once(open_bed: KindsBed) -> None:
    """P-ACL-08."""
    bed, topic = open_bed, open_bed.name("t")
    bed.declare(
        ("Acl", "a", {"principal": "User:a", "produce": [topic]}),
        ("Acl", "b", {"principal": "User:b", "produce": [topic]}),
        ("Topic", topic, {"partitions": 1, "replicationFactor": 1}),
    )
    code, plan = bed.plan()
    assert code == 1
    problem = get_only([d for d in plan["diagnostics"] if d["severity"] == "error"])
    assert pick(problem, "code", "resource") == ("no-authorizer", "Acl/a")
    assert bed("apply", "--yes").code == 1
    assert bed.sent() == []


def test_deleted_binding_is_drift_and_comes_back(kinds_bed: KindsBed) -> None:
    """P-ACL-09."""
    bed = kinds_bed
    binding = f"ALLOW {bed.user('a')} READ topic:orders from *"
    declared = acl(bed, "a", READ)
    bed.declare(declared)
    bed.apply()
    bed.revoke(binding)
    _, plan = bed.plan()
    change = get_only(plan["changes"])
    assert pick(change, "id", "action", "reason") == ("Acl/a", "update", "drifted")
    assert pick(get_only(change["fields"]), "path", "op") == ("bindings.topic:orders", "APPEND")
    assert find_fleet_findings(bed, declared) == [("Acl", "a", "changed", "bindings.topic:orders")]
    bed.apply()
    assert bed.acls("a") == {binding}


def find_fleet_findings(bed: KindsBed, declared: tuple[str, str, Json]) -> list[tuple[str, ...]]:
    """Return what an audit of a fleet finds about one declared resource."""
    file = bed.folder / "state" / "conformance" / "lab" / "state.json"
    state = decode_state(file.read_text(), "state.json")
    item = declare(*declared)
    rows = [build_declared_cluster_row("lab", {}, cluster_id=state.cluster_id)]
    rows += build_declared_rows("lab", item, item.id, state.resources[str(item.id)])
    live = list(read_live_rows(connections_to(bed.cluster), "lab", {}, datetime.now(UTC)))
    found = [row for row in audit_rows(rows, live) if row["name"] == declared[1]]
    return [(row["kind"], row["name"], row["finding"], row["path"]) for row in found]


def test_no_client_is_cut_off_or_let_in_on_the_way(kinds_bed: KindsBed) -> None:
    """P-ACL-10."""
    bed, a = kinds_bed, kinds_bed.user("a")
    bed.declare(acl(bed, "a", READ, {"topic": "old-secrets", "deny": ["READ"]}))
    bed.apply()
    bed.declare(
        acl(bed, "a", {"topic": "orders*", "allow": ["READ"]}, {"topic": "orders-secret", "deny": ["READ"]})
    )
    steps = [
        ("create_acls", f"DENY {a} READ topic:orders-secret from *"),
        ("create_acls", f"ALLOW {a} READ topic:orders* from *"),
        ("delete_acls", f"ALLOW {a} READ topic:orders from *"),
        ("delete_acls", f"DENY {a} READ topic:old-secrets from *"),
    ]
    bed.apply()
    assert [(sent.method, *map(str, sent.items)) for sent in bed.sent()] == steps
    assert bed.acls("a") == {text for method, text in steps if method == "create_acls"}


@dataclass
class AclTraffic:
    """The CreateAcls requests on the wire: their sizes, and how many were in flight at most."""

    sizes: list[int] = field(default_factory=list)
    most_in_flight: int = 0
    in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, patch: pytest.MonkeyPatch) -> None:
        """Record the requests of all clients."""
        send_one = Wire.send_one

        def send_recorded(wire: Wire, request: Any, *arguments: Any, **options: Any) -> Any:
            if not isinstance(request, CreateAclsRequest):
                return send_one(wire, request, *arguments, **options)
            with self.lock:
                self.sizes.append(len(request.creations))
                self.in_flight += 1
                self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                return send_one(wire, request, *arguments, **options)
            finally:
                with self.lock:
                    self.in_flight -= 1

        patch.setattr(Wire, "send_one", send_recorded)


def test_taking_own_right_away_is_denied(reader_bed: KindsBed) -> None:
    """P-ACL-11."""
    bed = reader_bed
    alter, describe = (
        f"ALLOW User:reader {right} cluster:kafka-cluster from *" for right in ("ALTER", "DESCRIBE")
    )
    bed.grant(alter, describe)
    entry: Json = {"cluster": True, "allow": ["ALTER", "DESCRIBE"]}
    bed.declare(("Acl", "ops", {"principal": "User:reader", "bindings": [entry]}))
    bed.apply()
    assert bed.owned()["Acl/ops"]["bindings"] == [alter, describe]
    bed.declare(("Acl", "ops", {"principal": "User:reader", "bindings": [{**entry, "allow": ["DESCRIBE"]}]}))
    _, plan = bed.plan()
    verdict = get_only(plan["verdicts"])
    assert pick(verdict, "policy", "resource", "outcome") == ("acl-lockout", "Acl/ops", "deny")
    bed.requests.clear()
    assert bed("apply", "--yes").code == 3
    assert bed.requests == []
    assert {alter, describe} <= set(map(str, bed.bindings("User:reader")))


def test_many_bindings_are_created_in_bounded_requests(
    kinds_bed: KindsBed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-ACL-12."""
    bed, traffic = kinds_bed, AclTraffic()
    traffic.record(monkeypatch)
    bed.declare(acl(bed, "big", consume={"topics": [f"t-{n}" for n in range(3000)]}))
    bed.apply()
    sizes = [len(sent.items) for sent in bed.sent("create_acls")]
    assert sum(sizes) == 3000
    assert max(sizes) <= 1000
    bed.expect_up_to_date()
    assert len(bed.acls("big")) == 3000
    if isinstance(bed.cluster, KafkaCluster):
        assert (sum(traffic.sizes), traffic.most_in_flight) == (3000, 1)
        assert max(traffic.sizes) <= 1000
        delete_all_at_once(bed.cluster, bed.user("big"))


def delete_all_at_once(cluster: KafkaCluster, principal: str) -> None:
    """Delete all bindings of a principal with one filter, which is faster than one filter for each."""
    filter_class = DeleteAclsRequest.DeleteAclsFilter
    own = filter_class(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=principal,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    cluster._wire.send_one(DeleteAclsRequest(filters=[own]), lambda response: response, changes=True)
    deadline = time.monotonic() + 10
    while cluster.acls([principal]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
