"""What can be done to a document, and values as YAML text."""

from collections.abc import Sequence

from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.capabilities import Plain
from kdeclare.core.resources.manifest_text import scalar

Path = tuple[str | int, ...]
"""Keys and indexes from the document's root down."""

Value = Plain | list[Plain] | dict[str, list[Plain]]


@dataclass(frozen=True, slots=True)
class Put:
    """Set what is at a path, or add it after its siblings; mappings that are missing above it are made."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Append:
    """Add an element to the list at a path."""

    path: Path
    value: Plain


@dataclass(frozen=True, slots=True)
class Drop:
    """Take a key with its value, or an element of a list, away, with the comment in its own line.

    Comments above it stay: nobody can tell whether they speak of it alone. What holds it stays, too,
    empty if need be: ``{}`` or ``[]``.
    """

    path: Path


Edit = Put | Append | Drop


SINGLE, DOUBLE = "'", '"'


def plain_text(value: Plain, style: str | None = None) -> str:
    """A scalar, in the quotes of ``style`` where it has any and they can hold it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if style == SINGLE and value.isprintable():
        return SINGLE + value.replace("${", "$${").replace(SINGLE, 2 * SINGLE) + SINGLE
    written = scalar(value)
    return DOUBLE + written + DOUBLE if style == DOUBLE and not written.startswith(DOUBLE) else written


def key_text(step: str | int, style: str | None = None) -> str:
    """A key, in double quotes if ``style`` are those."""
    if isinstance(step, int):
        return str(step)
    written = scalar(step, text=True)
    return DOUBLE + written + DOUBLE if style == DOUBLE and not written.startswith(DOUBLE) else written


def flow_text(value: Value) -> str:
    """A value in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_text(k)}: {flow_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(plain_text(element) for element in value) + "]"
    return plain_text(value)


def nested_flow(steps: Sequence[str | int], value: Value, style: str | None = None) -> str:
    """``a: {b: value}`` for the steps a and b."""
    first, *rest = steps
    inner = "{" + nested_flow(rest, value, style) + "}" if rest else flow_text(value)
    return f"{key_text(first, style)}: {inner}"


def nested_block(steps: Sequence[str | int], value: Value, column: int, width: int) -> list[str]:
    """The same as lines, the first one indented to ``column``, and each level by ``width`` more."""
    lines = [" " * (column + n * width) + key_text(step) + ":" for n, step in enumerate(steps)]
    lines[-1] += f" {flow_text(value)}"
    return lines
