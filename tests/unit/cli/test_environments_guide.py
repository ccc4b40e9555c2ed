"""The files in docs/environments.md are a valid project, and its output is real."""

import re
from pathlib import Path

import pytest

from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_file

GUIDE = Path(__file__).parents[3] / "docs" / "environments.md"
FILES = re.findall(r"^```yaml\n(?=# (\S+)\n)(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"(?<=^```\n)# Topic/orders.*?(?=^```$)", re.MULTILINE | re.DOTALL)


@pytest.fixture
def guide_project(kdeclare: CommandLine) -> CommandLine:
    for name, text in FILES:
        path = kdeclare.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return kdeclare


def test_guide_files_form_valid_project(guide_project: CommandLine) -> None:
    assert len(FILES) == 4
    for env in ("staging", "production"):
        assert guide_project("validate", "--env", env).code == 0


def test_guide_output_is_current(guide_project: CommandLine) -> None:
    """KDECLARE_UPDATE_GOLDEN=1 writes the output to the page."""
    out = guide_project("show-manifest", "Topic/orders", "--env", "production").out
    text = GUIDE.read_text()
    assert SHOWN.search(text)
    check_file(GUIDE, SHOWN.sub(lambda _: out, text))


def test_partial_plan_uses_same_defaults(guide_project: CommandLine) -> None:
    whole, part = (
        guide_project("plan", *paths, "--format", "text").out for paths in ((), ("manifests/orders.yaml",))
    )
    assert "replicationFactor    3" in whole
    assert whole.partition("\n\n")[0] == part.partition("\n\n")[0]
