"""Generate the reference of all commands from their definitions."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from kdeclare.cli.help_groups import HELP_GROUPS, get_help_group
from kdeclare.cli.main import build_application
from kdeclare.cli.options.option_groups import ConnectionOptions, OutputOptions
from scripts.reference.markdown import code, fence, page, prose, table

_SHARED = {f.name for group in (ConnectionOptions, OutputOptions) for f in fields(group)}
"""The options that many commands share. The page describes these options once."""

_HEAD = ("option", "meaning")


def commands_page() -> str:
    """Render all commands with their arguments and options, in the groups of ``kdeclare --help``."""
    app: Any = build_application().root
    shared = [_row(p) for p in app.commands["plan"].params if p.name in _SHARED]
    return page(
        "Commands",
        "This page contains the output of `kdeclare COMMAND --help` for all commands. See also "
        "[exit codes](exit-codes.md).",
        "## Shared options",
        table(_HEAD, shared),
        *_sections(app, shared),
    )


def _sections(app: Any, shared: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a heading for each group of ``kdeclare --help``, followed by the commands of the group."""
    for group in HELP_GROUPS:
        yield f"## {group}"
        for name, command in app.commands.items():
            if get_help_group(command) == group:
                for words, inner in _commands({name: command}, ("kdeclare",)):
                    yield _command(words, inner, shared)


def _commands(commands: Mapping[str, Any], words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the words of each command, such as ``kdeclare topic list``, and the command.

    Groups that cannot be run themselves are omitted.
    """
    for name, command in commands.items():
        subcommands = getattr(command, "commands", {})
        is_group = subcommands and not command.invoke_without_command
        if not is_group and not command.hidden:
            yield (*words, name), command
        if is_group or not command.hidden:
            yield from _commands(subcommands, (*words, name))


def _command(words: tuple[str, ...], command: Any, shared: Collection[tuple[str, str]]) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    own = [p for p in options if _row(p) not in shared]
    common = [code(max(p.opts, key=len)) for p in options if _row(p) in shared]
    usage = " ".join([*words, *(_usage(p) for p in arguments)])
    parts = [
        f"### {' '.join(words)}",
        fence(usage),
        prose(command.help or ""),
        table(("argument", "meaning"), ((code(p.metavar), _meaning(p)) for p in arguments)),
        table(_HEAD, map(_row, own)),
        f"Also {', '.join(common)}." if common else "",
        *(_block(block) for block in (command.epilog or "").split("\b\n") if block.strip()),
    ]
    return "\n\n".join(part for part in parts if part)


def _usage(argument: Any) -> str:
    several = argument.nargs == -1 and " " not in argument.metavar
    shown = f"{argument.metavar}…" if several else argument.metavar
    return shown if argument.required else f"[{shown}]"


def _row(option: Any) -> tuple[str, str]:
    names = ", ".join(code(f"{name} {option.metavar}" if option.metavar else name) for name in option.opts)
    return names, _meaning(option)


def _meaning(param: Any) -> str:
    """Return the help text of a parameter, with its default or "Required"."""
    text = param.help or ""
    if param.required and param.param_type_name == "option":
        text += " Required."
    if param.default is not None and param.default is not False and param.default != ():
        text += f" Default: {code(param.default)}."
    return text


def _block(block: str) -> str:
    """Render a block of the epilog of a help text. The first line of the block is the heading."""
    first, _, rest = block.strip("\n").partition("\n")
    lines = [line.removeprefix("  ") for line in rest.splitlines()]
    return f"{first}\n\n{fence(chr(10).join(lines))}"
