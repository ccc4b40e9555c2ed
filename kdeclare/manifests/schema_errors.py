"""Convert Pydantic's errors to diagnostics with source positions and suggested corrections."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.core.suggestions import find_closest, format_alternatives, format_suggestion
from kdeclare.manifests.model_fields import find_choices, find_field_names, is_secret_at
from kdeclare.manifests.reading_modes import can_be_secret_at
from kdeclare.manifests.syntax.node_reader import BROKEN
from kdeclare.manifests.syntax.nodes import find_child, find_position
from kdeclare.manifests.syntax.substitution import has_reference

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "a string",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "set": "a list",
    "frozen_set": "a list",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a mapping",
}
_SCALARS = ("a whole number", "a number", "a string", "true or false")

BOUNDS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda c: f"must be more than {c['gt']}",
    "greater_than_equal": lambda c: f"must be at least {c['ge']}",
    "less_than": lambda c: f"must be less than {c['lt']}",
    "less_than_equal": lambda c: f"must be at most {c['le']}",
    "multiple_of": lambda c: f"must be a multiple of {c['multiple_of']}",
    "too_short": lambda c: f"needs {_format_minimum(c['min_length'], 'element')}",
    "too_long": lambda c: f"takes at most {c['max_length']} elements",
    "string_too_short": lambda c: f"needs {_format_minimum(c['min_length'], 'character')}",
    "string_too_long": lambda c: f"takes at most {c['max_length']} characters",
    "string_pattern_mismatch": lambda c: f"does not match the pattern {c['pattern']}",
    "finite_number": lambda _: "must be a finite number",
}
"""Functions that describe the violated requirement, by Pydantic's error type.

Each function takes the context of the error.
"""


@dataclass(frozen=True, slots=True)
class MaskedScalar:
    """A secret scalar. Messages show only its type.

    what: the description of the type, such as "a number".
    """

    what: str

    def __str__(self) -> str:
        return self.what


def mask_scalar(value: str | float | bool) -> MaskedScalar:  # any scalar of YAML
    """Return a description of a secret that is safe to show in messages."""
    if isinstance(value, bool):
        return MaskedScalar("a boolean")
    return MaskedScalar("a string" if isinstance(value, str) else "a number")


def find_expected_type(code: str) -> str | None:
    """Return a description of the type that a field expects, such as "a list".

    code: Pydantic's error type. Return None if the error is not about a wrong type.
    """
    for suffix in ("_type", "_parsing", "_from_float", "_parsing_size"):
        if code.endswith(suffix):
            return _EXPECTED.get(code.removesuffix(suffix))
    return None


def format_path(path: Sequence[str | int]) -> str:
    """Format a path, for example ``spec.partitions[0].topic``."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def format_received(value: Any, expected: Sequence[str]) -> str:
    """Describe the value of a field for a message, without revealing a possible secret.

    expected: descriptions of the types that the field expects.
    """
    if value is None:
        return "null"
    if isinstance(value, Referenced):
        return format_value(value)
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    # a scalar where a mapping or a list is expected is not shown, because it could be a secret
    if not all(word in _SCALARS for word in expected):
        return "a string" if isinstance(value, str) else "a single value"
    return f"the string {format_value(value)}" if isinstance(value, str) else format_value(value)


def build_type_hint(value: Any, expected: Sequence[str]) -> str:
    """Return a hint for a value of a wrong type, or an empty string if the correction is not clear.

    expected: descriptions of the types that the field expects.
    """
    if value is None:
        return "Set a value, or remove the field."
    if isinstance(value, dict | list | Referenced):
        return ""
    if expected == ["a string"]:
        return "Put it in quotes."
    if isinstance(value, str):
        is_number_text = value.strip().lstrip("-").isdigit() and "a whole number" in expected
        is_boolean_text = value.lower() in ("true", "false") and "true or false" in expected
        return "Write it without the quotes." if is_number_text or is_boolean_text else ""
    return ""


def _format_minimum(minimum: int, noun: str) -> str:
    return f"at least one {noun}" if minimum == 1 else f"at least {minimum} {noun}s"


