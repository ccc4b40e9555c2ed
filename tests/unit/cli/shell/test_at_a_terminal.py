"""The shell as a process on a pseudo-terminal, with a broker that a test can kill."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.engine.state.local_store import LocalStore
from tests.terminal import CTRL_C, CTRL_D, UP, open_terminal
from tests.unit.cli.shell.broker import LIST_MOVES, SilentBroker, TopicBroker

pytestmark = pytest.mark.slow

QUIET = "Idle."


@pytest.fixture
def broker() -> Iterator[TopicBroker]:
    """A broker with two topics."""
    made = TopicBroker(["orders", "payments"])
    yield made
    made.die()


def test_shell_completes_reports_errors_and_keeps_connection(tmp_path: Path, broker: TopicBroker) -> None:
    with open_terminal(tmp_path, "--bootstrap-server", broker.bootstrap) as shell:
        assert f"kdeclare {broker.bootstrap}>" in shell.screen
        shell.type("statu\t")
        shell.wait_for("> status")
        shell.type("\r")
        shell.wait_for(QUIET)
        opened = broker.connections
        shell.wait_for_prompt()
        shell.type("plan --target Topic/pay\t")
        shell.wait_for("plan --target Topic/payments")
        shell.type(CTRL_C)
        shell.wait_for_prompt()
        shell.type("plan --t\t")
        shell.wait_for("Plan only this resource")
        shell.type(CTRL_C)
        shell.wait_for_prompt()
        shell.enter("staus", then="Did you mean 'status', 'state'?")
        shell.enter("status 'a", then="Unclosed quote")
        shell.enter("status | less", then="Shell operator not supported")
        shell.enter("shell", then="Already in the shell")
        shell.enter("status", then=QUIET)
        assert broker.connections == opened
        shell.type(CTRL_D)
        assert shell.wait_for_exit() == 0


def test_shell_reconnects_after_broker_restart(tmp_path: Path, broker: TopicBroker) -> None:
    with open_terminal(tmp_path, "--bootstrap-server", broker.bootstrap, "--timeout", "3") as shell:
        shell.enter("status", then=QUIET)
        shown = shell.screen
        broker.die()
        for _ in range(5):
            assert shell.read_output()
        assert shell.screen == shown, "what nobody asked for is not told"
        shell.enter("status", then="Cluster unreachable", seconds=20)
        again = TopicBroker(["orders"], port=broker.port)
        try:
            shell.enter("status", then=QUIET)
        finally:
            again.die()


def test_ctrl_c_ends_command_but_not_shell(tmp_path: Path) -> None:
    silent = SilentBroker([])
    with open_terminal(tmp_path, "--bootstrap-server", silent.bootstrap) as shell:
        shell.type("status\r")
        while not silent.list_requests(LIST_MOVES):
            assert shell.read_output()
        shell.interrupt(then="Interrupted")
        shell.wait_for_prompt()
        shell.enter("schema --kind Nothing", then="is not a kind")
        shell.type("exit\r")
        assert shell.wait_for_exit() == 0
    silent.die()


def test_shell_history_is_kept_for_next_session(tmp_path: Path) -> None:
    with open_terminal(tmp_path) as shell:
        shell.enter("schema --kind First", then="is not a kind")
        shell.enter(" schema --kind Second", then="is not a kind")
        shell.enter("topic alter --add-config ssl.keystore.password=x", then="not written to the history")
        shell.type("quit\r")
        shell.wait_for_exit()
    kept = tmp_path / ".state" / "kdeclare" / "history"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert "password" not in kept.read_text()
    with open_terminal(tmp_path) as shell:
        shell.type(UP)  # quit
        shell.wait_for("> quit")
        shell.type(UP)
        shell.wait_for("> schema --kind First")


def test_shell_pages_long_output_and_asks_questions(tmp_path: Path) -> None:
    with open_terminal(tmp_path, lines=12, PAGER="sed s/^/paged:/") as shell:
        shell.enter("schema --kind Topic", then="paged:}")
        shell.enter("help", then="paged:contain the value of a sensitive config key")
        with LocalStore(tmp_path / "state" / "default" / "default").lock("a test"):
            shell.enter("lock show", then="Locked by")
            assert "paged:" not in shell.screen
            shell.type("lock break\r")
            shell.wait_for("Only 'yes' is accepted:")
            shell.type("no\r")
            shell.wait_for("The lock was not broken.")


def test_shell_works_in_dumb_terminal(tmp_path: Path) -> None:
    with open_terminal(tmp_path, TERM="dumb") as shell:
        shell.type("lock show\r")
        shell.wait_for("Not locked.")
        shell.wait_for_prompt()
        shell.type("exit\r")
        assert shell.wait_for_exit() == 0
