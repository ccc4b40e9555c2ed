"""The grammar of the shell (commands, options and arguments), and the option or argument at the cursor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from kdeclare.cli.interactive.line_runner import SHELL_COMMANDS
from kdeclare.cli.main import build_application
from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or an argument.

    spellings: the names of an option; empty for an argument. metavar: the placeholder of the value in the
    help. choices: the allowed values if the parameter has a fixed list of them. paths: whether the value is
    the path of a file or folder.
    """

    name: str
    spellings: tuple[str, ...] = ()
    metavar: str = ""
    about: str = ""
    choices: tuple[str, ...] = ()
    paths: bool = False
    is_flag: bool = False
    is_repeatable: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group of subcommands. commands: the subcommands of a group by name."""

    name: str
    about: str = ""
    options: tuple[Parameter, ...] = ()
    arguments: tuple[Parameter, ...] = ()
    commands: Mapping[str, "Command"] = field(default_factory=dict)

    def option(self, spelling: str) -> Parameter | None:
        """Return the option with this name; None if the command has no such option."""
        return next((option for option in self.options if spelling in option.spellings), None)


_HELP = Parameter("help", ("--help",), about="Show help for the command.", is_flag=True)


@cache
def build_grammar() -> Command:
    """Build the grammar of all lines that can be typed into a shell."""
    root = _build_command(build_application().root)
    commands = {name: command for name, command in root.commands.items() if name != "shell"}
    shell_commands = {name: Command(name, about) for name, about in SHELL_COMMANDS.items()}
    help_command = Command("help", SHELL_COMMANDS["help"], commands=commands)
    return Command(root.name, root.about, (_HELP,), (), commands | shell_commands | {"help": help_command})


def _build_command(click_command: Any) -> Command:
    params = [_build_parameter(param) for param in click_command.params if not param.hidden]
    return Command(
        click_command.name or "",
        _extract_first_sentence(click_command.help or ""),
        (*(p for p in params if p.spellings), _HELP),
        tuple(p for p in params if not p.spellings),
        {
            name: _build_command(inner)
            for name, inner in getattr(click_command, "commands", {}).items()
            if not inner.hidden
        },
    )


def _build_parameter(param: Any) -> Parameter:
    is_option = param.param_type_name == "option"
    value_types = list(_flatten_annotation(param.type_descriptor.annotation))
    return Parameter(
        param.name,
        tuple(param.opts) if is_option else (),
        param.metavar or "",
        _extract_first_sentence(getattr(param, "help", None) or ""),
        tuple(str(value) for kind in value_types if get_origin(kind) is Literal for value in get_args(kind)),
        paths=Path in value_types,
        is_flag=bool(getattr(param, "is_flag", False)),
        is_repeatable=param.multiple or param.nargs == -1,
    )


def _flatten_annotation(annotation: Any) -> Iterable[Any]:
    """Return the types in an annotation, including types inside lists and unions."""
    arguments = () if get_origin(annotation) is Literal else get_args(annotation)
    return [annotation] if not arguments else [kind for one in arguments for kind in _flatten_annotation(one)]


def _extract_first_sentence(text: str) -> str:
    return text.strip().split("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class CursorContext:
    """The command and the parameter that are being typed at the cursor.

    path: the names of the command and of the groups that contain it. given: the values before the cursor, by
    name of the option or argument. wanted: the parameter whose value is being typed; None if the name of a
    command or option is being typed, or if the parameter is unknown. lead: the part of the word before the
    value (``--opt=``). text: the value as typed so far.
    """

    path: tuple[str, ...]
    command: Command
    given: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    wanted: Parameter | None = None
    lead: str = ""
    text: str = ""

    @property
    def is_option(self) -> bool:
        """Whether the name of an option is being typed."""
        return self.wanted is None and self.text.startswith("-")

    def first(self, *names: str) -> str | None:
        """Return the first value typed for one of these options or arguments; None if there is no value."""
        return next((value for name in names for value in self.given.get(name, ())), None)


def parse_context(root: Command, words: Sequence[str], text: str) -> CursorContext:
    """Return the context of the cursor. words: the words before the cursor. text: the word being typed."""
    path: list[str] = []
    command, values_by_name = root, dict[str, tuple[str, ...]]()
    pending_parameter: Parameter | None = None
    only_arguments = False
    for word in words:
        if pending_parameter:
            _add_value(values_by_name, pending_parameter, word)
            pending_parameter = None
        elif word == "--" and not only_arguments:
            only_arguments = True
        elif word.startswith("-") and not only_arguments:
            spelling, separator, value = word.partition("=")
            option = command.option(spelling)
            if option and separator:
                _add_value(values_by_name, option, value)
            elif option and option.is_flag:
                _add_value(values_by_name, option, word)
            else:
                pending_parameter = option
        elif word in command.commands:
            command = command.commands[word]
            path.append(word)
        elif command.commands:
            command = Command(word)  # the parameters of an unknown command are unknown
        elif argument := _find_next_argument(command, values_by_name):
            _add_value(values_by_name, argument, word)
    context = CursorContext(tuple(path), command, values_by_name, text=text)
    if pending_parameter:
        return _with_value(context, pending_parameter, "", text)
    spelling, separator, value = text.partition("=")
    if text.startswith("-") and not only_arguments:
        inline_option = command.option(spelling) if separator else None
        return (
            _with_value(context, inline_option, f"{spelling}=", value)
            if inline_option and not inline_option.is_flag
            else context
        )
    return _with_value(
        context, None if command.commands else _find_next_argument(command, values_by_name), "", text
    )


def _with_value(context: CursorContext, parameter: Parameter | None, lead: str, text: str) -> CursorContext:
    return CursorContext(context.path, context.command, context.given, parameter, lead, text)


def _add_value(values_by_name: dict[str, tuple[str, ...]], parameter: Parameter, value: str) -> None:
    values_by_name[parameter.name] = (*values_by_name.get(parameter.name, ()), value)


def _find_next_argument(command: Command, values_by_name: Mapping[str, tuple[str, ...]]) -> Parameter | None:
    return next((a for a in command.arguments if a.is_repeatable or a.name not in values_by_name), None)
