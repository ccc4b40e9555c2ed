"""One broker that authenticates its clients, and a project on it, for tests that change its SCRAM users."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxSettings
from kdeclare.sandbox.layout import resolve_layout
from tests.conftest import free_port
from tests.kafka.test_secured import SecuredBrokers


@contextmanager
def start_secured_broker(folder: Path) -> Iterator[SecuredBrokers]:
    """Run the broker."""
    settings = SandboxSettings(folder, 1, 1, free_port(1, secure=True), secure=True)
    try:
        kafka_sandbox.start(settings, print)
        yield SecuredBrokers(settings, resolve_layout(settings.folder).security)
    finally:
        kafka_sandbox.reset(settings.folder)


@contextmanager
def open_secured_project(
    brokers: SecuredBrokers, folder: Path, monkeypatch: pytest.MonkeyPatch, environ: Mapping[str, str]
) -> Iterator[KafkaCluster]:
    """Write a project file, and connect as a super user. environ: variables that the manifests refer to."""
    monkeypatch.chdir(folder)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    (folder / "kdeclare.yaml").write_text(
        f"apiVersion: kdeclare/v1\nkind: Project\nmetadata: {{name: {folder.name}}}\n"
        "spec:\n  manifests: [manifests]\n  environments:\n    lab: {}\n"
    )
    cluster = brokers.admin()
    try:
        yield cluster
    finally:
        cluster.close()
