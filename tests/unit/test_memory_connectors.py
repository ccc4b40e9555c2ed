"""The in-memory Connect cluster: intermediate statuses, injected faults, and the log of requests."""

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.connect.client.connectors_port import ConnectorOffset, TargetState
from kdeclare.providers.connect.client.port import NOT_READY
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.testing.faults import Crash

CONFIG = {"connector.class": "FileStreamSink", "topics": "orders", "tasks.max": "2"}


def read_statuses(cluster: MemoryConnectCluster, reads: int) -> list[tuple[str, ...]]:
    """Return the state of the connector and the states of its tasks, as several reads report them."""
    statuses = []
    for _ in range(reads):
        connector = cluster.describe_connector("a")
        assert connector is not None
        statuses.append((connector.state, *(task.state for task in connector.tasks)))
    return statuses


def make_cluster(lag: int = 1) -> MemoryConnectCluster:
    """Return a cluster with the running connector "a"."""
    cluster = MemoryConnectCluster(lag=lag)
    cluster.create_connector("a", CONFIG)
    cluster.settle()
    cluster.calls.clear()
    return cluster


RUNNING = ("RUNNING", "RUNNING", "RUNNING")


@pytest.mark.parametrize("lag", [0, 1, 2])
def test_new_connector_first_has_no_status_and_then_no_tasks(lag: int) -> None:
    cluster = MemoryConnectCluster(lag=lag)
    cluster.create_connector("a", CONFIG)
    assert read_statuses(cluster, 2 * lag + 1) == [*[("",)] * lag, *[("RUNNING",)] * lag, RUNNING]


def test_stopped_connector_keeps_its_tasks_for_a_moment() -> None:
    cluster = make_cluster()
    cluster.set_state("a", TargetState.STOPPED)
    stopping = ("STOPPED", "RUNNING", "RUNNING")
    assert read_statuses(cluster, 4) == [RUNNING, stopping, ("STOPPED",), ("STOPPED",)]


def test_new_config_leaves_old_tasks_for_a_moment() -> None:
    cluster = make_cluster()
    cluster.replace_config("a", {**CONFIG, "tasks.max": "1"})
    expected = [RUNNING, ("UNASSIGNED", "UNASSIGNED"), ("RUNNING", "RUNNING")]
    assert read_statuses(cluster, 3) == expected


def test_paused_connector_gets_the_tasks_of_its_new_config_when_it_runs() -> None:
    cluster = make_cluster(lag=0)
    cluster.set_state("a", TargetState.PAUSED)
    cluster.replace_config("a", {**CONFIG, "tasks.max": "3"})
    assert read_statuses(cluster, 1) == [("PAUSED", "PAUSED", "PAUSED")]
    cluster.set_state("a", TargetState.RUNNING)
    assert read_statuses(cluster, 1) == [("RUNNING", *["RUNNING"] * 3)]


def test_restart_of_what_failed_leaves_the_rest_alone() -> None:
    cluster = make_cluster()
    cluster.fail_task("a", 1, "x.DataException: bad record\n\tat a.B")
    assert read_statuses(cluster, 1) == [("RUNNING", "RUNNING", "FAILED")]
    connector = cluster.describe_connector("a")
    assert connector is not None
    assert connector.tasks[1].trace == "x.DataException: bad record"
    cluster.restart_connector("a", include_tasks=True, only_failed=True)
    assert read_statuses(cluster, 2) == [("RUNNING", "RUNNING", "RESTARTING"), RUNNING]


def test_failed_connector_runs_again_after_a_restart() -> None:
    cluster = make_cluster()
    cluster.fail_connector("a", "x.ConnectException: no\n\tat a.B")
    connector = cluster.describe_connector("a")
    assert connector is not None
    assert (connector.state, connector.trace) == ("FAILED", "x.ConnectException: no")
    cluster.restart_connector("a", include_tasks=False, only_failed=True)
    assert read_statuses(cluster, 2) == [("RESTARTING", *RUNNING[1:]), RUNNING]


