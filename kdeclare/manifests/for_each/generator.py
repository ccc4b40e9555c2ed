"""Generate the manifests of documents with ``forEach``.

The rest of kdeclare processes generated manifests like all others. The numbers of manifests and YAML nodes
are limited, so that generated manifests cannot exhaust the memory.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Final

from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.manifests.for_each.items import Item, ItemReader
from kdeclare.manifests.for_each.template import ExpansionTooLarge, ItemReference, Template
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_child, get_position

FOR_EACH: Final = "forEach"
MAX_ITEMS = 10_000
"""The maximum number of manifests that one document generates."""
MAX_NODES = 2_000_000
"""The maximum number of YAML nodes in all manifests that one document generates."""
MAX_PROJECT_NODES = 10_000_000
"""The maximum number of YAML nodes in all manifests that the documents of a project generate."""


@dataclass(frozen=True, slots=True)
class ManifestOrigin:
    """The ``forEach`` and the item that a manifest was generated from.

    place: the position of ``forEach``. item: the item as messages name it.
    item_place: the position of the item.
    references: the references to the item, by the Python id of the node that contains the value.
    """

    place: SourcePosition
    item: str
    item_place: SourcePosition
    references: Mapping[int, list[ItemReference]] = field(default_factory=dict, repr=False, compare=False)

    def without_references(self) -> "ManifestOrigin":
        """Return the origin without the references, which take up a lot of memory."""
        return replace(self, references={})

    def __str__(self) -> str:
        return f"{self.item} at {self.item_place}, by forEach at {self.place}"


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """A document of a project.

    origin: the item that the document was generated from, or None if it is written in a file.
    is_usable: whether all references to the item have a value.
    """

    root: Node
    origin: ManifestOrigin | None = None
    is_usable: bool = True


class Generator:
    """Generates the manifests of the documents with ``forEach``. Problems are added to ``diagnostics``.

    reader: resolves variables. root: the folder of the project, or None without a project. replacements: the
    contents to use instead of those on disk, by file.
    """

    def __init__(
        self,
        reader: NodeReader,
        root: Path | None,
        replacements: Mapping[str, bytes | None] | None = None,
    ) -> None:
        self.diagnostics: list[Diagnostic] = []
        self._items = ItemReader(reader, root, replacements or {})
        self._node_count = 0
        self._reported: set[tuple[str, str, SourcePosition | None]] = set()

    def expand(self, root: Node, is_excluded: Callable[[Node], bool]) -> Iterator[GeneratedDocument]:
        """Yield the documents that a document generates, or the document itself if it has no ``forEach``.

        is_excluded: a function that returns whether a document is not present in the environment. The
            problems of such a document are not reported.
        """
        pair = find_child(root, FOR_EACH) if isinstance(root, MappingNode) else None
        if pair is None or pair[0] is None:
            yield GeneratedDocument(root)
            return
        pairs = [one for one in root.value if one[0].value != FOR_EACH]
        if len(pairs) < len(root.value) - 1:
            self.diagnostics.append(_build_duplicate_error(pair[0]))
            return
        reported_count = len(self.diagnostics)
        template = Template(MappingNode(root.tag, pairs, root.start_mark, root.end_mark))
        is_same_everywhere = not template.varies(("metadata", "only")) and not template.varies(
            ("metadata", "except")
        )
        is_silent = is_same_everywhere and is_excluded(root)
        items, problems = self._items.read(pair[1])
        problems = [*template.check(), *problems]
        if len(items) > MAX_ITEMS or len(items) * template.size > MAX_NODES:
            problems.append(_build_size_error(pair[1], len(items), template.size))
        if is_silent:
            documents = [] if problems else list(self._generate(template, items, pair[0]))
            del self.diagnostics[reported_count:]
            yield from documents
        elif problems:
            self.diagnostics += problems
        else:
            yield from self._generate(template, items, pair[0])

    def describe(self, problem: Diagnostic, origin: ManifestOrigin | None) -> Diagnostic | None:
        """Return a problem in a generated document, extended with the item that the document is based on.

        Return None if the problem was already reported: a problem in the text that all items share is
        reported for the first item only. If the document was not generated, the problem is not changed.
        """
        if origin is None:
            return problem
        key = problem.code, problem.detail, problem.place
        if key in self._reported:
            return None
        self._reported.add(key)
        return replace(problem, detail=f"{problem.detail} The manifest is generated for {origin}.".lstrip())

    def _generate(self, template: Template, items: list[Item], key: Node) -> Iterator[GeneratedDocument]:
        document_nodes = 0
        for item in items:
            budget = min(MAX_NODES - document_nodes, MAX_PROJECT_NODES - self._node_count - template.size)
            try:
                expansion, node_count = template.expand(item, budget)
            except ExpansionTooLarge:
                self.diagnostics.append(_build_size_error(key, len(items), template.size))
                return
            document_nodes += node_count
            self._node_count += node_count + template.size
            origin = ManifestOrigin(
                get_position(key), item.label, get_position(item.node), expansion.references
            )
            described = [self.describe(problem, origin) for problem in expansion.problems]
            self.diagnostics += [problem for problem in described if problem is not None]
            yield GeneratedDocument(expansion.root, origin, is_usable=not expansion.problems)


def _build_duplicate_error(key: Node) -> Diagnostic:
    return error(
        "duplicate-key",
        "Duplicate key",
        f"The field '{FOR_EACH}' occurs more than once in the manifest.",
        hint=f"Remove all but one '{FOR_EACH}'.",
        place=get_position(key),
    )


def _build_size_error(node: Node, item_count: int, template_size: int) -> Diagnostic:
    return error(
        "too-many-items",
        "Too many generated manifests",
        f"This forEach has {item_count:,} items, and its manifest has {template_size:,} YAML nodes. The "
        f"limits are {MAX_ITEMS:,} items, {MAX_NODES:,} nodes in the manifests that one forEach generates, "
        f"and {MAX_PROJECT_NODES:,} nodes in all generated manifests of a project.",
        hint="Use fewer or smaller items, or split them between several projects.",
        place=get_position(node),
    )
