"""Why a rule could not be evaluated, in words for whoever was denied and for the rule's author."""

import re

from kdeclare.core.diagnostics import Place

_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_NO_KEY = re.compile(r"Key not found in map : (.+)")
_NO_VALUE = re.compile(r'No value with name "(pre|post)\.\w+"')
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


def failed(said: str, source: str, where: Place | None = None) -> str:
    """The message of a violation. said: CEL's error. source: the rule, which stands ``where``."""
    text = _CODE.sub("", _CODE.sub("", said)).rstrip(".")
    reason, instead = _reason(text, source)
    advice = f" The rule's author can write {instead}." if instead else ""
    rule = f"The rule ({where})" if where else "The rule"
    return f"{rule} cannot be evaluated here: {reason}.{advice}"


def _reason(text: str, source: str) -> tuple[str, str]:
    if match := _NO_KEY.search(text):
        return _no_key(match[1], source)
    if match := _NO_VALUE.search(text):
        side = match[1]
        return f"'{side}' is null on {'CREATE' if side == 'pre' else 'DELETE'}", f"{side} == null || …"
    if "invalid regular expression" in text:
        what, _, where = text.partition(": ")[2].partition(": ")
        return f"'{where}' is no regular expression, {what}", ""
    if "null_type" in text and "principal" in source:
        return "'principal' is null, as nobody is authenticated", "principal != null && …"
    if text.startswith("Index error"):
        return "a list has fewer elements than it asks for", "size(…) > … && …"
    known = [words for start, words in _PLAIN.items() if text.startswith(start)]
    return (known[0] if known else text), ""


def _no_key(key: str, source: str) -> tuple[str, str]:
    if not key.startswith('"'):
        side = "pre" if "post.assignments" not in source else "post"
        return f"there is no {key} among the partitions it looks at", f"{key} in {side}.assignments && …"
    name = key.strip('"')
    quoted = re.escape(name)
    match = re.search(rf"([\w.]+)\s*(?:\[\s*[rR]?(['\"]){quoted}\2\s*\]|\.{quoted}\b)", source)
    mapping = match[1] if match else "one of its mappings"
    return f"there is no '{name}' in {mapping}", f"'{name}' in {match[1] if match else '…'} && …"
