"""What the commands about fleets print fits the schemas in the docs."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.fleet.overview import FleetApply, FleetPlan, overview_document
from kdeclare.fleet.snapshots import SnapshotCluster, SnapshotRecord, record_document
from kdeclare.report.audit_json import summary_document
from kdeclare.report.fleet_apply_text import fleet_apply_document
from kdeclare.report.fleet_schemas import fleet_schemas
from kdeclare.report.topic_history_text import topic_history_document
from tests.browser.sample_audits import NOON, SILENT, big_audit, small_audit
from tests.unit.report.golden_files import check_schema
from tests.unit.report.test_fleet_texts import APPLIED, PLANS
from tests.unit.report.test_snapshot_text import WHOLE, record
from tests.unit.report.test_topic_history_text import STORY

DOCUMENTS = [
    ("fleet-snapshot", record_document(record(WHOLE, SnapshotCluster("eu-3", error=SILENT)))),
    ("fleet-snapshot", record_document(SnapshotRecord("id", "none", NOON, 0.0, "data", ()))),
    ("fleet-audit", summary_document(small_audit().summary)),
    ("fleet-audit", summary_document(big_audit().summary)),
    ("fleet-plan", overview_document(PLANS)),
    ("fleet-plan", overview_document(FleetPlan("none", NOON, 0.0, ()))),
    ("fleet-apply", fleet_apply_document(APPLIED)),
    ("fleet-apply", fleet_apply_document(FleetApply("none", 0.0, stopped="too many failures"))),
    ("fleet-history", topic_history_document("eu-1", "orders", STORY)),
    ("fleet-history", topic_history_document("eu-1", "orders", ())),
]


def test_the_schemas_in_the_docs_are_the_ones_in_use() -> None:
    for name, schema in fleet_schemas().items():
        check_schema(name, schema)
    assert {name for name, _ in DOCUMENTS} == fleet_schemas().keys()


@pytest.mark.parametrize(("name", "document"), DOCUMENTS)
def test_documents_fit_their_schema(name: str, document: dict[str, Any]) -> None:
    validator = Draft202012Validator(fleet_schemas()[name])
    printed = json.loads(json.dumps(document))
    validator.validate(printed)
    for key in printed:
        assert not validator.is_valid({k: v for k, v in printed.items() if k != key})
    assert not validator.is_valid(printed | {"more": 1})
