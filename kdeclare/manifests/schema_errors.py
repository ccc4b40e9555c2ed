"""Pydantic's errors in kdeclare's words, with the place in the file and a guess at what was meant."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.core.suggest import closest, did_you_mean, one_of
from kdeclare.manifests.model_fields import choices_at, is_secret_at, known_fields
from kdeclare.manifests.reading_modes import may_be_secret_at
from kdeclare.manifests.syntax.nodes import child, find
from kdeclare.manifests.syntax.reading import BROKEN
from kdeclare.manifests.syntax.substitution import has_reference

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
}
_SCALARS = ("a whole number", "a number", "text", "true or false")

BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda c: f"must be more than {c['gt']}",
    "greater_than_equal": lambda c: f"must be at least {c['ge']}",
    "less_than": lambda c: f"must be less than {c['lt']}",
    "less_than_equal": lambda c: f"must be at most {c['le']}",
    "multiple_of": lambda c: f"must be a multiple of {c['multiple_of']}",
    "too_short": lambda c: f"needs {_counted(c['min_length'], 'element')}",
    "too_long": lambda c: f"takes at most {c['max_length']} elements",
    "string_too_short": lambda c: f"needs {_counted(c['min_length'], 'character')}",
    "string_too_long": lambda c: f"takes at most {c['max_length']} characters",
    "string_pattern_mismatch": lambda c: f"does not match the pattern {c['pattern']}",
    "finite_number": lambda _: "must be a finite number",
}
"""What a value must be, from an error's context."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """Stands in messages for a scalar that is a secret, and says only of what type it is."""

    what: str

    def __str__(self) -> str:
        return self.what


def withhold(value: str | float | bool) -> Withheld:  # any scalar of YAML
    """What messages may say of a secret."""
    if isinstance(value, bool):
        return Withheld("a boolean")
    return Withheld("text" if isinstance(value, str) else "a number")


def expected_type(code: str) -> str | None:
    """What a field takes, when an error of this type says that it got something of another type."""
    for suffix in ("_type", "_parsing", "_from_float", "_parsing_size"):
        if code.endswith(suffix):
            return _EXPECTED.get(code.removesuffix(suffix))
    return None


