"""The provider of `examples/provider`, installed for the tests of this folder alone."""

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from kdeclare_flags.service import FlagService

from kdeclare.cli import main
from kdeclare.cli.installed_commands import find_commands
from kdeclare.core.provider.installed_providers import find_providers, load_providers, use_providers
from tests.unit.cli.command_line import CommandLine

EXAMPLE = Path(__file__).parents[2] / "examples" / "provider"


@pytest.fixture(scope="module", autouse=True)
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What pip would leave behind: the package on the path, and its metadata."""
    site = tmp_path_factory.mktemp("site")
    metadata = site / "kdeclare_flags-1.0.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: kdeclare-flags\nVersion: 1.0.0\n")
    groups = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    lines: list[str] = []
    for group, own in groups.items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in own.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(site), *sys.path])
        _clear_caches()
        yield
    _clear_caches()


def _clear_caches() -> None:
    use_providers(None)  # a fleet command of an earlier test may have chosen some for this process
    find_commands.cache_clear()
    main._build_cached_application.cache_clear()
    find_providers.cache_clear()
    load_providers.cache_clear()


@pytest.fixture
def kdeclare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandLine:
    """A command line in a project with a cluster and a flag service."""
    made = CommandLine(tmp_path, capsys, monkeypatch)
    FlagService(tmp_path / "flags.db").create()
    lab = {"bootstrapServers": "lab:9092", "providers": {"flags": {"file": "flags.db"}}}
    made.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    return made
