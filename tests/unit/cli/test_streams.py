"""What is written to stdout and stderr, and when confirmation is asked."""

import errno
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from kdeclare.app.apply import handle_interrupts
from kdeclare.cli.confirmation import prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import OutputOptions
from kdeclare.core.diagnostics import error, info, warning
from tests.unit.cli.command_line import CommandLine, Terminal, open_keyboard


def test_plan_prints_data_on_stdout(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("plan", "--out", "it.plan")
    assert ran.out.startswith("Plan for shop/lab on lab:9092: 1 to create.")
    assert ran.err == "The plan was saved to it.plan. To apply exactly this plan: kdeclare apply it.plan\n"


def test_plan_quotes_name_of_saved_plan(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("plan", "--out", "a b")
    assert ran.err == "The plan was saved to a b. To apply exactly this plan: kdeclare apply 'a b'\n"


def test_quiet_plan_prints_data_only(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("plan", "--out", "it.plan", "-q")
    assert ran.out.startswith("Plan for")
    assert not ran.err


@pytest.mark.parametrize("output", ["text", "json"])
def test_quiet_confirmation_keeps_warnings(kdeclare: CommandLine, output: str) -> None:
    kdeclare.topic("orders", configs={"retention.ms": 5})
    kdeclare("apply", "--yes")
    line = ("topic", "alter", "orders", "--add-config", "retention.ms=7", "-q", "--format", output)
    ran = kdeclare(*line, answer="no\n")
    warned, asked = ran.err.index("retention.ms of Topic/orders is declared"), ran.err.index("Only 'yes'")
    assert warned < asked
    assert "is declared" not in kdeclare(*line, "--yes").err, (
        "nobody is asked, and what was warned of is done"
    )


def test_quiet_confirmation_omits_notices() -> None:
    console = Console(OutputOptions(quiet=True), "text", "")
    said: list[str] = []
    console.say = lambda text, end="\n": said.append(text)  # type: ignore[method-assign]
    console.notices([info("a", "Nice"), warning("b", "Mind"), error("c", "Wrong")], asking=True)
    assert said == ["error: Wrong\nwarning: Mind"]


def test_plan_json_equals_plan_file(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("plan", "--format", "json", "--out", "it.plan")
    saved = json.loads((kdeclare.folder / "it.plan").read_text())
    shown = json.loads(ran.out)
    assert shown | {"created_at": None} == saved | {"created_at": None}
    assert kdeclare("show", "it.plan", "--format", "json").out == (kdeclare.folder / "it.plan").read_text()
    assert kdeclare("show", "it.plan").out == kdeclare("plan").out
    assert "Order of execution" in kdeclare("show", "it.plan", "--graph").out


def test_plan_with_errors_is_not_saved(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [77]})
    ran = kdeclare("plan", "--out", "it.plan")
    assert ran.code == 1
    assert "The plan was not saved" in ran.err
    assert not (kdeclare.folder / "it.plan").exists()


def test_apply_json_is_one_document(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("apply", "--yes", "--format", "json")
    document = json.loads(ran.out)
    assert document["outcome"] == "done"
    assert document["exit_code"] == 0
    assert not ran.err


def test_apply_json_asks_on_stderr(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("apply", "--format", "json", answer="yes\n")
    assert json.loads(ran.out)["outcome"] == "done"
    assert "Topic/orders" in ran.err
    assert "Only 'yes' is accepted" in ran.err


@pytest.mark.parametrize(
    ("line", "answer", "code", "said"),
    [
        ("apply --format json", "no\n", 1, "declined"),
        ("apply --format json", None, 64, "nobody-to-ask"),
        ("rollback --format json --yes", None, 1, "no-run"),
        ("rollback nope --format json --yes", None, 1, "unknown-run"),
        ("plan missing.yaml --format json", None, 1, "no-such-path"),
    ],
)
def test_failure_as_json_is_one_document(
    kdeclare: CommandLine, line: str, answer: str | None, code: int, said: str
) -> None:
    kdeclare.topic("orders")
    ran = kdeclare(*line.split(), answer=answer)
    document = json.loads(ran.out)
    assert ran.code == document["exit_code"] == code
    assert [d["code"] for d in document["diagnostics"]] == [said]
    assert not kdeclare.topics


def test_apply_json_of_invalid_plan_lists_diagnostics(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/orders.yaml", "Topic", "orders", assignments={0: [77]})
    ran = kdeclare("apply", "--yes", "--format", "json")
    assert ran.code == 1
    assert [d["resource"] for d in json.loads(ran.out)["diagnostics"]] == ["Topic/orders"]


def test_confirmation_accepts_only_yes(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    for answer in ("y\n", "YES\n", "\n", "", "yes please\n"):
        assert kdeclare("apply", answer=answer).code == 1
        assert not kdeclare.topics
    ran = kdeclare("apply", answer="yes\n")
    assert ran.code == 0
    assert kdeclare.topics == {"orders"}
    assert "Apply these changes? Only 'yes' is accepted: " in ran.err
    assert "Plan for" in ran.out
    assert "Applied to" in ran.out


def test_apply_without_changes_does_not_ask(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("apply")
    assert ran.code == 0
    assert ran.out == "No changes. shop/lab on lab:9092: 1 resource up to date.\n"


def test_apply_of_adoptions_only_does_not_ask(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes", "--state", "elsewhere")
    ran = kdeclare("apply")
    assert ran.code == 0
    assert "No changes. 1 resource was adopted on shop/lab" in ran.out
    assert ran.out.count("No changes.") == 1


def test_apply_of_forget_only_does_not_ask(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders").rename(kdeclare.folder / "orders.yaml")
    (kdeclare.folder / "orders.yaml").rename(kdeclare.folder / "manifests" / "orders.yaml")
    kdeclare("apply", "--yes")
    (kdeclare.folder / "manifests" / "orders.yaml").unlink()
    assert "orphan" in kdeclare("plan").out
    ran = kdeclare("apply", "--forget", "Topic/orders")
    assert ran.code == 0
    assert "1 resource released" in ran.out
    assert kdeclare.topics == {"orders"}


def test_partial_apply_deletes_no_orphans(kdeclare: CommandLine) -> None:
    orders = kdeclare.topic("orders")
    kdeclare.topic("payments")
    kdeclare("apply", "--yes")
    ran = kdeclare("apply", orders, "--allow-deletes", "--yes")
    assert ran.code == 0
    assert kdeclare.topics == {"orders", "payments"}


def test_colors_are_used_on_terminals_only(kdeclare: CommandLine) -> None:
    class Coloured(Terminal):
        pass

    talk = OutputOptions()
    for variable in ("NO_COLOR", "TERM"):
        kdeclare.monkeypatch.delenv(variable, raising=False)
    assert not Console(talk, "text", "").style.on
    kdeclare.monkeypatch.setattr(sys, "stdout", Coloured())
    assert Console(talk, "text", "").style.on
    assert not Console(OutputOptions(no_color=True), "text", "").style.on
    kdeclare.monkeypatch.setenv("NO_COLOR", "1")
    assert not Console(talk, "text", "").style.on


def test_confirmation_rejects_end_of_input(kdeclare: CommandLine) -> None:
    with open_keyboard("") as stdin:
        kdeclare.monkeypatch.setattr(sys, "stdin", stdin)
        assert not prompt_for_yes(Console(OutputOptions(), "text", ""), "Well?")


def test_apply_continues_after_broken_pipe(kdeclare: CommandLine) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    kdeclare.topic("orders")
    kdeclare.monkeypatch.setattr(sys, "stdout", Gone())
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.topics == {"orders"}


@pytest.mark.parametrize("output", ["text", "json", "markdown", "sarif"])
def test_plan_reports_full_disk_for_output(kdeclare: CommandLine, output: str) -> None:
    class Full(Terminal):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    kdeclare.topic("orders")
    with kdeclare.monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Full())
        ran = kdeclare("plan", "--format", output)
    assert ran.code == 1
    assert "Output cannot be written" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_command_with_closed_streams_succeeds_and_writes_nothing_elsewhere(
    kdeclare: CommandLine, closed: str
) -> None:
    """A closed descriptor is not given to a file that the command opens."""
    kdeclare.topic("orders")
    script = f"exec {closed}; exec {sys.executable} -m kdeclare validate"
    ran = subprocess.run(
        ["bash", "-c", script], cwd=kdeclare.folder, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran
    is_stdout_closed = ">&-" in closed.replace("2>&-", "")
    assert bool(ran.stdout) is not is_stdout_closed
    assert ran.stderr == ""


@pytest.fixture
def active_hangup() -> Iterator[None]:
    """Handle SIGHUP as in a terminal, even if the tests run under ``nohup``."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, previous)


def test_signals_stop_a_run_once(active_hangup: None) -> None:
    """A closed terminal sends SIGHUP twice; a second Ctrl-C interrupts at once."""
    stop, stops = threading.Event(), list[int]()
    with handle_interrupts(stop, lambda: stops.append(1)):
        for number in (signal.SIGHUP, signal.SIGHUP):
            signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert stops == [1]


def test_ignored_hangup_stays_ignored() -> None:
    """For example, by ``nohup``."""
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = threading.Event()
        with handle_interrupts(stop, lambda: None):
            signal.raise_signal(signal.SIGHUP)
        assert not stop.is_set()
    finally:
        signal.signal(signal.SIGHUP, previous)
