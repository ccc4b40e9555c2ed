"""Manifests of moves, from the file to the cluster, including those in the docs."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.cli.command_line import CommandLine

GUIDE = Path(__file__).parents[3] / "docs" / "moving-replicas.md"
STRATEGIES = ["any", "balanced-leaders", "cross-rack", "in-rack"]


def find_blocks() -> list[dict[str, Any]]:
    """Return the YAML of the guide."""
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)]


def test_guide_examples_are_valid(kdeclare: CommandLine) -> None:
    """Yield every block and each commented alternative: manifests, specs, and parts of the project file."""
    kdeclare.topic("orders", partitions=2, replicationFactor=3)
    seen = []
    for n, block in enumerate(find_blocks()):
        spec = block["spec"]
        if "reassignments" in spec:
            project = kdeclare.folder / "kdeclare.yaml"
            document = yaml.safe_load(project.read_text())
            document["spec"] |= spec
            project.write_text(yaml.safe_dump(document))
            seen.append("project")
        else:
            spec.get("partitions", [{}])[0].pop("expectedReplicas", None)
            kdeclare.write(f"manifests/guide-{n}.yaml", "Reassignment", f"guide-{n}", **spec)
            seen.append("reassignment")
    ran = kdeclare("validate")
    assert ran.code == 0, ran.out
    assert seen.count("reassignment") == 2
    assert seen.count("project") == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_topics_and_reassignments_accept_each_strategy(kdeclare: CommandLine, strategy: str) -> None:
    placement = {"strategy": strategy}
    kdeclare.topic("a", partitions=2, replicationFactor=1, placement=placement)
    kdeclare.write("manifests/r.yaml", "Reassignment", "r", topics=["a"], rebalance=True, placement=placement)
    assert kdeclare("validate").code == 0
    assert kdeclare("apply", "--yes").code == 0
    kdeclare("apply", "--yes")
    assert "No changes." in kdeclare("plan").out


def test_static_strategies_place_replicas(kdeclare: CommandLine) -> None:
    static = {"strategy": "static"}
    in_racks = {"strategy": "static-in-rack", "racks": ["rack-a", "rack-b"]}
    kdeclare.write("manifests/s.yaml", "Topic", "s", assignments={0: [2, 1]}, placement=static)
    kdeclare.topic("i", partitions=2, replicationFactor=1, placement=in_racks)
    assert kdeclare("apply", "--yes").code == 0
    found = kdeclare.cluster.topics(["s", "i"])
    assert found["s"].partitions[0].replicas == (2, 1)
    assert [p.replicas for p in found["i"].partitions] == [(1,), (2,)]
    assert "No changes." in kdeclare("plan").out


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"topics": ["/a(/"], "drain": [1]}, "/a(/ is not a valid regular expression"),
        (
            {"topics": ["a"]},
            "'topics' requires a rule: 'drain', 'targetBrokers', 'rebalance' or 'placement'.",
        ),
        (
            {"topics": ["a"], "drain": [1], "targetBrokers": [2]},
            "The spec has both 'drain' and 'targetBrokers'. Only one of these fields is allowed.",
        ),
        (
            {"topics": ["a"], "drain": [1], "throttle": "50MB"},
            "'50MB' is not a rate; write a rate such as 50MiB/s",
        ),
        (
            {"topics": ["a"], "drain": [1], "timeout": "5 minutes"},
            "is not a duration; write 30s, 10m or 1h30m",
        ),
        ({"topics": ["a"], "drain": [1], "interBatchPause": 10}, "Write a duration with its unit"),
        ({"topics": ["a"], "drain": [1], "batchSize": 0}, "must be at least 1, not 0"),
        ({"topics": ["a"], "placement": {"strategy": "crossrack"}}, "Did you mean 'cross-rack'?"),
        (
            {"topics": ["a"], "placement": {"strategy": "static"}},
            "The strategies 'static' and 'static-in-rack' are only allowed in a Topic manifest.",
        ),
        (
            {"rebalance": True},
            "The spec has neither 'topics' nor 'partitions'. Exactly one of these fields is required.",
        ),
    ],
)
def test_validate_reports_invalid_reassignment_with_position(
    kdeclare: CommandLine, spec: dict[str, Any], said: str
) -> None:
    kdeclare.write("manifests/r.yaml", "Reassignment", "r", **spec)
    ran = kdeclare("validate")
    assert ran.code == 1
    assert said in " ".join(ran.out.split())
    assert "manifests/r.yaml:" in ran.out
