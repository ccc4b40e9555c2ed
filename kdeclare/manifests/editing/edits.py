"""What can be done to a document, and values as YAML text."""

from collections.abc import Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.manifest_capabilities import (
    Plain,
)
from kdeclare.core.resources.manifest_text import scalar

NodePath = tuple[str | int, ...]
"""Keys and indexes from the document's root down."""

EditValue = Plain | list[Plain] | dict[str, list[Plain]]


@dataclass(frozen=True, slots=True)
class PutEdit:
    """Set what is at a path, or add it after its siblings; mappings that are missing above it are made."""

    path: NodePath
    value: EditValue


@dataclass(frozen=True, slots=True)
class AppendEdit:
    """Add an element to the list at a path."""

    path: NodePath
    value: Plain


@dataclass(frozen=True, slots=True)
class DropEdit:
    """Take a key with its value, or an element of a list, away, with the comment in its own line.

    Comments above it stay: nobody can tell whether they speak of it alone. What holds it stays, too,
    empty if need be: ``{}`` or ``[]``.
    """

    path: NodePath


Edit = PutEdit | AppendEdit | DropEdit


SINGLE, DOUBLE = "'", '"'


def format_scalar(value: Plain, style: str | None = None) -> str:
    """A scalar, in the quotes of ``style`` where it has any and they can hold it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if style == SINGLE and value.isprintable():
        return SINGLE + value.replace("${", "$${").replace(SINGLE, 2 * SINGLE) + SINGLE
    scalar_text = scalar(value)
    return (
        DOUBLE + scalar_text + DOUBLE
        if style == DOUBLE and not scalar_text.startswith(DOUBLE)
        else scalar_text
    )


def format_key(step: str | int, style: str | None = None) -> str:
    """A key, in double quotes if ``style`` are those."""
    if isinstance(step, int):
        return str(step)
    scalar_text = scalar(step, text=True)
    return (
        DOUBLE + scalar_text + DOUBLE
        if style == DOUBLE and not scalar_text.startswith(DOUBLE)
        else scalar_text
    )


def format_flow(value: EditValue) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{format_key(k)}: {format_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(format_scalar(element) for element in value) + "]"
    return format_scalar(value)


def format_nested_flow(steps: Sequence[str | int], value: EditValue, style: str | None = None) -> str:
    """``a: {b: value}`` for the steps a and b."""
    first, *rest = steps
    inner = "{" + format_nested_flow(rest, value, style) + "}" if rest else format_flow(value)
    return f"{format_key(first, style)}: {inner}"


def format_nested_block(steps: Sequence[str | int], value: EditValue, column: int, width: int) -> list[str]:
    """The same as lines, the first one indented to ``column``, and each level by ``width`` more."""
    lines = [" " * (column + n * width) + format_key(step) + ":" for n, step in enumerate(steps)]
    lines[-1] += f" {format_flow(value)}"
    return lines
