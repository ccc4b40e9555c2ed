"""Every exit code of the contract, and the message with it."""

import json
import os
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from kdeclare.cli import main as cli_main
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.terminal import CTRL_C
from tests.unit.cli.command_line import CommandLine, CommandResult

ROOT = Path(__file__).parents[3]
Case = Callable[[CommandLine], CommandResult]


def apply_changes(k: CommandLine) -> CommandResult:
    k.topic("orders")
    return k("apply", "--yes")


def plan_without_changes(k: CommandLine) -> CommandResult:
    apply_changes(k)
    return k("plan", "--detailed-exitcode")


def plan_without_detailed_exit_code(k: CommandLine) -> CommandResult:
    k.topic("orders")
    return k("plan")


def plan_bad_manifest(k: CommandLine) -> CommandResult:
    k.topic("orders", partitons=3)
    return k("plan")


def plan_unreachable_cluster(k: CommandLine) -> CommandResult:
    def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
        raise KdeclareError(error("unreachable", "Cluster unreachable", f"{servers}: refused."))

    k.monkeypatch.setattr(connection, "connect_cluster", connect)
    k.topic("orders")
    return k("plan")


def raise_internal_error(k: CommandLine) -> CommandResult:
    def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
        raise ZeroDivisionError("by accident")

    k.monkeypatch.setattr(connection, "connect_cluster", connect)
    k.topic("orders")
    return k("plan")


def apply_fewer_partitions(k: CommandLine) -> CommandResult:
    k.topic("orders", partitions=3)
    k("apply", "--yes")
    k.topic("orders", partitions=2)
    return k("apply", "--yes")


def apply_unknown_broker(k: CommandLine) -> CommandResult:
    k.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [77]})
    return k("apply", "--yes")


def decline_apply(k: CommandLine) -> CommandResult:
    k.topic("orders")
    return k("apply", answer="no\n")


def plan_changes(k: CommandLine) -> CommandResult:
    k.topic("orders")
    return k("plan", "--detailed-exitcode")


def plan_denied_change(k: CommandLine) -> CommandResult:
    k.topic("orders")
    k.topic("payments")
    k.cluster.faults.fail(
        Fault("POLICY_VIOLATION", "No topics on Fridays."), method="create_topics", nth=None, item="orders"
    )
    return k("plan")


def apply_denied_change(k: CommandLine) -> CommandResult:
    plan_denied_change(k)
    ran = k("apply", "--yes")
    assert k.topics == {"payments"}, "apply does the rest"
    return ran


def test_run_with_denial_is_shown_as_partially_applied(kdeclare: CommandLine) -> None:
    ran = apply_denied_change(kdeclare)
    assert "\nPartially applied to shop/lab (lab:9092): 1 done, 1 denied.\n" in ran.out
    (run,) = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert run["outcome"] == "denied"
    shown = kdeclare("history", run["run_id"]).out
    assert shown.splitlines()[0].endswith(": partially applied: 1 done, 1 denied.")
    page = kdeclare("history", run["run_id"], "--format", "html").out
    assert "partially applied: 1 done, 1 denied." in page
    assert "partially applied: 1 done, 1 denied" in kdeclare("status").out


def apply_overtaken_plan(k: CommandLine) -> CommandResult:
    """Another apply, with a state of its own, creates the topic while this one is being planned."""
    k.topic("orders")
    new = NewTopic("orders", 1, 1, None, {})
    k.cluster.faults.run_before(lambda other: other.create_topics([new]), method="create_topics")
    return k("apply", "--yes")


def apply_stale_plan(k: CommandLine) -> CommandResult:
    k.topic("orders", configs={"retention.ms": 1000})
    k("apply", "--yes")
    k.topic("orders", configs={"retention.ms": 2000})
    k("plan", "--out", "it.plan")
    k.topic("orders", configs={"retention.ms": 3000})
    k("apply", "--yes")
    return k("apply", "it.plan", "--yes")


def apply_partially(k: CommandLine) -> CommandResult:
    k.topic("orders")
    k.topic("payments")
    k.cluster.faults.fail(
        Fault("INVALID_TOPIC_EXCEPTION", "Not today."), method="create_topics", item="orders"
    )
    ran = k("apply", "--yes", "--no-preflight")
    assert k.topics == {"payments"}
    return ran


def apply_without_success(k: CommandLine) -> CommandResult:
    """The run has begun and did not reach its aim: 5, as for a run in which one of many operations failed."""
    k.topic("orders")
    k.cluster.faults.fail(Fault("INVALID_TOPIC_EXCEPTION", "Not today."), method="create_topics")
    return k("apply", "--yes", "--no-preflight")


def apply_locked_state(k: CommandLine) -> CommandResult:
    k.topic("orders")
    with LocalStore(k.folder / "state" / "shop" / "lab").lock("kdeclare apply, by someone else"):
        return k("apply", "--yes")


def apply_without_terminal(k: CommandLine) -> CommandResult:
    k.topic("orders")
    ran = k("apply")
    assert not k.topics
    return ran


def pass_unknown_option(k: CommandLine) -> CommandResult:
    return k("plan", "--frobnicate")


def press_ctrl_c_during_apply(k: CommandLine) -> CommandResult:
    """Ctrl-C is pressed while the first of two operations is in progress."""
    k.topic("orders")
    k("apply", "--yes")
    k.topic("orders", partitions=2, configs={"retention.ms": 1000})
    k.topic("payments")

    def press(_: MemoryCluster) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    k.cluster.faults.run_before(press)
    return k("apply", "--yes", "--no-preflight")


