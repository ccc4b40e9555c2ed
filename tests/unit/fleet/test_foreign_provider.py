"""A third-party provider takes part in snapshots and audits."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey, UnreadPart
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.provider.connection import NOT_CONFIGURED
from kdeclare.core.provider.installed_providers import (
    InstalledProvider,
    find_providers,
    load_providers,
    use_providers,
)
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterTables,
    KnownResources,
    LabelsByResource,
    find_in_cluster,
)
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.live_state import decode_cluster, decode_object
from kdeclare.fleet.local.audit import LocalTables, find_all, find_fixed, find_unchecked
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    build_excluded_rows,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.unit.fleet.fleets import make_desired as declare
from tests.unit.fleet.kitchen import (
    JarsRecord,
    JarsSpec,
    Kettle,
    KettleRecord,
    KettleSpec,
    KitchenConnection,
    KitchenState,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KITCHEN = InstalledProvider("kitchen", "", "", "tests.unit.fleet.kitchen:PROVIDER")


@pytest.fixture(scope="module", autouse=True)
def _kitchen_provider() -> Iterator[None]:
    use_providers((*find_providers(), KITCHEN))
    yield
    use_providers(None)


def make_live_rows(state: KitchenState, fault: Fault | None = None, name: str = "eu-1") -> list[Row]:
    """Return the rows of a cluster with a topic and a kitchen."""
    return read_rows(KitchenConnection(state, fault), name)


def read_rows(connection: KitchenConnection, name: str = "eu-1") -> list[Row]:
    """Return the rows of a cluster with a topic and a kitchen, after a round trip through Arrow."""
    cluster = MemoryCluster(cluster_id="id-1")
    cluster.create_topics([NewTopic("orders", 1, 1, None, {})])
    connections = connections_to(cluster).with_part(connection)
    batches = batch_rows(read_live_rows(connections, name, {}, NOW))
    rows = pa.Table.from_batches(batches, LIVE).to_pylist(maps_as_pydicts="strict")
    return [dict(row) for row in rows]


def test_findings_of_unread_parts_are_unknown() -> None:
    state = KitchenState(
        {"b1": Kettle(5, "a"), "t1": Kettle(5, "a")}, frozenset({"top/salt", "low/a", "low/b"})
    )
    audited = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    clusters = ["eu-1"]
    first, _ = find_all(LocalTables(audited, make_live_rows(state), clusters), lambda _: None)
    first = [row for row in first if row["kind"] != "Topic"]
    assert [row["name"] for row in first] == ["low", "top", "b1", "t1"]
    part = UnreadPart("Jars", "top", "The ladder is broken.")
    unread = [part, replace(part, sort="Kettle", prefix="t"), replace(part, reason="It is dark.")]
    connection = KitchenConnection(replace(state, kettles={}, jars=frozenset()), None, unread)
    live = read_rows(connection)
    assert [(row["kind"], row["name"], row["error"]) for row in live if row["is_part"]] == [
        ("Jars", "top", "The ladder is broken. It is dark."),
        ("Kettle", "t", "The ladder is broken."),
    ]
    tables = LocalTables(audited, live, clusters, newest=first, since=first)
    second, _ = find_all(tables, lambda _: None)
    assert [row["kind"] for row in second] == ["Topic"]
    assert [row["name"] for row in find_unchecked(second, tables)] == ["top", "t1"]
    assert [row["name"] for row in find_fixed(second, tables)] == ["low", "b1"]


def make_kettle(name: str, serial: str, heat: int) -> DesiredResource:
    return DesiredResource(ResourceId("Kettle", name), KettleSpec(serial=serial, heat=heat), {"team": "tea"})


def make_jars(name: str, *names: str) -> DesiredResource:
    return DesiredResource(ResourceId("Jars", name), JarsSpec(jars=names))


def make_declared_rows(
    desired: Sequence[DesiredResource], owned: Mapping[str, OwnedRecord] | None = None, name: str = "eu-1"
) -> list[Row]:
    owned = owned or {}
    rows = [build_declared_cluster_row(name, {}, cluster_id="id-1")]
    for item in desired:
        rows += build_declared_rows(name, item, item.id, owned.get(str(item.id)))
    for text in owned.keys() - {str(item.id) for item in desired}:
        rows += build_declared_rows(name, None, ResourceId.parse(text), owned[text])
    pa.Table.from_pylist(rows, DECLARED)
    return rows


def shorten_rows(rows: Iterator[Row]) -> list[tuple[str, str, str, str | None]]:
    return [(row["kind"], row["name"], row["finding"], row["path"]) for row in rows if row["kind"] != "Topic"]


def test_foreign_objects_are_joined_by_live_key() -> None:
    state = KitchenState(
        {
            "k1": Kettle(100, "a"),
            "k2": Kettle(20, "a"),
            "k3": Kettle(80, "later"),
            "k5": Kettle(1, "a"),
            "k6": Kettle(1, "a"),
            "house": Kettle(1, "a"),
        }
    )
    desired = [
        make_kettle("good", "k1", 100),
        make_kettle("drifted", "k2", 90),
        make_kettle("replaced", "k3", 80),
        make_kettle("gone", "k4", 70),
    ]
    owned = {
        "Kettle/drifted": KettleRecord("k2", 90, "a"),
        "Kettle/replaced": KettleRecord("k3", 80, "earlier"),
        "Kettle/gone": KettleRecord("k4", 70),
        "Kettle/old": KettleRecord("k5", 1),
        "Kettle/older": KettleRecord("k9", 1),
    }
    rows = make_declared_rows(desired, owned)
    live = make_live_rows(state)
    assert shorten_rows(audit_rows(rows, live)) == [
        ("Kettle", "drifted", "changed", "heat"),
        ("Kettle", "gone", "missing", None),
        ("Kettle", "k6", "unmanaged", None),
        ("Kettle", "old", "orphaned", None),
        ("Kettle", "older", "missing", None),
        ("Kettle", "replaced", "changed", "made"),
    ]
    proved = {
        row["name"]
        for row in rows
        for seen in live
        if (row["live_sort"], row["live_key"]) == (seen["kind"], seen["name"]) and proves_no_drift(row, seen)
    }
    assert proved == {"good"}


def test_missing_applied_object_without_creation_is_missing() -> None:
    desired = [make_kettle("applied", "built-in 1", 70), make_kettle("new", "built-in 2", 80)]
    owned = {"Kettle/applied": KettleRecord("built-in 1", 70)}
    found = list(audit_rows(make_declared_rows(desired, owned), make_live_rows(KitchenState())))
    assert shorten_rows(iter(found)) == [
        ("Kettle", "applied", "missing", None),
        ("Kettle", "new", "pending", "heat"),
    ]
    assert (found[0]["op"], found[0]["after"]) == ("update", '{"heat":70}')
    assert found[0]["message"] == "Applied before, but missing from the cluster."


def test_sets_are_compared_by_element_and_extras_are_counted() -> None:
    state = KitchenState({}, frozenset({"top/salt", "top/mint", "low/a", "low/b", "low/c", "mid/x"}))
    owned = {
        "Jars/mine": JarsRecord(
            (
                "top/salt",
                "top/mint",
                "top/dill",
            )
        )
    }
    rows = make_declared_rows([make_jars("mine", "top/salt", "top/dill", "top/new")], owned)
    found = list(audit_rows(rows, make_live_rows(state)))
    assert shorten_rows(iter(found)) == [
        ("Jars", "low", "unmanaged", None),
        ("Jars", "mid", "unmanaged", None),
        ("Jars", "mine", "changed", "jars.top/dill"),
        ("Jars", "mine", "pending", "jars.top/mint"),
        ("Jars", "mine", "pending", "jars.top/new"),
    ]
    assert found[0]["before"] == "3"
    assert found[0]["message"] == "3 objects of 'low' are neither declared nor owned by kdeclare."


def test_foreign_objects_outside_selector_are_not_unmanaged() -> None:
    state = KitchenState({"k1": Kettle(5, "a")}, frozenset({"top/salt"}))
    rows = [build_declared_cluster_row("eu-1", {}, cluster_id="id-1")]
    for item in (make_kettle("mine", "k1", 100), make_jars("mine", "top/salt", "top/new")):
        rows += build_excluded_rows("eu-1", item, item.id, None)
    assert shorten_rows(audit_rows(rows, make_live_rows(state))) == []


def test_unavailable_system_affects_only_its_objects() -> None:
    live = make_live_rows(KitchenState(), Fault("POWER_CUT", "no power"))
    reason = "The system cannot be read: no power (POWER_CUT)."
    assert [(row["kind"], row["name"], row["error"]) for row in live if row["error"]] == [
        ("Jars", "", reason),
        ("Kettle", "", reason),
    ]
    found = list(audit_rows(make_declared_rows([make_kettle("mine", "k1", 1)]), live))
    assert [(row["name"], row["finding"], row["message"]) for row in found] == [
        ("mine", "unreachable", reason),
        ("orders", "unmanaged", "Neither declared nor owned by kdeclare."),
    ]


def build_cluster_tables(desired: Sequence[DesiredResource], live: Sequence[Row]) -> ClusterTables:
    (own, *mine), (itself, *theirs) = make_declared_rows(desired), live
    return ClusterTables("eu-1", own["owned"], itself["body"], mine, theirs)


def test_unavailable_system_does_not_prevent_cluster_pass() -> None:
    placed = declare(
        "Topic", "orders", partitions=2, replicationFactor=1, placement={"strategy": "cross-rack"}
    )
    for live in (
        make_live_rows(KitchenState(), Fault("POWER_CUT", "no power")),
        drop_other_systems(make_live_rows(KitchenState())),
    ):
        found = find_in_cluster(
            build_cluster_tables([placed, make_kettle("mine", "k1", 1)], live), None
        ).found
        assert {(str(id_), item.finding) for id_, _, item in found} == {("Topic/orders", "pending")}


def drop_other_systems(live: Sequence[Row]) -> Sequence[Row]:
    """Snapshots of versions without support for other systems."""
    body = {key: value for key, value in json.loads(live[0]["body"]).items() if key != "others"}
    return [{**live[0], "body": json.dumps(body)}, *live[1:]]


def test_snapshot_omits_unconfigured_system() -> None:
    def refuse() -> object:
        raise KdeclareError(error(NOT_CONFIGURED, "System is not configured", "Nothing says where it is."))

    connections = connections_to(MemoryCluster(cluster_id="id-1")).with_openers({KitchenConnection: refuse})
    live = list(read_live_rows(connections, "eu-1", {}, NOW))
    assert not [row for row in live if row["error"]]
    (found,) = audit_rows(make_declared_rows([make_kettle("mine", "k1", 1)]), live)
    assert (found["finding"], found["message"]) == ("unreachable", "Nothing says where it is.")


def test_snapshot_taken_without_provider_leaves_objects_unreachable() -> None:
    use_providers(None)
    try:
        live = list(read_live_rows(connections_to(MemoryCluster(cluster_id="id-1")), "eu-1", {}, NOW))
    finally:
        use_providers((*find_providers(), KITCHEN))
    assert "kitchen" not in json.loads(live[0]["body"])["others"]
    (found,) = audit_rows(make_declared_rows([make_kettle("mine", "k1", 1)]), live)
    assert found["finding"] == "unreachable"
    assert found["message"].startswith("No objects of this kind were read")


def test_older_snapshot_without_facts_hides_no_findings() -> None:
    live = make_live_rows(KitchenState({"k1": Kettle(5, "a"), "k2": Kettle(7, "a")}))
    for row in live:
        row |= {"has": None, "keys": None, "group_name": None}
    rows = make_declared_rows([make_kettle("mine", "k1", 5), make_kettle("other", "k2", 8)])
    assert not any(proves_no_drift(row, seen) for row in rows for seen in live)
    assert shorten_rows(audit_rows(rows, live)) == [("Kettle", "other", "pending", "heat")]


def test_policies_evaluate_objects_of_all_sorts() -> None:
    live = make_live_rows(
        KitchenState({"k1": Kettle(5, "a"), "house": Kettle(5, "a")}, frozenset({"top/salt"}))
    )
    asked: list[str] = []

    def judge(
        state: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        assert state.get(KitchenState).jars == {"top/salt"}
        asked.extend(map(str, objects))
        return ClusterEvaluation()

    find_in_cluster(build_cluster_tables([make_jars("mine", "top/salt")], live), judge)
    assert asked == ["Jars/mine", "Kettle/k1", "Topic/orders"]


@given(st.integers(0, 2**32))
def test_diff_of_decoded_object_equals_diff_of_kitchen(seed: int) -> None:
    random = Random(seed)
    kettles = {
        f"k{n}": Kettle(random.randint(0, 2), random.choice("ab")) for n in range(4) if random.random() < 0.8
    }
    state = KitchenState(kettles, volts=random.choice([110, 230]))
    live = make_live_rows(state)
    own = next(row["body"] for row in live if row["kind"] == "Cluster")
    bodies = {row["name"]: row["body"] for row in live if row["kind"] == "Kettle"}
    objects = [(LiveKey("Kettle", serial), body) for serial, body in bodies.items()]
    assert decode_cluster(own, objects).get(KitchenState) == state
    for number in range(4):
        item = make_kettle("mine", f"k{number}", random.randint(0, 2))
        owned = random.choice([None, KettleRecord(f"k{number}", random.randint(0, 2))])
        seen = decode_object(LiveKey("Kettle", f"k{number}"), bodies.get(f"k{number}"), own)
        decoded, original = (
            KINDS["Kettle"].diff(item.id, item, part, owned, PlanContext())
            for part in (seen, LiveState(state))
        )
        assert decoded == original


@pytest.mark.parametrize(
    ("distribution", "stated", "why"),
    [
        ("no-such-distribution", "1.0", "the Python environment of a Spark task does not have it"),
        ("kdeclare", "0.0.1", f"the Python environment of a Spark task has version {version('kdeclare')}"),
    ],
)
def test_use_providers_names_missing_provider(distribution: str, stated: str, why: str) -> None:
    missing = InstalledProvider("pantry", distribution, stated, "pantry:PROVIDER")
    with pytest.raises(KdeclareError) as problem:
        use_providers((*find_providers(), missing))
    (found,) = problem.value.diagnostics
    assert found.code == "provider-missing"
    assert found.detail == f"This command uses the provider 'pantry' ({distribution} {stated}), but {why}."
    assert "kitchen" in {provider.name for provider in load_providers()}, "nothing has changed"
    assert "Kettle" in CODECS
