"""The `Defaults` kind: values for fields that neither a resource's manifest nor an overlay sets.

This module also defines the layers of a resource: its manifest, overlays and defaults. All layers are merged
as YAML nodes rather than as plain data, so every field keeps its source position.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, reduce
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import UNKNOWN_SETTING, Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, Kind, SpecProblem, narrow
from kdeclare.core.resources.manifest_capabilities import (
    find_exclusive_fields,
)
from kdeclare.core.resources.owned_record import OWNER_LABEL
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.checks import build_duplicate_resource_error
from kdeclare.manifests.document_models import DocumentValidator, TextMap
from kdeclare.manifests.environments.overlays import (
    drop_identity,
    fill,
    find_differences,
    has_field_value,
    identify,
    is_occupied,
    merge,
)
from kdeclare.manifests.for_each.generator import ManifestOrigin
from kdeclare.manifests.reading_modes import build_document_modes, build_spec_modes
from kdeclare.manifests.schema_errors import build_diagnostics, format_path
from kdeclare.manifests.syntax.node_reader import UNIFORM, VALUE, Modes, NodeReader, has_broken_value
from kdeclare.manifests.syntax.nodes import find_child, find_node, find_position

DEFAULTS = "Defaults"

_DEFAULTS_PATH = ("spec", "defaults")

FieldPath = tuple[str, ...]
"""The path of a field: the keys that lead from the spec to the field."""


class DefaultsSelector(BaseModel):
    """``selector``: the names and labels of the resources to which the defaults apply.

    A resource is selected if its name matches one of the names and its manifest has all of the labels.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    names: Annotated[list[str], Field(min_length=1)] | None = None
    labels: TextMap = {}


