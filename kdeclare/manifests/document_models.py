"""Pydantic models of documents, and the validation of single documents.

The models describe the fields that all manifests have in addition to their spec. The module also reads
project files and fleet files, which contain a single document each.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator
from yaml.nodes import MappingNode, Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.provider.registry import find_api_version, list_api_versions
from kdeclare.core.resources.declared_absence import check_declared_absence, is_declared_absent
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, DesiredResource, SpecProblem, narrow
from kdeclare.core.resources.owned_record import OWNER_LABEL
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.model_fields import is_showable
from kdeclare.manifests.reading_modes import build_document_modes, build_spec_modes
from kdeclare.manifests.schema_errors import build_diagnostics, find_affected_fields
from kdeclare.manifests.syntax.node_reader import KAFKA, UNIFORM, VALUE, Modes, NodeReader, has_broken_value
from kdeclare.manifests.syntax.nodes import (
    compose,
    find_child,
    find_node,
    find_path,
    find_position,
    find_position_within,
    get_position,
)
from kdeclare.manifests.syntax.substitution import Variable, has_reference

_MISPLACED_KIND_HINTS = {
    "AcceptedDrift": "Move the document out of the manifests, and list its file under 'acceptedDrift' in the "
    "fleet file.",
    "PolicyTest": "Move policy tests out of the manifests, and run them with 'kdeclare policy test FILE'.",
}
"""Hints for documents that do not belong in the manifests of a project, by kind."""


TextMap = Annotated[
    dict[str, str],
    RawText(),
    Field(json_schema_extra={"additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
"""A mapping whose scalars are read as strings, exactly as written."""


_EnvironmentNames = Annotated[list[str], RawText(), Field(min_length=1)]


class Metadata(BaseModel):
    """``metadata`` of every manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    # always read as a string; the schema for editors also accepts names that look like numbers
    name: Annotated[str, Field(min_length=1, json_schema_extra={"type": ["string", "integer"]})]
    labels: TextMap = {}


class ManifestMetadata(Metadata):
    """``metadata`` of a manifest that declares a resource, a policy or defaults."""

    owner: Annotated[str | None, RawText(), Field(min_length=1)] = None
    description: Annotated[str | None, RawText(), Field(min_length=1)] = None
    only: _EnvironmentNames | None = None
    exceptions: Annotated[_EnvironmentNames | None, Field(alias="except")] = None

    @model_validator(mode="after")
    def _check_environments(self) -> "ManifestMetadata":
        if self.only is not None and self.exceptions is not None:
            raise ValueError("set either 'only' or 'except', not both")
        return self

    @model_validator(mode="after")
    def _check_owner(self) -> "ManifestMetadata":
        team = self.labels.get(OWNER_LABEL)
        if self.owner is not None and team is not None and self.owner != team:
            raise ValueError(
                f"'owner' is {self.owner}, but the label '{OWNER_LABEL}' is {team}; set only one of the two"
            )
        return self

    @property
    def all_labels(self) -> dict[str, str]:
        """The labels, including the label that names the owner."""
        return self.labels if self.owner is None else {**self.labels, OWNER_LABEL: self.owner}


class Declarable(Protocol):
    """A kind of manifest (resource, policy or `Defaults`), with only the attributes for reading documents."""

    name: str
    spec: type[BaseModel]

    def parse(self, name: str, spec: Any) -> tuple[Any, tuple[SpecProblem, ...]]:
        """Return the body of a spec, and the problems that the model of the spec does not detect.

        spec: an instance of the model. The method works offline and has no side effects.
        """


