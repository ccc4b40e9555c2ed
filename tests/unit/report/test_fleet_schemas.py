"""The output of the fleet commands matches the schemas in the docs."""

import json
from dataclasses import replace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare.core.documents import dump_document
from kdeclare.fleet.finding_status import FIXED
from kdeclare.fleet.history.object_history import FieldTurn, Turn
from kdeclare.fleet.history.snapshot_diff import ObjectChange, SnapshotDiff, UnknownPart
from kdeclare.fleet.overview import FleetApply, FleetPlan
from kdeclare.fleet.stored_findings import ComparedFindings
from kdeclare.fleet.tables.snapshots import SnapshotCluster, SnapshotRecord
from kdeclare.report.fleet.findings_report import build_findings_document
from kdeclare.report.fleet.fleet_runs import build_fleet_schemas
from kdeclare.report.fleet.notifications.json_message import build_json_message
from kdeclare.report.fleet.notifications.notify_output import Delivery, DeliveryStatus, FleetNotifications
from kdeclare.report.fleet.snapshot_diff_text import build_snapshot_diff_document
from kdeclare.report.fleet.snapshot_text import build_object_history_document
from tests.browser.sample_audits import NOON, SILENT, build_big_audit, build_small_audit
from tests.unit.report.golden_files import check_schema
from tests.unit.report.test_fleet_texts import APPLIED, PLANS
from tests.unit.report.test_notification_messages import make_notification
from tests.unit.report.test_snapshot_text import WHOLE, make_record
from tests.unit.report.test_topic_history_text import ORDERS, STORY

SMALL = build_small_audit()
SNAPSHOTS = (make_record(WHOLE), make_record(WHOLE))
DIFF = SnapshotDiff(
    (
        ObjectChange("eu-1", "Topic", "new", Turn.APPEARED),
        ObjectChange("eu-1", "Topic", "t", Turn.CHANGED, (FieldTurn("configs.retention.ms", None, "1"),)),
    ),
    (UnknownPart("eu-2", None, None, "refused"), UnknownPart("eu-1", "Topic", "secret", "not authorized")),
)
FINDINGS = ComparedFindings(SMALL.rows, tuple(replace(row, status=FIXED) for row in SMALL.mended), 1)
NOTIFICATIONS = FleetNotifications(
    "id",
    "shop",
    (
        Delivery("platform", DeliveryStatus.SENT, "earlier", 3, 1),
        Delivery("pager", DeliveryStatus.FAILED, None, 3, 1, "It did not accept the message."),
        Delivery("nightly", DeliveryStatus.NOT_SENT, None, 3, 1, None, "{}"),
    ),
)
DOCUMENTS = [
    ("fleet-snapshot", dump_document(make_record(WHOLE, SnapshotCluster("eu-3", error=SILENT)))),
    ("fleet-snapshot", dump_document(SnapshotRecord("id", "none", NOON, 0.0, "data", ()))),
    ("fleet-audit", dump_document(build_small_audit().summary)),
    ("fleet-audit", dump_document(build_big_audit().summary)),
    ("fleet-report", dump_document(build_findings_document(SMALL.summary, None, FINDINGS))),
    ("fleet-report", dump_document(build_findings_document(SMALL.summary, SMALL.summary, FINDINGS))),
    ("fleet-notify", dump_document(NOTIFICATIONS)),
    ("fleet-notify", dump_document(FleetNotifications("id", "none", ()))),
    ("fleet-notification", build_json_message(make_notification("json"))),
    ("fleet-plan", dump_document(PLANS)),
    ("fleet-plan", dump_document(FleetPlan("none", NOON, 0.0, False, ()))),
    ("fleet-apply", dump_document(APPLIED)),
    ("fleet-apply", dump_document(FleetApply("none", 0.0, stopped="too many failures"))),
    ("fleet-history", dump_document(build_object_history_document("eu-1", ORDERS, STORY))),
    ("fleet-history", dump_document(build_object_history_document("eu-1", ORDERS, ()))),
    ("fleet-diff", dump_document(build_snapshot_diff_document(*SNAPSHOTS, DIFF))),
    ("fleet-diff", dump_document(build_snapshot_diff_document(*SNAPSHOTS, SnapshotDiff((), ())))),
]


def test_fleet_schemas_match_docs() -> None:
    for name, schema in build_fleet_schemas().items():
        check_schema(name, schema)
    assert {name for name, _ in DOCUMENTS} == build_fleet_schemas().keys()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "document"), DOCUMENTS)
def test_fleet_documents_fit_schemas(name: str, document: dict[str, Any]) -> None:
    validator = Draft202012Validator(build_fleet_schemas()[name])
    printed = json.loads(json.dumps(document))
    validator.validate(printed)
    for key in printed:
        assert not validator.is_valid({k: v for k, v in printed.items() if k != key})
    assert not validator.is_valid(printed | {"more": 1})