class DefaultsSpec(BaseModel):
    """``spec`` of a Defaults manifest.

    kind: the kind of the resources to which the defaults apply.
    priority: if several Defaults set the same field, the value with the highest priority is used.
    defaults: values for fields in the spec of that kind.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    kind: Annotated[str, Field(min_length=1)]
    selector: DefaultsSelector = DefaultsSelector()
    priority: int = 0
    defaults: dict[str, Any]


@dataclass(frozen=True)
class DefaultsBody:
    """The selector and the priority of a Defaults manifest."""

    kind: str
    names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    priority: int = 0

    def covers(self, resource: ResourceId, labels: Mapping[str, str]) -> bool:
        """Return whether the defaults apply to a resource with these labels."""
        if resource.kind != self.kind or not self.labels.items() <= labels.items():
            return False
        if not self.names or resource.name in self._exact_names:
            return True
        return any(_is_name_match(resource.name, pattern) for pattern in self._patterns)

    @cached_property
    def _exact_names(self) -> frozenset[str]:
        # an import can write Defaults with thousands of names
        return frozenset(self.names).difference(self._patterns)

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if is_pattern(name))


class DefaultsKind:
    """Reads Defaults manifests. ``kinds``: the kinds that can have defaults."""

    name = DEFAULTS
    spec: type[BaseModel] = DefaultsSpec

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds

    def parse(self, name: str, spec: BaseModel) -> tuple[DefaultsBody, tuple[SpecProblem, ...]]:
        """Return the body of a Defaults spec, and the problems of its fields ``kind`` and ``selector``.

        The class `Defaults` checks the default values.
        """
        spec = narrow(spec, DefaultsSpec)
        selector = spec.selector
        body = DefaultsBody(spec.kind, tuple(selector.names or ()), selector.labels, spec.priority)
        return body, tuple(self._check_body(body))

    def _check_body(self, body: DefaultsBody) -> Iterator[SpecProblem]:
        if body.kind not in self._kinds:
            hint = format_suggestion(body.kind, self._kinds) or f"Use {format_alternatives(self._kinds)}."
            detail = f"'{body.kind}' is not a kind of resource."
            yield SpecProblem(("kind",), error("unknown-kind", "Unknown kind", detail, hint=hint))
        for index, text in enumerate(body.names):
            if not is_pattern(text):
                continue
            try:
                compile_pattern(text[1:-1])
            except PatternError as pattern_error:
                detail = f"'{text}' is not a regular expression: {pattern_error.reason}."
                diagnostic = error("bad-pattern", "Invalid regular expression", detail, hint=RE2_HINT)
                offset = None if pattern_error.offset is None else pattern_error.offset + 1
                yield SpecProblem(("selector", "names", index), diagnostic, offset)


@dataclass(frozen=True, slots=True)
class DefaultsManifest:
    """One Defaults manifest.

    root: the root node of the document.
    defaults: the node of ``spec.defaults``.
    """

    name: str
    body: DefaultsBody
    root: Node = field(repr=False, compare=False)
    defaults: Node = field(repr=False, compare=False)

    @property
    def id(self) -> ResourceId:
        """The id of the manifest in the form of a resource id: ``Defaults/NAME``."""
        return ResourceId(DEFAULTS, self.name)


class Defaults:
    """All Defaults of a project. The object is falsy if the project has no Defaults.

    Which Defaults take effect depends only on their priority, not on the order in which they are added.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._shapes = DocumentValidator({DEFAULTS: DefaultsKind(kinds)})
        self._manifests: dict[str, DefaultsManifest] = {}
        self._used: set[str] = set()
        self._reported: set[tuple[str, str, str]] = set()

    def __bool__(self) -> bool:
        return bool(self._manifests)

    def add(self, root: Node, reader: NodeReader) -> list[Diagnostic]:
        """Add a Defaults document, and return its problems.

        If the document has errors, its values are not used as defaults, so that the same errors are not
        reported again for each resource.
        """
        data, problems = reader.read_aside(root, self._find_modes(root, reader))
        declared, shape_problems = self._shapes.check(data, root, readable=not problems)
        problems += [*shape_problems, *self._check_fields(data, root)]
        if declared is not None and not any(problem.is_error for problem in problems):
            body = declared.get_body(DefaultsBody)
            manifest = DefaultsManifest(declared.id.name, body, root, find_node(root, _DEFAULTS_PATH) or root)
            first = self._manifests.setdefault(manifest.name, manifest)
            if first is not manifest:
                name_positions = (find_position(one.root, ("metadata", "name")) for one in (manifest, first))
                problems.append(build_duplicate_resource_error(manifest.id, *name_positions, is_rule=True))
        resource = identify(root, reader)
        return [replace(problem, resource=str(resource)) for problem in problems] if resource else problems

    def beneath(
        self, resource: ResourceId | None, root: Node, reader: NodeReader
    ) -> tuple[Node, list[Diagnostic]]:
        """Return a document with defaults for its missing fields, and an error for each conflict of defaults.

        root: the document, in which the overlays are already merged.
        """
        spec = find_child(root, "spec")
        if resource is None or spec is None or not isinstance(spec[1], MappingNode):
            return root, []
        found = self.find_matching(resource, find_labels(root, reader))
        self._used.update(given.name for given in found)
        problems = [*self._check_contradictions(found, root)]
        return reduce(fill, self.offers(found, root), root), problems

    def find_matching(self, resource: ResourceId, labels: Mapping[str, str]) -> list[DefaultsManifest]:
        """Return the Defaults that apply to a resource, the highest priority first."""
        manifests = [given for given in self._manifests.values() if given.body.covers(resource, labels)]
        return sorted(manifests, key=lambda given: (-given.body.priority, given.name))

    def offers(self, found: Sequence[DefaultsManifest], root: Node) -> Iterator[Node]:
        """Yield the fields that each Defaults manifest can add to ``root``, as a document with only a spec.

        The documents omit fields that are mutually exclusive with a field that is already set.
        """
        for given in found:
            spec = find_node(root, ("spec",))
            exclusive = find_exclusive_fields(self._kinds[given.body.kind])
            pairs = [
                (key, value)
                for key, value in given.defaults.value
                if not any(has_field_value(spec, other) for other in exclusive.get(key.value, ()))
            ]
            offer = _build_spec_document(given, pairs)
            yield offer
            root = fill(root, offer)

    def unused(self) -> list[Diagnostic]:
        """Return one warning for each Defaults manifest that applies to no resource of the project."""
        return [
            warning(
                "unused-defaults",
                "Unused defaults",
                f"No manifest declares a {given.body.kind} that these defaults apply to.",
                hint="Compare the selector with the names and labels of the manifests.",
                place=find_position(given.root, ("metadata", "name")),
                resource=str(given.id),
            )
            for given in self._manifests.values()
            if given.name not in self._used
        ]

    def _find_modes(self, root: Node, reader: NodeReader) -> Modes:
        """Return how to read the scalars of a Defaults document.

        The default values are read in the same way as in manifests of the kind to which they apply.
        """
        node = find_node(root, ("spec", "kind"))
        kind = self._kinds.get(str(reader.peek(node))) if node is not None else None
        own_modes = build_spec_modes(DefaultsSpec)
        given_modes = build_spec_modes(kind.spec) if kind is not None else UNIFORM[VALUE]
        return build_document_modes(
            Modes(VALUE, {**own_modes.fields, "defaults": given_modes}, UNIFORM[VALUE])
        )

    def _check_fields(self, data: Any, root: Node) -> list[Diagnostic]:
        """Return the problems that the default values cause in every resource.

        Missing fields are not reported, because the manifest of a resource can set these fields.
        """
        spec = data.get("spec") if isinstance(data, dict) else None
        fields = spec.get("defaults") if isinstance(spec, dict) else None
        kind = self._kinds.get(str(spec.get("kind"))) if isinstance(spec, dict) else None
        node = find_node(root, _DEFAULTS_PATH)
        if kind is None or node is None or not isinstance(fields, dict):
            return []
        try:
            readable_fields = {key: value for key, value in fields.items() if not has_broken_value(value)}
            parsed = kind.spec.model_validate(readable_fields, strict=True)
        except ValidationError as e:
            diagnostics = build_diagnostics(e, kind.spec, fields, node)
            return [p for p in diagnostics if p.code != "missing-field" or "[" in str(p.subject)]
        _, problems = kind.parse("", parsed)
        # warnings, and problems that depend on the cluster, are reported for each resource instead
        return [
            replace(problem.diagnostic, place=find_position(node, problem.path, key=True))
            for problem in problems
            if len(problem.path) > 1 and problem.path != NAME and _is_certain(problem.diagnostic)
        ]

    def _check_contradictions(
        self, manifests: Sequence[DefaultsManifest], root: Node
    ) -> Iterator[Diagnostic]:
        """Yield an error for each field for which two Defaults of equal priority conflict.

        Two Defaults do not conflict if Defaults of a higher priority already set the field. Each conflict is
        reported only once.
        """
        for index, second in enumerate(manifests):
            for first in manifests[:index]:
                if first.body.priority != second.body.priority:
                    continue
                if not (clashes := [*self._find_clashes(first, second)]):
                    continue
                higher_spec = self._build_higher_spec(manifests, second, root)
                for first_path, second_path in clashes:
                    contradiction = first.name, second.name, format_path(second_path)
                    if contradiction not in self._reported and all(
                        self._can_fill(higher_spec, second, p) for p in (first_path, second_path)
                    ):
                        self._reported.add(contradiction)
                        yield _build_contradiction_error(first, second, first_path, second_path)

    def _find_clashes(
        self, first: DefaultsManifest, second: DefaultsManifest
    ) -> Iterator[tuple[FieldPath, FieldPath]]:
        """Yield the two paths of each conflict: the path in the first and in the second Defaults manifest."""
        modes = build_spec_modes(self._kinds[second.body.kind].spec)
        yield from ((path, path) for path in find_differences(first.defaults, second.defaults, modes))
        for field_name, excluded_fields in find_exclusive_fields(self._kinds[second.body.kind]).items():
            if has_field_value(second.defaults, field_name):
                yield from (
                    ((one,), (field_name,))
                    for one in sorted(excluded_fields)
                    if has_field_value(first.defaults, one)
                )

    def _can_fill(self, spec: Node | None, manifest: DefaultsManifest, path: FieldPath) -> bool:
        """Return whether the Defaults manifest would add its value for the field at ``path`` to ``spec``."""
        exclusive_fields = find_exclusive_fields(self._kinds[manifest.body.kind])
        is_excluded = any(
            has_field_value(spec, other) for name in path[:1] for other in exclusive_fields.get(name, ())
        )
        return not is_excluded and not is_occupied(spec, path)

    def _build_higher_spec(
        self, manifests: Sequence[DefaultsManifest], manifest: DefaultsManifest, root: Node
    ) -> Node | None:
        """Return the spec of ``root`` with all defaults that have a higher priority than ``manifest``."""
        higher_manifests = [other for other in manifests if other.body.priority > manifest.body.priority]
        return find_node(reduce(fill, self.offers(higher_manifests, root), root), ("spec",))