class Envelope(BaseModel):
    """A manifest of any kind.

    The model of a specific kind restricts ``apiVersion``, ``kind`` and ``spec``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    apiVersion: Literal["kdeclare/v1"]  # noqa: N815
    kind: str
    metadata: Metadata
    spec: Any


class ResourceEnvelope(Envelope):
    """A manifest of a resource. ``forEach`` is removed before the generated manifests are validated."""

    forEach: list[Any] | dict[str, Any] | str | None = None  # noqa: N815


def build_envelope_model(kind: Declarable) -> type[Envelope]:
    """Return the model of a complete document of this kind."""
    is_resource = hasattr(kind, "record")  # policies and Defaults are not generated
    base = ResourceEnvelope if is_resource else Envelope
    return _build_envelope_model(base, find_api_version(kind.name), kind.name, kind.spec)


@cache  # a fleet loads the manifests of each of its clusters
def _build_envelope_model(
    base: type[Envelope], version_text: str, kind_name: str, spec: type[BaseModel]
) -> type[Envelope]:
    version: Any = Literal[version_text]
    name: Any = Literal[kind_name]
    return create_model(
        kind_name,
        __base__=base,
        apiVersion=(version, ...),
        kind=(name, ...),
        metadata=(ManifestMetadata, ...),
        spec=(spec, ...),
    )


class _JoinedKinds(Mapping[str, Declarable]):
    """The kinds of several mappings. A kind is looked up when it is needed, because this can import code."""

    def __init__(self, mappings: Sequence[Mapping[str, Declarable]]) -> None:
        self._mappings = mappings

    def __getitem__(self, name: str) -> Declarable:
        for mapping in self._mappings:
            if name in mapping:
                return mapping[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return any(name in mapping for mapping in self._mappings)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for mapping in self._mappings for name in mapping))

    def __len__(self) -> int:
        return len(list(iter(self)))


class DocumentValidator:
    """Validates documents of all known kinds."""

    def __init__(self, *kinds: Mapping[str, Declarable]) -> None:
        self._kinds = _JoinedKinds(kinds)
        self._modes: dict[str, Modes] = {}

    def check(
        self, data: Any, root: Node, *, readable: bool
    ) -> tuple[DesiredResource | None, list[Diagnostic]]:
        """Return the declared resource and all problems of the document.

        The resource is None if its fields do not fit the model.

        readable: whether all scalars could be read. If not, the kind checks only the readable fields.
        """
        if not isinstance(data, dict):
            return None, [build_not_a_manifest_error(root)]
        kind = self._kinds.get(data.get("kind", "")) if isinstance(data.get("kind"), str) else None
        if kind is None:
            return None, self._check_without_kind(data, root)
        model = build_envelope_model(kind)
        problems: list[Diagnostic] = []
        wrong_fields: set[str | int] | None = set()
        try:
            manifest = model.model_validate(data, strict=True)
        except ValidationError as e:
            problems = [_add_group_hint(p, kind, data) for p in build_diagnostics(e, model, data, root)]
            wrong_fields = find_affected_fields(e)
        else:
            if readable:
                metadata = narrow(manifest.metadata, ManifestMetadata)
                name = metadata.name
                body, kind_problems = kind.parse(name, manifest.spec)
                id_ = ResourceId(kind.name, name)
                declared = DesiredResource(
                    id_,
                    body,
                    metadata.all_labels,
                    find_position(root, NAME),
                    is_declared_absent(manifest.spec),
                    metadata.description or "",
                )
                kind_problems += check_declared_absence(str(id_), manifest.spec)
                return declared, [
                    _locate_problem(problem, root, kind) for problem in kind_problems
                ] if kind_problems else []
        if wrong_fields is not None:
            problems += _check_valid_fields(kind, data, wrong_fields, root)
        return None, problems

    def find_modes(self, root: Node, reader: NodeReader) -> Modes:
        """Return how to read the scalars of a document, which depends on its kind.

        In a document of an unknown kind, scalars are read as plain YAML values.
        """
        kind = self._find_kind(root, reader)
        if kind is None:
            return build_document_modes(UNIFORM[VALUE])
        modes = self._modes.get(kind.name)
        if modes is None:
            modes = self._modes[kind.name] = build_document_modes(build_spec_modes(kind.spec))
        return modes

    def can_show(self, root: Node, node: Node) -> bool:
        """Return whether messages may quote a scalar: the value of a known field that is not secret."""
        declarable = self._find_kind(root)
        path = find_path(root, node)
        return path is not None and is_showable(
            Envelope if declarable is None else build_envelope_model(declarable), path
        )

    def _find_kind(self, root: Node, reader: NodeReader | None = None) -> Declarable | None:
        pair = find_child(root, "kind")
        if pair is None or not isinstance(pair[1], ScalarNode):
            return None
        text = pair[1].value
        kind = reader.peek(pair[1]) if reader and has_reference(text) else text
        return self._kinds.get(kind) if isinstance(kind, str) else None

    def unknown(self, kind: str, root: Node) -> list[Diagnostic]:
        """Return the error for an unknown kind, or an empty list if the kind is known."""
        return [] if kind in self._kinds else [build_unknown_kind_error(kind, self._kinds, root)]

    def _check_without_kind(self, data: dict[Any, Any], root: Node) -> list[Diagnostic]:
        problems: list[Diagnostic] = []
        if isinstance(data.get("kind"), str):
            problems.append(build_unknown_kind_error(data["kind"], self._kinds, root))
        versions: Any = Literal[list_api_versions()]
        model = create_model(
            "Envelope", __base__=Envelope, apiVersion=(versions, ...), metadata=(ManifestMetadata, ...)
        )
        try:
            model.model_validate(data, strict=True)
        except ValidationError as e:
            problems += [_add_provider_hint(p, data) for p in build_diagnostics(e, model, data, root)]
        return problems


def _add_provider_hint(problem: Diagnostic, data: dict[Any, Any]) -> Diagnostic:
    """Add a hint to the problem if no installed provider has the API group of the document."""
    version = data.get("apiVersion")
    if problem.subject != "apiVersion" or problem.hint or not isinstance(version, str):
        return problem
    group = version.partition("/")[0]
    if group in {known.partition("/")[0] for known in list_api_versions()}:
        return problem
    return replace(
        problem,
        hint=f"Install a provider with the group '{group}'. Run 'kdeclare providers' to list the installed "
        "providers.",
    )


def _add_group_hint(problem: Diagnostic, kind: Declarable, data: dict[Any, Any]) -> Diagnostic:
    """Add a hint with the correct ``apiVersion`` if it is missing or belongs to a different API group."""
    if problem.subject != "apiVersion":
        return problem
    version = find_api_version(kind.name)
    if problem.code == "missing-field":
        return replace(problem, hint=f"Write 'apiVersion: {version}'.")
    if problem.code != "bad-value":
        return problem
    if str(data.get("apiVersion")).partition("/")[0] == version.partition("/")[0]:
        return problem  # a different version of the same group
    return replace(problem, hint=f"Write 'apiVersion: {version}', because {kind.name} belongs to this group.")


def _check_valid_fields(
    kind: Declarable, data: dict[Any, Any], wrong_fields: set[str | int], root: Node
) -> list[Diagnostic]:
    """Return the problems that the kind finds in the valid fields of a document that also has invalid fields.

    Users then see the errors of all fields together.
    """
    spec, metadata = data.get("spec"), data.get("metadata")
    if not isinstance(spec, dict):
        return []
    name = metadata.get("name") if isinstance(metadata, dict) else None
    valid_fields = {
        key: value for key, value in spec.items() if key not in wrong_fields and not has_broken_value(value)
    }
    try:
        parsed = kind.spec.model_validate(valid_fields, strict=True)
    except ValidationError:
        return []
    _, kind_problems = kind.parse(name if isinstance(name, str) else "", parsed)
    return [
        _locate_problem(problem, root, kind)
        for problem in kind_problems
        if _is_certain(problem, named=bool(name))
    ]


def _is_certain(problem: SpecProblem, *, named: bool) -> bool:
    """Return whether a problem certainly exists, whatever the values of unreadable fields are.

    Return False for a problem that can depend on unreadable fields: a problem with the whole spec or with a
    whole field. Also return False for a problem with a name that cannot be read.
    """
    return problem.offset is not None or (len(problem.path) > 1 and (named or problem.path != NAME))


def build_not_a_manifest_error(root: Node) -> Diagnostic:
    """Return the error for a document that is not a mapping."""
    return error(
        "not-a-manifest",
        "Not a manifest",
        "The document is not a mapping. A manifest is a mapping with apiVersion, kind, metadata and spec.",
        hint="Write these fields at the top level of the document.",
        place=find_position(root, ()),
    )


def build_unknown_kind_error(kind: str, kinds: Mapping[str, Declarable], root: Node) -> Diagnostic:
    """Return the error for a document of an unknown kind."""
    return error(
        "unknown-kind",
        "Unknown kind",
        f"'{kind}' is not a kind of resource.",
        hint=_MISPLACED_KIND_HINTS.get(kind)
        or format_suggestion(kind, kinds)
        or f"Use {format_alternatives(kinds)}.",
        place=find_position(root, ("kind",)),
        subject=kind,
    )


def _locate_problem(problem: SpecProblem, root: Node, kind: Declarable) -> Diagnostic:
    path = problem.path
    if problem.diagnostic.place is not None:
        return problem.diagnostic  # the problem is in a file that the manifest names
    full_path = path if path == NAME else ("spec", *path)
    if problem.offset is not None and (text_node := find_node(root, full_path)) is not None:
        return replace(problem.diagnostic, place=find_position_within(text_node, problem.offset))
    # in a config mapping, point to the key rather than to its value
    return replace(problem.diagnostic, place=find_position(root, full_path, key=_is_setting_path(path, kind)))


def _is_setting_path(path: tuple[str | int, ...], kind: Declarable) -> bool:
    """Return whether a path leads to an entry of a map of strings, whose keys are chosen by the user."""
    return len(path) == 2 and path != NAME and build_spec_modes(kind.spec).get_modes_below(path[0]).is_text


M = TypeVar("M", bound=BaseModel)
_URI = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:")


def load_document(path: Path, kind: str, read_hint: str) -> Node:
    """Return the document of a project file or a fleet file.

    Raises KdeclareError if the file cannot be read or does not contain exactly one document.
    read_hint: the hint in the error for a file that cannot be read.
    """
    file = str(path)
    try:
        data = path.read_bytes()
    except OSError as e:
        raise KdeclareError(
            error(
                "unreadable-file",
                "File cannot be read",
                f"'{file}' cannot be read: {(e.strerror or 'it cannot be opened').lower()}.",
                hint=read_hint,
            )
        ) from None
    problems: list[Diagnostic] = []
    documents = list(compose(file, data, problems))
    if not problems and len(documents) != 1:
        error_position = find_position(documents[1], ()) if documents else SourcePosition(file, 1, 1)
        state = f"has {len(documents)} documents" if documents else "is empty"
        detail = f"'{file}' {state}. A {kind.lower()} file has exactly one document, of kind {kind}."
        hint = "Move the other documents to other files." if documents else f"Add a document of kind {kind}."
        code = f"bad-{kind.lower()}"
        problems.append(error(code, "Wrong number of documents", detail, hint=hint, place=error_position))
    if not problems and not isinstance(documents[0], MappingNode):
        problems.append(build_not_a_manifest_error(documents[0]))
    if problems:
        raise KdeclareError(*problems)
    return documents[0]


def validate_document(model: type[M], root: Node, reader: NodeReader) -> M:
    """Return a document as an instance of its model. Raises KdeclareError with all problems."""
    reader.shows = lambda node: (path := find_path(root, node)) is not None and is_showable(model, path)
    data = reader.read(root)
    problems = list(reader.problems)
    try:
        manifest = model.model_validate(data, strict=True)
    except ValidationError as e:
        problems += build_diagnostics(e, model, data, root)
        raise KdeclareError(*sort_diagnostics(problems)) from None
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    return manifest


def parse_variables(node: Node | None, reader: NodeReader) -> dict[str, Variable]:
    """Return the variables in a mapping node by name, each with its value and its spelling.

    The node is read twice, because the spelling of a number cannot be derived from its value.
    """
    if node is None:
        return {}
    values, texts = reader.read(node), reader.read(node, UNIFORM[KAFKA])
    positions = {str(key.value): get_position(key) for key, _ in node.value}
    return {
        str(name): Variable(value, texts[name], positions.get(str(name))) for name, value in values.items()
    }


def resolve_location(folder: Path, state: str) -> str:
    """Return the location of a state. A URI is returned unchanged; a path is resolved against ``folder``."""
    return state if _URI.match(state) else str(folder / state)
