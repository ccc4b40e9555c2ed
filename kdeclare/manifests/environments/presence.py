"""Decide whether a manifest is present in an environment (``metadata.only`` and ``metadata.except``)."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from yaml.nodes import Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.resources.kind import ManifestExclusion
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_child, get_position

ONLY, EXCEPT = "only", "except"


@dataclass(slots=True)
class PresenceFilter:
    """Finds the documents that are not present in an environment.

    environment: the name of the environment. known: the names of all environments; empty if they are not
    known. In that case, the names of environments in documents are not checked.
    """

    environment: str
    known: Collection[str]
    reader: NodeReader
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def excludes(self, root: Node) -> bool:
        """Return whether a document is not present in the environment. See `find_exclusion`."""
        return self.find_exclusion(root) is not None

    def find_exclusion(self, root: Node) -> ManifestExclusion | None:
        """Return why a document is not present in the environment, or None if it is present.

        Errors for unknown environments are added to ``diagnostics``. If ``metadata.only`` or
        ``metadata.except`` is malformed, the field is ignored here, and validation reports the error.
        """
        metadata = find_child(root, "metadata")
        if metadata is None:
            return None
        only, exceptions = find_child(metadata[1], ONLY), find_child(metadata[1], EXCEPT)
        if only is None and exceptions is None:
            return None
        included = self._read_names(only[1]) if only is not None else None
        excluded = self._read_names(exceptions[1]) if exceptions is not None else None
        if only is not None and included is not None and self.environment not in included:
            return _build_exclusion(ONLY, only, included)
        if exceptions is not None and excluded is not None and self.environment in excluded:
            return _build_exclusion(EXCEPT, exceptions, set(self.known).difference(excluded))
        return None

    def _read_names(self, node: Node) -> list[str] | None:
        names = self.reader.peek(node)
        if not isinstance(node, SequenceNode) or not isinstance(names, list) or not names:
            return None
        self.diagnostics += self._check_names(node)
        return [name for name in names if isinstance(name, str)]

    def _check_names(self, node: Node) -> Iterator[Diagnostic]:
        for item in node.value if self.known else ():
            name = self.reader.peek(item) if isinstance(item, ScalarNode) else None
            if isinstance(name, str) and name not in self.known:
                yield error(
                    "unknown-environment",
                    "No such environment",
                    f"The project has no environment '{name}'; it has {', '.join(sorted(self.known))}.",
                    hint=format_suggestion(name, self.known) or "Correct the name, or add the environment.",
                    place=get_position(item),
                    subject=name,
                )


def _build_exclusion(
    field: str, pair: tuple[Node | None, Node], environments: Iterable[str]
) -> ManifestExclusion:
    key, value = pair
    return ManifestExclusion(f"metadata.{field}", get_position(key or value), tuple(sorted(environments)))
