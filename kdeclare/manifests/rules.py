"""Rules: documents that declare no resource but hold for all of a project, however little of it is loaded.

They are then looked for in files that nobody has named. To have that cost next to nothing, only files are
read through in which the name of such a kind stands; so it has to stand there as it is.
"""

from collections.abc import Iterable, Iterator

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.manifests.nodes import find
from kdeclare.manifests.reading import Reader
from kdeclare.manifests.substitution import has_reference
from kdeclare.model.diagnostics import Diagnostic, error


class Sieve:
    """Tells rules from other documents; true if there are kinds of rules at all."""

    def __init__(self, kinds: Iterable[str], reader: Reader) -> None:
        self.kinds = frozenset(kinds)
        self._reader = reader
        # without its last byte, as the two orders of bytes in UTF-16 then look the same
        self._spellings = [s for kind in self.kinds for s in (kind.encode(), kind.encode("utf-16-le")[:-1])]

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def passes(self, data: bytes) -> bool:
        """Whether a file could hold a rule."""
        return any(spelling in data for spelling in self._spellings)

    def kind_of(self, root: Node) -> str | None:
        """The kind of rule that a document is, or None if it is something else."""
        if not self.kinds:
            return None
        for node in _kinds_in(root):
            text = self._reader.peek(node) if has_reference(node.value) else node.value
            if isinstance(text, str) and text in self.kinds:
                return str(text)
        return None

    def hidden(self, kind: str, root: Node, *, seen: bool) -> Iterator[Diagnostic]:
        """What is wrong with a rule whose kind would not be found.

        seen: whether the kind's name stands in the file.
        """
        if seen and not any(has_reference(node.value) for node in _kinds_in(root)):
            return
        yield error(
            "hidden-kind",
            "Kind is not spelt out",
            f"This is of kind {kind}, which holds for the whole project and must be found in it.",
            hint=f"Write kind: {kind}, without references and escapes.",
            place=find(root, ("kind",)),
            subject=kind,
        )


def _kinds_in(root: Node) -> Iterator[ScalarNode]:
    """What stands at ``kind``; more than one is a mistake that is told elsewhere."""
    if isinstance(root, MappingNode):
        for key, value in root.value:
            if key.value == "kind" and isinstance(value, ScalarNode):
                yield value
