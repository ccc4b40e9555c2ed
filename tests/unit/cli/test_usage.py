"""Usage errors, the help, and the cost of starting."""

import subprocess
import sys
from pathlib import Path

import pytest

from kdeclare.version import VERSION
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_golden

COMMANDS = (
    "init",
    "validate",
    "plan",
    "show",
    "apply",
    "rollback",
    "reassign",
    "status",
    "doctor",
    "history",
    "import",
    "schema",
    "shell",
)
GROUPS = {
    "config": ("describe",),
    "group": ("list", "describe", "reset-offsets", "delete-offsets", "delete"),
    "connect": ("plugin", "plugin build", "plugin install"),
    "lock": ("show", "break"),
    "new": ("topic", "client-quota", "scram-user", "acl"),
    "policy": ("check", "test"),
    "state": ("list", "show", "mv", "rm", "pull", "push", "migrate", "abandon", "prune"),
    "sandbox": ("start", "stop", "status", "reset"),
    "topic": ("list", "describe"),
}


@pytest.mark.parametrize(
    "line",
    [
        "",
        "frobnicate",
        "lock",
        "policy",
        "policy test",
        "policy check --format yaml",
        "sandbox",
        "sandbox frobnicate",
        "sandbox start --brokers none",
        "sandbox start extra",
        "plan --format xml",
        "plan --timeout soon",
        "plan --timeout 0",
        "plan --target orders",
        "plan --target topic/orders",
        "plan --forget orders",
        "plan --selector team",
        "plan --rf-guard nobody",
        "plan --project",
        "plan --bootstrap-server localhost",
        "plan --bootstrap-server localhost:0",
        "plan --bootstrap-server localhost:9092,",
        "plan --bootstrap-server localhost:http",
        f"plan --bootstrap-server localhost:{'9' * 5000}",
        f"group reset-offsets g --topic t:{'9' * 5000} --to-earliest",
        "plan --state ftp://server/state",
        "init --bootstrap-server localhost",
        "group list --in-state Idle",
        "show",
        "show one two",
        "apply --skip-stale",
        "rollback one two",
        "history one two",
        "history diff one",
        "history diff",
        "schema --kind topic",
        "init one two",
        "new",
        "new topic",
        "new topic orders --partitions 0",
        "new topic orders --config retention.ms",
        "--frobnicate",
    ],
)
def test_wrong_usage_exits_with_usage_error(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert not ran.out
    assert "Usage: kdeclare" in ran.err or "Try 'kdeclare" in ran.err


@pytest.mark.parametrize(
    "line",
    [
        "import --match (",
        "topic list (",
        "topic describe --topic (",
        "topic delete --topic ( --yes",
        "config describe --topic (",
        "config alter --topic ( --add-config retention.ms=1 --yes",
    ],
)
def test_invalid_regular_expression_is_wrong_usage(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert not ran.out
    assert "error: Invalid regular expression\n" in ran.err


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("schema --kind topic", "'topic' is not a kind. Did you mean 'Topic'?"),
        ("schema --kind Tpoic --overlay", "'Tpoic' is not a kind with overlays. Did you mean 'Topic'?"),
        ("schema --kind Elephant", "'Elephant' is not a kind. Use one of Topic, "),
        ("doctor --kind topic", "Did you mean 'Topic'?"),
        ("plan --target topic/orders", "'topic' is not a kind. Did you mean 'Topic'?"),
    ],
)
def test_unknown_kind_gets_a_suggestion(kdeclare: CommandLine, line: str, hint: str) -> None:
    ran = kdeclare(*line.split())
    assert ran.code == 64
    assert hint in ran.err


