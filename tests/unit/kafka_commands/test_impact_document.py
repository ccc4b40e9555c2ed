"""The JSON document of ``kdeclare impact``, and its schema."""

import json

from jsonschema import Draft202012Validator

from kdeclare.app.adhoc.impact import PredictedImpact
from kdeclare.core.diagnostics import error
from kdeclare.core.documents import dump_document
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan import ClusterRef, Plan, PlanBase, Summary
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.commands.impact.impact_views import (
    build_impact_schemas,
    build_impact_view,
    compute_impact_exit_code,
    render_impact,
)
from tests.unit.report.golden_files import check_schema

POLICY = FieldChange(
    "configs.cleanup.policy", FieldOp.APPEND, ("delete",), ("delete", "compact"), ("compact",)
)
CHANGE = Change(ResourceId("Topic", "orders"), Action.UPDATE, Reason.ASKED, Risk.SAFE, (POLICY,))
FIGURES = {"group": "billing", "unread_at_least": None, "unread_at_most": 7}
OBSERVATION = Observation(
    "Topic/orders", "unread-records", ObservationLevel.LOSS, "Group 'billing' …", POLICY.path, FIGURES
)
PROBLEM = error("no-such-topic", "No such topic", "There is no topic 'x'.", resource="Topic/x")


def make_plan(*changes: Change, observations: tuple[Observation, ...] = ()) -> Plan:
    """Return a plan with these changes."""
    return Plan(
        "shop",
        "lab",
        ClusterRef("c", "lab:9092"),
        PlanBase(None, 0),
        Summary(),
        changes,
        observations=observations,
    )


FOUND = PredictedImpact(make_plan(CHANGE, observations=(OBSERVATION,)), {})
PARTLY = PredictedImpact(make_plan(CHANGE), {"Topic/x": (PROBLEM,)})
FAILED = PredictedImpact(None, {"Topic/x": (PROBLEM,)})


def test_impact_documents_match_schema() -> None:
    schema = build_impact_schemas()["impact"]
    for predicted in (FOUND, PARTLY, FAILED):
        document = json.loads(json.dumps(dump_document(build_impact_view("lab:9092", predicted))))
        Draft202012Validator(schema).validate(document)
    check_schema("impact", schema)


def test_document_has_all_values_of_a_field() -> None:
    view = build_impact_view("lab:9092", FOUND)
    (field,) = view.changes[0].fields
    assert (field.before, field.after) == (("delete",), ("delete", "compact"))
    assert view.observations[0].figures == FIGURES


def test_resource_that_cannot_be_changed_is_an_error() -> None:
    assert [compute_impact_exit_code(predicted) for predicted in (FOUND, PARTLY, FAILED)] == [
        ExitCode.OK,
        ExitCode.ERROR,
        ExitCode.ERROR,
    ]
    assert build_impact_view("lab:9092", FAILED).diagnostics == (PROBLEM,)


def test_text_escapes_names() -> None:
    hostile = Change(ResourceId("Topic", "a\x1b[2J"), Action.UPDATE, Reason.ASKED, Risk.SAFE, (POLICY,))
    assert "\x1b" not in render_impact("lab\x1b:9092", make_plan(hostile))