def press_ctrl_c_at_prompt(k: CommandLine) -> CommandResult:
    k.topic("orders")
    ran = k("apply", answer=CTRL_C)
    assert not k.topics
    return ran


CASES: list[tuple[int, Case, str]] = [
    (0, apply_changes, "1 of 1 operation done"),
    (0, plan_without_changes, "No changes."),
    (0, plan_without_detailed_exit_code, "1 to create"),
    (1, plan_bad_manifest, "partitions"),
    (1, plan_unreachable_cluster, "lab:9092: refused."),
    (1, raise_internal_error, "ZeroDivisionError: by accident"),
    (1, apply_unknown_broker, "The plan has errors"),
    (1, decline_apply, "Nothing was changed."),
    (2, plan_changes, "1 to create"),
    (3, apply_fewer_partitions, "Kafka cannot remove partitions"),
    (3, plan_denied_change, "No topics on Fridays."),
    (4, apply_overtaken_plan, "Another client changed Topic/orders while the plan was being created"),
    (3, apply_denied_change, "1 denied"),
    (4, apply_stale_plan, "The plan is stale"),
    (5, apply_partially, "Not today."),
    (5, apply_without_success, "Nothing was applied to shop/lab (lab:9092): 1 failed."),
    (6, apply_locked_state, "by someone else"),
    (64, apply_without_terminal, "--yes"),
    (64, pass_unknown_option, "No such option: --frobnicate"),
    (130, press_ctrl_c_during_apply, "Interrupted"),
    (130, press_ctrl_c_at_prompt, "Interrupted"),
]


@pytest.mark.parametrize(("code", "case", "said"), CASES, ids=[case.__name__ for _, case, _ in CASES])
def test_exit_code_matches_outcome(kdeclare: CommandLine, code: int, case: Case, said: str) -> None:
    ran = case(kdeclare)
    assert ran.code == code, ran
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.err
    if code in (1, 4, 6, 64):
        assert said in ran.err, "what went wrong belongs to stderr"


def test_cases_cover_every_exit_code() -> None:
    contract = {0, 1, 2, 3, 4, 5, 6, 64, 130}
    assert {code for code, _, _ in CASES} == contract


def test_debug_variable_shows_traceback(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setenv("KDECLARE_DEBUG", "1")
    assert "Traceback" in raise_internal_error(kdeclare).err


@pytest.mark.parametrize("is_internal", [True, False])
def test_traceback_contains_no_secret(kdeclare: CommandLine, is_internal: bool) -> None:
    """Exceptions of libraries can contain what they could not use."""
    secret = "correct-horse-battery-staple"

    def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
        SCRUBBER.register(secret)
        cause = ZeroDivisionError(f"cannot log in with {secret}")
        raise cause if is_internal else KdeclareError(error("no", "No", "Not today.")) from cause

    kdeclare.monkeypatch.setattr(connection, "connect_cluster", connect)
    kdeclare.monkeypatch.setenv("KDECLARE_DEBUG", "1")
    kdeclare.topic("orders")
    ran = kdeclare("plan")
    assert "ZeroDivisionError: cannot log in with (sensitive)" in ran.err
    assert secret not in ran.err


def test_traceback_before_command_contains_no_secret(kdeclare: CommandLine) -> None:
    """An error outside of the command itself, such as in the application."""
    secret = "correct-horse-battery-staple"

    def build(*_: object, **__: object) -> NoReturn:
        SCRUBBER.register(secret)
        raise ZeroDivisionError(f"cannot log in with {secret}")

    kdeclare.monkeypatch.setattr(cli_main, "_build_cached_application", build)
    kdeclare.monkeypatch.setenv("KDECLARE_DEBUG", "1")
    ran = kdeclare("plan")
    assert "ZeroDivisionError: cannot log in with (sensitive)" in ran.err
    assert secret not in ran.err


IMPATIENT = """
import sys

class PressCtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "kdeclare.core.diagnostics":
            raise KeyboardInterrupt

sys.meta_path.insert(0, PressCtrlC())
sys.exit(EntryPoint("kdeclare", REFERENCE, "console_scripts").load()())
"""


def test_ctrl_c_during_import_shows_no_traceback() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    start = f"from importlib.metadata import EntryPoint\nREFERENCE = {scripts['kdeclare']!r}\n"
    done = subprocess.run([sys.executable, "-c", start + IMPATIENT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_apply_after_ctrl_c_completes_changes(kdeclare: CommandLine) -> None:
    press_ctrl_c_during_apply(kdeclare)
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_apply_reports_unwritable_state_path(kdeclare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kdeclare.topic("orders")
    ran = kdeclare("apply", "--yes", "--state", tmp_path / "file")
    assert ran.code == 1
    assert "state" in ran.err
    assert not kdeclare.topics


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_interrupts_command_that_waits_for_cluster(tmp_path: Path, number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        command = [sys.executable, "-m", "kdeclare", "topic", "list", "--bootstrap-server", address]
        process = subprocess.Popen(
            [*command, "--timeout", "60"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        silent.settimeout(60)
        connection, _ = silent.accept()
        with connection:
            process.send_signal(number)
            _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (ExitCode.INTERRUPTED, "error: Interrupted\n")
