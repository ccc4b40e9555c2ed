"""Find rules: documents that do not declare a resource, but apply to the whole project (policies, defaults).

Files outside the loaded paths are searched for rules, too. To keep the search fast, a file is parsed only if
it contains the name of a kind of rule, or a value of ``kind`` that could be a misspelling of such a name.
Therefore, a rule must not use a reference or an escape for its kind.
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
    "A policy cannot have an overlay",
    "Change the policy itself, or limit it with its selector.",
)
_OVERLAY_ERRORS = {
    DEFAULTS: (
        "defaults-overlay",
        "Defaults cannot have an overlay",
        "Change the defaults themselves, or make an overlay for the resource.",
    )
}
"""The code, summary and hint of the error for an overlay that contains a rule, by the kind of the rule.

A rule is a document that applies to the whole project, such as a policy.
"""

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_KIND_PATTERN = re.compile(rb"""kind["']?\s*:\s*["']?([^\s"',{}#]*(?:\{[^\s"',{}]*\})?)""")
"""Finds values of ``kind`` in an unparsed file. Matches are not exact: parsed documents are checked again."""
_NOT_PLAIN = re.compile(rb"[$*&!|>\\]")


class RuleFilter:
    """Distinguishes rules from other documents. The filter is falsy if there are no kinds of rules.

    A rule is a document that applies to the whole project, such as a policy.
    """

    def __init__(self, kinds: Iterable[str], reader: NodeReader) -> None:
        self.kinds = frozenset(kinds)
        self._reader = reader
        # without the last byte, so that the spelling matches both UTF-16 byte orders
        self._could_be: dict[bytes, bool] = {}
        self._spellings = [s for kind in self.kinds for s in (kind.encode(), kind.encode("utf-16-le")[:-1])]

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def has_kind_name(self, data: bytes) -> bool:
        """Return whether a file contains the name of a kind of rule, such as ``Policy``."""
        return any(map(data.__contains__, self._spellings))

    def passes(self, data: bytes) -> bool:
        """Return whether a file could contain a rule, such as a policy, even if its kind is misspelled."""
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
        """Return the kind of a document if the document is a rule, such as a policy; otherwise None."""
        if not self.kinds:
            return None
        for node in _find_kind_nodes(root):
            text = self._reader.peek(node) if has_reference(node.value) else node.value
            if isinstance(text, str) and text in self.kinds:
                return str(text)
        return None

    def hidden(self, kind: str, root: Node, *, seen: bool) -> Iterator[Diagnostic]:
        """Yield an error if the kind of a rule, such as a policy, is not written literally in the file.

        kdeclare finds rules by searching files for the names of their kinds, so it would not find this rule.

        seen: whether the file contains the name of any kind of rule.
        """
        if seen and not any(has_reference(node.value) for node in _find_kind_nodes(root)):
            return
        yield error(
            "hidden-kind",
            "Kind is not spelled out",
            f"This document is of kind {kind}, but its 'kind' field does not contain this name "
            "literally. Documents of this kind apply to the whole project, and kdeclare finds them by "
            "searching files for the name.",
            hint=f"Write 'kind: {kind}', without references or escapes.",
            place=find_position(root, ("kind",)),
            subject=kind,
        )

    def check_misspelled_kind(self, root: Node, shapes: DocumentValidator) -> Iterator[Diagnostic]:
        """Yield an error if a document seems to have a misspelled kind of rule, such as ``Policies``."""
        for node in _find_kind_nodes(root):
            text = self._reader.peek(node)
            if not isinstance(text, str):
                yield from self._reader.check_node(node)
            elif find_closest(text, self.kinds) is not None:
                yield from shapes.unknown(text, root)

    def check_overlaid_rules(self, documents: Iterable[Node]) -> Iterator[Diagnostic]:
        """Yield an error for each rule, such as a policy, in an overlay. Overlays cannot change rules."""
        for root in documents:
            kind = self.find_rule_kind(root)
            if kind is not None:
                yield from self._reader.find_duplicate_keys(root)
                code, summary, advice = _OVERLAY_ERRORS.get(kind, _POLICY_OVERLAY_ERROR)
                yield error(
                    code,
                    summary,
                    f"This document is of kind {kind}, which applies to all environments. An overlay cannot "
                    "change it.",
                    hint=f"{advice} Use a variable (${{var.NAME}}) for a value that differs by environment.",
                    place=find_position(root, ("metadata", "name")),
                    subject=kind,
                )


def _find_kind_nodes(root: Node) -> Iterator[ScalarNode]:
    if isinstance(root, MappingNode):
        for key, value in root.value:
            if key.value == "kind" and isinstance(value, ScalarNode):
                yield value
