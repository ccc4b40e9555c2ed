"""The commands with their options and arguments, as data: read once from the application itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from kdeclare.cli.interactive.lines import ABOUT
from kdeclare.cli.main import build_application


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
