"""Providers that a test defines itself, in place of the installed ones."""

from collections.abc import Callable, Sequence

import pytest

from kdeclare.core.provider import provider_queries, registry
from kdeclare.core.provider.deferred_provider import AnyProvider


def replace_load_providers(
    monkeypatch: pytest.MonkeyPatch, load_providers: Callable[[], Sequence[AnyProvider]]
) -> None:
    """Make the mappings and queries of providers use the result of this function until the test ends."""
    for module in (registry, provider_queries):
        monkeypatch.setattr(module, "load_providers", load_providers)
