"""Read the documents of kind AcceptedDrift that a fleet file lists."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field
from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.provider.registry import CODECS, KINDS
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.manifests.document_models import Envelope, Metadata, validate_document
from kdeclare.manifests.fleet.accepted_drift import (
    AcceptableFinding,
    AcceptedDrift,
    NameSelector,
    ResourceSelector,
)
from kdeclare.manifests.fleet.fleet_definition import Fleet
from kdeclare.manifests.syntax.files import FileFinder, read_file
from kdeclare.manifests.syntax.node_reader import TEXT, NodeReader, build_modes_by_name
from kdeclare.manifests.syntax.nodes import compose, find_position

_Path = tuple[str | int, ...]
_Names = Annotated[list[Annotated[str, RawText()]], Field(min_length=1)]
_MODES = build_modes_by_name(
    dict.fromkeys(("metadata", "reason", "owner", "expires", "clusters", "names", "fields"), TEXT)
)
"""How the scalars of a document are read. In some fields, such as ``expires``, they are read as strings."""


class AcceptedResources(BaseModel):
    """An element of ``spec.resources``: the names of some resources, and their kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    kind: str
    names: _Names


class AcceptedDriftSpec(BaseModel):
    """``spec`` of a document of kind AcceptedDrift."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    reason: Annotated[str, Field(min_length=1)]
    owner: str | None = None
    expires: Annotated[str, Field(json_schema_extra={"format": "date"})]
    clusters: _Names | None = None
    resources: Annotated[list[AcceptedResources], Field(min_length=1)]
    fields: _Names | None = None
    findings: Annotated[list[AcceptableFinding] | None, Field(min_length=1)] = None


class AcceptedDriftManifest(Envelope):
    """A complete document of kind AcceptedDrift."""

    kind: Literal["AcceptedDrift"]
    metadata: Metadata
    spec: AcceptedDriftSpec


def load_accepted_drift(fleet: Fleet) -> tuple[AcceptedDrift, ...]:
    """Return the accepted drift that a fleet file lists. Raises KdeclareError with all problems."""
    loader = _Loader(fleet)
    loader.load()
    if loader.problems:
        raise KdeclareError(*sort_diagnostics(loader.problems))
    return tuple(loader.items)


class _Loader:
    """Loads all documents of kind AcceptedDrift that a fleet file lists, and collects their problems."""

    def __init__(self, fleet: Fleet) -> None:
        self.items: list[AcceptedDrift] = []
        self.problems: list[Diagnostic] = []
        self._fleet = fleet
        self._positions: dict[str, SourcePosition] = {}

    def load(self) -> None:
        """Load all files."""
        finder = FileFinder(stated=self._fleet.accepted_drift, diagnostics=self.problems)
        for file in finder.find(self._fleet.accepted_drift):
            data = read_file(file, self.problems)
            for root in compose(file, data, self.problems) if data is not None else ():
                self._load_document(root)

    def _load_document(self, root: Node) -> None:
        try:
            manifest = validate_document(AcceptedDriftManifest, root, NodeReader(None, _MODES))
        except KdeclareError as problem:
            self.problems += problem.diagnostics
            return
        name, spec = manifest.metadata.name, manifest.spec
        position = find_position(root, ("metadata", "name"))
        problems = [*_check_spec(spec, root)]
        if self._positions.setdefault(name, position) is not position:
            detail = f"The accepted drift at {self._positions[name]} is also named '{name}'."
            hint = "Give each accepted drift a unique name, because reports refer to it by name."
            problems.append(error("duplicate-name", "Duplicate name", detail, hint=hint, place=position))
        self.problems += problems
        if not problems:
            self.items.append(_build_item(name, spec))


def _check_spec(spec: AcceptedDriftSpec, root: Node) -> Iterator[Diagnostic]:
    if _parse_date(spec.expires) is None:
        yield error(
            "bad-value",
            "Bad value",
            f"'expires' must be a date, but it is '{spec.expires}'.",
            hint="Write the last day on which the drift is accepted, such as '2027-01-31'.",
            place=find_position(root, ("spec", "expires")),
            subject="expires",
        )
    known_kinds = sorted({*KINDS, *CODECS})
    for n, item in enumerate(spec.resources):
        if item.kind not in known_kinds:
            yield error(
                "unknown-kind",
                "Unknown kind",
                f"'{item.kind}' is not a kind of resource.",
                hint=format_suggestion(item.kind, known_kinds) or f"Use {format_alternatives(known_kinds)}.",
                place=find_position(root, ("spec", "resources", n, "kind")),
                subject=item.kind,
            )
    yield from _check_patterns(spec, root)


def _check_patterns(spec: AcceptedDriftSpec, root: Node) -> Iterator[Diagnostic]:
    named: Mapping[_Path, list[str]] = {
        ("clusters",): spec.clusters or [],
        ("fields",): spec.fields or [],
        **{("resources", n, "names"): item.names for n, item in enumerate(spec.resources)},
    }
    for path, texts in named.items():
        for n, text in enumerate(texts):
            try:
                if is_pattern(text):
                    compile_pattern(text[1:-1])
            except PatternError as problem:
                yield error(
                    "bad-pattern",
                    "Invalid regular expression",
                    f"{text} is not a valid regular expression: {problem.located_reason}.",
                    hint=RE2_HINT,
                    place=find_position(root, ("spec", *path, n)),
                )


def _parse_date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _build_item(name: str, spec: AcceptedDriftSpec) -> AcceptedDrift:
    return AcceptedDrift(
        name,
        spec.reason,
        spec.owner,
        date.fromisoformat(spec.expires),
        tuple(ResourceSelector(item.kind, NameSelector(tuple(item.names))) for item in spec.resources),
        NameSelector(tuple(spec.clusters or ())),
        NameSelector(tuple(spec.fields or ())),
        frozenset(spec.findings or get_args(AcceptableFinding)),
    )
