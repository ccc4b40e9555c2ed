"""A rollback re-creates a deleted topic without its records, with real brokers."""

from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import topic_resource
from tests.kafka.records import expect
from tests.kafka.test_bad_input import open_project

pytestmark = pytest.mark.kafka


def test_rollback_creates_deleted_topic_again_without_records(sandbox: SandboxStatus, tmp_path: Path) -> None:
    with open_project(sandbox.bootstrap, tmp_path) as (project, bed):
        spec = {"partitions": 2, "replicationFactor": 2, "configs": {"retention.ms": "5000000"}}
        name = project.name("t")
        project.declare(("Topic", name, spec))
        project.done("apply", "--yes")
        before = bed.topic(name)
        bed.produce(name, 3)
        project.declare(("Topic", name, {"lifecycle": {"state": "absent"}}))
        project.done("apply", "--yes")

        kept = project("rollback", "--out", "kept.plan")
        assert "--recreate-deleted" in kept.out
        assert name not in bed.cluster.topics([name])

        ran = project("rollback", "--recreate-deleted", "--yes")
        assert ran.code is ExitCode.OK
        bed.eventually(lambda: expect(name in bed.cluster.topics([name])))
        after = bed.topic(name)
        assert after.topic_id != before.topic_id
        assert [p.replicas for p in after.partitions] == [p.replicas for p in before.partitions]
        bed.expect_overrides(topic_resource(name), {"retention.ms": "5000000"})
        assert not bed.cluster.record_counts([name]).get(name)
        project.declare(("Topic", name, spec))
        assert project.in_order()
