"""Which topics are meant by what a person types: exact names, and regular expressions."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern
from kdeclare.core.suggest import did_you_mean

_NAME = re.compile(r"[a-zA-Z0-9._-]*")
"""What a topic's name consists of (org.apache.kafka.common.internals.Topic.LEGAL_CHARS)."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """What names come to.

    found: topics, each once, in the order of the names; what one regular expression matches is sorted.
    missing: the names that stand for no topic, as they were given.
    """

    found: tuple[str, ...]
    missing: tuple[str, ...]


def is_pattern(name: str) -> bool:
    """Whether a name is a regular expression: it holds what no topic's name does.

    A dot alone makes none. To Kafka's tools all names are expressions, and ``a.b`` means ``axb`` as well.
    """
    return _NAME.fullmatch(name) is None


def chosen(names: Sequence[str], there: Collection[str]) -> Chosen:
    """The topics that are meant, of those that are ``there``; without names all of them.

    A regular expression (RE2) means what it matches as a whole. Raises KdeclareError (``bad-pattern``) for
    one that is malformed.
    """
    if not names:
        return Chosen(tuple(sorted(there)), ())
    found: dict[str, None] = {}
    missing: dict[str, None] = {}
    for name in names:
        meant = _meant(name, there)
        found |= dict.fromkeys(meant)
        if not meant:
            missing[name] = None
    return Chosen(tuple(found), tuple(missing))


def not_there(name: str, there: Collection[str]) -> Diagnostic:
    """The error about one name that stands for no topic."""
    if not is_pattern(name):
        guess = did_you_mean(name, there)
        return error("no-such-topic", "No such topic", f"There is no topic '{name}'.", guess)
    hint = "Several names are arguments of their own, or go with --topic." if "," in name else ""
    return error("no-such-topic", "No such topic", f"No topic's name matches '{name}'.", hint)


def _meant(name: str, there: Collection[str]) -> list[str]:
    if not is_pattern(name):
        return [name] if name in there else []
    try:
        pattern = compile_pattern(name)
    except PatternError as wrong:
        raise KdeclareError(_malformed(name, wrong)) from None
    return sorted(filter(pattern.matches, there))


def _malformed(name: str, wrong: PatternError) -> Diagnostic:
    return error(
        "bad-pattern",
        "Not a regular expression",
        f"'{name}' is no name of a topic, and no regular expression either: {wrong.located_reason}.",
        "Names consist of letters, digits, '.', '_' and '-'; for all that begin with x, write 'x.*'. "
        f"Regular expressions: {RE2_HINT.removeprefix('They are ')}",
    )
