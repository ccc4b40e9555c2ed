"""What `apply` shows about the impact of a saved plan: the current numbers, and what happened."""

import json

from tests.unit.cli.command_line import CommandLine


def shorten(kdeclare: CommandLine) -> None:
    """Create a topic with ten records of 1970, and declare a retention that deletes them."""
    kdeclare.topic("orders", partitions=1, configs={"retention.ms": -1})
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.produce("orders", 10)
    kdeclare.topic("orders", partitions=1, configs={"retention.ms": 1000})


def test_apply_of_saved_plan_shows_the_current_impact(kdeclare: CommandLine) -> None:
    shorten(kdeclare)
    planned = kdeclare("plan", "--out", "it.plan")
    assert "Kafka deletes 10 of 10 records" in planned.out
    kdeclare.cluster.produce("orders", 5)
    applied = kdeclare("apply", "it.plan", "--yes")
    assert applied.code == 0
    assert "loss: Kafka deletes 15 of 15 records" in applied.out
    assert "Topic/orders (retention.ms): So far, Kafka has deleted 0 of these records." in applied.out
    assert "predicted: Kafka deletes 15 of 15 records" in applied.out


def test_forged_impact_of_saved_plan_is_not_shown(kdeclare: CommandLine) -> None:
    """The id of a plan does not cover its observations."""
    shorten(kdeclare)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    path = kdeclare.folder / "it.plan"
    document = json.loads(path.read_text())
    document["observations"] = [{**document["observations"][0], "text": "Nothing is lost."}]
    path.write_text(json.dumps(document))
    applied = kdeclare("apply", "it.plan", "--yes")
    assert (applied.code, "Nothing is lost." in applied.out) == (0, False)
    assert "loss: Kafka deletes 10 of 10 records" in applied.out


def test_apply_of_plan_without_impact_reads_none(kdeclare: CommandLine) -> None:
    shorten(kdeclare)
    assert kdeclare("plan", "--no-impact", "--out", "it.plan").code == 0
    kdeclare.cluster.calls.clear()
    applied = kdeclare("apply", "it.plan", "--yes", "--format", "json")
    assert (applied.code, json.loads(applied.out)["effects"]) == (0, [])
    assert not {call.method for call in kdeclare.cluster.calls} & {"list_offsets", "log_dirs", "list_groups"}


def lengthen_and_write(kdeclare: CommandLine) -> None:
    """Make the retention longer in a run, and write records that the rollback of the run deletes."""
    kdeclare.topic("orders", partitions=1, configs={"retention.ms": 1000})
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.topic("orders", partitions=1, configs={"retention.ms": -1})
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.produce("orders", 10)


def test_rollback_shows_its_impact(kdeclare: CommandLine) -> None:
    lengthen_and_write(kdeclare)
    done = kdeclare("rollback", "--yes")
    assert done.code == 0
    assert "loss: Kafka deletes 10 of 10 records" in done.out
    assert "predicted: Kafka deletes 10 of 10 records" in done.out


def test_plan_and_impact_of_a_rollback_need_one_read_of_its_topics(kdeclare: CommandLine) -> None:
    lengthen_and_write(kdeclare)
    kdeclare.cluster.calls.clear()
    assert "loss:" in kdeclare("rollback", "--out", "back.plan").out
    reads = [call for call in kdeclare.cluster.calls if call.method == "topics" and "orders" in call.items]
    assert len(reads) == 1


def test_rollback_reads_no_impact_for_safe_changes_and_if_told_so(kdeclare: CommandLine) -> None:
    lengthen_and_write(kdeclare)
    kdeclare.cluster.calls.clear()
    assert "loss:" not in kdeclare("rollback", "--yes", "--no-impact").out
    assert kdeclare("rollback", "--yes").code == 0, "the second rollback makes the retention longer"
    assert not {call.method for call in kdeclare.cluster.calls} & {"list_offsets", "log_dirs", "list_groups"}
