"""``--replace`` on the command line."""

import pytest

from kdeclare.core.exit_codes import ExitCode
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A topic that holds records and is to have fewer partitions."""
    kdeclare.topic("orders", partitions=6)
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.cluster.produce("orders", 7)
    kdeclare.topic("orders", partitions=2)
    return kdeclare


def count_partitions(kdeclare: CommandLine) -> int:
    return len(kdeclare.cluster.topics()["orders"].partitions)


def test_saved_plan_replaces_topic_and_rollback_explains_itself(shop: CommandLine) -> None:
    assert shop("plan").code == ExitCode.DENIED
    planned = shop("plan", "--replace", "Topic/orders", "--out", "it.plan", "--detailed-exitcode")
    assert planned.code == ExitCode.CHANGES
    assert "1 to replace." in planned.out
    assert "7 records" in planned.out
    assert count_partitions(shop) == 6
    assert "deleted, then created again" in shop("show", "it.plan").out
    ran = shop("apply", "it.plan", "--yes")
    assert ran.code == ExitCode.OK, ran
    assert count_partitions(shop) == 2
    kept = shop("rollback", "--yes")
    assert kept.code == ExitCode.PARTIAL
    assert "The run replaced Topic/orders" in " ".join((kept.out + kept.err).split())
    back = shop("rollback", "--recreate-deleted", "--yes")
    assert back.code in (ExitCode.OK, ExitCode.PARTIAL), back
    assert shop("plan", "--detailed-exitcode").code in (ExitCode.OK, ExitCode.DENIED)


def test_confirmation_names_the_records_that_are_deleted(shop: CommandLine) -> None:
    ran = shop("apply", "--replace", "Topic/orders", answer="no\n")
    assert "The topic to be deleted holds records: orders (7)." in ran.err
    assert count_partitions(shop) == 6
    ran = shop("apply", "--replace", "Topic/orders", answer="yes\n")
    assert ran.code == ExitCode.OK
    assert "Topic/orders: The earlier topic is gone, and the new topic exists." in ran.out
    assert count_partitions(shop) == 2


@pytest.mark.parametrize(("name", "code"), [("orders", 64), ("Topic/typo", 1), ("Policy/x", 64)])
def test_wrong_name_is_refused(shop: CommandLine, name: str, code: int) -> None:
    assert shop("plan", "--replace", name).code == code


@pytest.mark.parametrize("output", ["markdown", "html", "sarif", "json"])
def test_every_format_shows_the_replacement(shop: CommandLine, output: str) -> None:
    ran = shop("plan", "--replace", "Topic/orders", "--format", output)
    assert ran.code == ExitCode.OK
    assert "replace" in ran.out


def test_refresh_only_is_refused(shop: CommandLine) -> None:
    ran = shop("plan", "--refresh-only", "--replace", "Topic/orders")
    assert ran.code == ExitCode.USAGE
