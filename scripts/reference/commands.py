"""The command line, from the application itself."""

from collections.abc import Collection, Iterator
from dataclasses import fields
from typing import Any

from kdeclare.cli.main import build_application
from kdeclare.cli.options import ConnectionOptions, OutputOptions
from scripts.reference.markdown import code, fence, page, prose, table

_SHARED = {f.name for group in (ConnectionOptions, OutputOptions) for f in fields(group)}
"""The options of so many commands that they are told once."""

_HEAD = ("option", "what it means")


def commands_page() -> str:
    """All commands with their arguments and options."""
    app: Any = build_application().root
    found = list(_commands(app, ("kdeclare",)))
    shared = [_row(p) for p in app.commands["plan"].params if p.name in _SHARED]
    return page(
        "Commands",
        "What `kdeclare COMMAND --help` says, in one page. What a command exits with is in "
        "[exit codes](exit-codes.md).",
        "## Options that many commands share",
        table(_HEAD, shared),
        *(_command(words, command, shared) for words, command in found),
    )


def _commands(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that do something, with the words that call them; groups only lead to some."""
    for name, inner in getattr(command, "commands", {}).items():
        if hasattr(inner, "commands") and not inner.invoke_without_command:
            yield from _commands(inner, (*words, name))
        elif not inner.hidden:
            yield (*words, name), inner
            yield from _commands(inner, (*words, name))


def _command(words: tuple[str, ...], command: Any, shared: Collection[tuple[str, str]]) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    own = [p for p in options if _row(p) not in shared]
    common = [code(max(p.opts, key=len)) for p in options if _row(p) in shared]
    usage = " ".join([*words, *(_usage(p) for p in arguments)])
    parts = [
        f"## {' '.join(words)}",
        fence(usage),
        prose(command.help or ""),
        table(("argument", "what it means"), ((code(p.metavar), _meaning(p)) for p in arguments)),
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
    """Its help, whether it must be given, and what it is otherwise, where that says something."""
    text = param.help or ""
    if param.required and param.param_type_name == "option":
        text += " Required."
    if param.default is not None and param.default is not False and param.default != ():
        text += f" Default: {code(param.default)}."
    return text


def _block(block: str) -> str:
    """A block of the epilog: its first line is what it is about."""
    first, _, rest = block.strip("\n").partition("\n")
    lines = [line.removeprefix("  ") for line in rest.splitlines()]
    return f"{first}\n\n{fence(chr(10).join(lines))}"
