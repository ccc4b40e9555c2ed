"""Reports of a plan show the targets of its operations, even if no name or field shows them."""

from html import unescape

import pytest

from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef
from kdeclare.providers.connect.operations import PatchWorkersArgs, WorkerConfigOpArgs
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka.client_quota.operations import AlterQuotaArgs, QuotaOpArgs
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from tests.unit.report.sample_plans import make_plan

WORKERS = ResourceId("ConnectWorkerConfig", "etl")
PATCH = Operation(
    "a",
    "connect.worker-config.patch",
    WORKERS,
    PatchWorkersArgs(
        WorkerGroup(("https://collector.example:8083",)),
        (WorkerConfigOpArgs("database.password", "SET", SecretRef("hash", "${env.PASSWORD}")),),
    ),
    {},
    irreversible="no",
)
QUOTA = ResourceId("ClientQuota", "harmless")
LIMIT = Operation(
    "b",
    "quota.alter",
    QUOTA,
    AlterQuotaArgs({"user": "payments"}, (QuotaOpArgs("producer_byte_rate", "SET", 1.0),)),
    {},
    irreversible="no",
)


@pytest.mark.parametrize(
    ("operation", "shown"),
    [(PATCH, "https://collector.example:8083"), (LIMIT, "user 'payments'")],
)
def test_operation_target_is_shown_in_every_format(operation: Operation, shown: str) -> None:
    field = FieldChange("configs.database.password", FieldOp.SET, None, SENSITIVE_MASK)
    change = Change(operation.resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, (field,))
    made = make_plan(changes=(change,), operations=(operation,))
    for text in (plan_text(made), plan_markdown(made), render_plan_page(made)):
        assert shown in unescape(text)