def find_labels(root: Node, reader: NodeReader) -> dict[str, str]:
    """Return the labels of a document, including its owner, without labels that cannot be read."""
    nodes = [find_node(root, ("metadata", name)) for name in ("labels", "owner")]
    labels, owner = (reader.peek(node) if node is not None else None for node in nodes)
    found = labels if isinstance(labels, dict) else {}
    return {**found, OWNER_LABEL: owner} if isinstance(owner, str) else found


def _is_name_match(name: str, pattern: str) -> bool:
    return compile_pattern(pattern[1:-1]).matches(name)


def _build_spec_document(manifest: DefaultsManifest, fields: list[tuple[Node, Node]]) -> Node:
    root, defaults = manifest.root, manifest.defaults
    spec = MappingNode(defaults.tag, fields, defaults.start_mark, defaults.end_mark)
    pairs = [(key, spec) for key, _ in root.value if key.value == "spec"]
    return MappingNode(root.tag, pairs, root.start_mark, root.end_mark)


def _is_certain(problem: Diagnostic) -> bool:
    return problem.is_error and problem.code != UNKNOWN_SETTING


def _build_contradiction_error(
    first: DefaultsManifest, second: DefaultsManifest, first_path: FieldPath, second_path: FieldPath
) -> Diagnostic:
    """Return the error for two conflicting Defaults manifests.

    first_path, second_path: the paths of the conflicting fields in the first and the second manifest.
    """
    first_position = find_position(first.defaults, first_path, key=True)
    detail = (
        f"{second.id} and {first.id} ({first_position}) have the same priority and give "
        f"'{format_path(second_path)}' different values."
        if first_path == second_path
        else f"{second.id} sets '{format_path(second_path)}' and {first.id} ({first_position}) sets "
        f"'{format_path(first_path)}'. These fields are mutually exclusive, and the priorities are equal."
    )
    return error(
        "ambiguous-defaults",
        "Conflicting defaults",
        detail,
        hint="Give one of the two Defaults manifests a higher priority, or change their selectors so that "
        "they do not overlap.",
        place=find_position(second.defaults, second_path, key=True),
        resource=str(second.id),
        subject=format_path(second_path),
    )


