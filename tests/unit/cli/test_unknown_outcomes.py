"""The command line reports a run that was killed while brokers may still work on its requests."""

import json

import pytest

from kdeclare.core.clock import SystemClock
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import Crash
from tests.unit.cli.command_line import CommandLine


def kill_apply(kdeclare: CommandLine) -> None:
    """An apply sends its request, and the process dies before the change is visible."""
    kdeclare.hurry()
    kdeclare.topic("orders")
    kdeclare.cluster.faults.crash(after_effect=False, method="create_topics")
    with pytest.raises(Crash):
        kdeclare("apply", "--yes", "--no-preflight")
    kdeclare.cluster.faults.clear()


def test_status_reports_unknown_outcome_and_plan_recovers_run(kdeclare: CommandLine) -> None:
    kill_apply(kdeclare)
    for _ in range(2):
        ran = kdeclare("status")
        assert ran.code == 0
        assert "Outcome of a run is not known yet" in ran.err
        assert "1 operation shows no effect yet" in ran.err
        assert "had not" not in ran.err
    ran = kdeclare("plan")
    assert ran.code == 0
    assert "Unfinished run was recovered" in ran.err
    assert "interrupted operations that had no effect: 1" in ran.err
    assert "had not" not in kdeclare("status").err


def test_late_effect_corrects_history(kdeclare: CommandLine) -> None:
    kill_apply(kdeclare)
    assert "not known yet" in kdeclare("status").err
    kdeclare.cluster.create_topics([NewTopic("orders", 1, None, None, {})])
    assert "interrupted operations that took effect: 1" in kdeclare("status").err
    (run,) = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert run["counts"]["done"] == 1
    assert kdeclare("plan").out.startswith("No changes.")


def test_ctrl_c_interrupts_wait_for_earlier_run(kdeclare: CommandLine) -> None:
    kill_apply(kdeclare)

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    kdeclare.monkeypatch.setattr(SystemClock, "sleep", raise_interrupt)
    assert kdeclare("apply", "--yes").code == 130
    kdeclare.hurry()
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.topics == {"orders"}


def test_recovery_uses_request_deadline_of_environment(kdeclare: CommandLine) -> None:
    environment = {"bootstrapServers": "lab:9092", "requestDeadline": "5m"}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": environment})
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.hurry()
    kdeclare.topic("orders", configs={"retention.ms": 5})
    kdeclare.cluster.faults.crash(after_effect=False, method="alter_configs")
    begun = SystemClock().now()
    with pytest.raises(Crash):
        kdeclare("apply", "--yes", "--no-preflight")
    kdeclare.cluster.faults.clear()
    assert kdeclare("plan").code == 0
    assert 300 <= (SystemClock().now() - begun).total_seconds() < 500
