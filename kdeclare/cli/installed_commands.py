"""The commands of the installed providers, found by the entry points of their distributions.

kdeclare's own providers bring theirs in the same way. Nothing is imported before a command is asked for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import typer

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "kdeclare.commands"
"""The group of entry points. The name of one is that of its command; it leads to a function that takes a
`typer.Typer` and puts the command, or the group of commands, of that name into it."""

_OWN_CODE = "kdeclare."


@dataclass(frozen=True, slots=True)
class InstalledCommand:
    """One command that is not imported yet."""

    point: "EntryPoint"

    @property
    def name(self) -> str:
        """What it is called by."""
        return self.point.name

    @property
    def is_own(self) -> bool:
        """Whether it is of one of kdeclare's own providers. The code tells sooner than the distribution."""
        return self.point.value.startswith(_OWN_CODE)

    @property
    def origin(self) -> str:
        """What a person can uninstall."""
        distribution = self.point.dist
        if distribution is None:
            return self.point.value
        return f"the distribution {distribution.name} {distribution.version}"


@dataclass(frozen=True, slots=True)
class InstalledCommands:
    """usable: by name. collisions: by name, those that several distributions want to be."""

    usable: Mapping[str, InstalledCommand]
    collisions: Mapping[str, Diagnostic]


@cache
def find_commands(reserved: frozenset[str]) -> InstalledCommands:
    """Find what is installed. Imports nothing.

    reserved: names that are kdeclare's own. Such a name, and that of a command of kdeclare's own providers,
    stays what it is whatever else is installed; of other commands with one name, none can be used.
    """
    from importlib.metadata import entry_points  # here, as it takes a tenth of the time of a --help

    found = (InstalledCommand(point) for point in dict.fromkeys(entry_points(group=GROUP)))
    usable: dict[str, InstalledCommand] = {}
    collisions: dict[str, Diagnostic] = {}
    for item in sorted(found, key=lambda item: (not item.is_own, item.name)):
        first = usable.get(item.name)
        if item.name in reserved or (first is not None and first.is_own):
            collisions[item.name] = _reserved(item)
        elif first is not None:
            del usable[item.name]
            collisions[item.name] = _ambiguous(first, item)
        elif item.name not in collisions:
            usable[item.name] = item
    return InstalledCommands(usable, collisions)


def build_command(installed: InstalledCommand) -> Any:
    """Import a command and build it, as a Click command. Raises KdeclareError where that fails."""
    own = typer.Typer(rich_markup_mode=None)
    try:
        installed.point.load()(own)
        commands = typer.main.get_group(own).commands
    except Exception as cause:  # whatever the code of a provider raises
        raise KdeclareError(_broken(installed, f"{type(cause).__name__}: {cause}")) from cause
    if list(commands) != [installed.name]:
        named = ", ".join(f"'{name}'" for name in commands) or "nothing"
        raise KdeclareError(_broken(installed, f"{installed.point.value} registers {named}"))
    return commands[installed.name]


def _reserved(foreign: InstalledCommand) -> Diagnostic:
    return error(
        "command-collision",
        "Command has the name of one of kdeclare's own",
        f"The command '{foreign.name}' of {foreign.origin} cannot be used: kdeclare has one of that name.",
        hint="Uninstall that distribution, or ask its author to rename the command.",
    )


def _ambiguous(one: InstalledCommand, other: InstalledCommand) -> Diagnostic:
    both = " and ".join(sorted((one.origin, other.origin)))
    return error(
        "command-collision",
        "Two commands have the same name",
        f"The command '{one.name}' comes from both {both}.",
        hint="Uninstall one of them.",
    )


def _broken(installed: InstalledCommand, why: str) -> Diagnostic:
    return error(
        "command-broken",
        "Command cannot be loaded",
        f"The command '{installed.name}' of {installed.origin} cannot be loaded: {why}.",
        hint="Install another version of its distribution, or uninstall it.",
    )
