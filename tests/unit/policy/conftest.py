"""Fixtures for policy classes in files."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def own_modules(tmp_path: Path) -> Iterator[None]:
    """Unload the modules that a test imports from its folder, and restore the import path."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    assert sys.path == path
    for name in sys.modules.keys() - modules:
        module = sys.modules[name]
        places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
        if any(Path(place).is_relative_to(tmp_path) for place in places):
            del sys.modules[name]
