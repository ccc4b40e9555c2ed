"""The types of edits to a document, and the formatting of values as YAML."""

from collections.abc import Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.manifest_capabilities import (
    Plain,
)
from kdeclare.core.resources.manifest_text import scalar

NodePath = tuple[str | int, ...]
"""The path of a node: the keys and list indexes that lead from the root of the document to the node."""

EditValue = Plain | list["EditValue"] | dict[str, "EditValue"]


@dataclass(frozen=True, slots=True)
class PutEdit:
    """Set the value at a path.

    A key that does not exist yet is added after its siblings. Mappings that are missing along the path are
    created.
    """

    path: NodePath
    value: EditValue


@dataclass(frozen=True, slots=True)
class AppendEdit:
    """Add an element to the list at a path."""

    path: NodePath
    value: EditValue


@dataclass(frozen=True, slots=True)
class DropEdit:
    """Remove a key with its value, or an element of a list, together with the comment on the same line.

    Comments above the item are kept, because they can describe more than this item. The mapping or list is
    also kept, even if it becomes empty (``{}`` or ``[]``).
    """

    path: NodePath


Edit = PutEdit | AppendEdit | DropEdit


SINGLE, DOUBLE = "'", '"'


def format_scalar(value: Plain, style: str | None = None) -> str:
    """Format a scalar as YAML.

    style: the preferred quote character, which is used if it can represent the scalar.
    """
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
    """Format a key as YAML, in double quotes if ``style`` is a double quote."""
    if isinstance(step, int):
        return str(step)
    scalar_text = scalar(step, text=True)
    return (
        DOUBLE + scalar_text + DOUBLE
        if style == DOUBLE and not scalar_text.startswith(DOUBLE)
        else scalar_text
    )


def format_flow(value: EditValue) -> str:
    """Format a value as YAML on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{format_key(k)}: {format_flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(format_flow(element) for element in value) + "]"
    return format_scalar(value)


def format_nested_flow(steps: Sequence[str | int], value: EditValue, style: str | None = None) -> str:
    """Format a value and its keys on one line, for example ``a: {b: value}`` for the keys a and b."""
    first, *rest = steps
    inner = "{" + format_nested_flow(rest, value, style) + "}" if rest else format_flow(value)
    return f"{format_key(first, style)}: {inner}"


def format_nested_block(steps: Sequence[str | int], value: EditValue, column: int, width: int) -> list[str]:
    """Format a value and its keys, each key on its own line.

    If the value is a list that contains mappings, each element of the list is on its own line, too.

    column: the indentation of the first line in spaces.
    width: the number of spaces by which each line is indented more than the line before it.
    """
    lines = [" " * (column + n * width) + format_key(step) + ":" for n, step in enumerate(steps)]
    if isinstance(value, list) and any(isinstance(element, dict) for element in value):
        indent = " " * (column + len(steps) * width)
        return [*lines, *(f"{indent}- {format_flow(element)}" for element in value)]
    lines[-1] += f" {format_flow(value)}"
    return lines
