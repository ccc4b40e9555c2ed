"""What every manifest looks like around its spec, as pydantic models, and the validation of one document."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from yaml.nodes import Node, ScalarNode

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.kind import NAME, Problem
from kdeclare.core.suggest import did_you_mean, one_of
from kdeclare.manifests.model_fields import may_be_shown
from kdeclare.manifests.nodes import child, find, node_at, path_to
from kdeclare.manifests.positions import within
from kdeclare.manifests.reading import holds_broken
from kdeclare.manifests.schema_errors import affected_fields, explain

API_VERSION = "kdeclare/v1"

_ELSEWHERE = {
    "PolicyTest": "Keep tests of policies outside of the manifests; kdeclare policy test FILE runs them.",
}
"""Where documents belong that are no manifests of a project."""


TextMap = Annotated[
    dict[str, str],
    Field(json_schema_extra={"additionalProperties": {"type": ["string", "number", "boolean"]}}),
]
"""A mapping whose scalars are read as the text that stands there (`reading` says for which fields)."""


class Metadata(BaseModel):
    """``metadata`` of every manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    # read as the text that stands there, so an editor may see a number
    name: Annotated[str, Field(min_length=1, json_schema_extra={"type": ["string", "integer"]})]
    labels: TextMap = {}


class Declarable(Protocol):
    """What a document can declare, as far as reading it goes: a kind of resource, or a kind of rule."""

    name: str
    spec: type[BaseModel]

    def parse(self, name: str, spec: Any) -> tuple[Any, tuple[Problem, ...]]:
        """The body of a valid spec, and what is wrong with it beyond its shape. Offline and pure."""


class Envelope(BaseModel):
    """A manifest of whatever kind; a kind's own model narrows ``kind`` and ``spec``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    apiVersion: Literal["kdeclare/v1"]  # noqa: N815
    kind: str
    metadata: Metadata
    spec: Any


def envelope(kind: str, spec: type[BaseModel]) -> type[Envelope]:
    """The model of whole documents of a kind."""
    only: Any = Literal[kind]
    return create_model(kind, __base__=Envelope, kind=(only, ...), spec=(spec, ...))


@dataclass(frozen=True, slots=True)
class Document:
    """A valid document: name and labels, and what its kind made of the spec."""

    kind: str
    name: str
    labels: Mapping[str, str]
    body: Any


class Shapes:
    """Validates documents of the known kinds."""

    def __init__(self, kinds: Mapping[str, Declarable]) -> None:
        self._kinds = kinds
        self._models: dict[str, type[Envelope]] = {}

    def check(self, data: Any, root: Node, *, readable: bool) -> tuple[Document | None, list[Diagnostic]]:
        """The document that ``data`` is, if it is one, and everything that is wrong with it.

        readable: False where scalars could not be read; the kind is asked of the other fields only then.
        """
        if not isinstance(data, dict):
            return None, [not_a_manifest(root)]
        kind = self._kinds.get(data.get("kind", "")) if isinstance(data.get("kind"), str) else None
        if kind is None:
            return None, self._without_kind(data, root)
        model = self._model(kind)
        problems: list[Diagnostic] = []
        wrong: set[str | int] | None = set()
        try:
            manifest = model.model_validate(data, strict=True)
        except ValidationError as e:
            problems = explain(e, model, data, root)
            wrong = affected_fields(e)
        else:
            if readable:
                body, found = kind.parse(manifest.metadata.name, manifest.spec)
                document = Document(kind.name, manifest.metadata.name, manifest.metadata.labels, body)
                return document, [_placed(problem, root) for problem in found] if found else []
        if wrong is not None:
            problems += _still_asked(kind, data, wrong, root)
        return None, problems

    def may_show(self, root: Node, node: Node) -> bool:
        """Whether a message may repeat a scalar of a document: its model says that it is no secret."""
        kind = child(root, "kind")
        known = self._kinds.get(kind[1].value) if kind and isinstance(kind[1], ScalarNode) else None
        path = path_to(root, node)
        return path is not None and may_be_shown(Envelope if known is None else self._model(known), path)

    def unknown(self, kind: str, root: Node) -> list[Diagnostic]:
        """What is wrong with a document's kind."""
        return [] if kind in self._kinds else [unknown_kind(kind, self._kinds, root)]

    def _model(self, kind: Declarable) -> type[Envelope]:
        model = self._models.get(kind.name)
        if model is None:
            model = self._models[kind.name] = envelope(kind.name, kind.spec)
        return model

    def _without_kind(self, data: dict[Any, Any], root: Node) -> list[Diagnostic]:
        problems: list[Diagnostic] = []
        if isinstance(data.get("kind"), str):
            problems.append(unknown_kind(data["kind"], self._kinds, root))
        try:
            Envelope.model_validate(data, strict=True)
        except ValidationError as e:
            problems += explain(e, Envelope, data, root)
        return problems


def _still_asked(
    kind: Declarable, data: dict[Any, Any], wrong: set[str | int], root: Node
) -> list[Diagnostic]:
    """What the kind says of the fields that are well, so that all problems are told at once."""
    spec, metadata = data.get("spec"), data.get("metadata")
    if not isinstance(spec, dict):
        return []
    name = metadata.get("name") if isinstance(metadata, dict) else None
    sound = {key: value for key, value in spec.items() if key not in wrong and not holds_broken(value)}
    try:
        parsed = kind.spec.model_validate(sound, strict=True)
    except ValidationError:
        return []
    _, found = kind.parse(name if isinstance(name, str) else "", parsed)
    return [_placed(problem, root) for problem in found if _is_certain(problem, named=bool(name))]


def _is_certain(problem: Problem, *, named: bool) -> bool:
    """Whether it is true however the fields that could not be read turn out.

    What is said of the spec as a whole, or of a field that lacks its neighbours, may not be.
    """
    return problem.offset is not None or (len(problem.path) > 1 and (named or problem.path != NAME))


def not_a_manifest(root: Node) -> Diagnostic:
    """For a document that is no mapping."""
    return error(
        "not-a-manifest",
        "Not a manifest",
        "A manifest is a mapping with apiVersion, kind, metadata and spec.",
        place=find(root, ()),
    )


def unknown_kind(kind: str, kinds: Mapping[str, Declarable], root: Node) -> Diagnostic:
    """For a document of a kind that there is not."""
    return error(
        "unknown-kind",
        "Unknown kind",
        f"'{kind}' is not a kind of resource.",
        hint=_ELSEWHERE.get(kind) or did_you_mean(kind, kinds) or f"Kinds are {one_of(kinds)}.",
        place=find(root, ("kind",)),
        subject=kind,
    )


def _placed(problem: Problem, root: Node) -> Diagnostic:
    path = problem.path
    full = path if path == NAME else ("spec", *path)
    if problem.offset is not None and (text := node_at(root, full)) is not None:
        return replace(problem.diagnostic, place=within(text, problem.offset))
    # a key of a config mapping is what people look for, not its value
    return replace(problem.diagnostic, place=find(root, full, key=_names_key(path)))


def _names_key(path: tuple[str | int, ...]) -> bool:
    return len(path) == 2 and path[0] in ("configs", "config", "headers")
