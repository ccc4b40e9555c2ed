"""The commands as data, read once from the application itself, and what stands at the cursor."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from kdeclare.cli.interactive.lines import ABOUT
from kdeclare.cli.main import build_application
from kdeclare.core.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option or an argument.

    spellings: how an option is written; none for an argument. metavar: what stands for the value in the
    help. choices: the values there are, where they are few. paths: whether the value is a file.
    """

    name: str
    spellings: tuple[str, ...] = ()
    metavar: str = ""
    about: str = ""
    choices: tuple[str, ...] = ()
    paths: bool = False
    is_flag: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """A command, or a group with ``commands`` of its own."""

    name: str
    about: str = ""
    options: tuple[Parameter, ...] = ()
    arguments: tuple[Parameter, ...] = ()
    commands: Mapping[str, "Command"] = field(default_factory=dict)

    def option(self, spelling: str) -> Parameter | None:
        """The option that is written so."""
        return next((option for option in self.options if spelling in option.spellings), None)


_HELP = Parameter("help", ("--help",), about="Show what it does, and how.", is_flag=True)


@cache
def grammar() -> Command:
    """All that can be typed into a shell."""
    root = _command(build_application().root)
    kept = {name: command for name, command in root.commands.items() if name != "shell"}
    own = {name: Command(name, about) for name, about in ABOUT.items()}
    helped = Command("help", ABOUT["help"], commands=kept)
    return Command(root.name, root.about, (_HELP,), (), kept | own | {"help": helped})


def _command(found: Any) -> Command:
    params = [_parameter(param) for param in found.params if not param.hidden]
    return Command(
        found.name or "",
        _first_sentence(found.help or ""),
        (*(p for p in params if p.spellings), _HELP),
        tuple(p for p in params if not p.spellings),
        {name: _command(inner) for name, inner in getattr(found, "commands", {}).items() if not inner.hidden},
    )


def _parameter(param: Any) -> Parameter:
    is_option = param.param_type_name == "option"
    kinds = list(_plain(param.type_descriptor.annotation))
    return Parameter(
        param.name,
        tuple(param.opts) if is_option else (),
        param.metavar or "",
        _first_sentence(getattr(param, "help", None) or ""),
        tuple(str(value) for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)),
        paths=Path in kinds,
        is_flag=bool(getattr(param, "is_flag", False)),
        repeats=param.multiple or param.nargs == -1,
    )


def _plain(annotation: Any) -> Iterable[Any]:
    """The types in an annotation: those of a list, of a union."""
    inner = () if get_origin(annotation) is Literal else get_args(annotation)
    return [annotation] if not inner else [kind for one in inner for kind in _plain(one)]


def _first_sentence(text: str) -> str:
    return text.strip().split("\n\n")[0].replace("\n", " ").partition(". ")[0].rstrip(".")


@dataclass(frozen=True, slots=True)
class Place:
    """The end of what was typed.

    path: the names of groups and command. given: values by the option's or argument's name.
    wanted: whose value is being typed; None where it is the name of a command or of an option, or nothing
    is known of it. lead: what stands in the word before the value (``--opt=``). text: the value, as far as
    it was typed.
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
        """The first value that was given for one of these."""
        return next((value for name in names for value in self.given.get(name, ())), None)


def place_of(root: Command, words: Sequence[str], text: str) -> Place:
    """Where one is after ``words``, with ``text`` begun."""
    path: list[str] = []
    command, given = root, dict[str, tuple[str, ...]]()
    waiting: Parameter | None = None
    only_arguments = False
    for word in words:
        if waiting:
            _give(given, waiting, word)
            waiting = None
        elif word == "--" and not only_arguments:
            only_arguments = True
        elif word.startswith("-") and not only_arguments:
            spelling, sign, value = word.partition("=")
            option = command.option(spelling)
            if option and sign:
                _give(given, option, value)
            elif option and option.is_flag:
                _give(given, option, word)
            else:
                waiting = option
        elif word in command.commands:
            command = command.commands[word]
            path.append(word)
        elif command.commands:
            command = Command(word)  # there is none of that name, and nothing is known of the rest
        elif argument := _next_argument(command, given):
            _give(given, argument, word)
    place = Place(tuple(path), command, given, text=text)
    if waiting:
        return _with(place, waiting, "", text)
    spelling, sign, value = text.partition("=")
    if text.startswith("-") and not only_arguments:
        inline = command.option(spelling) if sign else None
        return _with(place, inline, f"{spelling}=", value) if inline and not inline.is_flag else place
    return _with(place, None if command.commands else _next_argument(command, given), "", text)


def _with(place: Place, wanted: Parameter | None, lead: str, text: str) -> Place:
    return Place(place.path, place.command, place.given, wanted, lead, text)


def _give(given: dict[str, tuple[str, ...]], to: Parameter, value: str) -> None:
    given[to.name] = (*given.get(to.name, ()), value)


def _next_argument(command: Command, given: Mapping[str, tuple[str, ...]]) -> Parameter | None:
    return next((a for a in command.arguments if a.repeats or a.name not in given), None)
