"""For any fleet, the diff of a row equals the diff of the cluster, and facts never hide a finding."""

import json
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.parts import LiveState
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    encode_body,
)
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.record_binding import bind_record
from kdeclare.fleet.drift import collect_findings, parse_source
from kdeclare.fleet.findings import FindingKind
from kdeclare.fleet.in_process_audit import audit_rows, proves_no_drift
from kdeclare.fleet.live_state import decode_object
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.fleet.tables.rows import CLUSTER, DECLARED, LIVE
from kdeclare.providers.kafka.config.config_value import get_declared_configs
from tests.unit.fleet.fleets import HIDDEN, NO_PLACEMENT, PLUGIN, SECRET, Fleet, generate_fleet

Key = tuple[str, str, str]
_seeds = st.integers(0, 2**32)


def _index_by_key(rows: list[Row]) -> dict[Key, Row]:
    return {(row["cluster"], row["kind"], row["name"]): row for row in rows}


def _collect_findings(fleet: Fleet) -> dict[Key, list[Row]]:
    by_key: dict[Key, list[Row]] = {}
    for item in audit_rows(fleet.declared, fleet.live):
        by_key.setdefault((item["cluster"], item["kind"], item["name"]), []).append(item)
    return by_key


@given(_seeds)
def test_row_diff_equals_cluster_diff(seed: int) -> None:
    fleet = generate_fleet(Random(seed))
    declared, live = _index_by_key(fleet.declared), _index_by_key(fleet.live)
    for case in fleet.cases:
        kind = KINDS[case.id.kind]
        row = declared[case.cluster, case.id.kind, case.id.name]
        if not row["alone"]:
            continue
        body = live.get((case.cluster, case.id.kind, case.id.name), {}).get("body")
        decoded = None
        if case.desired is not None:
            wanted = decode_body(row["kind"], json.loads(row["desired"]))
            decoded = DesiredResource(case.id, wanted, case.desired.labels, parse_source(row["source"]))
        owned = None if row["owned"] is None else bind_record(row["kind"], json.loads(row["owned"]))
        own = live[case.cluster, CLUSTER, case.cluster]["body"]
        seen = decode_object(LiveKey(case.id.kind, case.id.name), body, own)
        mine = kind.diff(case.id, decoded, seen, owned, NO_PLACEMENT)
        theirs = kind.diff(case.id, case.desired, LiveState(case.live), case.owned, NO_PLACEMENT)
        assert _normalize_difference(mine) == _normalize_difference(theirs)
        assert collect_findings(case.id, mine, decoded, owned, seen) == collect_findings(
            case.id, theirs, case.desired, case.owned, LiveState(case.live)
        )


def _normalize_difference(difference: Difference) -> tuple[object, ...]:
    change = difference.change
    told = (
        None if change is None else (change.action, change.reason, change.risk, change.blocked, change.fields)
    )
    weighty = [(d.severity, d.code, d.detail) for d in difference.diagnostics]
    return told, difference.owned, difference.unmanaged, difference.drifted, sorted(weighty)


@given(_seeds)
def test_facts_never_prove_row_with_finding(seed: int) -> None:
    fleet = generate_fleet(Random(seed))
    live, findings = _index_by_key(fleet.live), _collect_findings(fleet)
    for key, row in _index_by_key(fleet.declared).items():
        if key in live and key in findings:
            assert not proves_no_drift(row, live[key]), (row, live[key], findings[key])


@given(_seeds)
def test_facts_that_ignore_unmanaged_keys_hide_nothing_else(seed: int) -> None:
    fleet = generate_fleet(Random(seed))
    live, findings = _index_by_key(fleet.live), _collect_findings(fleet)
    told = list(audit_rows(fleet.declared, fleet.live, unmanaged_keys=False))
    assert told == [item for items in findings.values() for item in items if not _is_unmanaged_key(item)]
    for key, row in _index_by_key(fleet.declared).items():
        if key in live and not all(map(_is_unmanaged_key, findings.get(key, ()))):
            assert not proves_no_drift(row, live[key], unmanaged_keys=False), (row, live[key], findings[key])


def _is_unmanaged_key(item: Row) -> bool:
    return item["finding"] == "unmanaged" and item["path"] is not None


@pytest.mark.slow
def test_facts_prove_nearly_all_clean_rows_with_plain_values() -> None:
    fleet = generate_fleet(Random(5), clusters=20, topics=50, plain=True)
    live, findings = _index_by_key(fleet.live), _collect_findings(fleet)
    in_order = [
        proves_no_drift(row, live[key])
        for key, row in _index_by_key(fleet.declared).items()
        if key in live and key not in findings and key[1] != CLUSTER
    ]
    assert len(in_order) > 300
    assert sum(in_order) / len(in_order) > 0.98


@pytest.mark.slow
def test_facts_prove_most_clean_rows() -> None:
    fleet = generate_fleet(Random(6), clusters=40, topics=20)
    live, findings = _index_by_key(fleet.live), _collect_findings(fleet)
    in_order = [
        proves_no_drift(row, live[key])
        for key, row in _index_by_key(fleet.declared).items()
        if key in live and key not in findings and row["desired"] is not None and row["alone"]
    ]
    assert len(in_order) > 50
    assert sum(in_order) / len(in_order) > 0.6


@given(_seeds)
def test_declared_body_round_trips_as_plain_data(seed: int) -> None:
    for case in generate_fleet(Random(seed), clusters=1).cases:
        if case.desired is None:
            continue
        stated = encode_body(case.desired)
        again = decode_body(case.id.kind, json.loads(json.dumps(stated)))
        assert encode_body(DesiredResource(case.id, again)) == stated
        if get_declared_configs(case.desired).keys().isdisjoint((SECRET, PLUGIN)):
            assert again == case.desired.body


@given(_seeds)
def test_rows_contain_no_secrets(seed: int) -> None:
    fleet = generate_fleet(Random(seed))
    assert HIDDEN not in str(fleet.declared)
    assert HIDDEN not in str(_collect_findings(fleet))


@given(_seeds)
def test_rows_match_table_schemas(seed: int) -> None:
    fleet = generate_fleet(Random(seed))
    pa.Table.from_pylist(fleet.declared, DECLARED)
    pa.Table.from_pylist(fleet.live, LIVE)
    assert all(list(row) == DECLARED.names for row in fleet.declared)
    assert all(list(row) == LIVE.names for row in fleet.live)


@pytest.mark.slow
def test_generated_fleets_have_findings_of_every_kind() -> None:
    fleet = generate_fleet(Random(7), clusters=40, topics=20)
    kinds = {item["finding"] for item in audit_rows(fleet.declared, fleet.live)}
    assert kinds == {str(kind) for kind in FindingKind} - {"contested", "policy", "unused"}
    assert generate_fleet(Random(7)) == generate_fleet(Random(7))
