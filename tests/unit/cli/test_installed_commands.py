"""Commands of installed distributions are listed with kdeclare's own, and cannot break them."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from kdeclare.app.connections import ConnectionCache
from kdeclare.app.workspace import WorkspaceOptions
from kdeclare.cli import main as command_line
from kdeclare.cli.installed_commands import GROUP, find_commands
from kdeclare.cli.interactive.candidates import GROUP as COMPLETIONS
from kdeclare.cli.interactive.candidates import find_candidates, load_completions
from kdeclare.cli.interactive.grammar import Command, Parameter, parse_context
from kdeclare.cli.interactive.names import LiveNames
from kdeclare.cli.invocation import ShellContext
from kdeclare.cli.options.option_groups import OutputOptions
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.help_text import parse_command_groups

FITS = """
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.core.exit_codes import ExitCode

def register(app):
    command(app, "shelf")(shelf)

def shelf(*, console: Console) -> ExitCode:
    "Put books on a shelf."
    console.out("Books.\\n")
    return ExitCode.OK
"""
GROUPED = """
import typer

def register(app):
    group = typer.Typer()
    group.command("dust")(lambda: print("Dusted."))
    group.command("sort")(lambda: print("Sorted."))
    app.add_typer(group, name="shelf", help="Shelves.")
"""
RAISES = "raise RuntimeError('no books')\n"
OTHER_NAME = FITS.replace('"shelf"', '"plan"')
IN_TOOLS = FITS.replace('"shelf")', '"shelf", help_group="Tools")')
GROUP_IN_PROJECT = GROUPED.replace('help="Shelves."', 'help="Shelves.", rich_help_panel="Project"')
IN_UNKNOWN_GROUP = FITS.replace('"shelf")', '"shelf", help_group="Furniture")')
ODD_SIGNATURE = """
def register(app):
    @app.command("shelf")
    def shelf(books: 'Books'): ...
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution that consists of one module with the same name."""
    modules: list[str] = []

    def add_distribution(distribution: str, text: str, points: Mapping[str, str], group: str = GROUP) -> None:
        folder = tmp_path_factory.mktemp(distribution)
        metadata = folder / f"{distribution}-1.5.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.5\n")
        lines = "\n".join(f"{name} = {reference}" for name, reference in points.items())
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}\n")
        (folder / f"{distribution}.py").write_text(text)
        modules.append(distribution)
        monkeypatch.syspath_prepend(str(folder))

    clear_caches()
    yield add_distribution
    for module in modules:
        sys.modules.pop(module, None)
    clear_caches()


def clear_caches() -> None:
    find_commands.cache_clear()
    load_completions.cache_clear()
    command_line._build_cached_application.cache_clear()


def list_commands(text: str) -> list[str]:
    return [name for names in parse_command_groups(text).values() for name in names]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [(FITS, ["shelf"], "Books.\n"), (GROUPED, ["shelf", "dust"], "Dusted.\n")],
)
def test_installed_command_runs_and_is_listed(
    kdeclare: CommandLine, install: Install, text: str, line: list[str], says: str
) -> None:
    before = list_commands(kdeclare("--help").out)
    clear_caches()
    install("library", text, {"shelf": "library:register"})
    ran = kdeclare(*line)
    assert (ran.code, ran.out, ran.err) == (0, says, "")
    helped = kdeclare("--help")
    assert helped.err == ""
    assert [name for name in list_commands(helped.out) if name != "shelf"] == before
    assert "shelf" in list_commands(helped.out)


@pytest.mark.parametrize(
    ("text", "group"),
    [
        (FITS, "Ad hoc"),
        (GROUPED, "Ad hoc"),
        (IN_TOOLS, "Tools"),
        (GROUP_IN_PROJECT, "Project"),
        (IN_UNKNOWN_GROUP, "Ad hoc"),
    ],
)
def test_installed_command_is_in_its_declared_help_group(
    kdeclare: CommandLine, install: Install, text: str, group: str
) -> None:
    install("library", text, {"shelf": "library:register"})
    groups = parse_command_groups(kdeclare("--help").out)
    assert [name for name, commands in groups.items() if "shelf" in commands] == [group]
    assert groups[group][-1] == "shelf" or group == "Ad hoc"


@pytest.mark.parametrize(
    ("text", "reference", "why"),
    [
        (RAISES, "library:register", "RuntimeError: no books"),
        (FITS, "library:nothing", "AttributeError"),
        (FITS, "no_such_module_at_all:register", "ModuleNotFoundError"),
        (OTHER_NAME, "library:register", "library:register registers 'plan'"),
        (ODD_SIGNATURE, "library:register", "NameError"),
    ],
)
def test_unloadable_command_is_reported_and_affects_no_other(
    kdeclare: CommandLine, install: Install, text: str, reference: str, why: str
) -> None:
    before = list_commands(kdeclare("--help").out)
    clear_caches()
    install("library", text, {"shelf": reference})
    for line in (["shelf"], ["shelf", "--help"]):
        ran = kdeclare(*line)
        assert (ran.code, ran.out) == (1, "")
        assert "error: Command cannot be loaded" in ran.err
        assert "The command 'shelf' of the package library 1.5 cannot be loaded: " in ran.err
        assert why in ran.err
        assert "Traceback" not in ran.err
    helped = kdeclare("--help")
    assert helped.code == 0
    assert list_commands(helped.out) == before
    assert why in helped.err
    assert kdeclare("validate").err == ""
    assert kdeclare("topic", "list").code == 0


@pytest.mark.parametrize("name", ["plan", "topic"])
def test_builtin_commands_keep_their_names(kdeclare: CommandLine, install: Install, name: str) -> None:
    install("library", FITS, {name: "library:register", "shelf": "library:register"})
    ran = kdeclare(name, "--help")
    assert ran.err == ""
    assert "Books." not in ran.out
    helped = kdeclare("--help")
    assert f"The command '{name}' of the package library 1.5 cannot be used" in helped.err
    assert list_commands(helped.out).count(name) == 1
    assert "shelf" in list_commands(helped.out), "its other command is as good as before"


def test_two_foreign_commands_with_one_name_are_both_refused(kdeclare: CommandLine, install: Install) -> None:
    install("library", FITS, {"shelf": "library:register"})
    install("cellar", FITS.replace("Books", "Jars"), {"shelf": "cellar:register"})
    ran = kdeclare("shelf")
    assert (ran.code, ran.out) == (1, "")
    expected = "Both the package cellar 1.5 and the package library 1.5 provide the command 'shelf'."
    assert expected in ran.err
    helped = kdeclare("--help")
    assert "shelf" not in list_commands(helped.out)
    assert expected in helped.err


def test_completion_ignores_broken_commands(kdeclare: CommandLine, install: Install) -> None:
    install("library", RAISES, {"shelf": "library:register"})
    kdeclare.monkeypatch.setenv("_KDECLARE_COMPLETE", "complete_bash")
    kdeclare.monkeypatch.setenv("COMP_WORDS", "kdeclare top")
    kdeclare.monkeypatch.setenv("COMP_CWORD", "1")
    kdeclare.capsys.readouterr()
    with pytest.raises(SystemExit):
        kdeclare()
    said = kdeclare.capsys.readouterr()
    assert (said.out.split(), said.err) == (["topic"], "")


OFFERS = """
from kdeclare.cli.interactive.candidates import CompletionOffer, CompletionValue

