"""The resource whose manifest is edited, and what of it is never edited."""

from collections.abc import Iterator, Mapping

from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import KdeclareError, Place, error
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.capabilities import Editable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.editing.edits import Append, Drop, Edit, Path, Put
from kdeclare.manifests.editing.splicing import is_null
from kdeclare.manifests.provenance import Document, Source
from kdeclare.manifests.schema_errors import dotted
from kdeclare.manifests.syntax.nodes import find, node_at, place
from kdeclare.manifests.syntax.reading import Reader
from kdeclare.manifests.syntax.substitution import names_in

_OUTSIDE = {"env": "the environment kdeclare runs in gives it", "file": "a file gives it"}


@dataclass(frozen=True, slots=True)
class Located:
    """An edit of one document."""

    document: Document
    edit: Edit


@dataclass(frozen=True, slots=True)
class Subject:
    """One resource.

    kind: says what its manifests mean. variables: where the project file gives them.
    """

    id: ResourceId
    source: Source
    reader: Reader
    kind: Editable
    variables: Mapping[str, Place]

    def declares(self, path: Path) -> bool:
        """Whether its own documents say something at a path within the spec; null says nothing."""
        node = self.source.at(("spec", *path))
        return node is not None and not is_null(node)

    def edited(self, document: Document, edit: Edit) -> Located:
        """The edit, where it may be made.

        Raises KdeclareError (``aliased-field``, ``field-by-reference``).
        """
        self._refuse_shared(document, edit.path)
        node = node_at(document.root, edit.path)
        if isinstance(edit, Put) and node is not None:
            self._refuse_reference(document, edit.path, node)
        return Located(document, edit)

    def texts(self, node: Node) -> list[str]:
        """The elements of a list, written as a list or as one text with commas."""
        said = self.reader.peek(node)
        parts = said.split(",") if isinstance(said, str) else said or []
        return [part.strip() for part in parts if part.strip()]

    def set_of(self, document: Document, path: Path, node: Node, wanted: list[str]) -> Iterator[Located]:
        """Edits that make a list, of which the order says nothing, have certain elements, in its own form."""
        texts = self.texts(node)
        if set(texts) == set(wanted):
            return
        kept = [element for element in texts if element in wanted]
        new = [element for element in wanted if element not in texts]
        if isinstance(node, ScalarNode):
            yield self.edited(document, Put(path, ",".join([*kept, *new])))
            return
        for element in new:
            yield self.edited(document, Append(path, element))
        for index in reversed(range(len(texts))):
            if texts[index] not in wanted:
                yield self.edited(document, Drop((*path, index)))

    def _refuse_shared(self, document: Document, path: Path) -> None:
        shared = _shared(document.root)
        way = [node_at(document.root, path[:n]) for n in range(len(path) + 1)]
        below = way[-1]
        met = [node for node in way if node is not None] + ([*_all(below)] if below is not None else [])
        found = next((node for node in met if id(node) in shared), None)
        if found is None:
            return
        raise KdeclareError(
            error(
                "aliased-field",
                "Field shared by an alias",
                f"'{dotted(path)}' of {self.id} has part in an anchor (&) and its aliases (*), "
                f"at {place(found)}: to edit it would change more than this field.",
                hint="Write the values out in place of the alias, or change the manifest by hand.",
                place=_where(document, path),
                resource=str(self.id),
                subject=dotted(path),
            )
        )

    def _refuse_reference(self, document: Document, path: Path, node: Node) -> None:
        scalars = [scalar for scalar in _all(node) if isinstance(scalar, ScalarNode)]
        names = [name for scalar in scalars for name in names_in(scalar.value)]
        if not names:
            return
        origin, _, name = names[0].partition(".")
        defined = self.variables.get(name) if origin == "var" else None
        given = f"it is defined at {defined}" if defined else _OUTSIDE.get(origin, "it is defined elsewhere")
        raise KdeclareError(
            error(
                "field-by-reference",
                "Value is a reference",
                f"'{dotted(path)}' of {self.id} is written as ${{{names[0]}}}, which may stand elsewhere, "
                f"too; {given}.",
                hint="Change it there, or write a value of its own in place of the reference.",
                place=_where(document, path),
                resource=str(self.id),
                subject=dotted(path),
            )
        )


def _where(document: Document, path: Path) -> Place:
    return find(document.root, path, key=True)


def _all(root: Node) -> Iterator[Node]:
    """A node and all below it; what is aliased, once for each place where it stands."""
    yield root
    if not isinstance(root, ScalarNode):
        for item in root.value:
            for node in item if isinstance(root, MappingNode) else (item,):
                yield from _all(node)


def _shared(root: Node) -> frozenset[int]:
    """The nodes that stand in several places; by identity, as nodes are not hashable by value."""
    seen: set[int] = set()
    shared: set[int] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            shared.add(id(node))
            continue
        seen.add(id(node))
        if not isinstance(node, ScalarNode):
            for item in node.value:
                waiting.extend(item if isinstance(node, MappingNode) else (item,))
    return frozenset(shared)
