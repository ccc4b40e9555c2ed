"""What a plain scalar means: YAML 1.2's core schema, and where YAML 1.1 would have read something else.

PyYAML, Go's YAML 2 and many editors follow 1.1, newer tools 1.2. A scalar that the two read differently
is refused, as half of the readers of a manifest would take it for something that it is not.
"""

import re
from dataclasses import dataclass
from typing import Any

_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_OLD_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"))
_OLD_BOOLS = _OLD_TRUE | frozenset(("n", "N", "no", "No", "NO", "off", "Off", "OFF"))

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")

_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+(?:\.[0-9]*)?")
_UNDERSCORES = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?)")
_BINARY = re.compile(r"[-+]?0b[01]+")
_SEXAGESIMAL = re.compile(r"[-+]?(?:[1-9][0-9_]*(?::[0-5]?[0-9])+|[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*)")
_TIMESTAMP = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?"
    r"(?:[ \t]*(?:Z|[-+]\d\d?(?::?\d\d)?))?"
)

_MAX_DIGITS = 400  # Python refuses to convert thousands of them, and no config has as many


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """A plain scalar that YAML 1.1 and 1.2 read differently.

    what: what is odd about it, as the end of a sentence.
    instead: what to write, as far as it can be said without repeating the scalar.
    exact: the same, with the number that was probably meant.
    shown: whether the scalar is one of a few words, and so cannot be a secret.
    """

    what: str
    instead: str
    exact: str
    shown: bool = False


Meaning = tuple[Any, str | None]
"""The value, and the text that a Kafka config with this value gets (None is null)."""


def resolve(text: str) -> Meaning | Ambiguous:
    """What an untagged plain scalar stands for."""
    if text in _NULLS:
        return None, None
    if text in _BOOLS:
        return _BOOLS[text], text.lower()
    if text in _OLD_BOOLS:
        meant = "true" if text in _OLD_TRUE else "false"
        instead = f"Write {meant}, or put it in quotes if the text is meant."
        return Ambiguous("is a boolean in YAML 1.1 and text in YAML 1.2", instead, instead, shown=True)
    if text[0] not in "-+.0123456789":
        return text, text
    return _resolve_number(text)


def _resolve_number(text: str) -> Meaning | Ambiguous:
    if len(text) > _MAX_DIGITS:
        return text, text
    if _INT.fullmatch(text):
        return int(text), text
    if _FLOAT.fullmatch(text):
        return float(text), text
    if _BASED.fullmatch(text):
        return int(text, 0), text
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", "")), text
    return _ambiguous_number(text) or (text, text)


def _ambiguous_number(text: str) -> Ambiguous | None:
    quote = "or put it in quotes if the text is meant."
    if _LEADING_ZERO.fullmatch(text):
        plain = text.lstrip("+-").lstrip("0")
        sign = "-" if text.startswith("-") else ""
        plain = f"{sign}{plain if plain[:1].isdigit() else '0' + plain}"
        return Ambiguous(
            "is octal in YAML 1.1 and decimal in YAML 1.2",
            f"Write it without the leading zero, {quote}",
            f"Write {plain}, {quote}",
        )
    if _BINARY.fullmatch(text):
        return Ambiguous(
            "is a binary number in YAML 1.1 and text in YAML 1.2",
            f"Write it as a decimal number, {quote}",
            f"Write {int(text, 0)}, {quote}",
        )
    if "_" in text and _UNDERSCORES.fullmatch(text):
        return Ambiguous(
            "is a number in YAML 1.1 and text in YAML 1.2",
            f"Write it without underscores, {quote}",
            f"Write {text.replace('_', '')}, {quote}",
        )
    if _SEXAGESIMAL.fullmatch(text):
        instead = "Put it in quotes, or write the number that is meant."
        return Ambiguous("is a number of base 60 in YAML 1.1 and text in YAML 1.2", instead, instead)
    if _TIMESTAMP.fullmatch(text):
        instead = "Put it in quotes."
        return Ambiguous("is a date in YAML 1.1 and text in YAML 1.2", instead, instead)
    return None