def complete(place, names):
    if place.path != ("shelf",):
        return None
    texts = ["left", "right", *names.live("Topic")]
    return CompletionOffer([CompletionValue(text) for text in texts], place.text)
"""
SHELF = Command("", commands={"shelf": Command("shelf", arguments=(Parameter("side", metavar="SIDE"),))})


def test_installed_distribution_completes_its_own_commands(kdeclare: CommandLine, install: Install) -> None:
    connections = ConnectionCache()
    names = LiveNames(ShellContext(WorkspaceOptions(), connections, OutputOptions()))
    kdeclare.topic("landing")
    assert kdeclare("apply", "--yes").code == 0
    install("cellar", RAISES, {"cellar": "cellar:complete"}, COMPLETIONS)
    install("library", OFFERS, {"library": "library:complete"}, COMPLETIONS)
    found = find_candidates(parse_context(SHELF, ["shelf"], "l"), names)
    connections.close()
    assert [candidate.text for candidate in found] == ["left", "landing"]


def test_only_requested_command_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys; from kdeclare.cli.main import main;"
        "main(['topic', 'list', '--help']);"
        "own = [m for m in sys.modules if m.startswith('kdeclare.providers.') and '.commands.' in m];"
        "assert 'kdeclare.providers.kafka.commands.topic' in own;"
        "assert not any(m.endswith(('.config', '.reassign')) for m in own), own;"
        "assert 'kdeclare.cli.commands.plan' not in sys.modules;"
        "assert 'kdeclare.providers.kafka.provider' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)