def test_reads_are_logged_and_are_not_changes() -> None:
    cluster = make_cluster()
    cluster.list_connectors()
    cluster.validate_config("a", CONFIG)
    cluster.replace_config("a", CONFIG)
    cluster.set_state("a", TargetState.PAUSED)
    cluster.restart_connector("a", include_tasks=True, only_failed=False)
    assert [call.method for call in cluster.calls][:2] == ["list_connectors", "validate_config"]
    assert cluster.requests() == [
        "PUT /connectors/a/config",
        "PUT /connectors/a/pause",
        "POST /connectors/a/restart?includeTasks=true&onlyFailed=false",
    ]


def test_refused_request_is_logged_as_failed() -> None:
    cluster = make_cluster()
    with pytest.raises(Fault):
        cluster.create_connector("a", CONFIG)
    assert [(call.method, call.outcome) for call in cluster.calls] == [("create_connector", "failed")]


def test_rebalance_rejects_changes_and_no_reads() -> None:
    cluster = make_cluster()
    cluster.rebalances = 1
    cluster.read_offsets("a")
    cluster.validate_config("a", CONFIG)
    with pytest.raises(Fault) as caught:
        cluster.delete_connector("a")
    assert (caught.value.error, caught.value.kind) == (NOT_READY, FaultKind.RETRIABLE)
    cluster.delete_connector("a")
    assert [call.outcome for call in cluster.calls if call.is_mutating] == ["failed", "done"]


@pytest.mark.parametrize("after_effect", [False, True])
def test_change_can_time_out_before_and_after_its_effect(after_effect: bool) -> None:
    cluster = make_cluster()
    cluster.faults.time_out(after_effect=after_effect, method="delete_connector")
    with pytest.raises(Fault) as caught:
        cluster.delete_connector("a")
    assert caught.value.kind is FaultKind.UNKNOWN
    assert (cluster.describe_connector("a") is None) == after_effect
    assert cluster.calls[0].outcome == ("unanswered" if after_effect else "lost")


def test_faults_apply_to_one_connector_and_to_reads() -> None:
    cluster = make_cluster()
    fault = Fault("WORKER_LOST", "it did not respond", FaultKind.RETRIABLE)
    cluster.faults.fail(fault, method="describe_connector", item="b")
    assert cluster.describe_connector("a") is not None
    with pytest.raises(Fault, match="it did not respond"):
        cluster.describe_connector("b")
    cluster.faults.crash(after_effect=True)
    with pytest.raises(Crash):
        cluster.set_state("a", TargetState.PAUSED)
    assert cluster.calls[-1].outcome == "crashed after"


def test_other_client_changes_the_same_cluster() -> None:
    cluster = make_cluster()
    cluster.faults.run_before(lambda other: other.delete_connector("a"), method="set_state")
    with pytest.raises(Fault, match="not found"):
        cluster.set_state("a", TargetState.PAUSED)
    assert cluster.requests() == ["PUT /connectors/a/pause"]


def test_offsets_of_a_deleted_connector_are_taken_up_by_the_next() -> None:
    cluster = make_cluster(lag=0)
    offset = ConnectorOffset({"kafka_topic": "orders", "kafka_partition": 0}, {"kafka_offset": 7})
    cluster.set_offsets("a", (offset,))
    cluster.delete_connector("a")
    cluster.create_connector("a", CONFIG, TargetState.STOPPED)
    assert cluster.read_offsets("a") == (offset,)


def test_password_key_has_its_type_whatever_its_name_is() -> None:
    cluster = MemoryConnectCluster()
    config = {"connector.class": "PasswordSink", "topics": "orders", "url": "http://x", "pin": "1234"}
    validation = cluster.validate_config("a", config)
    assert (validation.errors, validation.definitions["pin"].type) == ({}, "PASSWORD")
