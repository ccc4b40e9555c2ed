"""The pages of plans and runs without a browser: the embedded data matches the plan."""

import json
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.synthetic.plans import big_plan
from kdeclare.core.diagnostics import SourcePosition, denied, warning
from kdeclare.core.documents import build_document
from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.operations.argument_binding import bind_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observed_effect import EffectStatus, ObservedEffect
from kdeclare.core.plans.plan import ClusterRef, Plan, Summary, Verdict, VerdictOutcome
from kdeclare.core.plans.run import Status
from kdeclare.core.provider.registry import OPERATION_TYPES
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef
from kdeclare.providers.kafka.operations.arguments import AlterConfigsArgs, ConfigOpArgs
from kdeclare.report.elements.values import sanitize_for_terminal
from kdeclare.report.plan.page_notes import (
    MAX_NOTES,
    list_plan_notes,
    list_plan_risks,
    list_run_notes,
    list_run_problems,
)
from kdeclare.report.plan.plan_page import render_plan_page, render_run_page
from kdeclare.report.plan.plan_page_data import order_changes
from kdeclare.report.run.views import RunDetail, RunOverride, RunStep
from tests.browser.sample_audits import HOSTILE
from tests.jsontypes import Json
from tests.unit.report.page_reader import Reader
from tests.unit.report.sample_plans import SAMPLES, make_plan
from tests.unit.report.sample_runs import DETAIL, HISTORY, START


def read_text(data: Json, column: str, row: int, table: str = "changes") -> str | None:
    place = data[table][column][row]
    return None if place < 0 else data["strings"][place]


def make_run(made: Plan, status: Status | None = Status.DONE, words: str = "") -> RunDetail:
    """A run of a plan in which all operations have the same status."""
    ended = START if status else None
    steps = tuple(
        RunStep(o.id, o.verb, str(o.resource), status, START, ended, words or None, words)
        for o in made.operations
    )
    return build_document(RunDetail, HISTORY[2], plan=made, steps=steps)


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_page_lists_every_change_in_order(name: str) -> None:
    made = SAMPLES[name]
    data = Reader(render_plan_page(made, "0123")).data
    changes = order_changes(made)
    assert sorted(map(repr, changes)) == sorted(map(repr, made.changes))
    orphans = [change.action is Action.NO_OP for change in changes]
    assert orphans == sorted(orphans)
    for row, change in enumerate(changes):
        assert f"{read_text(data, 'kind', row)}/{read_text(data, 'name', row)}" == str(change.id)
        risks = data["changes"]["risks"][row]
        assert [data["risks"][risk] for risk in risks] == list(change.risks)
        assert read_text(data, "blocked", row) == change.blocked
        first, last = data["changes"]["first"][row : row + 2]
        shown = [read_text(data, "path", at, "fields") for at in range(first, last)]
        assert shown == [field.path.removeprefix("configs.") for field in change.fields]
    assert len(data["operations"]["verb"]) == len(made.operations)
    assert ("plan", "0123") in map(tuple, data["facts"])


def test_plan_page_fields_have_before_and_after_as_applicable() -> None:
    data = Reader(render_plan_page(SAMPLES["everything"])).data
    sides: dict[str, set[tuple[bool, bool]]] = {}
    for row in range(len(data["changes"]["kind"])):
        action = data["actions"][data["changes"]["action"][row]][0]
        for at in range(*data["changes"]["first"][row : row + 2]):
            has = (
                read_text(data, "before", at, "fields") is not None,
                read_text(data, "after", at, "fields") is not None,
            )
            sides.setdefault(action, set()).add(has)
    assert sides == {"create": {(False, True)}, "change": {(True, True)}, "delete": {(True, False)}}


def test_plan_page_shows_dependencies_with_reasons() -> None:
    made = SAMPLES["everything"]
    data = Reader(render_plan_page(made)).data
    for number, operation in enumerate(made.operations):
        after = data["after"][number]
        found = {
            made.operations[at].id: data["strings"][why]
            for at, why in zip(after[::2], after[1::2], strict=True)
        }
        assert found == dict(operation.after)


def test_run_page_shows_status_of_every_operation() -> None:
    made = SAMPLES["everything"]
    data = Reader(render_run_page(make_run(made, Status.FAILED, "it broke"))).data
    run = data["run"]
    assert {run["statuses"][at] for at in run["status"]} == {"failed"}
    assert {data["strings"][at] for at in run["message"]} == {"it broke"}
    assert sorted(n for steps in run["steps"] for n in steps) == list(range(len(made.operations)))


