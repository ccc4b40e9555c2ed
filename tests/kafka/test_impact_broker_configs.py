"""What plans predict about topics that inherit a broker config, compared with what a real broker deletes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from tests.commands import run_here
from tests.kafka.random_topics import HOUR, PLAIN, SEGMENT_BYTES, Case, wait_for_starts, write_records
from tests.kafka.test_bad_input import Project
from tests.kafka.test_impact import cluster, quick

__all__ = ["cluster", "quick"]  # fixtures

pytestmark = pytest.mark.kafka

UNLIMITED, DAY = -1, 24 * HOUR
DEFAULTS = "cluster-default"


@pytest.mark.thorough
def test_lower_default_deletes_within_the_bounds(
    quick: SandboxStatus, cluster: KafkaCluster, tmp_path: Path
) -> None:
    """The topics without an override lose as many records as predicted, and no other topic loses any."""
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    project = Project(tmp_path, quick.bootstrap)
    segments = {"segment.ms": HOUR, "segment.bytes": SEGMENT_BYTES}
    inheriting = {project.name(name): segments for name in ("a", "b", "c")}
    kept = project.name("kept")
    configs: dict[str, dict[str, int]] = {**inheriting, kept: {**segments, "retention.ms": UNLIMITED}}
    cases = {
        name: Case(
            PLAIN, tuple(sorted((chance.randrange(100 * HOUR) for _ in range(60)), reverse=True)), HOUR
        )
        for name in configs
    }

    def declare(retention_ms: int) -> None:
        project.declare(
            ("BrokerConfig", DEFAULTS, {"configs": {"log.retention.ms": retention_ms}}),
            *(
                ("Topic", name, {"partitions": 1, "replicationFactor": 1, "configs": each})
                for name, each in configs.items()
            ),
        )

    declare(UNLIMITED)
    assert run_here(tmp_path, "apply", "--yes", "--adopt").code == 0
    write_records(quick.bootstrap, cases, chance)
    declare(DAY)
    planned = run_here(tmp_path, "plan", "--format", "json", "--out", "it.plan")
    assert planned.code == 0, planned.err
    observations: dict[str, dict[str, Any]] = {
        item["code"]: item["figures"]
        for item in json.loads(planned.out)["observations"]
        if item["resource"] == f"BrokerConfig/{DEFAULTS}"
    }
    described = cluster.topics()
    assert observations["inherited-config"]["topics"] == len(described) - 1  # all but one have no override
    assert run_here(tmp_path, "apply", "it.plan", "--yes").code == 0
    starts = wait_for_starts(cluster, cases)
    assert starts.pop(kept) == 0
    deleted, predicted = sum(starts.values()), observations["deletable-records"]
    text = f"seed {seed}: {predicted}, deleted {starts}"
    assert predicted["records_at_least"] <= deleted <= predicted["records_at_most"], text
    assert deleted > 0, text
