"""Quotas in snapshots and audits of fleets."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.live.faults import Fault
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
)
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.cluster_pass import ClusterTables, find_in_cluster
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.live_state import decode_object
from kdeclare.fleet.tables.row_builder import Row
from tests.unit.fleet.fleets import make_desired
from tests.unit.fleet.quotas import (
    NOWHERE,
    QuotaCluster,
    generate_quotas,
    make_entity,
    make_quota,
    make_quota_record,
)

ALICE, BOB, APP = make_entity(user="alice"), make_entity(user="bob"), make_entity(client_id="app")
EVERYONE, ANY_ADDRESS = make_entity(user=None), make_entity(ip=None)


def audit_cluster(made: QuotaCluster, *, unmanaged_keys: bool = True) -> list[Row]:
    return list(audit_rows(made.declared_rows(), made.live_rows(), unmanaged_keys=unmanaged_keys))


def shorten_rows(rows: list[Row]) -> list[tuple[str, str, str | None]]:
    return [(row["name"], row["finding"], row["path"]) for row in rows if row["kind"] == "ClientQuota"]


def test_audit_finds_quota_drift_of_every_kind() -> None:
    made = QuotaCluster()
    good, other = (
        make_quota("good", APP, producer_byte_rate=5),
        make_quota("other", EVERYONE, request_percentage=50),
    )
    gone, new = (
        make_quota("gone", BOB, producer_byte_rate=6),
        make_quota("new", make_entity(user="eve"), producer_byte_rate=1),
    )
    old, older = (
        make_quota("old", ANY_ADDRESS, connection_creation_rate=9),
        make_quota("older", make_entity(ip="10.0.0.9")),
    )
    none = make_quota("none", make_entity(user="carl"), producer_byte_rate=None)
    made.desired = [good, other, gone, new, none]
    made.owned = {str(item.id): make_quota_record(item) for item in (good, other, gone, old, older, none)}
    made.set(APP, producer_byte_rate=5, consumer_byte_rate=8)
    made.set(EVERYONE, request_percentage=60.5)
    made.set(ANY_ADDRESS, connection_creation_rate=9)
    made.set(ALICE, producer_byte_rate=1)
    made.set(make_entity(user="alice", client_id=None), producer_byte_rate=1)
    rows = audit_cluster(made)
    assert shorten_rows(rows) == [
        ("gone", "missing", None),
        ("good", "unmanaged", "limits.consumer_byte_rate"),
        ("new", "pending", None),
        ("old", "orphaned", None),
        ("older", "missing", None),
        ("other", "changed", "limits.request_percentage"),
        ("user=alice", "unmanaged", None),
        ("user=alice,client-id=*", "unmanaged", None),
    ]
    by_name = {row["name"]: row for row in rows}
    assert (by_name["other"]["before"], by_name["other"]["after"]) == ("60.5", "50")
    assert (by_name["good"]["before"], by_name["good"]["message"]) == (
        "8",
        "Set on the resource, but neither declared nor owned by kdeclare.",
    )
    assert (by_name["gone"]["op"], by_name["gone"]["after"]) == ("create", '{"limits.producer_byte_rate":6}')
    assert by_name["older"]["op"] == "forget"


def test_audit_removes_unmanaged_limits_when_declared() -> None:
    made = QuotaCluster()
    item = make_quota("app", APP, True, producer_byte_rate=5)
    made.desired, made.owned = [item], {str(item.id): make_quota_record(item)}
    made.set(APP, producer_byte_rate=5, consumer_byte_rate=8)
    (row,) = audit_cluster(made)
    assert (row["finding"], row["path"], row["op"]) == ("changed", "limits.consumer_byte_rate", "DELETE")


def test_audit_ignores_quotas_outside_selector() -> None:
    made = QuotaCluster(left_out=[make_quota("app", APP, producer_byte_rate=5)])
    made.set(APP, producer_byte_rate=7)
    assert audit_cluster(made) == []


def test_audit_reports_never_applied_quota_as_pending() -> None:
    made = QuotaCluster(desired=[make_quota("app", APP, producer_byte_rate=5)])
    made.set(APP, producer_byte_rate=7)
    (row,) = audit_cluster(made)
    assert (row["finding"], row["path"]) == ("pending", "limits.producer_byte_rate")
    assert "has never been applied by this project" in row["message"]


def test_audit_reports_first_limit_of_applied_manifest_as_pending() -> None:
    """Nothing of the quota is missing, because it was applied without any limit."""
    made = QuotaCluster(desired=[make_quota("app", APP, producer_byte_rate=5)])
    made.owned = {"ClientQuota/app": make_quota_record(make_quota("app", APP, producer_byte_rate=None))}
    (row,) = audit_cluster(made)
    assert (row["finding"], row["path"], row["op"]) == ("pending", None, "create")


def test_audit_reports_manifest_with_changed_entity() -> None:
    made = QuotaCluster(desired=[make_quota("app", BOB, producer_byte_rate=5)])
    made.owned = {"ClientQuota/app": make_quota_record(make_quota("app", ALICE, producer_byte_rate=5))}
    made.set(ALICE, producer_byte_rate=5)
    (row,) = audit_cluster(made)
    assert (row["name"], row["finding"]) == ("app", "pending")
    assert "was applied to user 'alice'" in row["message"]


def test_audit_without_quota_permission_audits_the_rest() -> None:
    made = QuotaCluster(
        desired=[make_quota("app", APP, producer_byte_rate=5), make_desired("Topic", "orders", partitions=3)]
    )
    made.owned = {"ClientQuota/old": make_quota_record(make_quota("old", BOB, producer_byte_rate=5))}
    refused = Fault("CLUSTER_AUTHORIZATION_FAILED", "Cluster authorization failed.")
    made.cluster.faults.fail(refused, nth=None, method="quotas")
    reason = (
        "The system cannot be read: reading quotas requires the DescribeConfigs permission on the cluster "
        "(CLUSTER_AUTHORIZATION_FAILED)."
    )
    live = made.live_rows()
    assert [(row["kind"], row["name"]) for row in live if row["error"] == reason] == [("ClientQuota", "")]
    found = [
        (row["kind"], row["name"], row["finding"], row["message"])
        for row in audit_rows(made.declared_rows(), live)
    ]
    assert found == [
        ("ClientQuota", "app", "unreachable", reason),
        ("ClientQuota", "old", "unreachable", reason),
        ("Topic", "orders", "pending", "Declared, but not applied yet."),
    ]


def test_audit_of_older_snapshot_reports_quotas_as_unreadable() -> None:
    placed = make_desired(
        "Topic", "orders", partitions=1, replicationFactor=1, placement={"strategy": "cross-rack"}
    )
    made = QuotaCluster(desired=[make_quota("app", APP, producer_byte_rate=5), placed])
    made.owned = {"ClientQuota/old": make_quota_record(make_quota("old", BOB, producer_byte_rate=5))}
    live = [row for row in made.live_rows() if row["kind"] != "ClientQuota"]
    body = json.loads(live[0]["body"])
    live[0]["body"] = json.dumps({key: body[key] for key in ("id", "version", "rf_guard", "brokers")})
    declared = made.declared_rows()
    found = list(audit_rows(declared, live))
    assert {(row["name"], row["finding"]) for row in found} == {
        ("app", "unreachable"),
        ("old", "unreachable"),
    }
    assert all("the snapshot was taken by an older version of kdeclare" in row["message"] for row in found)
    whole = ClusterTables("eu-1", None, live[0]["body"], declared[1:], live[1:])
    assert {str(id_) for id_, _, _ in find_in_cluster(whole, None).found} == {"Topic/orders"}


def test_collection_sends_one_quota_request() -> None:
    made = QuotaCluster()
    made.set(ALICE, producer_byte_rate=1)
    before = len(made.cluster.calls)
    made.live_rows()
    assert [call.method for call in made.cluster.calls[before:]].count("quotas") == 1


@pytest.mark.parametrize("limit", [float("inf"), 12.5, 3.0])
def test_snapshot_round_trips_quota_limits(limit: float) -> None:
    made = QuotaCluster()
    made.set(ALICE, request_percentage=limit)
    (row,) = (row for row in made.live_rows() if row["kind"] == "ClientQuota")
    own = next(row["body"] for row in made.live_rows() if row["kind"] == "Cluster")
    assert decode_object(LiveKey("ClientQuota", row["name"]), row["body"], own) == made.live()


@given(st.integers(0, 2**32))
def test_row_diff_equals_cluster_diff_and_facts_hide_no_drift(seed: int) -> None:
    made = generate_quotas(Random(seed))
    declared, live = made.declared_rows(), made.live_rows()
    seen = {row["name"]: row for row in live if row["kind"] == "ClientQuota"}
    kind = KINDS["ClientQuota"]
    for item in made.desired:
        row = next(row for row in declared if row["name"] == item.id.name)
        mine = seen.get(row["live_key"])
        owned: OwnedRecord | None = made.owned.get(str(item.id))
        read = DesiredResource(
            item.id, decode_body("ClientQuota", json.loads(row["desired"])), item.labels, item.source
        )
        body = None if mine is None else mine["body"]
        part = decode_object(LiveKey("ClientQuota", row["live_key"]), body, live[0]["body"])
        assert kind.diff(item.id, read, part, owned, NOWHERE) == kind.diff(
            item.id, item, made.live(), owned, NOWHERE
        )
        for unmanaged_keys in (True, False):
            found = {row["name"] for row in audit_rows(declared, live, unmanaged_keys=unmanaged_keys)}
            if mine is not None and proves_no_drift(row, mine, unmanaged_keys=unmanaged_keys):
                assert item.id.name not in found


def test_facts_prove_absence_of_quota_drift() -> None:
    made = QuotaCluster(desired=[make_quota("app", APP, producer_byte_rate=5, request_percentage=12.5)])
    made.set(APP, producer_byte_rate=5, request_percentage=12.5)
    _, row = made.declared_rows()
    seen = made.live_rows()[-1]
    assert proves_no_drift(row, seen)
    made.set(APP, producer_byte_rate=6)
    assert not proves_no_drift(row, made.live_rows()[-1])
