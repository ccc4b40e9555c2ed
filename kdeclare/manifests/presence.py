"""Decide whether a manifest is present in an environment (``metadata.only`` and ``metadata.except``)."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from yaml.nodes import Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_child, get_position

ONLY, EXCEPT = "only", "except"


@dataclass(slots=True)
class PresenceFilter:
    """Finds the documents that are not present in an environment.

    environment: the name of the environment. known: the names of all environments, or an empty collection if
    they are not known; then names are not checked.
    """

    environment: str
    known: Collection[str]
    reader: NodeReader
    diagnostics: list[Diagnostic] = field(default_factory=list)

    def excludes(self, root: Node) -> bool:
        """Return whether a document is not present. Add errors for unknown environments.

        A field that is not a list of names excludes nothing; the validation of the document reports it.
        """
        metadata = find_child(root, "metadata")
        if metadata is None:
            return False
        only, exceptions = find_child(metadata[1], ONLY), find_child(metadata[1], EXCEPT)
        if only is None and exceptions is None:
            return False
        included = self._read_names(only[1]) if only is not None else None
        excluded = self._read_names(exceptions[1]) if exceptions is not None else None
        return (included is not None and self.environment not in included) or (
            excluded is not None and self.environment in excluded
        )

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