def is_number(value: Any) -> bool:
    """Return whether a value is a number. Booleans do not count as numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_value(value: Any) -> str:
    """Format a scalar for a message. If a reference supplied the value, show the reference instead."""
    if isinstance(value, Referenced):
        return f"the value of {value.reference}"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    text = text if len(text) <= 40 else f"{text[:37]}…"
    return f"'{text}'" if isinstance(value, str) else text


Location = tuple[str | int, ...]


def build_diagnostics(e: ValidationError, model: type[BaseModel], data: Any, root: Node) -> list[Diagnostic]:
    """Convert validation errors to diagnostics, in the order of the fields in the model.

    Errors for unreadable values are omitted, because these values were already reported. The errors for the
    members of a union are combined into one diagnostic.
    """
    merged: dict[tuple[Location, str], tuple[ErrorDetails, list[str]]] = {}
    for item in e.errors(include_url=False):
        if item["input"] is BROKEN:
            continue
        path = find_data_path(item["loc"], data)
        reference_text = _find_reference(root, path)
        if reference_text is not None:
            item["input"] = Referenced("", reference_text)  # messages must not show the resolved value
        elif path and not isinstance(item["input"], dict | list | None) and _is_hidden(model, path):
            item["input"] = mask_scalar(item["input"])
        expected = find_expected_type(item["type"])
        group_key = (path, "wrong-type" if expected else f"{item['type']}{item['loc'][-1:]}")
        _, expected_words = merged.setdefault(group_key, (item, []))
        if expected and expected not in expected_words:
            expected_words.append(expected)
    diagnostics = (
        _build_diagnostic(item, where, words, model, root) for (where, _), (item, words) in merged.items()
    )
    return [problem for problem in diagnostics if problem is not None]


def _is_hidden(model: type[BaseModel], where: Location) -> bool:
    return is_secret_at(model, where) or can_be_secret_at(model, where)


def _find_reference(root: Node, path: Location) -> str | None:
    """Return the string at a path with its references unresolved, or None if it contains no reference."""
    node = root
    for step in path:
        pair = find_child(node, step)
        if pair is None:
            break
        node = pair[1]
    return node.value if isinstance(node, ScalarNode) and has_reference(node.value) else None


def find_affected_fields(e: ValidationError) -> set[str | int] | None:
    """Return the names of the ``spec`` fields that have errors, or None if ``spec`` itself is invalid."""
    fields: set[str | int] = set()
    for item in e.errors(include_url=False, include_context=False, include_input=False):
        if item["loc"][:1] != ("spec",):
            continue
        if len(item["loc"]) == 1:
            return None
        fields.add(item["loc"][1])
    return fields


def find_data_path(loc: Sequence[str | int], data: Any) -> Location:
    """Return the path in the data for the location of a Pydantic error.

    The location can also contain the names of union members, which are not keys in the data.
    """
    path: list[str | int] = []
    for step in loc:
        is_key = isinstance(data, dict) and step in data
        if is_key or (isinstance(data, list) and isinstance(step, int) and step < len(data)):
            data = data[step]
            path.append(step)
    return tuple(path)


def _build_diagnostic(
    item: ErrorDetails, path: Location, expected_words: list[str], model: type[BaseModel], root: Node
) -> Diagnostic | None:
    code, name = item["type"], format_path(path)
    if code == "extra_forbidden":
        return _build_unknown_field_error(path, model, root)
    if code == "missing":
        return _build_missing_field_error(item["loc"], path, root)
    if item["loc"][-1:] == ("[key]",) or code == "invalid_key":
        return _build_bad_key_error(path, expected_words, root)
    if expected_words:
        detail = (
            f"'{name}' takes {' or '.join(expected_words)}, not "
            f"{format_received(item['input'], expected_words)}."
        )
        hint = build_type_hint(item["input"], expected_words) if len(path) > 1 else ""
        return error(
            "wrong-type", "Wrong type", detail, hint=hint, place=find_position(root, path), subject=name
        )
    if code in ("literal_error", "enum"):
        return _build_bad_choice_error(item, path, model, root)
    context = item.get("ctx", {})
    bound = BOUNDS.get(code)
    if bound is not None:
        message = (
            f"{bound(context)}, not {format_value(item['input'])}"
            if is_number(item["input"])
            else bound(context)
        )
    elif "error" in context:
        message = str(context["error"])  # the message of a custom validator in the model
    else:
        message = item["msg"][:1].lower() + item["msg"][1:]
    text = f"'{name}' {message}." if bound else f"'{name}': {message.rstrip('.')}."
    return error("bad-value", "Value not allowed", text, place=find_position(root, path), subject=name)


def _build_unknown_field_error(path: Location, model: type[BaseModel], root: Node) -> Diagnostic:
    refusal = _find_refusal(path, model)
    if refusal is not None:
        return error(
            "refused-option",
            "Lifecycle option not available",
            f"Resources of this kind cannot have lifecycle.{path[-1]}. {refusal}",
            hint=f"Remove {path[-1]} from 'lifecycle'.",
            place=find_position(root, path, key=True),
            subject=format_path(path),
        )
    known_names = sorted(set(find_field_names(model, path[:-1])))
    location_text = f" in '{format_path(path[:-1])}'" if len(path) > 1 else ""
    suggestion = format_suggestion(str(path[-1]), known_names)
    if "configs" in known_names and "." in str(path[-1]):
        suggestion = "Move the Kafka config under 'configs'."
    elif path[-2:-1] == ("providers",):
        suggestion = suggestion or (
            "Install the provider, or correct its name. "
            "Run 'kdeclare providers' to list the installed providers."
        )
    return error(
        "unknown-field",
        "Unknown field",
        f"There is no field '{path[-1]}'{location_text}.",
        hint=suggestion or (f"Use one of {', '.join(known_names)}." if known_names else ""),
        place=find_position(root, path, key=True),
        subject=format_path(path),
    )


def _find_refusal(path: Location, model: type[BaseModel]) -> str | None:
    """Return why a kind does not allow the lifecycle option at this path; None if there is no known reason.

    The reasons are in the attribute ``refused_options`` of the kind's lifecycle class.
    """
    if path[:-1] != ("spec", "lifecycle"):
        return None
    spec = model.model_fields["spec"].annotation
    lifecycle = getattr(spec, "model_fields", {}).get("lifecycle")
    reasons: Mapping[str, str] = getattr(getattr(lifecycle, "annotation", None), "refused_options", {})
    return reasons.get(str(path[-1]))


def _build_missing_field_error(loc: Location, path: Location, root: Node) -> Diagnostic | None:
    parent = root
    for step in path:
        pair = find_child(parent, step)
        if pair is None:
            break
        parent = pair[1]
    if find_child(parent, loc[-1]) is not None:
        return None  # the field exists but could not be read, which was already reported
    subject_text = f"'{format_path(path)}' needs" if path else "A manifest needs"
    return error(
        "missing-field",
        "Missing field",
        f"{subject_text} a field '{loc[-1]}'.",
        place=find_position(root, path),
        subject=format_path((*path, loc[-1])),
    )


def _build_bad_key_error(path: Location, expected_words: list[str], root: Node) -> Diagnostic:
    expected = " or ".join(expected_words) or "a string"
    return error(
        "bad-key",
        "Wrong key type",
        f"The key '{path[-1] if path else ''}' of '{format_path(path[:-1])}' must be {expected}.",
        hint="Put it in quotes." if expected == "a string" else "",
        place=find_position(root, path, key=True),
        subject=format_path(path),
    )


def _build_bad_choice_error(
    item: ErrorDetails, path: Location, model: type[BaseModel], root: Node
) -> Diagnostic:
    choices = [str(choice) for choice in find_choices(model, path)]
    value = item["input"]
    expected = format_alternatives(choices) if choices else str(item.get("ctx", {}).get("expected", ""))
    closest_choice = find_closest(value, choices) if isinstance(value, str) else None
    return error(
        "bad-value",
        "Value not allowed",
        f"'{format_path(path)}' takes {expected}, not {format_value(value)}.",
        hint=f"Did you mean '{closest_choice}'?" if closest_choice and len(choices) > 1 else "",
        place=find_position(root, path),
        subject=format_path(path),
    )
