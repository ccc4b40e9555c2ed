"""Why a rule could not be evaluated, in words for whoever was denied and for the rule's author."""

import re
from typing import get_args

from kdeclare.core.diagnostics import Place
from kdeclare.policy.cel.vocabulary import Vocabulary

_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_NO_KEY = re.compile(r"Key not found in map : (.+)")
_NO_VALUE = re.compile(r'No value with name "(\w+)\.\w+"')
_PLAIN = {
    "Iteration budget exceeded": "it takes too many steps",
    "regular expression too large": "a regular expression is too large, once its repetitions are written out",
    "Too slow": "it took too long about other topics, so it is not asked any more",
    "cannot convert string to int": "int(…) is given a text that is no whole number",
    "cannot convert string to double": "double(…) is given a text that is no number",
    "divide by zero": "it divides by zero",
    "modulus by zero": "it divides by zero",
    "integer overflow": "a number gets too large",
}


def failed(said: str, source: str, vocabulary: Vocabulary, where: Place | None = None) -> str:
    """The message of a violation. said: CEL's error. source: the rule, which stands ``where``."""
    text = _CODE.sub("", _CODE.sub("", said)).rstrip(".")
    reason, instead = _reason(text, source, vocabulary)
    advice = f" The rule's author can write {instead}." if instead else ""
    rule = f"The rule ({where})" if where else "The rule"
    return f"{rule} cannot be evaluated here: {reason}.{advice}"


def _reason(text: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    if match := _NO_KEY.search(text):
        return _no_key(match[1], source, vocabulary)
    match = _NO_VALUE.search(text)
    if match and match[1] in vocabulary.sides:
        side, action = match[1], "CREATE" if vocabulary.is_before(match[1]) else "DELETE"
        return f"'{side}' is null on {action}", f"{side} == null || …"
    if "invalid regular expression" in text:
        what, _, where = text.partition(": ")[2].partition(": ")
        return f"'{where}' is no regular expression, {what}", ""
    if "null_type" in text and "principal" in source:
        return "'principal' is null, as nobody is authenticated", "principal != null && …"
    unset = [name for name in sorted(vocabulary.nullable) if name in source]
    if "null_type" in text and unset:
        return f"'{unset[0]}' is null here", f"{unset[0]} != null && …"
    if text.startswith("Index error"):
        return "a list has fewer elements than it asks for", "size(…) > … && …"
    known = [words for start, words in _PLAIN.items() if text.startswith(start)]
    return (known[0] if known else text), ""


def _no_key(key: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    if not key.startswith('"'):
        return _no_number(key, source, vocabulary)
    name = key.strip('"')
    quoted = re.escape(name)
    match = re.search(rf"([\w.]+)\s*(?:\[\s*[rR]?(['\"]){quoted}\2\s*\]|\.{quoted}\b)", source)
    mapping = match[1] if match else "one of its mappings"
    return f"there is no '{name}' in {mapping}", f"'{name}' in {match[1] if match else '…'} && …"


def _no_number(key: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    """Of a mapping of numbers that the rule speaks of: the state before, unless it is the other one's."""
    for name, known in vocabulary.words.fields.items():
        if get_args(known.value_type)[:1] == (int,) and name in source:
            words = vocabulary.words
            side = words.after if f"{words.after}.{name}" in source else words.before
            return f"there is no {key} among the {known.elements} it looks at", f"{key} in {side}.{name} && …"
    return f"there is no {key} in one of its mappings", f"{key} in … && …"
