"""Policies of a project with the commands that override, check and try them, at real brokers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.governed import BOUNDS, GovernedProject, Manifest, open_governed_project, read_topics
from tests.kafka.records import expect

pytestmark = pytest.mark.kafka

HANDS_OFF: Manifest = (
    "Policy",
    "hands-off",
    {"rule": "!topic.endsWith('held')", "message": "this one is the billing team's"},
)


@pytest.fixture
def project_and_bed(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[tuple[GovernedProject, KafkaBed]]:
    """A project with policies, and another client of the same brokers."""
    with open_governed_project(sandbox.bootstrap, tmp_path) as made:
        made[0].declare_policies(BOUNDS)
        yield made


def read_last_run(project: GovernedProject) -> tuple[dict[str, Any], str]:
    """The latest run as ``history RUN`` shows it: to scripts, and to people.

    A move that ends while its command still runs is followed by a run that only tidies up: not that one.
    """
    runs = json.loads(project.done("history", "--format", "json").out)["runs"]
    run_id = next(run["run_id"] for run in runs if not run["command"].endswith("(cleanup)"))
    document = json.loads(project.done("history", run_id, "--format", "json").out)
    return document, project.done("history", run_id).out


def test_policy_override_is_applied_and_recorded_in_history(
    project_and_bed: tuple[GovernedProject, KafkaBed],
) -> None:
    project, bed = project_and_bed
    huge, held = project.name("huge"), project.name("held")
    project.declare(project.topic("huge", partitions=5), project.topic("held", partitions=5), HANDS_OFF)
    bounds = ("--override-policy", "bounds")
    for wrong, said in (
        (bounds, "requires --reason"),
        (("--reason", "why not"), "requires --override-policy"),
    ):
        ran = project("apply", "--yes", *wrong)
        assert (ran.code, said in ran.err) == (ExitCode.USAGE, True)
    ran = project("apply", "--yes", "--override-policy", "bound", "--reason", "agreed")
    assert (ran.code, "Did you mean 'bounds'?" in ran.err) == (ExitCode.ERROR, True)
    assert read_topics(bed, huge, held) == {}
    ran = project.run_denied("apply", "--yes", *bounds, "--reason", "agreed on Monday", "--format", "json")
    assert project.read_denials(ran) == {("hands-off", "held")}
    bed.eventually(lambda: expect(read_topics(bed, huge, held).keys() == {huge}))
    run, text = read_last_run(project)
    assert run["overrides"] == [
        {
            "policy": "bounds",
            "resource": f"Topic/{huge}",
            "topic": None,
            "reason": "agreed on Monday",
            "principal": None,  # nobody is authenticated here
        }
    ]
    assert "(not authenticated by the brokers):" in text
    assert f"  policy bounds on Topic/{huge}: agreed on Monday\n" in text


def test_policy_override_allows_ad_hoc_move(project_and_bed: tuple[GovernedProject, KafkaBed]) -> None:
    project, bed = project_and_bed
    held = bed.create({0: (1,)}, name=project.name("held"))
    project.declare(HANDS_OFF)
    partition = {"topic": held, "partition": 0, "replicas": [2]}
    (project.folder / "moves.json").write_text(json.dumps({"version": 1, "partitions": [partition]}))
    command = ("reassign", "--execute", "--reassignment-json-file", "moves.json", "--yes")
    assert "the billing team's" in project.run_denied(*command).err
    override = ("--override-policy", "hands-off", "--reason", "broker 1 is going")
    project.done(*command, *override)
    bed.eventually(lambda: expect(read_topics(bed, held)[held][1] == [(2,)]))
    run, text = read_last_run(project)
    assert [(o["policy"], o["topic"], o["reason"]) for o in run["overrides"]] == [
        ("hands-off", held, "broker 1 is going")
    ]
    assert f", topic {held}: broker 1 is going\n" in text
    # undoing it is another request, with another answer
    assert project.read_denials(project.run_denied("rollback", "--yes", "--format", "json")) == {
        ("hands-off", "held")
    }
    undone = json.loads(project.done("rollback", "--yes", "--format", "json", *override).out)
    assert [v["override"] for v in undone["verdicts"] if v["policy"] == "hands-off"] == ["broker 1 is going"]
    bed.eventually(lambda: expect(read_topics(bed, held)[held][1] == [(1,)]))


def test_all_policies_hold_for_partial_plan(project_and_bed: tuple[GovernedProject, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.declare_policies(BOUNDS, manifests=["all.yaml", "rules.yaml"])
    project.write("rules.yaml", HANDS_OFF, project.topic("elsewhere"))
    project.declare(project.topic("huge", partitions=5), project.topic("held"), project.topic("fine"))
    planned = project.run_denied("plan", "all.yaml", "--format", "json")
    assert project.read_denials(planned) == {("bounds", "huge"), ("hands-off", "held")}
    target = f"Topic/{project.name('held')}"
    aimed = project.run_denied("plan", "--target", target, "--format", "json")
    assert project.read_denials(aimed) == {("hands-off", "held")}
    ran = project.run_denied("apply", "all.yaml", "--yes", "--format", "json")
    assert project.read_denials(ran) == project.read_denials(planned)
    assert project.read_owned() == {"fine"}
    bed.eventually(
        lambda: expect(
            read_topics(bed, *map(project.name, ("fine", "huge", "held"))).keys() == {project.name("fine")}
        )
    )


def test_policy_check_and_policy_test_commands(project_and_bed: tuple[GovernedProject, KafkaBed]) -> None:
    project, bed = project_and_bed
    wide, fine = project.name("wide"), project.name("fine")
    mine = {"topics": [f"/{project.prefix}.*/"]}  # other topics may be there as well
    project.declare_policies({**BOUNDS, "selector": mine})
    rule = {
        "rule": "!('retention.ms' in post.configs)",
        "message": "left to the brokers",
        "actions": ["CREATE", "MODIFY"],
        "selector": mine,
        "severity": "warn",
    }
    project.declare(project.topic("fine"), ("Policy", "plain", rule))
    bed.create(name=wide, partitions=5)
    bed.create(name=fine, configs={"retention.ms": "60000"})
    ran = project.run_denied("policy", "check", "--live", "--format", "json")
    document = json.loads(ran.out)
    assert document["against"] == 1
    assert document["topics"] >= 2
    found = project.read_verdicts(ran)
    assert {key: outcome for key, (outcome, _) in found.items()} == {
        ("bounds", "wide"): "deny",
        ("bounds", "fine"): "allow",
        ("plain", "wide"): "allow",
        ("plain", "fine"): "warn",
    }
    places = {v["resource"]: v["place"] for v in document["verdicts"]}
    assert places[f"Topic/{wide}"] is None
    assert places[f"Topic/{fine}"]["file"] == "all.yaml"
    said = project.run_denied("policy", "check", "--live").out
    assert f"denied by policy bounds: {wide} would have 5 partitions" in said
    project.done("policy", "check")  # of the manifests, which are in order

    def case(name: str, partitions: int, expect: str) -> dict[str, Any]:
        post = {"partitions": partitions, "replicationFactor": 1}
        request = {"action": "CREATE", "topic": wide, "post": post}
        return {"name": name, "request": request, "expect": expect, "policy": "bounds"}

    cases = [case("wide", 5, "deny"), case("narrow", 4, "allow")]
    project.write("cases.yaml", ("PolicyTest", "bounds", {"cases": cases}))
    assert project.done("policy", "test", "cases.yaml").out == "2 cases: 2 passed.\n"
    project.declare_policies()
    assert "No such policy" in project("policy", "test", "cases.yaml").err