@pytest.mark.parametrize(
    "options",
    [
        "--target Topic/orders",
        "--selector team=shop",
        "--allow-deletes",
        "--forget Topic/orders",
        "--no-preflight",
        "--rf-guard broker",
        "other.yaml",
    ],
)
def test_apply_of_plan_file_rejects_planning_options(kdeclare: CommandLine, options: str) -> None:
    kdeclare.topic("orders")
    kdeclare("plan", "--out", "it.plan")
    ran = kdeclare("apply", "it.plan", *options.split(), "--yes")
    assert ran.code == 64
    assert "it.plan is a plan" in ran.err
    assert not kdeclare.topics


def test_help_matches_golden_file(kdeclare: CommandLine) -> None:
    ran = kdeclare("--help")
    assert ran.code == 0
    check_golden("help", ran.out)


def test_every_command_has_help(kdeclare: CommandLine) -> None:
    lines = [[name] for name in COMMANDS]
    lines += [[group, *name] for group, names in GROUPS.items() for name in [(), *(n.split() for n in names)]]
    for line in lines:
        ran = kdeclare(*line, "--help")
        assert ran.code == 0
        assert f"Usage: kdeclare {' '.join(line)} " in ran.out
        assert "list[" not in ran.out, "Python's types are nothing for people"


@pytest.mark.parametrize("name", ["plan", "apply"])
def test_help_lists_exit_codes(kdeclare: CommandLine, name: str) -> None:
    out = kdeclare(name, "--help").out
    for line in ("0    done", "3    a policy", "64   usage error", "130  interrupted"):
        assert line in out


def test_version_option_prints_version(kdeclare: CommandLine) -> None:
    assert kdeclare("--version").out == f"kdeclare {VERSION}\n"


def test_shell_completion_completes_option(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setenv("_KDECLARE_COMPLETE", "complete_bash")
    kdeclare.monkeypatch.setenv("COMP_WORDS", "kdeclare plan --allow-d")
    kdeclare.monkeypatch.setenv("COMP_CWORD", "2")
    kdeclare.capsys.readouterr()
    with pytest.raises(SystemExit):
        kdeclare()
    assert kdeclare.capsys.readouterr().out.split() == ["--allow-deletes"]


HEAVY = ("rich", "kafka", "networkx", "pydantic", "yaml", "deepdiff", "pyspark", "prompt_toolkit")


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys; from kdeclare.cli.main import main; main(['--help']); main(['--version']);"
        f"print([m for m in {HEAVY} if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stderr == "[]\n"


NOT_FOR_PLANS = (
    "rich",
    "networkx",
    "deepdiff",
    "pyspark",
    "httpx",
    "cel_expr_python",
    "kafka.consumer.group",
    "kafka.producer.kafka",
    "kdeclare.cli.commands.apply",
    "kdeclare.engine.executor.rollback",
    "kdeclare.providers.kafka.doctor",
    "kdeclare.providers.kafka.policies.requests",
    "kdeclare.providers.kafka.reassignment.activity",
)


@pytest.mark.slow
def test_plan_imports_only_what_it_needs(tmp_path: Path) -> None:
    code = (
        "import sys; from kdeclare.cli.main import main;"
        "assert main(['plan', '--bootstrap-server', '127.0.0.1:1', '.']) == 1;"
        f"print([m for m in {NOT_FOR_PLANS} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "[]\n", ran.stderr


@pytest.mark.slow
def test_no_garbage_is_collected_while_modules_are_imported(tmp_path: Path) -> None:
    code = (
        "import gc, sys; from kdeclare.__main__ import run; collections = [];"
        "gc.callbacks.append(lambda phase, _: collections.append(phase));"
        "sys.argv = ['kdeclare', 'plan', '--help']; import os;"
        "os._exit = lambda code: print('collections:', collections, file=sys.stderr); run()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert "collections: []" in ran.stderr, ran.stderr


def test_python_m_shows_usage_errors(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "kdeclare", "plan", "--nope"], capture_output=True, text=True, cwd=tmp_path
    )
    assert ran.returncode == 64
    assert "kdeclare plan --help" in ran.stderr
