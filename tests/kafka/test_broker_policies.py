"""Brokers with policies of their own: what is answered when those deny."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import CreatedObject, Fault, FaultKind, Outcome
from kdeclare.core.plans.plan import UNEXPLAINED_DENIAL
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp
from tests.beds import CLUSTER_WIDE, SET, KafkaBed, get_message, topic_resource
from tests.kafka.broker_policies import (
    CRASH,
    CRASH_VALUE,
    DENIED,
    DENIED_VALUE,
    LOGIN,
    SILENT,
    SILENT_VALUE,
    PolicedBrokers,
    build_alter_call,
    build_single_create_call,
    build_topic,
)
from tests.kafka.governed import BOUNDS, GovernedProject, open_governed_project, read_topics

pytestmark = pytest.mark.kafka

BACKOFF = "log.cleaner.backoff.ms"


@pytest.fixture
def bed(policed_bed: KafkaBed) -> KafkaBed:
    """A client of the brokers with policies."""
    return policed_bed


def describe_refusal(found: Outcome) -> tuple[str, str, FaultKind]:
    """What a broker has against it."""
    assert isinstance(found, Fault)
    return found.error, found.message, found.kind


def build_name_denial(name: str) -> tuple[str, str, FaultKind]:
    """What the policy says of a new topic with a name that it denies."""
    return "POLICY_VIOLATION", f"No topic is called {name} here", FaultKind.REFUSED


def build_value_denial(name: str) -> tuple[str, str, FaultKind]:
    """What the policy says of a config value that it denies."""
    return "POLICY_VIOLATION", f"No config of {name} has that value here", FaultKind.REFUSED


@pytest.mark.parametrize("validate_only", [True, False])
def test_denied_topic_is_refused_and_others_are_created(bed: KafkaBed, validate_only: bool) -> None:
    first, bad, last = bed.name(), bed.name(DENIED), bed.name()
    items = [build_topic(first), build_topic(bad), build_topic(last)]
    found = bed.cluster.create_topics(items, validate_only=validate_only)
    assert found.keys() == {first, bad, last}
    assert not any(isinstance(found[name], Fault) for name in (first, last))
    assert describe_refusal(found[bad]) == build_name_denial(bad)
    made = set() if validate_only else {first, last}
    bed.eventually(lambda: _expect_existing(bed, [first, bad, last], made))


def _expect_existing(bed: KafkaBed, names: list[str], there: set[str]) -> None:
    assert bed.cluster.topics(names).keys() == there


def test_alter_config_policy_is_asked_first_for_creations(policies: PolicedBrokers, bed: KafkaBed) -> None:
    fine, bad, configs = bed.name(), bed.name(DENIED), {"retention.ms": DENIED_VALUE}
    with policies.record_calls() as lines:
        found = bed.cluster.create_topics([build_topic(bad, configs), build_topic(fine)])
    assert lines == [build_alter_call(bad, configs), build_single_create_call(fine)]
    assert isinstance(found[fine], CreatedObject)
    assert describe_refusal(found[bad]) == build_value_denial(bad)
    assert bed.cluster.topics([bad]) == {}


@pytest.mark.parametrize("validate_only", [True, False])
def test_denied_resource_keeps_configs_and_others_change(bed: KafkaBed, validate_only: bool) -> None:
    bad, fine = (topic_resource(bed.create(configs={"retention.ms": "5"})) for _ in range(2))
    changes = {
        bad: (ConfigOp("segment.ms", SET, "99"), ConfigOp("retention.ms", SET, DENIED_VALUE)),
        fine: (ConfigOp("retention.ms", SET, "6"),),
        CLUSTER_WIDE: (ConfigOp(BACKOFF, SET, DENIED_VALUE),),
    }
    items = [ConfigAlteration(resource, ops) for resource, ops in changes.items()]
    found = bed.cluster.alter_configs(items, validate_only=validate_only)
    assert found.keys() == changes.keys()
    assert found[fine] is None
    assert describe_refusal(found[bad]) == build_value_denial(bad.name)
    assert describe_refusal(found[CLUSTER_WIDE]) == build_value_denial("")
    bed.expect_overrides(fine, {"retention.ms": "5" if validate_only else "6"})
    assert bed.overrides(bad) == {"retention.ms": "5"}
    assert BACKOFF not in bed.overrides(CLUSTER_WIDE)


@pytest.mark.parametrize(
    ("word", "value", "answer"),
    [
        # no message of its own: the client is sent none
        (SILENT, SILENT_VALUE, ("POLICY_VIOLATION", "", FaultKind.REFUSED)),
        # whatever else it throws: the client cannot tell what happened, nor why
        (CRASH, CRASH_VALUE, ("UNKNOWN_SERVER_ERROR", "", FaultKind.UNKNOWN)),
    ],
)
def test_policy_without_message_gives_empty_reason(
    bed: KafkaBed, word: str, value: str, answer: tuple[str, str, FaultKind]
) -> None:
    bad, there = bed.name(word), bed.create(configs={"retention.ms": "5"})
    assert describe_refusal(bed.cluster.create_topics([build_topic(bad)])[bad]) == answer
    assert describe_refusal(bed.alter(topic_resource(there), ("retention.ms", SET, value))) == answer
    assert (
        get_message(bed.alter(topic_resource(there), ("retention.ms", SET, value), validate_only=True)) == ""
    )
    assert bed.cluster.topics([bad]) == {}
    assert bed.overrides(topic_resource(there)) == {"retention.ms": "5"}


# kdeclare's own commands at these brokers


@pytest.fixture
def project_and_bed(policies: PolicedBrokers, tmp_path: Path) -> Iterator[tuple[GovernedProject, KafkaBed]]:
    """A project there, and another client."""
    with open_governed_project(policies.sandbox.bootstrap, tmp_path) as made:
        yield made


def test_plan_has_broker_verdicts_and_apply_does_the_rest(
    project_and_bed: tuple[GovernedProject, KafkaBed],
) -> None:
    project, bed = project_and_bed
    project.declare(project.topic("tuned"), project.topic("fine"))
    project.done("apply", "--yes")
    before = read_topics(bed, project.name("tuned"))
    project.declare(
        project.topic("tuned", configs={"segment.ms": 99, "retention.ms": int(DENIED_VALUE)}),
        project.topic("fine", configs={"segment.ms": 99}),
        project.topic(DENIED),
        project.topic(SILENT),
        project.topic("new"),
    )
    planned = project.run_denied("plan", "--format", "json")
    verdicts = {
        ("broker", "tuned"): ("deny", build_value_denial(project.name("tuned"))[1]),
        ("broker", DENIED): ("deny", build_name_denial(project.name(DENIED))[1]),
        ("broker", SILENT): ("deny", UNEXPLAINED_DENIAL),
    }
    assert project.read_verdicts(planned) == verdicts
    said = project.run_denied("plan").out
    assert said.count("denied by a broker policy: ") == 3
    assert f"denied by a broker policy: No topic is called {project.name(DENIED)} here" in said
    assert "--override-policy" not in said, "that would not help"
    override = project("apply", "--yes", "--override-policy", "broker", "--reason", "please")
    assert override.code is ExitCode.ERROR
    assert "The brokers enforce the policy 'broker', so kdeclare cannot override it." in override.err
    ran = project.run_denied("apply", "--yes", "--format", "json")
    assert project.read_verdicts(ran) == verdicts
    assert json.loads(ran.out)["counts"]["done"] == 2

    def rest_is_done() -> None:
        short = {
            project.strip_prefix(name) for name in bed.cluster.topics() if name.startswith(project.prefix)
        }
        assert short == {"tuned", "fine", "new"}
        assert read_topics(bed, project.name("tuned")) == before
        assert bed.overrides(topic_resource(project.name("fine"))) == {"segment.ms": "99"}

    bed.eventually(rest_is_done)
    assert project.read_owned() == {"tuned", "fine", "new"}


def test_run_without_preflight_skips_dependents_of_denied_change(
    project_and_bed: tuple[GovernedProject, KafkaBed],
) -> None:
    project, bed = project_and_bed
    fewer, fine = map(project.name, ("fewer", "fine"))
    copies = {"replicationFactor": 2, "configs": {"min.insync.replicas": 2}}
    project.declare(project.topic("fewer", **copies), project.topic("fine", **copies))
    project.done("apply", "--yes")
    before = read_topics(bed, fewer, fine)
    # with fewer copies than must be in sync nobody could write: that is lowered first
    lower = {"min.insync.replicas": 1}
    project.declare(
        project.topic("fewer", configs={**lower, "retention.ms": int(SILENT_VALUE)}),
        project.topic("fine", configs=lower),
        project.topic(DENIED),
    )
    project.done("plan", "--no-preflight", "--out", "it.plan")
    ran = project.run_denied("apply", "it.plan", "--yes", "--format", "json")
    assert project.read_verdicts(ran) == {
        ("broker", "fewer"): ("deny", UNEXPLAINED_DENIAL),
        ("broker", DENIED): ("deny", build_name_denial(project.name(DENIED))[1]),
    }
    left = {
        (o["status"], o["verb"], project.strip_prefix(o["resource"])): o["message"]
        for o in json.loads(ran.out)["operations"]
        if o["status"] != "done"
    }
    message = left.pop(("skipped", "partitions.reassign", "fewer"))
    assert message.startswith("This operation depends on configs.alter")
    assert left == {
        ("denied", "configs.alter", "fewer"): UNEXPLAINED_DENIAL,
        ("denied", "topic.create", DENIED): build_name_denial(project.name(DENIED))[1],
    }

    def only_fine_changed() -> None:
        now = read_topics(bed, fewer, fine, project.name(DENIED))
        assert now.keys() == {fewer, fine}
        assert now[fewer] == before[fewer]
        assert (len(now[fine][1][0]), now[fine][2]) == (1, {"min.insync.replicas": "1"})

    bed.eventually(only_fine_changed)


def test_apply_fails_if_broker_policy_crashes(project_and_bed: tuple[GovernedProject, KafkaBed]) -> None:
    # the answer has neither a reason nor that it was a policy's
    project, bed = project_and_bed
    project.declare(project.topic(CRASH), project.topic("fine"))
    ran = project("apply", "--yes")
    assert ran.code is ExitCode.ERROR
    assert f"Topic/{project.name(CRASH)}: no reason given (UNKNOWN_SERVER_ERROR)." in ran.out
    assert "Nothing was changed." in ran.err
    assert read_topics(bed, project.name(CRASH), project.name("fine")) == {}


def test_policies_and_history_have_the_principal(
    policies: PolicedBrokers, project_and_bed: tuple[GovernedProject, KafkaBed]
) -> None:
    project, bed = project_and_bed
    named = {"rule": "principal == 'User:alice'", "message": "alice's"}
    project.declare_policies(BOUNDS)
    project.declare(project.topic("huge", partitions=5), ("Policy", "named", named))
    (project.folder / "alice.properties").write_text("".join(f"{k}={v}\n" for k, v in LOGIN.items()))
    alice = ("--bootstrap-server", policies.login, "--command-config", "alice.properties")
    assert ("named", "huge") in project.read_denials(project.run_denied("plan", "--format", "json"))
    assert project.read_denials(project.run_denied("plan", "--format", "json", *alice)) == {
        ("bounds", "huge")
    }
    override = ("--override-policy", "bounds", "--reason", "agreed on Monday")
    run_id = json.loads(project.done("apply", "--yes", "--format", "json", *override, *alice).out)["run_id"]
    (made,) = json.loads(project.done("history", run_id, "--format", "json").out)["overrides"]
    assert (made["policy"], made["reason"], made["principal"]) == ("bounds", "agreed on Monday", "User:alice")
    assert "(authenticated as User:alice):" in project.done("history", run_id).out
    bed.eventually(lambda: _expect_existing(bed, [project.name("huge")], {project.name("huge")}))
