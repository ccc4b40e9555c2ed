"""Users of a secure sandbox: their files and permissions, with a fake of Kafka's tools."""

import subprocess
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client import read_properties
from kdeclare.providers.kafka.client.properties import build_client_arguments
from kdeclare.sandbox import launch, startup
from kdeclare.sandbox.layout import SecurityFiles
from kdeclare.sandbox.settings import SandboxSettings
from tests.pems import pems

__all__ = ["pems"]

SETTINGS = SandboxSettings(Path("/s"), 1, 1, secure=True)


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Record the arguments with which Kafka's tools were run."""
    ran: list[tuple[str, ...]] = []

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        ran.append(words)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(launch, "run_kafka_tool", run)
    return ran


def test_rights_are_given_once_and_files_written_each_time(
    tmp_path: Path, tool: list[tuple[str, ...]], pems: Path
) -> None:
    files = SecurityFiles(tmp_path)
    files.authority_pem.write_text((pems / "cert").read_text())
    startup.grant_access(files, SETTINGS, print)
    assert len(tool) == 1
    assert str(files.client("admin")) in tool[0]
    assert {"User:reader", "Describe", "DescribeConfigs", "--cluster"} <= set(tool[0])
    files.client("admin").write_text("")
    startup.grant_access(files, SETTINGS, print)
    assert len(tool) == 1
    for user in ("admin", "reader"):
        arguments, unused = build_client_arguments(read_properties(files.client(user)))
        assert (arguments["sasl_plain_username"], unused) == (user, ())


def test_a_tool_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess((), 1, "", "no brokers\n")
    monkeypatch.setattr(launch, "run_kafka_tool", lambda *_: failed)
    files = SecurityFiles(tmp_path)
    with pytest.raises(KdeclareError, match="exited with code 1:\nno brokers") as raised:
        startup.grant_access(files, SETTINGS, print)
    assert raised.value.diagnostics[0].code == "sandbox-access"
    assert not files.client("reader").exists(), "the next start tries again"
