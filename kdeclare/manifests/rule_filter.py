"""Rules: documents that declare no resource but hold for all of a project, however little of it is loaded.

They are then looked for in files that nobody has named. To have that cost next to nothing, only files are
read through in which the name of such a kind stands, so it has to stand there as it is; or something at
`kind` that could have been meant for it.
"""

import re
from collections.abc import Iterable, Iterator

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.suggestions import find_closest
from kdeclare.manifests.defaults import DEFAULTS
from kdeclare.manifests.document_models import DocumentValidator
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_position
from kdeclare.manifests.syntax.substitution import has_reference

_POLICY_OVERLAY_ERROR = (
    "policy-overlay",
    "Overlay over a policy",
    "Change the policy itself. Its selector can limit it",
)
_OVERLAY_ERRORS = {
    DEFAULTS: (
        "defaults-overlay",
        "Overlay over defaults",
        "Change the defaults themselves, or lay it over the resource",
    )
}
"""What is said of overlays over what holds everywhere: code, summary, and what to do instead."""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_KIND_PATTERN = re.compile(rb"""kind["']?\s*:\s*["']?([^\s"',{}#]*(?:\{[^\s"',{}]*\})?)""")
"""What stands at ``kind``, near enough; it is looked at once more in the document."""
_NOT_PLAIN = re.compile(rb"[$*&!|>\\]")


class RuleFilter:
    """Tells rules from other documents; true if there are kinds of rules at all."""

    def __init__(self, kinds: Iterable[str], reader: NodeReader) -> None:
        self.kinds = frozenset(kinds)
        self._reader = reader
        # without its last byte, as the two orders of bytes in UTF-16 then look the same
        self._could_be: dict[bytes, bool] = {}
        self._spellings = [s for kind in self.kinds for s in (kind.encode(), kind.encode("utf-16-le")[:-1])]

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def has_kind_name(self, data: bytes) -> bool:
        """Whether the name of a kind of rules stands in a file."""
        return any(map(data.__contains__, self._spellings))

    def passes(self, data: bytes) -> bool:
        """Whether a file could hold a rule, or what was meant for one."""
        if not self.kinds:
            return False
        return (
            self.has_kind_name(data)
            or data[:2] in _UTF_16
            or any(map(self._can_be_rule_kind, _KIND_PATTERN.findall(data)))
        )

    def _can_be_rule_kind(self, kind_text: bytes) -> bool:
        is_candidate = self._could_be.get(kind_text)
        if is_candidate is None:
            text = kind_text.decode(errors="replace")
            is_candidate = (
                _NOT_PLAIN.search(kind_text) is not None or find_closest(text, self.kinds) is not None
            )
            self._could_be[kind_text] = is_candidate
        return is_candidate

    def find_rule_kind(self, root: Node) -> str | None:
        """The kind of rule that a document is, or None if it is something else."""
        if not self.kinds:
            return None
        for node in _find_kind_nodes(root):
            text = self._reader.peek(node) if has_reference(node.value) else node.value
            if isinstance(text, str) and text in self.kinds:
                return str(text)
        return None

    def hidden(self, kind: str, root: Node, *, seen: bool) -> Iterator[Diagnostic]:
        """What is wrong with a rule whose kind would not be found.

        seen: whether the kind's name stands in the file.
        """
        if seen and not any(has_reference(node.value) for node in _find_kind_nodes(root)):
            return
        yield error(
            "hidden-kind",
            "Kind is not spelt out",
            f"This is of kind {kind}, which holds for the whole project and must be found in it.",
            hint=f"Write kind: {kind}, without references and escapes.",
            place=find_position(root, ("kind",)),
            subject=kind,
        )

    def check_misspelled_kind(self, root: Node, shapes: DocumentValidator) -> Iterator[Diagnostic]:
        """What is wrong with the kind of a document that could be meant for a rule, but is none."""
        for node in _find_kind_nodes(root):
            text = self._reader.peek(node)
            if not isinstance(text, str):
                yield from self._reader.check_node(node)
            elif find_closest(text, self.kinds) is not None:
                yield from shapes.unknown(text, root)

    def check_overlaid_rules(self, documents: Iterable[Node]) -> Iterator[Diagnostic]:
        """An error for each document of an overlay that is about a rule."""
        for root in documents:
            kind = self.find_rule_kind(root)
            if kind is not None:
                yield from self._reader.find_duplicate_keys(root)
                code, summary, advice = _OVERLAY_ERRORS.get(kind, _POLICY_OVERLAY_ERROR)
                yield error(
                    code,
                    summary,
                    f"This is of kind {kind}, which holds in all environments: an overlay cannot change it.",
                    hint=f"{advice}; what differs by environment can be a variable (${{var.NAME}}).",
                    place=find_position(root, ("metadata", "name")),
                    subject=kind,
                )


def _find_kind_nodes(root: Node) -> Iterator[ScalarNode]:
    """What stands at ``kind``; more than one is a mistake that is told elsewhere."""
    if isinstance(root, MappingNode):
        for key, value in root.value:
            if key.value == "kind" and isinstance(value, ScalarNode):
                yield value
