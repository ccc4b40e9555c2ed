"""The provider of `examples/provider`, installed for the tests of this folder alone."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.core import registry
from kdeclare.core.installed_providers import find_providers, load_providers

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider"


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What pip would leave behind: the package on the path, and its metadata."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "kdeclare_flags-1.0.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kdeclare-flags\nVersion: 1.0.0\n")
    points = "[kdeclare.providers]\nflags = kdeclare_flags.provider:PROVIDER\n"
    (metadata / "entry_points.txt").write_text(points)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(site), *sys.path])
        _forget()
        yield
    _forget()


def _forget() -> None:
    for cached in (find_providers, load_providers, registry.KINDS._load, registry.OPERATION_TYPES._load):  # type: ignore[attr-defined]
        cached.cache_clear()
