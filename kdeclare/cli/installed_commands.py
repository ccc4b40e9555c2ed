"""Find the commands of the installed providers by the entry points of their Python packages.

kdeclare's own providers register their commands in the same way. A command is imported only when it is
called, or when all commands are listed.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import typer

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points

GROUP = "kdeclare.commands"
"""The group of entry points for commands. The name of an entry point is the name of the command.

The entry point refers to a function that takes a `typer.Typer` and adds the command, or a group of
subcommands, to it. The ``rich_help_panel`` of the command is its group in ``kdeclare --help``; the default is
"Ad hoc".
"""

NEW_GROUP = "kdeclare.new"
"""The group of entry points for ``kdeclare new``. The name of an entry point is the name of a subcommand."""

_OWN_CODE = "kdeclare."


@dataclass(frozen=True, slots=True)
class InstalledCommand:
    """A command of an installed Python package. The command is imported only when it is needed."""

    point: InstalledEntryPoint

    @property
    def name(self) -> str:
        """The name of the command."""
        return self.point.name

    @property
    def is_own(self) -> bool:
        """Whether the command is part of kdeclare, according to the name of its module.

        The metadata of the Python package has the same information, but reading it is slower.
        """
        return self.point.value.startswith(_OWN_CODE)

    @property
    def origin(self) -> str:
        """The name and version of the Python package that contains the command, for error messages."""
        return self.point.origin


@dataclass(frozen=True, slots=True)
class InstalledCommands:
    """The commands of all installed Python packages.

    usable: the usable commands by name. collisions: the errors for names claimed by several commands.
    """

    usable: Mapping[str, InstalledCommand]
    collisions: Mapping[str, Diagnostic]


@cache
def find_commands(reserved: frozenset[str], group: str = GROUP) -> InstalledCommands:
    """Find the installed commands without importing them.

    reserved: names that installed packages cannot use, because they belong to kdeclare's own commands. The
    command names of kdeclare's own providers are reserved, too. If several other packages register a command
    with the same name, none of these commands is usable.
    """
    commands = (InstalledCommand(point) for point in dict.fromkeys(find_entry_points(group)))
    usable: dict[str, InstalledCommand] = {}
    collisions: dict[str, Diagnostic] = {}
    for item in sorted(commands, key=lambda item: (not item.is_own, item.name)):
        first = usable.get(item.name)
        if item.name in reserved or (first is not None and first.is_own):
            collisions[item.name] = _build_reserved_name_error(item)
        elif first is not None:
            del usable[item.name]
            collisions[item.name] = _build_ambiguous_name_error(first, item)
        elif item.name not in collisions:
            usable[item.name] = item
    return InstalledCommands(usable, collisions)


def remove_options(app: typer.Typer) -> None:
    """Replace the commands of an application with commands that have no options, to list them quickly."""
    for group in app.registered_groups:
        if group.typer_instance is not None:
            empty_group = typer.Typer()
            empty_group.info = group.typer_instance.info
            group.typer_instance = empty_group
    for command in app.registered_commands:
        if command.callback is not None:
            command.callback = _build_listed(command.callback)


def _build_listed(callback: Callable[..., Any]) -> Callable[[], None]:
    """Return a function with the name and the docstring of a command, and without its parameters."""

    def listed() -> None:
        pass

    listed.__name__, listed.__doc__ = callback.__name__, callback.__doc__
    return listed


def build_command(
    installed: InstalledCommand, adapt: Callable[[typer.Typer], None] = lambda app: None
) -> Any:
    """Import a command and return the Click command.

    adapt: a function that changes the registered command before the Click command is built.
    Raises KdeclareError if the command cannot be loaded.
    """
    command_app = typer.Typer(rich_markup_mode=None)
    try:
        _register(installed, command_app)
        adapt(command_app)
        commands = typer.main.get_group(command_app).commands
    except Exception as cause:  # provider code can raise any exception
        raise KdeclareError(
            _build_broken_command_error(installed, f"{type(cause).__name__}: {cause}")
        ) from cause
    if list(commands) != [installed.name]:
        registered_names = ", ".join(f"'{name}'" for name in commands) or "nothing"
        raise KdeclareError(
            _build_broken_command_error(installed, f"{installed.point.value} registers {registered_names}")
        )
    return commands[installed.name]


def _register(installed: InstalledCommand, app: typer.Typer) -> None:
    register = installed.point.load()
    if not callable(register):
        raise TypeError(f"{installed.point.value} is a {type(register).__name__}")
    register(app)


def add_commands(app: typer.Typer, group: str) -> None:
    """Add the installed commands of a group of entry points to an application.

    A command that cannot be used is also added. When called, it reports the error.
    """
    installed = find_commands(frozenset(), group)
    for name, command in installed.usable.items():
        command_app = typer.Typer()
        try:
            build_command(command)
            _register(command, command_app)
        except KdeclareError as problem:
            _add_broken(app, name, problem)
        else:
            app.registered_commands += command_app.registered_commands
    for name, collision in installed.collisions.items():
        _add_broken(app, name, KdeclareError(collision))


def _add_broken(app: typer.Typer, name: str, problem: KdeclareError) -> None:
    def reject() -> None:
        raise problem

    app.command(name, help=summarize_diagnostics(problem.diagnostics))(reject)


def _build_reserved_name_error(foreign: InstalledCommand) -> Diagnostic:
    return error(
        "command-collision",
        "Command name conflicts with a kdeclare command",
        f"The command '{foreign.name}' of {foreign.origin} cannot be used, because kdeclare has a command "
        "with that name.",
        hint=f"Uninstall {foreign.origin}, or ask its author to rename the command.",
    )


def _build_ambiguous_name_error(first: InstalledCommand, second: InstalledCommand) -> Diagnostic:
    origins = " and ".join(sorted((first.origin, second.origin)))
    return error(
        "command-collision",
        "Two commands have the same name",
        f"Both {origins} provide the command '{first.name}'.",
        hint="Uninstall one of these packages.",
    )


def _build_broken_command_error(installed: InstalledCommand, reason: str) -> Diagnostic:
    return error(
        "command-broken",
        "Command cannot be loaded",
        f"The command '{installed.name}' of {installed.origin} cannot be loaded: {reason}.",
        hint=f"Install a different version of {installed.origin}, or uninstall it.",
    )
