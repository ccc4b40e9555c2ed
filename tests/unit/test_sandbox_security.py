"""Users of a secure sandbox: their files and permissions, with a fake of Kafka's tools."""

import subprocess
from dataclasses import replace
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
def kafka_tool_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Record the arguments with which Kafka's tools were run."""
    ran: list[tuple[str, ...]] = []

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        ran.append(words)
        return subprocess.CompletedProcess(words, 0, "", "")

    monkeypatch.setattr(launch, "run_kafka_tool", run)
    return ran


def test_grant_access_grants_once_and_writes_files_each_time(
    tmp_path: Path, kafka_tool_calls: list[tuple[str, ...]], pems: Path
) -> None:
    files = SecurityFiles(tmp_path)
    files.authority_pem.write_text((pems / "cert").read_text())
    startup.grant_access(files, SETTINGS, print)
    assert len(kafka_tool_calls) == 1
    assert str(files.client("admin")) in kafka_tool_calls[0]
    assert {"User:reader", "Describe", "DescribeConfigs", "--cluster"} <= set(kafka_tool_calls[0])
    files.client("admin").write_text("")
    startup.grant_access(files, SETTINGS, print)
    assert len(kafka_tool_calls) == 1
    for user in ("admin", "reader"):
        arguments, unused = build_client_arguments(read_properties(files.client(user)))
        assert (arguments["sasl_plain_username"], unused) == (user, ())


def test_workers_get_only_their_own_permissions_once(
    tmp_path: Path, kafka_tool_calls: list[tuple[str, ...]]
) -> None:
    files = SecurityFiles(tmp_path)
    settings = replace(SETTINGS, connect_workers=1)
    for _ in range(2):
        startup.grant_access(files, settings, print)
    (granted,) = (call for call in kafka_tool_calls if "User:connect" in call)
    assert granted[-8:] == (
        *("--operation", "All", "--topic", "connect-", "--group", "connect"),
        *("--resource-pattern-type", "prefixed"),
    )
    assert 'username="connect"' in read_properties(files.client("connect"))["sasl.jaas.config"]


def test_failed_kafka_tool_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = subprocess.CompletedProcess((), 1, "", "no brokers\n")
    monkeypatch.setattr(launch, "run_kafka_tool", lambda *_: failed)
    files = SecurityFiles(tmp_path)
    with pytest.raises(KdeclareError, match="exited with code 1:\nno brokers") as raised:
        startup.grant_access(files, SETTINGS, print)
    assert raised.value.diagnostics[0].code == "sandbox-access"
    assert not files.client("reader").exists(), "the next start tries again"
