"""What stands at the cursor: which command it is, and whether a word, an option or a value is wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.cli.interactive.grammar import Command, Parameter


@dataclass(frozen=True)
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
