"""Items of collections between brackets."""

import re

from yaml.nodes import CollectionNode

from kdeclare.manifests.editing.spans import Span, bare, items
from kdeclare.manifests.editing.text import BREAKS, line_break, line_start, next_line

_COMMA = re.compile(rf"[ \t{BREAKS}]*,")
_SPACE = re.compile(r"[ \t]*")
_REST = re.compile(rf"[ \t]*(?:(?<=[ \t])#.*)?(?=[{BREAKS}])")
"""What may stand in a line after its last item."""


def added(text: str, node: CollectionNode, written: str) -> str:
    """With an item after the last one; in a line of its own if that one is."""
    if not node.value:
        at = bare(text, node) + 1
        return text[:at] + written + text[at:]
    last = items(text, node)[-1]
    comma = _COMMA.match(text, last.end)
    at = comma.end() if comma else last.end
    rest = _REST.match(text, at)
    if rest is None or not _begins_line(text, last):
        return text[:at] + (" " if comma else ", ") + written + text[at:]
    indent = text[line_start(text, last.start) : last.start]
    upper = text[:at] + ("" if comma else ",") + text[at : rest.end()]
    return upper + line_break(text) + indent + written + ("," if comma else "") + text[rest.end() :]


def dropped(text: str, node: CollectionNode, index: int) -> str:
    """Without an item and one comma; and without its lines, if it has them for itself."""
    found = items(text, node)
    one = found[index]
    comma = _COMMA.match(text, one.end)
    start, end = one.start, comma.end() if comma else one.end
    rest = _REST.match(text, end)
    if rest is not None and _begins_line(text, one):
        start, end = line_start(text, start), next_line(text, rest.end())
        before = _COMMA.match(text, found[index - 1].end) if index and comma is None else None
        kept = text[: before.end() - 1] + text[before.end() : start] if before else text[:start]
        return kept + text[end:]
    if comma is not None:
        space = _SPACE.match(text, end)
        return text[:start] + text[space.end() if space else end :]
    return text[: found[index - 1].end if index else start] + text[end:]


def _begins_line(text: str, one: Span) -> bool:
    return not text[line_start(text, one.start) : one.start].strip(" \t")
