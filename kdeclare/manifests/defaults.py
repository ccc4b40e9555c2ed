"""Kind `Defaults`: what resources of a kind are where their own manifests and overlays say nothing; and the
layers that one resource is made of.

Nodes are filled in, not data, as with overlays: every field keeps the place that it came from.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import UNKNOWN_SETTING, Diagnostic, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.resources.capabilities import find_exclusive_fields
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, Kind, Problem, narrow
from kdeclare.core.suggest import did_you_mean, one_of
from kdeclare.manifests.checks import declared_twice
from kdeclare.manifests.overlays import differing, fill, identify, merge, says, settles, without_identity
from kdeclare.manifests.reading_modes import document_modes, spec_modes
from kdeclare.manifests.schema_errors import dotted, explain
from kdeclare.manifests.shapes import Shapes, TextMap
from kdeclare.manifests.syntax.nodes import child, find, node_at
from kdeclare.manifests.syntax.reading import UNIFORM, VALUE, Modes, Reader, holds_broken

DEFAULTS = "Defaults"

_GIVEN = ("spec", "defaults")

FieldPath = tuple[str, ...]
"""Keys from a spec down."""


class DefaultsSelector(BaseModel):
    """``selector``: names, or ``/regular expressions/`` (RE2) of whole names; labels that must all hold."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    names: Annotated[list[str], Field(min_length=1)] | None = None
    labels: TextMap = {}