def test_plan_risks_are_sorted_like_comment() -> None:
    tags = [(item.tag, item.resource) for item in list_plan_risks(SAMPLES["blocked"])]
    assert tags == [("denied", "Topic/payments"), ("denied", "Topic/legacy.events")]
    tags = [(item.tag, item.resource) for item in list_plan_risks(SAMPLES["everything"])]
    assert tags == [("irreversible", "Topic/legacy.events"), ("irreversible", "Topic/payments")]


def test_plan_notes_list_policies_orphans_and_unmanaged() -> None:
    assert [n.tag for n in list_plan_notes(SAMPLES["blocked"])] == ["policies", "warned", "warned"]
    assert [n.tag for n in list_plan_notes(SAMPLES["everything"])] == ["orphaned", "unmanaged", "unmanaged"]
    (orphans,) = list_plan_notes(SAMPLES["orphans"])
    assert orphans.title == "1 orphan: owned, but no longer declared"
    assert list_plan_notes(SAMPLES["create"]) == []


def test_run_problems_are_sorted_worst_first() -> None:
    tags = [(item.tag, item.title) for item in list_run_problems(DETAIL)]
    assert tags == [
        ("failed", "throttle.set"),
        ("unknown", "configs.alter"),
        ("skipped", "partitions.reassign"),
        ("not started", "configs.alter"),
    ]
    assert list_run_problems(DETAIL)[2].lines == ("because of throttle.set Reassignment/drain-broker-3",)
    assert [item.tag for item in list_run_notes(DETAIL)] == ["overridden", "overridden", "warning"]


def test_run_problems_state_cause_once() -> None:
    said = "Topic/t retention.ms: planned on 1, but now it is 2."
    stale = RunStep("a", "configs.alter", "Topic/t", Status.STALE, error="stale", message=said)
    needs = RunStep("b", "topic.delete", "Topic/t", Status.SKIPPED, message="It depends on a.", cause="a")
    troubles = list_run_problems(replace(DETAIL, steps=(stale, needs)))
    assert [item.lines for item in troubles] == [(said,), ("It depends on a.",)]


def test_plan_page_lists_all_risks() -> None:
    many = tuple(
        Change(ResourceId("Topic", f"t{n}"), Action.DELETE, Reason.ORPHANED, Risk.IRREVERSIBLE)
        for n in range(500)
    )
    risky = Reader(render_plan_page(make_plan(changes=many, summary=Summary(delete=500)))).data["risky"]
    assert (len(risky["items"]), risky["left"]) == (500, 0)


def test_plan_page_counts_excess_notes() -> None:
    keys = {f"Topic/t{n}": ("retention.ms",) for n in range(500)}
    found = Reader(render_plan_page(make_plan(unmanaged_configs=keys))).data["notes"]
    assert (len(found["items"]), found["left"], found["others"]) == (
        MAX_NOTES,
        500 - MAX_NOTES,
        "--format json",
    )


names = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
)


def make_hostile_plan(name: str) -> Plan:
    """A plan in which everything has this name."""
    resource = ResourceId("Topic", name)
    fields = (
        FieldChange(name, FieldOp.SET, name, [name]),
        FieldChange(f"configs.{name}", FieldOp.CHANGE, {name: 1}, 2),
    )
    change = Change(
        resource, Action.UPDATE, Reason.CHANGED, Risk.DESTRUCTIVE, fields, SourcePosition(name, 1, 1)
    )
    create: JsonObject = {
        "topic": name,
        "partitions": 1,
        "replication_factor": 1,
        "configs": {},
        "assignments": {"0": [1]},
    }
    return replace(
        make_plan(changes=(change,), summary=Summary(update=1)),
        project=name,
        env=name,
        cluster=ClusterRef(name, name),
        operations=(
            Operation(
                "a", "topic.create", resource, bind_arguments("topic.create", create), {}, {}, None, name
            ),
            Operation("b", name, resource, bind_arguments(name, {}), {}, {"a": name}, None, name),
        ),
        verdicts=(Verdict(name, f"Topic/{name}", VerdictOutcome.DENY, name, name),),
        diagnostics=(denied(name, name, name, name), warning(name, name, name, resource=name)),
        unmanaged_configs={name: (name,)},
        racks={1: name},
    )


