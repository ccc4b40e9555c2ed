"""The help lists all commands by group, fits on one screen and shows whole summaries."""

from collections.abc import Iterator
from typing import Any

import pytest

from kdeclare.cli.help_groups import AD_HOC, HELP_GROUPS, UNLISTED, get_help_group
from kdeclare.cli.main import build_application
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.help_text import parse_command_groups

COLUMNS, LINES = 80, 40


@pytest.fixture
def narrow_cli(kdeclare: CommandLine) -> CommandLine:
    """A command line on a terminal of 80 columns."""
    kdeclare.monkeypatch.setenv("COLUMNS", str(COLUMNS))
    return kdeclare


def walk_groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every group of commands with the words that call it."""
    if hasattr(command, "commands"):
        yield words, command
        for name, inner in command.commands.items():
            yield from walk_groups(inner, (*words, name))


GROUPS = dict(walk_groups(build_application().root))


def test_help_lists_every_command_in_a_known_group(narrow_cli: CommandLine) -> None:
    groups = parse_command_groups(narrow_cli("--help").out)
    assert tuple(groups) == HELP_GROUPS
    commands = {name: command for name, command in GROUPS[()].commands.items() if name not in UNLISTED}
    assert sorted(name for names in groups.values() for name in names) == sorted(commands)
    assert {name: group for group, names in groups.items() for name in names} == {
        name: get_help_group(command) for name, command in commands.items()
    }


def test_summary_of_another_command_names_unlisted_command(narrow_cli: CommandLine) -> None:
    out = narrow_cli("--help").out
    for name, other in UNLISTED.items():
        assert name in GROUPS[()].commands
        assert any(line.startswith(f"  {other} ") and name in line for line in out.splitlines())


def test_help_begins_with_the_main_workflow(narrow_cli: CommandLine) -> None:
    groups = parse_command_groups(narrow_cli("--help").out)
    assert groups["Workflow"] == ["init", "validate", "plan", "apply", "rollback", "fleet"]
    assert groups[AD_HOC] == [
        "acl",
        "config",
        "connect",
        "connector",
        "group",
        "reassign",
        "schema-registry",
        "topic",
    ]


def test_help_fits_on_one_screen(narrow_cli: CommandLine) -> None:
    lines = narrow_cli("--help").out.splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("words", GROUPS, ids=lambda words: " ".join(words) or "kdeclare")
def test_help_shows_each_summary_on_one_line(narrow_cli: CommandLine, words: tuple[str, ...]) -> None:
    lines = narrow_cli(*words, "--help").out.splitlines()
    for name, command in GROUPS[words].commands.items():
        if not words and name in UNLISTED:
            continue
        summary = command.get_short_help_str(limit=len(command.help or ""))
        assert summary.endswith(".")
        assert [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name} ")] == [summary]


def test_help_names_global_options(narrow_cli: CommandLine) -> None:
    last_line = narrow_cli("--help").out.splitlines()[-1]
    assert last_line == "Options: --version, --install-completion, --show-completion, --help"


def test_listing_looks_like_the_whole_application(narrow_cli: CommandLine) -> None:
    root = build_application().root
    with root.make_context("kdeclare", [], resilient_parsing=True, terminal_width=COLUMNS) as context:
        assert narrow_cli("--help").out.strip() == root.get_help(context).strip()
    assert all(not command.params for command in build_application(is_listing=True).root.commands.values())
