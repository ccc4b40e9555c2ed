"""The bed of conformance cases for access kinds: in memory, and on a broker with an authorizer."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.kinds_bed import KindsBed, make_kafka_bed, make_memory_bed
from tests.conftest import connect_as

if TYPE_CHECKING:
    from kdeclare.sandbox import SandboxStatus


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def kinds_bed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KindsBed]:
    """A project of an administrator. Everything with the prefix of the test is deleted at the end."""
    if request.param == "memory":
        yield make_memory_bed(tmp_path, monkeypatch)
        return
    from kdeclare.sandbox.layout import resolve_layout
    from kdeclare.sandbox.security import ADMIN

    secured: SandboxStatus = request.getfixturevalue("secured_sandbox")
    file = resolve_layout(Path(secured.folder)).security.client(ADMIN)
    cluster = connect_as(secured, ADMIN)
    try:
        bed = make_kafka_bed(tmp_path, monkeypatch, cluster, {"clientConfigFile": str(file)})
        yield bed
        bed.clean()
    finally:
        cluster.close()


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def open_bed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KindsBed]:
    """A project on brokers without an authorizer."""
    if request.param == "memory":
        yield make_memory_bed(tmp_path, monkeypatch, has_authorizer=False)
        return
    from kdeclare.providers.kafka.client import connect

    sandbox: SandboxStatus = request.getfixturevalue("sandbox")
    cluster = connect(sandbox.bootstrap, {})
    try:
        yield make_kafka_bed(tmp_path, monkeypatch, cluster, {"bootstrapServers": sandbox.bootstrap})
    finally:
        cluster.close()


@pytest.fixture(params=["memory", pytest.param("kafka", marks=pytest.mark.kafka)])
def reader_bed(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KindsBed]:
    """A project that connects as the user 'reader', who is not a super user."""
    if request.param == "memory":
        yield make_memory_bed(tmp_path, monkeypatch, user="reader")
        return
    from kdeclare.sandbox.layout import resolve_layout
    from kdeclare.sandbox.security import ADMIN, READER

    secured: SandboxStatus = request.getfixturevalue("secured_sandbox")
    file = resolve_layout(Path(secured.folder)).security.client(READER)
    cluster = connect_as(secured, ADMIN)
    principal = f"User:{READER}"
    before = cluster.acls([principal])
    try:
        yield make_kafka_bed(tmp_path, monkeypatch, cluster, {"clientConfigFile": str(file)})
        cluster.delete_acls(sorted(cluster.acls([principal]) - before))
    finally:
        cluster.close()
