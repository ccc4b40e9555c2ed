"""Fixtures for the engine's tests."""

import pytest

from kdeclare.core.secrets import secret_hashes


@pytest.fixture(autouse=True)
def _hashed_in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of secrets are slow on purpose, and nobody guesses at those of tests."""
    monkeypatch.setattr(secret_hashes, "_ITERATIONS", 10)
