"""Convert errors of the CEL compiler and evaluator to messages for the author of a rule."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_request import RULE_TOO_SLOW
from kdeclare.core.suggestions import find_closest, format_suggestion
from kdeclare.policy.cel.source import tokenize
from kdeclare.policy.cel.vocabulary import IMPACT, Vocabulary

STATE = "State_"
"""The prefix of CEL type names for the states before and after a change, such as ``State_post``."""

_FUNCTIONS = (
    *("all", "bool", "bytes", "contains", "double", "duration", "dyn", "endsWith", "exists", "exists_one"),
    *("filter", "has", "int", "map", "matches", "size", "startsWith", "string", "timestamp", "type", "uint"),
)
_LOOPS = ("all", "exists", "exists_one", "filter", "map")
_RECEIVER_FUNCTIONS = (*_LOOPS, "contains", "endsWith", "startsWith")
_UNKNOWN = "undeclared reference to "
_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_ERROR = re.compile(r"^ERROR: <input>:(-?\d+):(-?\d+): (.*)$", re.MULTILINE)
_CLOSED = re.compile(r"""(['"])(?:\\.|(?!\1)[^\\\n])*\1""")
_SIDE = re.compile(r"\bhas\s*\(\s*(\w+)\s*\.\s*(\w+)\s*\)")
_TYPES = {
    "int": "a whole number",
    "uint": "an unsigned number",
    "double": "a decimal number",
    "string": "a string",
    "wrapper(string)": "a string or null",
    "wrapper(int)": "a whole number or null",
    "wrapper(double)": "a decimal number or null",
    "wrapper(bool)": "true, false or null",
    "bool": "true or false",
    "null_type": "null",
}
_WORDS = {"and": "&&", "AND": "&&", "&": "&&", "or": "||", "OR": "||", "|": "||", "not": "!", "=": "=="}
_WORDS |= {"=>": ">=", "=<": "<=", "<>": "!=", "NOT": "!"}


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """A problem in a CEL expression.

    offset: the position of the problem in the expression, counted from 0; None if unknown.
    """

    detail: str
    hint: str = ""
    offset: int | None = None


def build_rule_problems(compiler_output: str, source: str, vocabulary: Vocabulary) -> tuple[RuleProblem, ...]:
    """Convert the output of the CEL compiler to problems.

    For an expression with invalid syntax, return only the first syntax error.
    """
    compiler_errors = [
        (_compute_offset(source, int(m[1]), int(m[2])), m[3])
        for m in _ERROR.finditer(_CODE.sub("", compiler_output))
    ]
    syntax_errors = [
        item for item in compiler_errors if item[1].startswith(("Syntax error", "reserved", "unsupported"))
    ]
    if syntax_errors:
        offset, text = min(syntax_errors, key=lambda item: item[0] or 0)
        optional_problem = _find_optional_syntax(text, source, vocabulary)
        return (optional_problem or _build_syntax_problem(text, offset or 0, source),)
    if not compiler_errors or "recursion" in compiler_output:
        return (RuleProblem(_explain_whole_rule(compiler_output)),)
    compiler_errors = [item for item in compiler_errors if "'*error*'" not in item[1]]
    # if the name of a loop is misspelled, its variable is also unknown: report only the name of the loop
    unknown_functions = [
        (at, text)
        for at, text in compiler_errors
        if text.startswith(_UNKNOWN) and source[at or 0 :][:1] == "("
    ]
    problems = (
        _build_problem(text, offset, source, vocabulary)
        for offset, text in unknown_functions or compiler_errors
    )
    return tuple(dict.fromkeys(problems))


def build_result_type_problem(kind: str) -> RuleProblem:
    """Return the problem for an expression whose result is not a boolean.

    kind: the name of the result's type in CEL.
    """
    words = {"LIST": "a list", "MAP": "a mapping", "NULL": "null", "DYN": "a value of unknown type"}
    type_text = (
        words.get(kind.partition("<")[0])
        or _TYPES.get(kind)
        or _TYPES.get(kind.lower())
        or _format_type(kind)
    )
    hint = "Write a condition, for example a comparison, that is true for allowed requests."
    return RuleProblem(f"A rule must return true or false, but this rule returns {type_text}.", hint)


def _compute_offset(source: str, line: int, column: int) -> int | None:
    if line < 1 or column < 1:
        return None
    return min(sum(len(text) + 1 for text in source.split("\n")[: line - 1]) + column - 1, len(source))


def _explain_whole_rule(compiler_output: str) -> str:
    if "recursion" in compiler_output:
        return "The rule is nested too deeply."
    if "codepoint limit" in compiler_output:
        return "The rule is too long."
    if compiler_output.startswith("compile()"):  # a TypeError: the compiler accepts any valid Unicode string
        return "The rule is not valid Unicode text."
    return f"The rule cannot be parsed: {_CODE.sub('', compiler_output).splitlines()[0].rstrip('.')}."


def _build_syntax_problem(message: str, offset: int, source: str) -> RuleProblem:
    remaining_text = source[offset:]
    if not remaining_text.strip():
        return RuleProblem("The rule ends too early.", offset=offset)
    if message.startswith("reserved"):
        word = message.rpartition(" ")[2]
        return RuleProblem(f"'{word}' is a reserved word of CEL.", _suggest_operator(word), offset)
    if remaining_text[0] in "'\"" and "token recognition" in message:
        return _build_quote_problem(remaining_text, offset)
    if remaining_text[0] in "‘’“”":
        return RuleProblem(f"'{remaining_text[0]}' is not a CEL quotation mark.", "Write ' or \".", offset)
    word = (re.match(r"\w+|[=<>&|!]+|.", remaining_text) or remaining_text)[0]
    previous_word = (re.search(r"(\w+)\s*$", source[:offset]) or ("", ""))[1]  # 'not x' is reported at the x
    hint = _suggest_operator(word) or (_suggest_operator(previous_word) if word[0].isalnum() else "")
    return RuleProblem(f"'{word}' is not expected here.", hint, offset)


def _find_optional_syntax(message: str, source: str, vocabulary: Vocabulary) -> RuleProblem | None:
    """Return the problem for an optional lookup (``[?'x']``, ``.?x`` or ``?.x``), which is not supported.

    Return None if the expression does not contain an optional lookup.
    """
    if not message.startswith("unsupported") and "expecting ':'" not in message:
        return None
    pieces = tokenize(source)
    for token, next_token in pairwise(pieces):
        if (token.text + next_token.text) in ("[?", ".?", "?.") and next_token.offset == token.offset + 1:
            hint = f"Check first that the key exists: 'key' in {vocabulary.example_map} && …."
            return RuleProblem(f"'{token.text}{next_token.text}' is not supported.", hint, token.offset)
    return None


def _build_quote_problem(remaining_text: str, offset: int) -> RuleProblem:
    quote, closed_match = remaining_text[0], _CLOSED.match(remaining_text)
    if closed_match is None or "\\" not in closed_match[0]:
        return RuleProblem(f"The string that begins here has no closing {quote}.", offset=offset)
    hint = f"Write r{quote}…{quote} for a string that contains backslashes, such as a regular expression."
    return RuleProblem("The string that begins here has an invalid backslash escape.", hint, offset)


def _suggest_operator(word: str) -> str:
    if word == "if":
        return "Write condition ? value : other_value."
    return f"Write {_WORDS[word]}." if word in _WORDS else ""


def _build_problem(message: str, offset: int | None, source: str, vocabulary: Vocabulary) -> RuleProblem:
    start = offset or 0
    if match := re.match(_UNKNOWN + r"'([^']*)'", message):
        return _build_unknown_name_problem(match[1], start, source, vocabulary)
    if match := re.match(r"expression of type '(.*)' cannot be the operand of a select", message):
        return _build_unknown_field_problem(match[1], start, source, vocabulary)
    if match := re.match(r"found no matching overload for '(.*)' applied to '(.*)'", message):
        return RuleProblem(*_explain_overload(match[1], _split_types(match[2]), source, vocabulary), offset)
    if message.startswith("has() argument"):
        hint = f"To check that a key exists, write: 'key' in {vocabulary.example_map}"
        return RuleProblem("has() accepts only a field in dot notation.", hint, offset)
    return RuleProblem(f"{message[:1].upper()}{message[1:].rstrip('.')}.", "", offset)


def _build_unknown_name_problem(name: str, offset: int, source: str, vocabulary: Vocabulary) -> RuleProblem:
    if source[offset : offset + 1] == "(" and source[:offset].rstrip().endswith(name):
        start = source.rindex(name, 0, offset)
        if name in _RECEIVER_FUNCTIONS:
            return RuleProblem(
                *_explain_misuse(name, source[:start].rstrip().endswith("."), source[offset + 1 :]), start
            )
        return RuleProblem(
            f"The function '{name}' does not exist.", format_suggestion(name, _FUNCTIONS), start
        )
    first_part = name.partition(".")[0]
    if source[offset : offset + 1] == ".":  # the compiler reports the position of the last dot
        offset = max(source.rfind(first_part, 0, offset), 0)
    if first_part in ("CREATE", "MODIFY", "DELETE"):
        return RuleProblem(
            f"{first_part} without quotes is a name, not a string.",
            f"Write '{first_part}' in quotes.",
            offset,
        )
    if first_part == "resource":
        detail = "'resource' cannot be used without a field."
        hint = "Use resource.kind, resource.labels, resource.name or resource.owner."
        return RuleProblem(detail, hint, offset)
    if first_part == IMPACT and vocabulary.words.impact:
        return _build_unknown_fact_problem(name.partition(".")[2], offset, source, vocabulary)
    suggestion = find_closest(first_part, (*vocabulary.names, *vocabulary.fields))
    if suggestion in vocabulary.fields:
        hint = f"Did you mean '{vocabulary.words.after}.{suggestion}'?"
    else:
        hint = f"Did you mean '{suggestion}'?" if suggestion else f"Use {', '.join(vocabulary.names)}."
    return RuleProblem(f"The name '{first_part}' is not defined.", hint, offset)


def _build_unknown_fact_problem(fact: str, offset: int, source: str, vocabulary: Vocabulary) -> RuleProblem:
    facts = tuple(vocabulary.words.impact)
    fact = fact or (re.match(rf"{IMPACT}\s*\.\s*(\w+)", source[offset:]) or ("", ""))[1]
    hint = f"Use {', '.join(f'{IMPACT}.{name}' for name in facts)}."
    if not fact:
        return RuleProblem(f"'{IMPACT}' cannot be used without a field.", hint, offset)
    return RuleProblem(f"'{IMPACT}' has no field '{fact}'.", format_suggestion(fact, facts) or hint, offset)


def _explain_misuse(name: str, is_after_dot: bool, arguments: str) -> tuple[str, str]:
    """Return the detail and the hint for an incorrect call to a function that exists."""
    argument_text = "(x, …)" if name in _LOOPS else "(…)"
    if is_after_dot and name in _LOOPS:
        hint = f"Write .{name}{argument_text}. For a mapping, x is a key."
        return f"'{name}' takes two arguments: a variable, and a condition or value.", hint
    if is_after_dot:
        return f"'{name}' does not accept these arguments.", f"Write .{name}{argument_text} after a string."
    first_argument = re.match(r"\s*([\w.]+)\s*,", arguments)
    receiver_text = "a list or a mapping" if name in _LOOPS else "a string"
    return (
        f"'{name}' must be called on {receiver_text}.",
        f"Write {first_argument[1] if first_argument else '…'}.{name}{argument_text}.",
    )


def _build_unknown_field_problem(kind: str, offset: int, source: str, vocabulary: Vocabulary) -> RuleProblem:
    match = re.compile(r"\s*\.\s*(\w+)").match(source, offset)
    field, start = (match[1], match.start(1)) if match else ("", offset)
    if kind.startswith(STATE):
        field_hint = (
            f"Use {', '.join(vocabulary.fields)}. If the rule is for another kind, set selector.kind."
        )
        hint = format_suggestion(field, vocabulary.fields) or field_hint
        return RuleProblem(f"'{kind.removeprefix(STATE)}' has no field '{field}'.", hint, start)
    maps = "|".join(name.replace(".", r"\s*\.\s*") for name in vocabulary.text_maps) or "(?!)"
    for dotted_match in re.finditer(rf"\b({maps})\s*\.([\w.]+)", source):
        if dotted_match.start() <= offset < dotted_match.end():
            hint = f"Write {dotted_match[1]}['{dotted_match[2]}']."
            return RuleProblem(
                f"{_format_key_noun(dotted_match[1])} that contains dots is one key, not nested fields.",
                hint,
                start,
            )
    type_text = _format_type(kind)
    return RuleProblem(f"{type_text[:1].upper()}{type_text[1:]} has no field '{field}'.", "", start)


def _explain_overload(
    function: str, types: list[str], source: str, vocabulary: Vocabulary
) -> tuple[str, str]:
    operator = function.strip("_").lstrip("@")
    operand_types = [_format_type(kind) for kind in types]
    if function == "_?_:_":
        detail = (
            "The condition before '?' must be true or false, and both sides of ':' must have the same type."
        )
    elif len(operand_types) == 2:
        detail = (
            f"'{'[…]' if function == '_[_]' else operator}' does not accept "
            f"{operand_types[0]} and {operand_types[1]}."
        )
    else:
        detail = f"'{operator}' does not accept {', '.join(operand_types)}."
    return detail, _suggest_conversion(set(types), source, vocabulary)


def _suggest_conversion(types: set[str], source: str, vocabulary: Vocabulary) -> str:
    side = _SIDE.search(source)
    if side and side[1] in vocabulary.sides and side[2] in vocabulary.fields:
        return f"Write {side[1]} != null instead of {side[0]}, because a state always has all fields."
    if any(kind.startswith(STATE) for kind in types):
        return f"Compare a state only with null, or use one of its fields: {', '.join(vocabulary.fields)}."
    if types == {"string", "int"}:
        maps = _format_text_maps(vocabulary)
        return (
            "Convert the string with int(…), or put the number in quotes, because the values of "
            f"{maps} are strings."
        )
    if types == {"string", "bool"}:
        maps = _format_text_maps(vocabulary)
        return f"Put true and false in quotes, because the values of {maps} are strings."
    if types == {"double", "int"}:
        return "Write whole numbers without a decimal point."
    if "null_type" in types:
        states = f"{vocabulary.words.before}, {vocabulary.words.after}"
        key = f"'key' in {vocabulary.example_map}"
        return f"Compare only {states} and principal with null. To check that a key exists, write: {key}"
    return ""


def _format_text_maps(vocabulary: Vocabulary) -> str:
    map_names = [n for n in vocabulary.fields if vocabulary.words.fields[n].value_type == dict[str, str]]
    return f"{', '.join(map_names)} and labels" if map_names else "labels"


def _format_key_noun(mapping: str) -> str:
    """Return the noun for a key of a mapping, such as ``A config name`` for ``post.configs``."""
    name = mapping.rpartition(".")[2].strip().removesuffix("s")
    return f"{'An' if name[:1] in 'aeiou' else 'A'} {name} name"


def _format_type(kind: str) -> str:
    if kind.startswith(STATE):
        return "a state"
    if kind.startswith("map("):
        return "a mapping"
    return "a list" if kind.startswith("list(") else _TYPES.get(kind, kind)


def _split_types(kinds: str) -> list[str]:
    """Split a list of CEL types, such as ``(map(string, string), int)``, at its top-level commas."""
    return list(_split_at_commas(kinds.removeprefix("(").removesuffix(")")))


def _split_at_commas(kinds: str) -> Iterator[str]:
    depth, start = 0, 0
    for index, character in enumerate(kinds):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            yield kinds[start:index].strip()
            start = index + 1
    yield kinds[start:].strip()


_ERROR_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_NO_KEY = re.compile(r"Key not found in map : (.+)")
_NO_VALUE = re.compile(r'No value with name "(\w+)\.\w+"')
_PLAIN_REASONS = {
    "Iteration budget exceeded": "the rule takes too many steps",
    "regular expression too large": "a regular expression is too large after its repetitions are expanded",
    "Too slow": RULE_TOO_SLOW,
    "cannot convert string to int": "int(…) was called with a string that is not a whole number",
    "cannot convert string to double": "double(…) was called with a string that is not a number",
    "divide by zero": "the rule divides by zero",
    "modulus by zero": "the rule divides by zero",
    "integer overflow": "an integer overflows",
}


def explain_failure(
    message: str, source: str, vocabulary: Vocabulary, rule_position: SourcePosition | None = None
) -> str:
    """Return the message for a rule that cannot be evaluated.

    message: CEL's error message.
    source: the expression of the rule.
    rule_position: the position of the rule in its file.
    """
    text = _ERROR_CODE.sub("", _ERROR_CODE.sub("", message)).rstrip(".")
    reason, suggestion = _explain_reason(text, source, vocabulary)
    advice = f" To fix the rule, its author can write {suggestion}." if suggestion else ""
    rule = f"The rule ({rule_position})" if rule_position else "The rule"
    return f"{rule} cannot be evaluated for this request: {reason}.{advice}"


def _explain_reason(text: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    if match := _NO_KEY.search(text):
        return _explain_missing_key(match[1], source, vocabulary)
    match = _NO_VALUE.search(text)
    if match and match[1] in vocabulary.sides:
        side, action = match[1], "CREATE" if vocabulary.is_before(match[1]) else "DELETE"
        return f"'{side}' is null on {action}", f"{side} == null || …"
    if "invalid regular expression" in text:
        pattern_error, _, pattern = text.partition(": ")[2].partition(": ")
        return f"'{pattern}' is not a regular expression ({pattern_error})", ""
    if "null_type" in text and "principal" in source:
        return "'principal' is null, because the client is not authenticated", "principal != null && …"
    unset_names = [name for name in sorted(vocabulary.nullable) if name in source]
    if "null_type" in text and unset_names:
        return f"'{unset_names[0]}' is null here", f"{unset_names[0]} != null && …"
    if text.startswith("Index error"):
        return "a list index is out of range", "size(…) > … && …"
    plain_reasons = [words for start, words in _PLAIN_REASONS.items() if text.startswith(start)]
    return (plain_reasons[0] if plain_reasons else text), ""


def _explain_missing_key(key: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    if not key.startswith('"'):
        return _explain_missing_number(key, source, vocabulary)
    name = key.strip('"')
    quoted = re.escape(name)
    match = re.search(rf"([\w.]+)\s*(?:\[\s*[rR]?(['\"]){quoted}\2\s*\]|\.{quoted}\b)", source)
    mapping = match[1] if match else "a mapping that the rule uses"
    return f"'{name}' is not in {mapping}", f"'{name}' in {match[1] if match else '…'} && …"


def _explain_missing_number(key: str, source: str, vocabulary: Vocabulary) -> tuple[str, str]:
    """Explain that a mapping with integer keys lacks a key. Return the reason and a suggestion."""
    for name, policy_field in vocabulary.words.fields.items():
        if get_args(policy_field.value_type)[:1] == (int,) and name in source:
            words = vocabulary.words
            side = words.after if f"{words.after}.{name}" in source else words.before
            return (
                f"{key} is not one of the {policy_field.elements}",
                f"{key} in {side}.{name} && …",
            )
    return f"{key} is not in a mapping that the rule uses", f"{key} in … && …"