@dataclass(frozen=True, slots=True)
class InheritedDefaults:
    """The fields that a resource inherits from one Defaults manifest.

    name: the name of the Defaults manifest.
    root: a document that consists of a spec with these fields.
    """

    name: str
    root: Node = field(repr=False, compare=False, hash=False)


@dataclass(frozen=True)
class Layers:
    """The documents that make up one resource, as parsed YAML nodes.

    base: the manifest.
    overlays: the documents to merge over the manifest, in merge order.
    defaults: the values for fields that neither the manifest nor an overlay sets; the defaults with the
        highest priority come first.
    origin: the ``forEach`` and the item that the manifest was generated from, if any.
    """

    base: Node = field(repr=False, compare=False)
    overlays: tuple[Node, ...] = field(default=(), repr=False, compare=False)
    defaults: tuple[InheritedDefaults, ...] = ()
    origin: ManifestOrigin | None = None

    @cached_property
    def merged(self) -> Node:
        """The manifest with the environment's overlays merged. Every node keeps its source position."""
        return reduce(merge, map(drop_identity, self.overlays), self.base)

    @cached_property
    def effective(self) -> Node:
        """The complete document of the resource in the environment, including defaults."""
        return reduce(fill, (given.root for given in self.defaults), self.merged)


def collect_inherited_defaults(
    resource: ResourceId, merged: Node, defaults: Defaults, reader: NodeReader
) -> tuple[InheritedDefaults, ...]:
    """Return the defaults that a resource inherits, the highest priority first.

    merged: the manifest of the resource, with its overlays merged in.
    """
    manifests = defaults.find_matching(resource, find_labels(merged, reader))
    offers = zip(manifests, defaults.offers(manifests, merged), strict=True)
    return tuple(InheritedDefaults(one.name, root) for one, root in offers)
