"""Generate the reference of the library from docstrings and signatures of its public names."""

import dataclasses
import enum
import inspect
import re
from collections.abc import Iterator
from typing import Any, get_type_hints

from pydantic.fields import FieldInfo

from kdeclare import api
from scripts.reference.markdown import code, fence, page, prose, table


def library_page() -> str:
    """Render every name of `kdeclare.api`, functions first."""
    found = {name: getattr(api, name) for name in api.__all__}
    functions = {name: value for name, value in found.items() if inspect.isfunction(value)}
    values = {name: value for name, value in found.items() if name not in functions}
    return page(
        "Library",
        "This page lists every name of `kdeclare.api`. [From Python](../library.md) explains their use.",
        "## Functions",
        *(_function(name, value) for name, value in functions.items()),
        "## Values",
        *(_value(name, value) for name, value in values.items()),
    )


def _function(name: str, value: Any) -> str:
    return f"### {name}\n\n{fence(f'{name}{_signature(value)}', 'python')}\n\n{_words(value)}"


def _signature(value: Any) -> str:
    """Render the signature, with one argument per line if there are several."""
    signature = inspect.signature(value)
    parts = [_shown(parameter) for parameter in signature.parameters.values()]
    keywords = [p.kind is p.KEYWORD_ONLY for p in signature.parameters.values()]
    if True in keywords:
        parts.insert(keywords.index(True), "*")
    inside = "".join(f"    {part},\n" for part in parts)
    return f"(\n{inside}) -> {_annotation(signature.return_annotation)}"


def _shown(parameter: inspect.Parameter) -> str:
    text = f"{parameter.name}: {_annotation(parameter.annotation)}"
    if parameter.default is inspect.Parameter.empty:
        return text
    return f"{text} = {_default(parameter.default)}"


def _default(value: object) -> str:
    """Return a default as source code, because its ``repr`` could contain environment variables."""
    if inspect.isfunction(value):
        return value.__name__
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}()"
    return repr(value) if isinstance(value, str | int | float | tuple | None) else "os.environ"


def _without_metadata(value: Any, field: "dataclasses.Field[Any]") -> Any:
    """Return the type of a field without pydantic metadata, which contains memory addresses."""
    return field.type if isinstance(field.type, str) else get_type_hints(value)[field.name]


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\bOptional\[([^\[\]]+)\]", r"\1 | None", text)
    return re.sub(r"\b(?:[a-z_]+\.)+([A-Z])", r"\1", text.replace("collections.abc.", "").strip("'\""))


def _value(name: str, value: Any) -> str:
    if not inspect.isclass(value):
        return f"### {name}\n\n{fence(f'{name} = {_annotation(value)}', 'python')}\n\n{_ALIASES[name]}"
    parts = [f"### {name}", _words(value), table(_head(value), _rows(value)), _properties(value)]
    return "\n\n".join(part for part in parts if part)


_ALIASES = {
    "Confirm": "Shows the plan and the notices of the preceding recovery, and returns whether to continue."
}
"""The descriptions of type aliases. Python does not store docstrings of type aliases."""


def _head(value: Any) -> tuple[str, ...]:
    if issubclass(value, enum.Enum):
        return ("name", "value")
    return ("field", "type", "meaning") if any(_descriptions(value).values()) else ("field", "type")


def _rows(value: Any) -> Iterator[tuple[str, ...]]:
    if issubclass(value, enum.Enum):
        yield from ((code(item.name), code(item.value)) for item in value)
    elif dataclasses.is_dataclass(value):
        said = _descriptions(value)
        for field in dataclasses.fields(value):
            row = code(field.name), code(_annotation(_without_metadata(value, field)))
            yield (*row, said[field.name]) if any(said.values()) else row


def _descriptions(value: Any) -> dict[str, str]:
    """Return the descriptions of a dataclass's fields."""
    if not dataclasses.is_dataclass(value):
        return {}
    hints = get_type_hints(value, include_extras=True)
    found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: next(filter(None, map(_description, about)), "") for name, about in found.items()}


def _description(metadata: object) -> str:
    return (metadata.description or "") if isinstance(metadata, FieldInfo) else ""


def _properties(value: Any) -> str:
    rows = (
        (code(name), _words(member))
        for name, member in _members(value)
        if isinstance(member, property) or (inspect.isfunction(member) and _is_told(name))
    )
    return table(("also", "meaning"), rows)


def _is_told(method: str) -> bool:
    return not method.startswith("_") or method == "__call__"


def _words(value: Any) -> str:
    return prose(inspect.getdoc(value) or "")


def _members(value: type) -> Iterator[tuple[str, object]]:
    """Yield the members that a class inherits from classes of kdeclare, then its own members."""
    bases = [base for base in reversed(value.__mro__) if base.__module__.startswith("kdeclare")]
    return iter({name: member for base in bases for name, member in vars(base).items()}.items())
