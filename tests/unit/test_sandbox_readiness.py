"""Progress messages while waiting for brokers."""

from pathlib import Path

import pytest

from kdeclare.sandbox import health, readiness
from kdeclare.sandbox.health import ClusterView
from kdeclare.sandbox.layout import Marker, resolve_layout

MARKER = Marker(brokers=3, racks=3, port=19092, cluster_id="abc", kafka="4.3.1", formatted=True)


def await_brokers(started: list[int], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the messages if all three brokers run now and those in ``started`` were down before."""
    said: list[str] = []
    asked: list[int] = []

    def ask(host: str, port: int, timeout: float) -> ClusterView:
        asked.append(port)
        return ClusterView("abc", frozenset({1, 2, 3}))

    monkeypatch.setattr(readiness, "running_process", lambda files: object())
    monkeypatch.setattr(health, "ask", ask)
    readiness.await_brokers(
        [readiness.StartedSandbox(resolve_layout(folder), MARKER, started, said.append)], 60
    )
    assert len(asked) == 3, "whoever ran before has to see the others, too"
    return [line.partition(" after")[0] for line in said]


def test_progress_names_only_brokers_that_were_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await_brokers([2], tmp_path, monkeypatch) == ["starting broker(s) 2", "broker 2 is ready"]


def test_progress_is_empty_if_no_broker_was_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert await_brokers([], tmp_path, monkeypatch) == []
