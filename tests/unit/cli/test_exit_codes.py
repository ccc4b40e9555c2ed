"""Every exit code of the contract, and the message with it."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.live.faults import Fault
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.port import Cluster, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.terminal import CTRL_C
from tests.unit.cli.command_line import CommandLine, Ran

ROOT = Path(__file__).parents[3]
Case = Callable[[CommandLine], Ran]


def done(k: CommandLine) -> Ran:
    k.topic("orders")
    return k("apply", "--yes")


def nothing_to_do(k: CommandLine) -> Ran:
    done(k)
    return k("plan", "--detailed-exitcode")


def changes_without_asking_for_the_code(k: CommandLine) -> Ran:
    k.topic("orders")
    return k("plan")


def bad_manifest(k: CommandLine) -> Ran:
    k.topic("orders", partitons=3)
    return k("plan")


def unreachable(k: CommandLine) -> Ran:
    def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
        raise KdeclareError(error("unreachable", "Cluster unreachable", f"{servers}: refused."))

    k.monkeypatch.setattr(connection, "connect_cluster", connect)
    k.topic("orders")
    return k("plan")


def internal_error(k: CommandLine) -> Ran:
    def connect(servers: str, config: object, timeout_s: float, attempts: int) -> Cluster:
        raise ZeroDivisionError("by accident")

    k.monkeypatch.setattr(connection, "connect_cluster", connect)
    k.topic("orders")
    return k("plan")


def fewer_partitions(k: CommandLine) -> Ran:
    k.topic("orders", partitions=3)
    k("apply", "--yes")
    k.topic("orders", partitions=2)
    return k("apply", "--yes")


def unknown_broker(k: CommandLine) -> Ran:
    k.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [77]})
    return k("apply", "--yes")


def declined(k: CommandLine) -> Ran:
    k.topic("orders")
    return k("apply", answer="no\n")


def changes(k: CommandLine) -> Ran:
    k.topic("orders")
    return k("plan", "--detailed-exitcode")


def plan_denied(k: CommandLine) -> Ran:
    k.topic("orders")
    k.topic("payments")
    k.cluster.faults.fail(
        Fault("POLICY_VIOLATION", "No topics on Fridays."), method="create_topics", nth=None, item="orders"
    )
    return k("plan")


def apply_denied(k: CommandLine) -> Ran:
    plan_denied(k)
    ran = k("apply", "--yes")
    assert k.topics == {"payments"}, "apply does the rest"
    return ran


def test_run_with_a_denial_is_shown_as_applied_in_part_everywhere(kdeclare: CommandLine) -> None:
    ran = apply_denied(kdeclare)
    assert "\nPartially applied to shop/lab (lab:9092): 1 done, 1 denied.\n" in ran.out
    (run,) = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert run["outcome"] == "denied"
    shown = kdeclare("history", run["run_id"]).out
    assert shown.splitlines()[0].endswith(": partially applied: 1 done, 1 denied.")
    page = kdeclare("history", run["run_id"], "--format", "html").out
    assert "partially applied: 1 done, 1 denied." in page
    assert "partially applied: 1 done, 1 denied" in kdeclare("status").out


def overtaken(k: CommandLine) -> Ran:
    """Another apply, with a state of its own, creates the topic while this one is being planned."""
    k.topic("orders")
    new = NewTopic("orders", 1, 1, None, {})
    k.cluster.faults.run_before(lambda other: other.create_topics([new]), method="create_topics")
    return k("apply", "--yes")


def stale(k: CommandLine) -> Ran:
    k.topic("orders", configs={"retention.ms": 1000})
    k("apply", "--yes")
    k.topic("orders", configs={"retention.ms": 2000})
    k("plan", "--out", "it.plan")
    k.topic("orders", configs={"retention.ms": 3000})
    k("apply", "--yes")
    return k("apply", "it.plan", "--yes")


def partial(k: CommandLine) -> Ran:
    k.topic("orders")
    k.topic("payments")
    k.cluster.faults.fail(
        Fault("INVALID_TOPIC_EXCEPTION", "Not today."), method="create_topics", item="orders"
    )
    ran = k("apply", "--yes", "--no-preflight")
    assert k.topics == {"payments"}
    return ran


def locked(k: CommandLine) -> Ran:
    k.topic("orders")
    with LocalStore(k.folder / "state" / "shop" / "lab").lock("kdeclare apply, by someone else"):
        return k("apply", "--yes")


def nobody_to_ask(k: CommandLine) -> Ran:
    k.topic("orders")
    ran = k("apply")
    assert not k.topics
    return ran


def unknown_option(k: CommandLine) -> Ran:
    return k("plan", "--frobnicate")


def ctrl_c(k: CommandLine) -> Ran:
    """Ctrl-C is pressed while the first of two operations is in progress."""
    k.topic("orders")
    k("apply", "--yes")
    k.topic("orders", partitions=2, configs={"retention.ms": 1000})
    k.topic("payments")

    def press(_: MemoryCluster) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    k.cluster.faults.run_before(press)
    return k("apply", "--yes", "--no-preflight")


def ctrl_c_at_the_question(k: CommandLine) -> Ran:
    k.topic("orders")
    ran = k("apply", answer=CTRL_C)
    assert not k.topics
    return ran


CASES: list[tuple[int, Case, str]] = [
    (0, done, "1 of 1 operation done"),
    (0, nothing_to_do, "No changes."),
    (0, changes_without_asking_for_the_code, "1 to create"),
    (1, bad_manifest, "partitions"),
    (1, unreachable, "lab:9092: refused."),
    (1, internal_error, "ZeroDivisionError: by accident"),
    (1, unknown_broker, "The plan has errors"),
    (1, declined, "Nothing was changed."),
    (2, changes, "1 to create"),
    (3, fewer_partitions, "Kafka cannot remove partitions"),
    (3, plan_denied, "No topics on Fridays."),
    (4, overtaken, "Another client changed Topic/orders while the plan was made"),
    (3, apply_denied, "1 denied"),
    (4, stale, "The plan is stale"),
    (5, partial, "Not today."),
    (6, locked, "by someone else"),
    (64, nobody_to_ask, "--yes"),
    (64, unknown_option, "No such option: --frobnicate"),
    (130, ctrl_c, "Interrupted"),
    (130, ctrl_c_at_the_question, "Interrupted"),
]


@pytest.mark.parametrize(("code", "case", "said"), CASES, ids=[case.__name__ for _, case, _ in CASES])
def test_exit_code(kdeclare: CommandLine, code: int, case: Case, said: str) -> None:
    ran = case(kdeclare)
    assert ran.code == code, ran
    assert said in ran.out + ran.err
    assert "Traceback" not in ran.err
    if code in (1, 4, 6, 64):
        assert said in ran.err, "what went wrong belongs to stderr"


def test_every_code_of_the_contract_is_tried() -> None:
    contract = {0, 1, 2, 3, 4, 5, 6, 64, 130}
    assert {code for code, _, _ in CASES} == contract


def test_a_traceback_is_for_who_wants_it(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setenv("KDECLARE_DEBUG", "1")
    assert "Traceback" in internal_error(kdeclare).err


IMPATIENT = """
import sys

class PressCtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "kdeclare.core.diagnostics":
            raise KeyboardInterrupt

sys.meta_path.insert(0, PressCtrlC())
sys.exit(EntryPoint("kdeclare", REFERENCE, "console_scripts").load()())
"""


def test_ctrl_c_while_the_command_is_imported_shows_no_traceback() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    start = f"from importlib.metadata import EntryPoint\nREFERENCE = {scripts['kdeclare']!r}\n"
    done = subprocess.run([sys.executable, "-c", start + IMPATIENT], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_what_ctrl_c_left_undone_is_done_next(kdeclare: CommandLine) -> None:
    ctrl_c(kdeclare)
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_state_that_cannot_be_written(kdeclare: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    kdeclare.topic("orders")
    ran = kdeclare("apply", "--yes", "--state", tmp_path / "file")
    assert ran.code == 1
    assert "state" in ran.err
    assert not kdeclare.topics
