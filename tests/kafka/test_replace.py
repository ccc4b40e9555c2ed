"""``--replace`` deletes a topic and creates it again, with real brokers."""

from pathlib import Path

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.sandbox import SandboxStatus
from tests.beds import topic_resource
from tests.kafka.records import expect
from tests.kafka.test_bad_input import open_project

pytestmark = pytest.mark.kafka


def test_topic_is_replaced_and_rollback_restores_its_settings(sandbox: SandboxStatus, tmp_path: Path) -> None:
    with open_project(sandbox.bootstrap, tmp_path) as (project, bed):
        name = project.name("t")
        before = {"partitions": 6, "replicationFactor": 2, "configs": {"retention.ms": "5000000"}}
        after = {"partitions": 2, "replicationFactor": 3, "configs": {"retention.ms": "7000000"}}
        project.declare(("Topic", name, before))
        project.done("apply", "--yes")
        first = bed.topic(name)
        bed.produce(name, 3)

        project.declare(("Topic", name, after))
        assert project("plan").code is ExitCode.DENIED
        planned = project("plan", "--replace", f"Topic/{name}", "--out", "it.plan")
        assert planned.code is ExitCode.OK
        assert "3 records" in planned.out
        assert bed.topic(name).topic_id == first.topic_id
        ran = project("apply", "it.plan", "--yes")
        assert ran.code is ExitCode.OK, ran
        bed.eventually(lambda: expect(bed.topic(name).topic_id != first.topic_id))
        second = bed.topic(name)
        assert [len(p.replicas) for p in second.partitions] == [3, 3]
        bed.expect_overrides(topic_resource(name), {"retention.ms": "7000000"})
        assert not bed.cluster.record_counts([name]).get(name)
        assert project.in_order()

        kept = project("rollback", "--yes")
        assert kept.code is ExitCode.PARTIAL
        assert bed.topic(name).topic_id == second.topic_id
        assert project.in_order()


def test_settings_that_brokers_refuse_keep_the_topic(sandbox: SandboxStatus, tmp_path: Path) -> None:
    with open_project(sandbox.bootstrap, tmp_path) as (project, bed):
        name = project.name("t")
        project.declare(("Topic", name, {"partitions": 1, "replicationFactor": 1}))
        project.done("apply", "--yes")
        first = bed.topic(name)
        bad = {"partitions": 1, "replicationFactor": 9, "configs": {"min.insync.replicas": "1"}}
        project.declare(("Topic", name, bad))
        ran = project("apply", "--replace", f"Topic/{name}", "--yes")
        assert ran.code is ExitCode.ERROR
        assert bed.topic(name).topic_id == first.topic_id
