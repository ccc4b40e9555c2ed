"""Fixtures for states in object storage: a server per session, and a bucket per test."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from kdeclare.app.connections import ProjectReferences
from kdeclare.core.provider.connection import Target
from kdeclare.core.storage.location import StorageContext
from tests.object_servers import create_bucket, run_s3_server

ACCESS_KEY = "AKIATESTTESTTESTTEST"
SECRET_KEY = "a-secret-key-that-no-message-contains"
_numbers = count(1)


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only these credentials; none of the machine, and none of the user who runs the tests."""
    for name in tuple(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    with run_s3_server() as url:
        yield url


@pytest.fixture
def bucket(s3_server: str, credentials: None) -> str:
    """The name of an empty bucket on the server."""
    name = f"bucket-{next(_numbers)}"
    create_bucket(s3_server, name)
    return name


def find_target(provider: str) -> Target:
    raise AssertionError(provider)


def build_context(timeout_s: float = 10.0, folder: Path = Path()) -> StorageContext:
    """Return the context of a storage, with the environment variables of this process."""
    return StorageContext(folder, os.environ, ProjectReferences(folder, {}), timeout_s, find_target)
