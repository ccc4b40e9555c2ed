"""Plans and runs as HTML pages: stdout is the page and nothing else."""

import json
import subprocess

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.engine.planning.planfile import load_plan
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.page_reader import Reader

HTML = ("--format", "html")


@pytest.fixture(autouse=True)
def _without_ci_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_SHA", "CI_COMMIT_SHA", "BUILD_SOURCEVERSION", "GIT_COMMIT"):
        monkeypatch.delenv(name, raising=False)


def commit_all(kdeclare: CommandLine) -> str:
    """Commit all files of the project in a new git repository, and return the hash of the commit."""

    def git(*arguments: str) -> str:
        user = ("-c", "user.name=Ann Lee", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false")
        command = ["git", *user, "-C", str(kdeclare.folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "Declare topics")
    return git("rev-parse", "HEAD")


def test_pages_in_a_git_repository_name_commit_and_author(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    commit = commit_all(kdeclare)
    kdeclare("plan", "--out", "it.plan")
    facts = dict(Reader(kdeclare("plan", *HTML).out).data["facts"])
    assert (facts["commit"], facts["author"]) == (commit[:12], "Ann Lee")
    assert "ann@example.com" not in str(facts)
    kdeclare.topic("payments")
    facts = dict(Reader(kdeclare("plan", *HTML).out).data["facts"])
    assert facts["commit"] == f"{commit[:12]}, with local changes"
    shown = dict(Reader(kdeclare("show", "it.plan", *HTML).out).data["facts"])
    assert "created" in shown
    assert "commit" not in shown
    applied = dict(Reader(kdeclare("apply", "it.plan", "--yes", *HTML).out).data["facts"])
    assert "commit" not in applied
    applied = dict(Reader(kdeclare("apply", "--yes", *HTML).out).data["facts"])
    assert applied["commit"] == f"{commit[:12]}, with local changes"
    assert applied["author"] == "Ann Lee"


def test_page_of_a_plan_is_independent_of_the_commit_except_for_its_facts(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    before = dict(Reader(kdeclare("plan", *HTML).out).data["facts"])
    commit_all(kdeclare)
    after = dict(Reader(kdeclare("plan", *HTML).out).data["facts"])
    assert after["plan"] == before["plan"]
    assert after.keys() - before.keys() == {"commit", "author"}


def test_plan_and_saved_plan_produce_same_page(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitions=3)
    ran = kdeclare("plan", *HTML, "--out", "it.plan")
    assert ran.code == 0
    assert ran.out.startswith("<!doctype html>\n")
    assert ran.out.endswith("</html>\n")
    assert ran.err == "The plan was saved to it.plan. To apply exactly this plan: kdeclare apply it.plan\n"
    data = Reader(ran.out).data
    assert dict(data["facts"])["plan"] == load_plan(kdeclare.folder / "it.plan").plan_id
    assert kdeclare("show", "it.plan", *HTML).out == ran.out


def test_html_format_keeps_exit_codes(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("plan", *HTML, "--detailed-exitcode").code == 2
    fault = Fault("POLICY_VIOLATION", "No topics on Fridays.")
    kdeclare.cluster.faults.fail(fault, method="create_topics", nth=None, item="orders")
    ran = kdeclare("plan", *HTML)
    assert ran.code == 3
    assert [item["tag"] for item in Reader(ran.out).data["risky"]["items"]] == ["denied"]


def test_apply_writes_page_of_run(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [1, 2], 1: [2, 3]})
    ran = kdeclare("apply", "--yes", *HTML)
    assert (ran.code, kdeclare.topics) == (0, {"orders"})
    data = Reader(ran.out).data
    assert data["page"] == "run"
    assert [data["run"]["statuses"][at] for at in data["run"]["status"]] == ["done"]
    assert {data["strings"][at] for at in data["moves"]["racks"]} == {"rack-a", "rack-b", "rack-c"}
    (run,) = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert kdeclare("history", run["run_id"], *HTML).out == ran.out


def test_saved_plan_and_rollback_write_page_of_run(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("plan", "--out", "it.plan")
    assert Reader(kdeclare("apply", "it.plan", "--yes", *HTML).out).data["page"] == "run"
    planned = kdeclare("rollback", "--out", "undo.plan", *HTML)
    assert Reader(planned.out).data["page"] == "plan"
    undone = Reader(kdeclare("rollback", "--yes", *HTML).out).data
    assert "undoes" in dict(undone["facts"])
    assert kdeclare.topics == set()


def test_apply_without_changes_writes_page_of_plan(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("apply", "--yes", *HTML)
    assert ran.code == 0
    assert "No changes." in ran.out
    assert Reader(ran.out).data["page"] == "plan"


def test_interactive_apply_shows_plan_beside_page(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("apply", *HTML, answer="yes\n")
    assert "+ Topic/orders" in ran.err
    assert ran.out.startswith("<!doctype html>\n")
    kdeclare.topic("payments")
    ran = kdeclare("apply", *HTML, answer="no\n")
    assert (ran.code, ran.out) == (1, "")
    assert "Nothing was changed." in ran.err


def test_html_format_reports_errors_on_stderr(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", partitons=1)
    for command in (("plan",), ("apply", "--yes")):
        ran = kdeclare(*command, *HTML)
        assert (ran.code, ran.out) == (1, "")
        assert "manifests/orders.yaml" in ran.err


def test_apply_of_invalid_plan_writes_no_page(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [77]})
    ran = kdeclare("apply", "--yes", *HTML)
    assert (ran.code, ran.out) == (1, "")
    assert "[77]" in ran.err


def test_page_hides_secrets(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setenv("STORE", "hunter2")
    configs = {"listener.name.tls.ssl.keystore.password": "${env.STORE}"}
    kdeclare.write("manifests/brokers.yaml", "BrokerConfig", "1", configs=configs)
    ran = kdeclare("plan", *HTML)
    for page in (ran.out, kdeclare("apply", "--yes", *HTML).out):
        assert "(sensitive)" in page, ran.err
        assert "hunter2" not in page
        assert "pbkdf2" not in page


@pytest.mark.parametrize("words", [(), ("diff", "a", "b")])
def test_history_page_needs_run_id(kdeclare: CommandLine, words: tuple[str, ...]) -> None:
    ran = kdeclare("history", *words, *HTML)
    assert ran.code == 64
    assert "one RUN_ID" in ran.err
    assert not ran.out
