"""Order the fields of one manifest: apiVersion, kind, metadata, forEach, spec."""

from collections.abc import Sequence

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.manifests.editing.file_text import BREAKS, get_node_start, is_flow
from kdeclare.manifests.formatting.indentation import find_value_end, split_lines

FIELD_ORDER = ("apiVersion", "kind", "metadata", "forEach", "spec")
_IDENTITY = ("apiVersion", "kind")


def order_fields(text: str, root: Node) -> str:
    """Return a manifest with its fields in order. Other documents are returned unchanged.

    text: the text of the document, indented and with a line break at its end. root: its root node.
    The comments above a field move with the field. Comments at the start of the document describe the
    document, and stay there.
    """
    if not isinstance(root, MappingNode) or is_flow(root) or not _is_manifest(root):
        return text
    keys = [key for key, _ in root.value]
    names = [str(key.value) for key in keys]
    ranks = [FIELD_ORDER.index(name) if name in FIELD_ORDER else len(FIELD_ORDER) for name in names]
    if ranks == sorted(ranks):
        return text
    lines = split_lines(text)
    ends = [find_value_end(text, value, key.end_mark.index) for key, value in root.value]
    starts = _find_starts(
        lines,
        [_find_line(lines, get_node_start(key)) for key in keys],
        [_find_line(lines, end - 1) for end in ends],
        names,
    )
    footer = _find_footer(lines, starts[-1])
    fields = ["".join(lines[start:end]) for start, end in zip(starts, [*starts[1:], footer], strict=True)]
    order = sorted(range(len(fields)), key=ranks.__getitem__)
    header = "".join(lines[: starts[0]])
    return header + "".join(fields[index] for index in order) + "".join(lines[footer:])


def _is_manifest(root: MappingNode) -> bool:
    names = {key.value for key, _ in root.value if isinstance(key, ScalarNode)}
    return "kind" in names and bool(names & {"apiVersion", "metadata"})


def _find_line(lines: Sequence[str], offset: int) -> int:
    for number, line in enumerate(lines):
        offset -= len(line)
        if offset < 0:
            return number
    return len(lines) - 1


def _find_starts(
    lines: Sequence[str], key_lines: Sequence[int], end_lines: Sequence[int], names: Sequence[str]
) -> list[int]:
    """Return the line where each field begins, including the comments above the field.

    key_lines, end_lines: the first and the last line of each field, not counting the comments.
    """
    first = key_lines[0]
    if names[0] not in _IDENTITY:
        while first and lines[first - 1].startswith("#"):
            first -= 1
    starts = [first]
    for line, previous_end in zip(key_lines[1:], end_lines, strict=False):
        start = line
        while start - 1 > previous_end and (
            lines[start - 1].startswith("#") or not lines[start - 1].strip(" \t" + BREAKS)
        ):
            start -= 1
        starts.append(start)
    return starts


def _find_footer(lines: Sequence[str], last_start: int) -> int:
    """Return the first line of the comments at the end of the document, which describe no field."""
    footer = len(lines)
    while footer - 1 > last_start and lines[footer - 1].startswith("#"):
        footer -= 1
    return footer
