"""Values as YAML text."""

from collections.abc import Sequence

from kdeclare.core.manifest_text import scalar
from kdeclare.manifests.editing.edits import Plain, Value

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
