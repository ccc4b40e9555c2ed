"""Fixtures for the engine's tests."""

import pytest

from kdeclare.core.secrets import secret_hashes


@pytest.fixture(autouse=True)
def _hashed_in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use fast secret hashes: real ones are slow on purpose, which tests do not need."""
    monkeypatch.setattr(secret_hashes, "_ITERATIONS", 10)