class DefaultsSpec(BaseModel):
    """``spec`` of a Defaults manifest.

    kind: of the resources. priority: of two that say different things, the higher one holds.
    defaults: fields of the spec of that kind.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    kind: Annotated[str, Field(min_length=1)]
    selector: DefaultsSelector = DefaultsSelector()
    priority: int = 0
    defaults: dict[str, Any]


@dataclass(frozen=True, slots=True)
class DefaultsBody:
    """Which resources are meant, and how much it counts."""

    kind: str
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0

    def covers(self, resource: ResourceId, labels: Mapping[str, str]) -> bool:
        """Whether a resource with these labels is meant."""
        if resource.kind != self.kind or not self.labels.items() <= labels.items():
            return False
        return not self.names or any(_is_named(resource.name, text) for text in self.names)


class DefaultsKind:
    """Reads Defaults manifests; ``kinds`` are those that can have defaults."""

    name = DEFAULTS
    spec: type[BaseModel] = DefaultsSpec

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds

    def parse(self, name: str, spec: BaseModel) -> tuple[DefaultsBody, tuple[Problem, ...]]:
        """The body of a spec, and what is wrong with it; the fields themselves are looked at elsewhere."""
        spec = narrow(spec, DefaultsSpec)
        selector = spec.selector
        body = DefaultsBody(spec.kind, tuple(selector.names or ()), selector.labels, spec.priority)
        return body, tuple(self._problems(body))

    def _problems(self, body: DefaultsBody) -> Iterator[Problem]:
        if body.kind not in self._kinds:
            hint = did_you_mean(body.kind, self._kinds) or f"Kinds are {one_of(self._kinds)}."
            detail = f"'{body.kind}' is not a kind of resource."
            yield Problem(("kind",), error("unknown-kind", "Unknown kind", detail, hint=hint))
        for index, text in enumerate(body.names):
            if not is_pattern(text):
                continue
            try:
                compile_pattern(text[1:-1])
            except PatternError as wrong:
                detail = f"'{text}' is no regular expression: {wrong.reason}."
                said = error("bad-pattern", "No regular expression", detail, hint=RE2_HINT)
                offset = None if wrong.offset is None else wrong.offset + 1
                yield Problem(("selector", "names", index), said, offset)


@dataclass(frozen=True, slots=True)
class Given:
    """One Defaults manifest. root: the document; defaults: what it gives."""

    name: str
    body: DefaultsBody
    root: Node = field(repr=False, compare=False)
    defaults: Node = field(repr=False, compare=False)

    @property
    def id(self) -> ResourceId:
        """As other manifests are called."""
        return ResourceId(DEFAULTS, self.name)


class Defaults:
    """The Defaults of a project; true if there are any. They have no order but their priority."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._shapes = Shapes({DEFAULTS: DefaultsKind(kinds)})
        self._given: dict[str, Given] = {}
        self._used: set[str] = set()
        self._told: set[tuple[str, str, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._given)

    def add(self, root: Node, reader: Reader) -> list[Diagnostic]:
        """Take in a document; one with errors gives nothing, so that they are told once."""
        data, problems = reader.read_aside(root, self._find_modes(root, reader))
        declared, wrong = self._shapes.check(data, root, readable=not problems)
        problems += [*wrong, *self._wrong_fields(data, root)]
        if declared is not None and not any(problem.is_error for problem in problems):
            body = declared.get_body(DefaultsBody)
            given = Given(declared.id.name, body, root, node_at(root, _GIVEN) or root)
            first = self._given.setdefault(given.name, given)
            if first is not given:
                places = (find(one.root, ("metadata", "name")) for one in (given, first))
                problems.append(declared_twice(given.id, *places, is_rule=True))
        resource = identify(root, reader)
        return [replace(problem, resource=str(resource)) for problem in problems] if resource else problems

    def beneath(
        self, resource: ResourceId | None, root: Node, reader: Reader
    ) -> tuple[Node, list[Diagnostic]]:
        """A document, overlays and all, with what it says nothing of filled in; and what is not clear."""
        spec = child(root, "spec")
        if resource is None or spec is None or not isinstance(spec[1], MappingNode):
            return root, []
        found = self.covering(resource, labels_of(root, reader))
        self._used.update(given.name for given in found)
        problems = [*self._contradictions(found, root)]
        return reduce(fill, self.offers(found, root), root), problems

    def covering(self, resource: ResourceId, labels: Mapping[str, str]) -> list[Given]:
        """Those that a resource gets something from, the one that counts most first."""
        found = [given for given in self._given.values() if given.body.covers(resource, labels)]
        return sorted(found, key=lambda given: (-given.body.priority, given.name))

    def offers(self, found: Sequence[Given], root: Node) -> Iterator[Node]:
        """What each gives to a document beneath the one before, as a document with nothing but a spec.

        Not what cannot stand beside something that is there.
        """
        for given in found:
            spec = node_at(root, ("spec",))
            exclusive = find_exclusive_fields(self._kinds[given.body.kind])
            pairs = [
                (key, value)
                for key, value in given.defaults.value
                if not any(says(spec, other) for other in exclusive.get(key.value, ()))
            ]
            offer = _spec_alone(given, pairs)
            yield offer
            root = fill(root, offer)

    def unused(self) -> list[Diagnostic]:
        """One warning for each that no resource of the project gets anything from."""
        return [
            warning(
                "unused-defaults",
                "Defaults for nothing",
                f"No manifest declares a {given.body.kind} that these defaults are for.",
                hint="Compare their selector with the names and labels of the manifests.",
                place=find(given.root, ("metadata", "name")),
                resource=str(given.id),
            )
            for given in self._given.values()
            if given.name not in self._used
        ]

    def _find_modes(self, root: Node, reader: Reader) -> Modes:
        """How to read a document: the fields that it gives, as manifests of their kind have them."""
        node = node_at(root, ("spec", "kind"))
        kind = self._kinds.get(str(reader.peek(node))) if node is not None else None
        own = spec_modes(DefaultsSpec)
        given = spec_modes(kind.spec) if kind is not None else UNIFORM[VALUE]
        return document_modes(Modes(VALUE, {**own.fields, "defaults": given}, UNIFORM[VALUE]))

    def _wrong_fields(self, data: Any, root: Node) -> list[Diagnostic]:
        """What is wrong with the fields whatever they are given to; what is missing may be there."""
        spec = data.get("spec") if isinstance(data, dict) else None
        fields = spec.get("defaults") if isinstance(spec, dict) else None
        kind = self._kinds.get(str(spec.get("kind"))) if isinstance(spec, dict) else None
        node = node_at(root, _GIVEN)
        if kind is None or node is None or not isinstance(fields, dict):
            return []
        try:
            sound = {key: value for key, value in fields.items() if not holds_broken(value)}
            parsed = kind.spec.model_validate(sound, strict=True)
        except ValidationError as e:
            found = explain(e, kind.spec, fields, node)
            return [p for p in found if p.code != "missing-field" or "[" in str(p.subject)]
        _, problems = kind.parse("", parsed)
        # what only the cluster can tell, and what is no error, is told with each resource
        return [
            replace(problem.diagnostic, place=find(node, problem.path, key=True))
            for problem in problems
            if len(problem.path) > 1 and problem.path != NAME and _is_certain(problem.diagnostic)
        ]

    def _contradictions(self, found: Sequence[Given], root: Node) -> Iterator[Diagnostic]:
        """Fields of two of one priority that cannot both hold, where nothing says that counts more.

        A contradiction of the same two is told once.
        """
        for at, second in enumerate(found):
            for first in found[:at]:
                if first.body.priority != second.body.priority:
                    continue
                if not (clashes := [*self._clashes(first, second)]):
                    continue
                spec = self._above(found, second, root)
                for theirs, mine in clashes:
                    fact = first.name, second.name, dotted(mine)
                    if fact not in self._told and all(self._is_open(spec, second, p) for p in (theirs, mine)):
                        self._told.add(fact)
                        yield _ambiguous(first, second, theirs, mine)

    def _clashes(self, first: Given, second: Given) -> Iterator[tuple[FieldPath, FieldPath]]:
        """What each says that cannot stand beside what the other says."""
        modes = spec_modes(self._kinds[second.body.kind].spec)
        yield from ((path, path) for path in differing(first.defaults, second.defaults, modes))
        for mine, others in find_exclusive_fields(self._kinds[second.body.kind]).items():
            if says(second.defaults, mine):
                yield from (((one,), (mine,)) for one in sorted(others) if says(first.defaults, one))

    def _is_open(self, spec: Node | None, given: Given, path: FieldPath) -> bool:
        """Whether what is given at a path would be filled in where ``spec`` is what holds already."""
        exclusive = find_exclusive_fields(self._kinds[given.body.kind])
        gives_way = any(says(spec, other) for name in path[:1] for other in exclusive.get(name, ()))
        return not gives_way and not settles(spec, path)

    def _above(self, found: Sequence[Given], given: Given, root: Node) -> Node | None:
        """The spec as it is where all of higher priority is filled in."""
        higher = [other for other in found if other.body.priority > given.body.priority]
        return node_at(reduce(fill, self.offers(higher, root), root), ("spec",))


def labels_of(root: Node, reader: Reader) -> dict[str, str]:
    """The labels of a document as far as they can be read."""
    node = node_at(root, ("metadata", "labels"))
    labels = reader.peek(node) if node is not None else None
    return labels if isinstance(labels, dict) else {}


def _is_named(name: str, text: str) -> bool:
    return compile_pattern(text[1:-1]).matches(name) if is_pattern(text) else name == text


def _spec_alone(given: Given, fields: list[tuple[Node, Node]]) -> Node:
    """A document that has only a spec, with these fields."""
    root, defaults = given.root, given.defaults
    spec = MappingNode(defaults.tag, fields, defaults.start_mark, defaults.end_mark)
    pairs = [(key, spec) for key, _ in root.value if key.value == "spec"]
    return MappingNode(root.tag, pairs, root.start_mark, root.end_mark)


def _is_certain(problem: Diagnostic) -> bool:
    return problem.is_error and problem.code != UNKNOWN_SETTING


def _ambiguous(first: Given, second: Given, theirs: FieldPath, mine: FieldPath) -> Diagnostic:
    """theirs, mine: what the first and the second say that cannot both hold."""
    there = find(first.defaults, theirs, key=True)
    detail = (
        f"{second.id} and {first.id} ({there}) give '{dotted(mine)}' different values, with one priority."
        if theirs == mine
        else f"{second.id} gives '{dotted(mine)}' and {first.id} ({there}) '{dotted(theirs)}', with one "
        "priority; the two cannot stand beside each other."
    )
    return error(
        "ambiguous-defaults",
        "Defaults contradict each other",
        detail,
        hint="Give one of the two a higher priority, or let their selectors not meet.",
        place=find(second.defaults, mine, key=True),
        resource=str(second.id),
        subject=dotted(mine),
    )


@dataclass(frozen=True, slots=True)
class Inherited:
    """What one Defaults manifest gives to a resource: a document with a spec and nothing else."""

    name: str
    root: Node = field(repr=False, compare=False, hash=False)


@dataclass(frozen=True)
class Layers:
    """Documents as they were composed.

    base: the manifest. overlays: what is merged over it, in that order. defaults: what is filled in where
    those say nothing, what counts most first.
    """

    base: Node = field(repr=False, compare=False)
    overlays: tuple[Node, ...] = field(default=(), repr=False, compare=False)
    defaults: tuple[Inherited, ...] = ()

    @cached_property
    def merged(self) -> Node:
        """What its own documents say for the environment; every node has the place that it came from."""
        return reduce(merge, map(without_identity, self.overlays), self.base)

    @cached_property
    def effective(self) -> Node:
        """What holds in the environment, defaults among it."""
        return reduce(fill, (given.root for given in self.defaults), self.merged)


def inherited(
    resource: ResourceId, merged: Node, defaults: Defaults, reader: Reader
) -> tuple[Inherited, ...]:
    """What a resource whose own documents say ``merged`` gets from defaults."""
    given = defaults.covering(resource, labels_of(merged, reader))
    offers = zip(given, defaults.offers(given, merged), strict=True)
    return tuple(Inherited(one.name, root) for one, root in offers)