@given(names)
def test_pages_escape_names(name: str) -> None:
    assume(name not in OPERATION_TYPES)  # a real verb would require its arguments
    made = make_hostile_plan(name)
    override = RunOverride(name, name, name, name, name)
    ran = replace(
        make_run(made, Status.FAILED, name),
        run_id=name,
        user=name,
        command=name,
        plan_id=name,
        outcome=name,
        overrides=(override,),
        diagnostics=made.diagnostics,
    )
    plain = make_hostile_plan("plain")
    plain_ran = replace(make_run(plain, Status.FAILED, "plain"), overrides=(override,))
    for page, usual in (
        (render_plan_page(made), render_plan_page(plain)),
        (render_run_page(ran), render_run_page(plain_ran)),
    ):
        read = Reader(page)
        allowed = {tag for tag, _ in Reader(usual).tags}
        assert {tag for tag, _ in read.tags} <= allowed
        assert all(not key.startswith("on") for _, attributes in read.tags for key in attributes)
        assert sum(tag == "script" for tag, _ in read.tags) == 2
        assert read_text(read.data, "name", 0) == sanitize_for_terminal(name)
        assert not re.search("[\u2028\u2029]", page)
        assert read_text(read.data, "name", 1, "operations") == sanitize_for_terminal(name)


def test_run_page_shows_predictions_beside_effects() -> None:
    effects = (
        ObservedEffect(
            "Topic/a", "configs.retention.ms", "c", EffectStatus.PENDING, "Kafka deletes 7.", "So far, 0."
        ),
        ObservedEffect("Topic/<b>", None, "c", EffectStatus.UNKNOWN, "<i>x</i>", "<i>y</i>"),
    )
    page = render_run_page(replace(make_run(SAMPLES["everything"]), effects=effects))
    assert (
        '<tr><th scope="row">Topic/a<span class="line">retention.ms</span></th>'
        '<td data-title="Predicted">Kafka deletes 7.</td>'
        '<td data-title="Observed"><span class="tag k-pending">pending</span> So far, 0.</td></tr>'
    ) in page
    assert '<th scope="row">Topic/&lt;b&gt;</th>' in page
    assert "<i>" not in page.replace("<script>", "")
    assert "Predicted and observed" not in render_run_page(make_run(SAMPLES["everything"]))


def test_run_page_loads_nothing_external() -> None:
    read = Reader(render_run_page(make_run(SAMPLES["everything"])))
    policy = next(a["content"] for tag, a in read.tags if tag == "meta" and "http-equiv" in a) or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert {a.get(key) for _, a in read.tags for key in ("src", "href") if a.get(key)} == {"#", "data:,"}
    assert not [a for _, a in read.tags if "style" in a]


def test_plan_page_hides_secrets_and_their_hashes() -> None:
    secret = {"secret": "pbkdf2$abc$def", "reference": "${env.PASSWORD}"}
    resource = ResourceId("BrokerConfig", "1")
    field = FieldChange("configs.ssl.keystore.password", FieldOp.SET, secret, secret)
    ref = SecretRef(secret["secret"], secret["reference"])
    args = AlterConfigsArgs("BROKER", "1", (ConfigOpArgs("ssl.keystore.password", "SET", ref),))
    made = make_plan(
        changes=(Change(resource, Action.UPDATE, Reason.CHANGED, Risk.SAFE, (field,)),),
        operations=(Operation("a", "configs.alter", resource, args, {"x": secret}, {}, None, "no"),),
    )
    for page in (render_plan_page(made), render_run_page(make_run(made))):
        assert SENSITIVE_MASK in page
        assert "pbkdf2" not in page
        assert "PASSWORD" not in page


def test_plan_page_is_deterministic() -> None:
    assert render_plan_page(big_plan(60)) == render_plan_page(big_plan(60))


def test_page_of_big_plan_is_small() -> None:
    made = big_plan(400)
    page = render_plan_page(made)
    assert len(page.encode()) < 100_000 + 400 * 1_000
    data = Reader(page).data
    assert len(data["changes"]["kind"]) == 400
    assert len(data["graph"]["nodes"]) < 20
    assert json.dumps(data["moves"]["racks"])
