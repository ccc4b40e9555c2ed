"""Policies about topics at real brokers: what is denied is left alone, and nothing else is."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.governed import (
    BOUNDS,
    RULES,
    GovernedProject,
    Manifest,
    build_reassignment,
    open_governed_project,
    read_topics,
)

pytestmark = pytest.mark.kafka

KEEP_RECORDS = {"name": "keep-records", "class": f"{RULES}NoDeleteWithRecords"}

SMALL: Manifest = (
    "Policy",
    "small",
    {
        "actions": ["CREATE", "MODIFY"],
        "rule": "post.partitions <= 2 && post.replicationFactor <= 2"
        " && !post.assignments.exists(n, 3 in post.assignments[n])",
        "message": "two partitions, two replicas, none on broker 3",
    },
)
SMALL_CLASS = """\
from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy


class Small(TopicActionsPolicy):
    def validate(self, request: RequestMetadata) -> None:
        post = request.post_request_state
        if post is None:
            return
        elsewhere = all(3 not in replicas for replicas in post.replicas_assignments.values())
        if post.num_partitions > 2 or post.replication_factor > 2 or not elsewhere:
            raise PolicyViolation("two partitions, two replicas, none on broker 3")
"""


@pytest.fixture
def project_and_bed(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[tuple[GovernedProject, KafkaBed]]:
    """A project with policies, and another client of the same brokers."""
    with open_governed_project(sandbox.bootstrap, tmp_path) as made:
        yield made


def test_apply_makes_allowed_changes_and_leaves_denied_ones(
    project_and_bed: tuple[GovernedProject, KafkaBed],
) -> None:
    project, bed = project_and_bed
    wide = bed.create({0: (1, 2)}, name=project.name("wide"), configs={"segment.ms": "70000"})
    fresh, tuned, old, huge = map(project.name, ("fresh", "tuned", "old", "huge"))
    project.declare_policies(BOUNDS)
    project.declare(project.topic("tuned"), project.topic("old"))
    project.done("apply", "--yes")
    before = read_topics(bed, wide, old, tuned)
    short: Manifest = (
        "Policy",
        "long-enough",
        {
            "severity": "warn",
            "actions": ["CREATE", "MODIFY"],
            "rule": "!('retention.ms' in post.configs) || int(post.configs['retention.ms']) >= 60000",
            "message": "records are gone within a minute",
        },
    )
    project.declare(
        project.topic("fresh", partitions=4),
        project.topic("tuned", configs={"retention.ms": 5000}),
        project.topic("huge", partitions=5),
        project.topic(
            "wide",
            partitions=5,
            replicationFactor=2,
            configs={"retention.ms": 60000},
            lifecycle={"adopt": True},
        ),
        short,
    )
    planned = project.run_denied("plan", "--allow-deletes", "--format", "json")
    verdicts = project.read_verdicts(planned)
    assert {key: outcome for key, (outcome, _) in verdicts.items() if key[0] == "bounds"} == {
        ("bounds", "fresh"): "allow",
        ("bounds", "tuned"): "allow",
        ("bounds", "old"): "allow",
        ("bounds", "huge"): "deny",
        ("bounds", "wide"): "deny",
    }
    assert verdicts["bounds", "wide"][1] == f"{wide} would have 5 partitions; it may have at most 4."
    assert verdicts["long-enough", "tuned"] == ("warn", "records are gone within a minute")
    summary = json.loads(planned.out)["summary"]
    assert [summary[key] for key in ("create", "update", "delete", "blocked")] == [1, 1, 1, 2]
    said = project.run_denied("plan", "--allow-deletes").out
    assert "2 blocked" in said.splitlines()[0]
    assert said.count("BLOCKED: policy-violation") == 2
    assert f"denied by policy bounds: {huge} would have 5 partitions" in said
    assert "warned by policy long-enough: records are gone within a minute" in said
    ran = project.run_denied("apply", "--yes", "--allow-deletes", "--format", "json")
    run = json.loads(ran.out)
    assert (run["outcome"], run["exit_code"], run["counts"]["done"]) == ("denied", 3, 3)
    assert project.read_denials(ran) == {("bounds", "huge"), ("bounds", "wide")}

    def as_planned() -> None:
        now = read_topics(bed, wide, old, huge, fresh, tuned)
        assert now.keys() == {wide, fresh, tuned}
        assert now[wide] == before[wide]
        assert now[tuned] == (*before[tuned][:2], {"retention.ms": "5000"})
        assert len(now[fresh][1]) == 4

    bed.eventually(as_planned)
    assert project.read_owned() == {"fresh", "tuned"}
    now = read_topics(bed, fresh, tuned, wide)
    again = project.run_denied("apply", "--yes", "--allow-deletes")
    assert "Nothing was applied" in again.out
    assert "2 denied" in again.out
    assert read_topics(bed, fresh, tuned, wide, huge) == now
    assert project.read_owned() == {"fresh", "tuned"}


@pytest.mark.parametrize("written", ["rule", "class"])
def test_policy_holds_for_all_changes_of_a_topic(
    project_and_bed: tuple[GovernedProject, KafkaBed], written: str
) -> None:
    project, bed = project_and_bed
    policy = [SMALL] if written == "rule" else []
    if written == "class":
        (project.folder / "mine.py").write_text(SMALL_CLASS)
        project.declare_policies({"name": "small", "class": "mine:Small"})
    # a move back to broker 3
    moved = bed.create({0: (3, 1)}, name=project.name("moved"))
    project.declare(build_reassignment(moved, 2, 1), *policy)
    project.done("apply", "--yes")
    before = read_topics(bed, moved)
    assert before[moved][1] == [(2, 1)]
    undone = project.run_denied("rollback", "--yes", "--format", "json")
    assert project.read_denials(undone) == {("small", "moved")}
    assert read_topics(bed, moved) == before
    # creations
    names = [project.name(short) for short in ("grown", "copied", "sent")]
    placed = {"assignments": {0: [1, 2], 1: [2, 1]}}
    good = [project.topic(short, **placed) for short in ("grown", "copied", "sent")]
    bad = [
        project.topic("wide", partitions=3),
        project.topic("tall", replicationFactor=3),
        project.topic("there", assignments={0: [1, 3]}),
    ]
    project.declare(*good, *bad, *policy)
    ran = project.run_denied("apply", "--yes", "--format", "json")
    assert project.read_denials(ran) == {("small", short) for short in ("wide", "tall", "there")}
    assert "none on broker 3" in project.read_verdicts(ran)["small", "there"][1]

    def good_ones_are_there() -> None:
        assert {n for n in bed.cluster.topics() if n.startswith(project.prefix)} == {moved, *names}

    bed.eventually(good_ones_are_there)
    # modifications
    before = read_topics(bed, *names)
    project.declare(
        project.topic("grown", partitions=3, replicationFactor=2),
        project.topic("copied", partitions=2, replicationFactor=3),
        project.topic("sent", partitions=2, replicationFactor=2),
        build_reassignment(names[2], 3, 2),
        *policy,
    )
    planned = project.run_denied("plan", "--format", "json")
    assert project.read_denials(planned) == {("small", short) for short in ("grown", "copied", "sent")}
    ran = project.run_denied("apply", "--yes", "--format", "json")
    assert project.read_denials(ran) == project.read_denials(planned)
    file = project.folder / "moves.json"
    partition = {"topic": names[2], "partition": 0, "replicas": [3, 2]}
    file.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    ran = project.run_denied("reassign", "--execute", "--reassignment-json-file", str(file), "--yes")
    assert "none on broker 3" in ran.out + ran.err
    assert not bed.cluster.moves(names)
    assert read_topics(bed, *names) == before


def test_saved_plan_is_evaluated_on_current_state(project_and_bed: tuple[GovernedProject, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.declare_policies(KEEP_RECORDS)
    project.topics("empty", "full", "tuned", "held")
    project.done("apply", "--yes")
    empty, full, tuned, held = map(project.name, ("empty", "full", "tuned", "held"))
    changed = [project.topic(short, configs={"retention.ms": 5000}) for short in ("tuned", "held")]
    project.declare(*changed)
    project.done("plan", "--allow-deletes", "--out", "it.plan")
    bed.produce(full, 3)
    before = read_topics(bed, full, tuned, held)
    rule = {"rule": "!topic.endsWith('held')", "message": "hands off"}
    project.declare(*changed, ("Policy", "new-since", rule))
    ran = project.run_denied("apply", "it.plan", "--yes", "--format", "json")
    assert project.read_denials(ran) == {("keep-records", "full"), ("new-since", "held")}
    assert "has up to 3 records" in project.read_verdicts(ran)["keep-records", "full"][1]
    run = json.loads(ran.out)
    assert (run["outcome"], run["counts"]["done"]) == ("denied", 2)
    assert run["plan_id"] == json.loads((project.folder / "it.plan").read_text())["plan_id"]

    def as_denied() -> None:
        now = read_topics(bed, empty, full, tuned, held)
        assert now.keys() == {full, tuned, held}
        assert (now[full], now[held]) == (before[full], before[held])
        assert now[tuned] == (*before[tuned][:2], {"retention.ms": "5000"})

    bed.eventually(as_denied)
    assert project.read_owned() == {"full", "tuned", "held"}
    # what was denied is still planned, and the saved plan is done with
    assert project("apply", "it.plan", "--yes").code is ExitCode.STALE
    again = project.run_denied("plan", "--allow-deletes", "--format", "json")
    assert project.read_denials(again) == project.read_denials(ran)
