"""Which runs ``kdeclare history`` shows as undone."""

import json

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine


def list_undone(kdeclare: CommandLine) -> list[bool]:
    """Return for each run, oldest first, whether it is shown as undone; the list and the run agree."""
    runs = json.loads(kdeclare("history", "--format", "json").out)["runs"][::-1]
    for run in runs:
        shown = json.loads(kdeclare("history", run["run_id"], "--format", "json").out)
        assert shown["undone_by"] == run["undone_by"]
    return [run["undone_by"] is not None for run in runs]


def refuse_next(kdeclare: CommandLine, item: str, error: str = "CLUSTER_AUTHORIZATION_FAILED") -> None:
    """Refuse the next request about the item."""
    kdeclare.cluster.faults.fail(Fault(error, "no"), item=item)


def find_run_id(kdeclare: CommandLine, at: int) -> str:
    """Return the id of a run by its number, from 0."""
    found: str = json.loads(kdeclare("history", "--format", "json").out)["runs"][::-1][at]["run_id"]
    return found


def test_history_marks_rolled_back_run_as_undone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    assert kdeclare("rollback", "--yes").code == 0
    assert list_undone(kdeclare) == [True, False]


def test_history_does_not_mark_failed_rollback_as_undone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    for error in ("CLUSTER_AUTHORIZATION_FAILED", "POLICY_VIOLATION"):
        refuse_next(kdeclare, "orders", error)
        assert kdeclare("rollback", find_run_id(kdeclare, 0), "--yes").code != 0
    assert kdeclare.topics == {"orders"}
    assert list_undone(kdeclare) == [False, False, False]
    assert kdeclare("rollback", find_run_id(kdeclare, 0), "--yes").code == 0
    assert list_undone(kdeclare) == [True, False, False, False]


def test_history_marks_partly_rolled_back_run_as_undone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare.topic("payments")
    kdeclare("apply", "--yes")
    refuse_next(kdeclare, "orders")
    assert kdeclare("rollback", "--yes").code == 5
    refuse_next(kdeclare, "orders")
    kdeclare("rollback", find_run_id(kdeclare, 0), "--yes")
    runs = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert runs[2]["undone_by"] == runs[1]["run_id"]


def test_history_does_not_mark_externally_reverted_run_as_undone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    kdeclare.cluster.delete_topics({"orders": None})
    assert kdeclare("rollback", "--yes").code == 0
    assert list_undone(kdeclare) == [False, False], "ownership was given up, and nothing was changed"


def test_history_marks_adoption_undone_after_release(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("orders", 1, 1, None, {"retention.ms": "5"})])
    kdeclare.topic("orders", configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    assert kdeclare("rollback", "--yes").code == 0
    assert list_undone(kdeclare) == [True, False]


def test_history_ignores_throttle_changes_of_failed_rollback(kdeclare: CommandLine) -> None:
    kdeclare.cluster.move_ticks = 0
    kdeclare.cluster.create_topics([NewTopic("orders", None, None, {0: (1,)}, {})])
    pace = {"topics": ["orders"], "drain": [1], "throttle": "1MiB/s"}
    kdeclare.write("manifests/drain.yaml", "Reassignment", "drain", **pace)
    assert kdeclare("apply", "--yes").code == 0
    refuse_next(kdeclare, "orders-0")
    assert kdeclare("rollback", "--yes").code != 0
    (back,) = [
        run for run in json.loads(kdeclare("history", "--format", "json").out)["runs"] if run["undoes"]
    ]
    assert back["counts"]["done"] > 0, "the throttles"
    assert list_undone(kdeclare) == [False, False]
