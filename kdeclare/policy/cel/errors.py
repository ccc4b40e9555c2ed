"""What CEL says of an expression, in words for the person who wrote it."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

from kdeclare.core.diagnostics import Place
from kdeclare.core.frozen import dataclass
from kdeclare.core.suggest import closest, did_you_mean
from kdeclare.policy.cel.source import tokens
from kdeclare.policy.cel.vocabulary import Vocabulary

STATE = "State_"
"""How the types of states are called; the name of the state follows."""

_FUNCTIONS = (
    *("all", "bool", "bytes", "contains", "double", "duration", "dyn", "endsWith", "exists", "exists_one"),
    *("filter", "has", "int", "map", "matches", "size", "startsWith", "string", "timestamp", "type", "uint"),
)
_LOOPS = ("all", "exists", "exists_one", "filter", "map")
_AFTER = (*_LOOPS, "contains", "endsWith", "startsWith")
_UNKNOWN = "undeclared reference to "
_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_ERROR = re.compile(r"^ERROR: <input>:(-?\d+):(-?\d+): (.*)$", re.MULTILINE)
_CLOSED = re.compile(r"""(['"])(?:\\.|(?!\1)[^\\\n])*\1""")
_SIDE = re.compile(r"\bhas\s*\(\s*(\w+)\s*\.\s*(\w+)\s*\)")
_TYPES = {
    "int": "a whole number",
    "uint": "an unsigned number",
    "double": "a number with a point",
    "string": "text",
    "wrapper(string)": "text or null",
    "wrapper(int)": "a whole number or null",
    "wrapper(double)": "a number with a point or null",
    "wrapper(bool)": "true, false or null",
    "bool": "true or false",
    "null_type": "null",
}
_WORDS = {"and": "&&", "AND": "&&", "&": "&&", "or": "||", "OR": "||", "|": "||", "not": "!", "=": "=="}
_WORDS |= {"=>": ">=", "=<": "<=", "<>": "!=", "NOT": "!"}


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """What is wrong with an expression. offset: where in it, if that can be told."""

    detail: str
    hint: str = ""
    offset: int | None = None


def explained(said: str, source: str, vocabulary: Vocabulary) -> tuple[RuleProblem, ...]:
    """What the compiler said: the first mistake in the syntax, or all that it found in a sound one."""
    found = [(_offset(source, int(m[1]), int(m[2])), m[3]) for m in _ERROR.finditer(_CODE.sub("", said))]
    syntax = [item for item in found if item[1].startswith(("Syntax error", "reserved", "unsupported"))]
    if syntax:
        offset, text = min(syntax, key=lambda item: item[0] or 0)
        optional = _optional(text, source, vocabulary)
        return (optional or _syntax(text, offset or 0, source),)
    if not found or "recursion" in said:
        return (RuleProblem(_of_the_whole(said)),)
    found = [item for item in found if "'*error*'" not in item[1]]
    # where a loop is misspelt, its variable is unknown, too
    functions = [
        (at, text) for at, text in found if text.startswith(_UNKNOWN) and source[at or 0 :][:1] == "("
    ]
    mistakes = (_mistake(text, offset, source, vocabulary) for offset, text in functions or found)
    return tuple(dict.fromkeys(mistakes))


def not_a_verdict(kind: str) -> RuleProblem:
    """For an expression whose result is of another type than BOOL."""
    words = {"LIST": "a list", "MAP": "a mapping", "NULL": "null", "DYN": "of no type that is known before"}
    said = words.get(kind.partition("<")[0]) or _TYPES.get(kind) or _TYPES.get(kind.lower()) or _typed(kind)
    hint = "Compare it with something; a rule is true for what is allowed."
    return RuleProblem(f"A rule must be true or false, and this is {said}.", hint)


def _offset(source: str, line: int, column: int) -> int | None:
    if line < 1 or column < 1:
        return None
    return min(sum(len(text) + 1 for text in source.split("\n")[: line - 1]) + column - 1, len(source))


def _of_the_whole(said: str) -> str:
    if "recursion" in said:
        return "The rule is nested too deep."
    if "codepoint limit" in said:
        return "The rule is too long."
    if said.startswith("compile()"):  # it would take any text
        return "The rule is no Unicode text."
    return f"The rule cannot be read: {_CODE.sub('', said).splitlines()[0].rstrip('.')}."


def _syntax(said: str, offset: int, source: str) -> RuleProblem:
    rest = source[offset:]
    if not rest.strip():
        return RuleProblem("The rule ends too early: something is missing at its end.", offset=offset)
    if said.startswith("reserved"):
        word = said.rpartition(" ")[2]
        return RuleProblem(f"'{word}' is a reserved word of CEL.", _instead(word), offset)
    if rest[0] in "'\"" and "token recognition" in said:
        return _broken_text(rest, offset)
    if rest[0] in "‘’“”":
        return RuleProblem(f"'{rest[0]}' is no quotation mark of CEL.", "Write ' or \".", offset)
    word = (re.match(r"\w+|[=<>&|!]+|.", rest) or rest)[0]
    before = (re.search(r"(\w+)\s*$", source[:offset]) or ("", ""))[1]  # 'not x': told at the x
    hint = _instead(word) or (_instead(before) if word[0].isalnum() else "")
    return RuleProblem(f"'{word}' is not expected here.", hint, offset)


def _optional(said: str, source: str, vocabulary: Vocabulary) -> RuleProblem | None:
    """Of ``[?'x']``, ``.?x`` and ``?.x``."""
    if not said.startswith("unsupported") and "expecting ':'" not in said:
        return None
    pieces = tokens(source)
    for one, other in pairwise(pieces):
        if (one.text + other.text) in ("[?", ".?", "?.") and other.offset == one.offset + 1:
            hint = f"Ask first whether a key is there: 'key' in {vocabulary.example_map} && …."
            return RuleProblem(f"'{one.text}{other.text}' is not supported.", hint, one.offset)
    return None


def _broken_text(rest: str, offset: int) -> RuleProblem:
    quote, closed = rest[0], _CLOSED.match(rest)
    if closed is None or "\\" not in closed[0]:
        return RuleProblem(f"The text that begins here has no closing {quote}.", offset=offset)
    hint = f"Where backslashes are meant, as in regular expressions, write r{quote}…{quote}."
    return RuleProblem("The text that begins here has a backslash that says nothing to CEL.", hint, offset)


def _instead(word: str) -> str:
    if word == "if":
        return "Write condition ? value : other value."
    return f"Write {_WORDS[word]}." if word in _WORDS else ""


def _mistake(said: str, offset: int | None, source: str, vocabulary: Vocabulary) -> RuleProblem:
    at = offset or 0
    if match := re.match(_UNKNOWN + r"'([^']*)'", said):
        return _unknown(match[1], at, source, vocabulary)
    if match := re.match(r"expression of type '(.*)' cannot be the operand of a select", said):
        return _no_field(match[1], at, source, vocabulary)
    if match := re.match(r"found no matching overload for '(.*)' applied to '(.*)'", said):
        return RuleProblem(*_no_overload(match[1], _split(match[2]), source, vocabulary), offset)
    if said.startswith("has() argument"):
        hint = f"Whether a key is there: 'key' in {vocabulary.example_map}."
        return RuleProblem("has() takes a field, written with a dot.", hint, offset)
    return RuleProblem(f"{said[:1].upper()}{said[1:].rstrip('.')}.", "", offset)


def _unknown(name: str, at: int, source: str, vocabulary: Vocabulary) -> RuleProblem:
    if source[at : at + 1] == "(" and source[:at].rstrip().endswith(name):
        start = source.rindex(name, 0, at)
        if name in _AFTER:
            return RuleProblem(
                *_misused(name, source[:start].rstrip().endswith("."), source[at + 1 :]), start
            )
        return RuleProblem(f"There is no function '{name}'.", did_you_mean(name, _FUNCTIONS), start)
    first = name.partition(".")[0]
    if source[at : at + 1] == ".":  # told at the last dot
        at = max(source.rfind(first, 0, at), 0)
    if first in ("CREATE", "MODIFY", "DELETE"):
        return RuleProblem(f"'{first}' without quotes is a name.", f"Write '{first}' in quotes.", at)
    if first == "resource":
        return RuleProblem("'resource' is known by its fields only.", "It has kind, labels, name.", at)
    near = closest(first, (*vocabulary.names, *vocabulary.fields))
    if near in vocabulary.fields:
        hint = f"Did you mean '{vocabulary.words.after}.{near}'?"
    else:
        hint = f"Did you mean '{near}'?" if near else f"Known are {', '.join(vocabulary.names)}."
    return RuleProblem(f"There is nothing called '{first}'.", hint, at)


def _misused(name: str, after_a_dot: bool, inside: str) -> tuple[str, str]:
    """Of a function that there is: not so."""
    what = "(x, …)" if name in _LOOPS else "(…)"
    if after_a_dot and name in _LOOPS:
        hint = f"Write .{name}{what}; of a mapping, x is a key."
        return f"'{name}' takes one variable and a condition or value.", hint
    if after_a_dot:
        return f"'{name}' does not take this.", f"Write .{name}{what} after a text."
    first = re.match(r"\s*([\w.]+)\s*,", inside)
    of = "a list or a mapping" if name in _LOOPS else "a text"
    return f"'{name}' stands after {of}, with a dot.", f"Write {first[1] if first else '…'}.{name}{what}."


def _no_field(kind: str, at: int, source: str, vocabulary: Vocabulary) -> RuleProblem:
    match = re.compile(r"\s*\.\s*(\w+)").match(source, at)
    field, start = (match[1], match.start(1)) if match else ("", at)
    if kind.startswith(STATE):
        others = (
            f"It has {', '.join(vocabulary.fields)}. If the rule is about another kind, set selector.kind."
        )
        hint = did_you_mean(field, vocabulary.fields) or others
        return RuleProblem(f"'{kind.removeprefix(STATE)}' has no field '{field}'.", hint, start)
    maps = "|".join(name.replace(".", r"\s*\.\s*") for name in vocabulary.text_maps) or "(?!)"
    for dotted in re.finditer(rf"\b({maps})\s*\.([\w.]+)", source):
        if dotted.start() <= at < dotted.end():
            hint = f"Write {dotted[1]}['{dotted[2]}']."
            return RuleProblem(f"{_of_a_key(dotted[1])} with dots in it is a key, not fields.", hint, start)
    return RuleProblem(f"There is no field '{field}' in {_typed(kind)}.", "", start)


def _no_overload(function: str, kinds: list[str], source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    operator = function.strip("_").lstrip("@")
    given = [_typed(kind) for kind in kinds]
    if function == "_?_:_":
        said = "What stands before '?' must be true or false, and both sides of ':' of one kind."
    elif len(given) == 2:
        said = f"'{'[…]' if function == '_[_]' else operator}' does not take {given[0]} and {given[1]}."
    else:
        said = f"'{operator}' does not take {', '.join(given)}."
    return said, _conversion(set(kinds), source, vocabulary)


def _conversion(kinds: set[str], source: str, vocabulary: Vocabulary) -> str:
    side = _SIDE.search(source)
    if side and side[1] in vocabulary.sides and side[2] in vocabulary.fields:
        return f"A state has all of its fields: write {side[1]} != null in place of {side[0]}."
    if any(kind.startswith(STATE) for kind in kinds):
        return f"A state can only be compared with null; it has {', '.join(vocabulary.fields)}."
    if kinds == {"string", "int"}:
        return f"{_texts(vocabulary)} are text: convert with int(…), or put the number in quotes."
    if kinds == {"string", "bool"}:
        return f"{_texts(vocabulary)} are text: put true and false in quotes."
    if kinds == {"double", "int"}:
        return "Write whole numbers without a point."
    if "null_type" in kinds:
        states = f"{vocabulary.words.before}, {vocabulary.words.after}"
        key = f"'key' in {vocabulary.example_map}"
        return f"Only {states} and principal can be null; whether a key is there: {key}."
    return ""


def _texts(vocabulary: Vocabulary) -> str:
    """The mappings of texts: ``Configs and labels``."""
    found = [n for n in vocabulary.fields if vocabulary.words.fields[n].value_type == dict[str, str]]
    names = ", ".join(found)
    return f"{names[:1].upper()}{names[1:]} and labels" if found else "Labels"


def _of_a_key(mapping: str) -> str:
    """Of ``post.configs``: ``A config's name``."""
    name = mapping.rpartition(".")[2].strip().removesuffix("s")
    return f"{'An' if name[:1] in 'aeiou' else 'A'} {name}'s name"


def _typed(kind: str) -> str:
    if kind.startswith(STATE):
        return "a whole state"
    if kind.startswith("map("):
        return "a mapping"
    return "a list" if kind.startswith("list(") else _TYPES.get(kind, kind)


def _split(kinds: str) -> list[str]:
    """``(map(string, string), int)`` at its commas."""
    return list(_parts(kinds.removeprefix("(").removesuffix(")")))


def _parts(kinds: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, character in enumerate(kinds):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield kinds[start:at].strip()
            start = at + 1
    yield kinds[start:].strip()


_ERROR_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
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


def explain_failure(said: str, source: str, vocabulary: Vocabulary, where: Place | None = None) -> str:
    """The message of a violation. said: CEL's error. source: the rule, which stands ``where``."""
    text = _ERROR_CODE.sub("", _ERROR_CODE.sub("", said)).rstrip(".")
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
