"""``--on-denied`` and ``onDenied``: what apply does if a policy or a guard denies a change."""

import json

import pytest

from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A topic of another team, which may not be adopted, and a new topic."""
    kdeclare.cluster.create_topics([NewTopic("theirs", 1, 1, None, {})])
    kdeclare.topic("theirs", partitions=5)
    kdeclare.topic("mine", partitions=1)
    return kdeclare


def set_project(shop: CommandLine, on_denied: str) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    shop.write("kdeclare.yaml", "Project", "shop", environments=environments, onDenied=on_denied)


def list_topics(shop: CommandLine) -> set[str]:
    return set(shop.cluster.topics())


def test_apply_continues_by_default(shop: CommandLine) -> None:
    ran = shop("apply", "--yes")
    assert (ran.code, list_topics(shop)) == (3, {"theirs", "mine"}), ran


def test_apply_that_stops_on_denials_applies_nothing(shop: CommandLine) -> None:
    ran = shop("apply", "--on-denied", "stop", answer="yes\n")
    assert (ran.code, list_topics(shop)) == (3, {"theirs"}), ran
    assert "Denied changes stop the apply" in ran.err
    assert "denies changes to Topic/theirs, and the run stops on denials. Nothing was applied." in ran.err
    assert "Only 'yes' is accepted" not in ran.err  # a plan that is not applied needs no confirmation
    assert "Topic/mine" in ran.out
    assert shop("history").out.count("kdeclare apply") == 0


def test_apply_that_stops_on_denials_reports_json(shop: CommandLine) -> None:
    ran = shop("apply", "--on-denied", "stop", "--yes", "--format", "json")
    document = json.loads(ran.out)
    assert ran.code == 3
    assert "denied-changes" in [d["code"] for d in document["diagnostics"]]


def test_plan_without_denials_is_applied(shop: CommandLine) -> None:
    ran = shop("apply", "--on-denied", "stop", "--adopt", "--yes")
    assert (ran.code, list_topics(shop)) == (0, {"theirs", "mine"}), ran


def test_project_stops_and_option_overrides_it(shop: CommandLine) -> None:
    set_project(shop, "stop")
    ran = shop("plan")
    assert ran.code == 3
    assert "The project sets onDenied: stop." in ran.out
    markdown = shop("plan", "--format", "markdown").out
    assert "The project stops on denials, so apply makes none of the changes." in markdown
    assert "Apply makes the other changes" not in markdown
    assert (shop("apply", "--yes").code, list_topics(shop)) == (3, {"theirs"})
    assert (shop("apply", "--on-denied", "continue", "--yes").code, list_topics(shop)) == (
        3,
        {"theirs", "mine"},
    )


def test_saved_plan_stops_on_denials(shop: CommandLine) -> None:
    set_project(shop, "stop")
    assert shop("plan", "--out", "it.plan").code == 3
    assert (shop("apply", "it.plan", "--yes").code, list_topics(shop)) == (3, {"theirs"})
    ran = shop("apply", "it.plan", "--yes", "--on-denied", "continue")
    assert (ran.code, list_topics(shop)) == (3, {"theirs", "mine"})