def dotted(path: Sequence[str | int]) -> str:
    """A path as people write it: ``spec.partitions[0].topic``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def described(value: Any, expected: Sequence[str]) -> str:
    """What a field got, without more of it than can be told."""
    if value is None:
        return "null"
    if isinstance(value, Referenced):
        return shown(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    # a scalar where a mapping or a list belongs can be anything, a secret too
    if not all(word in _SCALARS for word in expected):
        return "text" if isinstance(value, str) else "a single value"
    return f"the text {shown(value)}" if isinstance(value, str) else shown(value)


def type_hint(value: Any, expected: Sequence[str]) -> str:
    """What to write instead, where that is plain."""
    if value is None:
        return "Leave the field out where there is nothing to say."
    if isinstance(value, dict | list | Referenced):
        return ""
    if expected == ["text"]:
        return "Put it in quotes."
    if isinstance(value, str):
        number = value.strip().lstrip("-").isdigit() and "a whole number" in expected
        truth = value.lower() in ("true", "false") and "true or false" in expected
        return "Write it without the quotes." if number or truth else ""
    return ""


def _counted(least: int, what: str) -> str:
    return f"at least one {what}" if least == 1 else f"at least {least} {what}s"


def is_number(value: Any) -> bool:
    """Whether it is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A scalar for a message; one that a reference stood for is not repeated."""
    if isinstance(value, Referenced):
        return f"the value of {value.reference}"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:37]}…"
    return f"'{text}'" if isinstance(value, str) else text


Location = tuple[str | int, ...]


def explain(e: ValidationError, model: type[BaseModel], data: Any, root: Node) -> list[Diagnostic]:
    """All errors as diagnostics, in the order of the document's model.

    What could not be read is left out, as that has been said; the alternatives of a union become one.
    """
    merged: dict[tuple[Location, str], tuple[ErrorDetails, list[str]]] = {}
    for item in e.errors(include_url=False):
        if item["input"] is BROKEN:
            continue
        where = data_path(item["loc"], data)
        written = _reference_at(root, where)
        if written is not None:
            item["input"] = Referenced("", written)  # its value is not for messages
        elif where and not isinstance(item["input"], dict | list | None) and _is_hidden(model, where):
            item["input"] = withhold(item["input"])
        expected = expected_type(item["type"])
        slot = (where, "wrong-type" if expected else f"{item['type']}{item['loc'][-1:]}")
        _, words = merged.setdefault(slot, (item, []))
        if expected and expected not in words:
            words.append(expected)
    found = (_explained(item, where, words, model, root) for (where, _), (item, words) in merged.items())
    return [problem for problem in found if problem is not None]


def _is_hidden(model: type[BaseModel], where: Location) -> bool:
    return is_secret_at(model, where) or may_be_secret_at(model, where)


def _reference_at(root: Node, where: Location) -> str | None:
    """The scalar as written, where references stand in it."""
    node = root
    for step in where:
        pair = child(node, step)
        if pair is None:
            break
        node = pair[1]
    return node.value if isinstance(node, ScalarNode) and has_reference(node.value) else None


def affected_fields(e: ValidationError) -> set[str | int] | None:
    """The fields of ``spec`` that something is wrong with; None where it is the spec itself."""
    fields: set[str | int] = set()
    for item in e.errors(include_url=False, include_context=False, include_input=False):
        if item["loc"][:1] != ("spec",):
            continue
        if len(item["loc"]) == 1:
            return None
        fields.add(item["loc"][1])
    return fields


def data_path(loc: Sequence[str | int], data: Any) -> Location:
    """The part of a location that is in the data: a union puts the names of its members in between."""
    path: list[str | int] = []
    for step in loc:
        is_key = isinstance(data, dict) and step in data
        if is_key or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            data = data[step]
            path.append(step)
    return tuple(path)


def _explained(
    item: ErrorDetails, where: Location, words: list[str], model: type[BaseModel], root: Node
) -> Diagnostic | None:
    code, name = item["type"], dotted(where)
    if code == "extra_forbidden":
        return _unknown_field(where, model, root)
    if code == "missing":
        return _missing_field(item["loc"], where, root)
    if item["loc"][-1:] == ("[key]",) or code == "invalid_key":
        return _wrong_key(where, words, root)
    if words:
        detail = f"'{name}' takes {' or '.join(words)}, not {described(item['input'], words)}."
        hint = type_hint(item["input"], words) if len(where) > 1 else ""
        return error("wrong-type", "Wrong type", detail, hint=hint, place=find(root, where), subject=name)
    if code in ("literal_error", "enum"):
        return _not_a_choice(item, where, model, root)
    context = item.get("ctx", {})
    bound = BOUNDS.get(code)
    if bound is not None:
        said = f"{bound(context)}, not {shown(item['input'])}" if is_number(item["input"]) else bound(context)
    elif "error" in context:
        said = str(context["error"])  # a model's own words
    else:
        said = item["msg"][:1].lower() + item["msg"][1:]
    text = f"'{name}' {said}." if bound else f"'{name}': {said.rstrip('.')}."
    return error("bad-value", "Value not allowed", text, place=find(root, where), subject=name)


def _unknown_field(where: Location, model: type[BaseModel], root: Node) -> Diagnostic:
    known = sorted(set(known_fields(model, where[:-1])))
    inside = f" in '{dotted(where[:-1])}'" if len(where) > 1 else ""
    near = did_you_mean(str(where[-1]), known)
    if "configs" in known and "." in str(where[-1]):
        near = "A config of Kafka belongs under 'configs'."
    elif where[-2:-1] == ("providers",):
        near = near or "No provider of this name is installed; 'kdeclare providers' lists them."
    return error(
        "unknown-field",
        "Unknown field",
        f"There is no field '{where[-1]}'{inside}.",
        hint=near or (f"Known here: {', '.join(known)}." if known else ""),
        place=find(root, where, key=True),
        subject=dotted(where),
    )


def _missing_field(loc: Location, where: Location, root: Node) -> Diagnostic | None:
    parent = root
    for step in where:
        pair = child(parent, step)
        if pair is None:
            break
        parent = pair[1]
    if child(parent, loc[-1]) is not None:
        return None  # it is there, and why it could not be read has been said
    inside = f"'{dotted(where)}' needs" if where else "A manifest needs"
    return error(
        "missing-field",
        "Missing field",
        f"{inside} a field '{loc[-1]}'.",
        place=find(root, where),
        subject=dotted((*where, loc[-1])),
    )


def _wrong_key(where: Location, words: list[str], root: Node) -> Diagnostic:
    expected = " or ".join(words) or "text"
    return error(
        "bad-key",
        "Key of a wrong type",
        f"The key '{where[-1] if where else ''}' of '{dotted(where[:-1])}' must be {expected}.",
        hint="Put it in quotes." if expected == "text" else "",
        place=find(root, where, key=True),
        subject=dotted(where),
    )


def _not_a_choice(item: ErrorDetails, where: Location, model: type[BaseModel], root: Node) -> Diagnostic:
    choices = [str(choice) for choice in choices_at(model, where)]
    value = item["input"]
    wanted = one_of(choices) if choices else str(item.get("ctx", {}).get("expected", ""))
    near = closest(value, choices) if isinstance(value, str) else None
    return error(
        "bad-value",
        "Value not allowed",
        f"'{dotted(where)}' takes {wanted}, not {shown(value)}.",
        hint=f"Did you mean '{near}'?" if near and len(choices) > 1 else "",
        place=find(root, where),
        subject=dotted(where),
    )
