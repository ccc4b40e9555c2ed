"""The commands in docs/howto/convert-from-other-tools.md print what the page shows."""

import re
from pathlib import Path

import pytest

from kdeclare.convert.formats import FORMATS
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_file

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "convert-from-other-tools.md"
SECTION = re.compile(
    r"^```(?:yaml|json)\n# (?P<file>\S+)\n(?P<text>.*?)^```\n\n"
    r"    kdeclare (?P<command>convert --from (?P<tool>\S+) \S+)\n\n```\n(?P<shown>.*?)^```\n",
    re.MULTILINE | re.DOTALL,
)


def test_page_has_a_section_for_each_format() -> None:
    assert [match["tool"] for match in SECTION.finditer(PAGE.read_text())] == list(FORMATS)


@pytest.mark.parametrize("tool", FORMATS)
def test_output_on_the_page_is_current(kdeclare: CommandLine, tool: str) -> None:
    """KDECLARE_UPDATE_GOLDEN=1 writes the output to the page."""
    page = PAGE.read_text()
    match = next(match for match in SECTION.finditer(page) if match["tool"] == tool)
    (kdeclare.folder / match["file"]).write_text(match["text"])
    ran = kdeclare(*match["command"].split())
    assert ran.code == 0
    check_file(PAGE, page[: match.start("shown")] + ran.out + "\n" + ran.err + page[match.end("shown") :])


@pytest.mark.parametrize("tool", FORMATS)
def test_steps_of_the_page_lead_to_valid_manifests(
    kdeclare: CommandLine, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    match = next(match for match in SECTION.finditer(PAGE.read_text()) if match["tool"] == tool)
    (kdeclare.folder / match["file"]).write_text(match["text"])
    for name in re.findall(r"environment variables before you plan: (\w+)", match["shown"]):
        monkeypatch.setenv(name, "it")
    assert kdeclare(*match["command"].split(), "--out", "manifests").code == 0
    assert kdeclare("validate").code == 0
    plan = kdeclare("plan")
    assert plan.code == 0, plan
    assert "to create" in plan.out
