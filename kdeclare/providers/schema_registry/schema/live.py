"""Read the subjects of schema registries: their versions, references and compatibility levels."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import cached_property
from threading import Lock
from typing import TypeVar

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import CollectResult, ExpectedObjects
from kdeclare.core.live.endpoints import EndpointStatus
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.resources.endpoint_choice import EndpointChoice, choose_endpoint
from kdeclare.providers.schema_registry.client.port import (
    LOST,
    UNREACHABLE,
    RegisteredSchema,
    RegistryInfo,
    SchemaContent,
    SchemaRegistry,
    SchemaType,
    SubjectLevel,
)
from kdeclare.providers.schema_registry.connection import ENVIRONMENT_FIELD, RegistryClients
from kdeclare.providers.schema_registry.schema.content import (
    compute_fingerprint,
    format_reference,
    normalize_text,
)

Endpoint = str | None
"""The name of a registry in the environment; None for the only registry."""

_READERS = 8
"""The maximum number of requests that are sent to one registry at the same time."""
_UNKNOWN = "unknown"
"""The fingerprint of the content if a reference is circular or its version does not exist."""

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class SubjectQuery:
    """What a plan needs to read about one subject. The latest version and the level are always read.

    wanted: normalized contents (see `identify_content`). If any of them is not the content of the latest
        version, all versions are read.
    versions: the numbers of additional versions to read.
    has_history: whether to read all versions in any case.
    has_deleted: whether to list the soft-deleted versions.
    """

    endpoint: Endpoint
    subject: str
    wanted: frozenset[tuple[str, str]] = frozenset()
    versions: frozenset[int] = frozenset()
    has_history: bool = False
    has_deleted: bool = False

    def merge(self, other: "SubjectQuery") -> "SubjectQuery":
        """Return a query that reads everything that either query reads.

        Both queries must be about the same subject.
        """
        return SubjectQuery(
            self.endpoint,
            self.subject,
            self.wanted | other.wanted,
            self.versions | other.versions,
            self.has_history or other.has_history,
            self.has_deleted or other.has_deleted,
        )


@dataclass(frozen=True, slots=True)
class SchemaSelection:
    """The subjects to read.

    has_all: whether to read the latest version of every subject of every registry.
    """

    queries: frozenset[SubjectQuery] = frozenset()
    has_all: bool = False

    def merge(self, others: Sequence["SchemaSelection"]) -> "SchemaSelection":
        """See `Selection`."""
        return SchemaSelection(
            self.queries.union(*(other.queries for other in others)),
            self.has_all or any(other.has_all for other in others),
        )


@dataclass(frozen=True, slots=True)
class LiveVersion:
    """One version of a subject.

    normalized: the normalized text of the schema.
    targets: for each reference, in order, the fingerprint of the referenced version.
    fingerprint: a hash of the content, including the contents of all references.
    """

    schema: RegisteredSchema
    normalized: str
    targets: tuple[str, ...]
    fingerprint: str

    @property
    def number(self) -> int:
        """The number of the version."""
        return self.schema.version

    @property
    def content(self) -> SchemaContent:
        """The content, as the registry returned it."""
        return self.schema.content

    @property
    def references(self) -> tuple[str, ...]:
        """The sorted references with the referenced contents (see `format_reference`)."""
        return _list_references(self.content, self.targets)


@dataclass(frozen=True)
class LiveSubject:
    """One subject. A subject without versions does not exist.

    versions: the versions that were read, in ascending order. They always include the latest version.
    is_complete: whether ``versions`` contains all versions that are not soft-deleted.
    all_numbers: the numbers of all versions, including the soft-deleted versions; empty if they were not
        read.
    """

    level: SubjectLevel
    versions: tuple[LiveVersion, ...] = ()
    is_complete: bool = True
    all_numbers: tuple[int, ...] = ()

    @property
    def latest(self) -> LiveVersion | None:
        """The latest version; None if the subject does not exist."""
        return self.versions[-1] if self.versions else None

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the versions that were read."""
        return tuple(version.number for version in self.versions)

    def find(self, fingerprint: str) -> LiveVersion | None:
        """Return the newest version with this content; None if no version that was read has this content."""
        return next((v for v in reversed(self.versions) if v.fingerprint == fingerprint), None)

    def get(self, number: int | None) -> LiveVersion | None:
        """Return one version, or the latest version if ``number`` is None.

        Return None if the version does not exist.
        """
        if number is None:
            return self.latest
        return next((version for version in self.versions if version.number == number), None)


@dataclass(frozen=True, slots=True)
class RegistrySnapshot:
    """What was read from one registry.

    choice: the name of the registry, or why the name in a manifest selects no registry.
    info: None if the registry was not read.
    problem: the reason why the registry could not be read; None if it was read.
    names: the names of all subjects; None if they were not read.
    is_whole: whether ``subjects`` contains all subjects of the registry.
    """

    choice: EndpointChoice
    info: RegistryInfo | None = None
    subjects: Mapping[str, LiveSubject] = field(default_factory=dict)
    problem: Fault | None = None
    names: frozenset[str] | None = None
    is_whole: bool = False

    @property
    def name(self) -> str:
        """The name of the registry. Raises LookupError if the registry is not configured."""
        if self.choice.name is None:
            raise LookupError(self.choice.problem)
        return self.choice.name

    def require_info(self) -> RegistryInfo:
        """Return the information that the registry reports about itself.

        Raises Fault if the registry could not be read.
        """
        if self.info is None:
            raise self.problem or Fault(LOST, "the registry was not read")
        return self.info

    def get(self, subject: str) -> LiveSubject:
        """Return a subject, which may not exist. Raises Fault if the registry could not be read."""
        if self.problem is not None:
            raise self.problem
        found = self.find(subject)
        if found is None:
            raise LookupError(f"the subject {subject} was not read")
        return found

    def find(self, subject: str) -> LiveSubject | None:
        """Return a subject; None if it was not read."""
        found = self.subjects.get(subject)
        if found is None and self.is_whole and self.info is not None:
            return LiveSubject(SubjectLevel(self.info.level, None))
        return found


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The live state of schema registries, by the names that manifests and records use."""

    registries: Mapping[Endpoint, RegistrySnapshot] = field(default_factory=dict)

    def get(self, endpoint: Endpoint) -> RegistrySnapshot:
        """Return the snapshot of a registry.

        endpoint: the name in the manifest, which is None for the only registry; or the name in an operation
            or a record, which is never None.
        """
        if endpoint in self.registries:
            return self.registries[endpoint]
        for snapshot in self.registries.values():
            if snapshot.choice.name == endpoint:
                return snapshot
        names = [name for name in self.registries if name is not None]
        return RegistrySnapshot(choose_endpoint(endpoint, names, ENVIRONMENT_FIELD))


def identify_content(type_: SchemaType, text: str) -> tuple[str, str]:
    """Return a value that is the same for schemas that differ only in their layout and references."""
    return type_.value, normalize_text(type_, text)


class RegistryReader:
    """Reads the versions of one registry, each version at most once. Thread-safe."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._versions: dict[tuple[str, int], LiveVersion] = {}
        self._lock = Lock()

    def read_version(self, subject: str, number: int | None = None) -> LiveVersion | None:
        """Return one version, or the latest version; None if there is no such version. Raises Fault."""
        return self._read(subject, number, ())

    def read_subject(
        self,
        query: SubjectQuery,
        info: RegistryInfo,
        latest_schemas: Mapping[str, RegisteredSchema] | None = None,
    ) -> LiveSubject:
        """Return one subject. latest_schemas: the latest versions that were already read. Raises Fault."""
        registry, subject = self._registry, query.subject
        level = registry.read_level(subject, global_level=info.level)
        known = (latest_schemas or {}).get(subject)
        latest = self.read_version(subject) if known is None else self.add(known)
        all_numbers = registry.list_versions(subject, include_deleted=True) if query.has_deleted else ()
        if latest is None:
            return LiveSubject(level, all_numbers=all_numbers)
        content = identify_content(latest.content.type, latest.content.text)
        needs_history = query.has_history or bool(query.wanted - {content})
        numbers = {latest.number, *query.versions}
        if needs_history:
            numbers = {*registry.list_versions(subject), latest.number}
        versions = (
            latest if number == latest.number else self.read_version(subject, number)
            for number in sorted(numbers)
            if number <= latest.number
        )
        is_complete = needs_history or latest.number == 1
        return LiveSubject(level, tuple(v for v in versions if v is not None), is_complete, all_numbers)

    def add(self, schema: RegisteredSchema) -> LiveVersion:
        """Resolve the references of a version that was already read, and return the version. Raises Fault."""
        return self._resolve(schema, ())

    def _read(self, subject: str, number: int | None, path: tuple[str, ...]) -> LiveVersion | None:
        if number is not None:
            with self._lock:
                known = self._versions.get((subject, number))
            if known is not None:
                return known
        schema = self._registry.read_version(subject, number)
        return None if schema is None else self._resolve(schema, path)

    def _resolve(self, schema: RegisteredSchema, path: tuple[str, ...]) -> LiveVersion:
        key = (schema.subject, schema.version)
        with self._lock:
            known = self._versions.get(key)
        if known is not None:
            return known
        content = schema.content
        targets = tuple(
            self._read_fingerprint(item.subject, item.version, (*path, schema.subject))
            for item in content.references
        )
        version = LiveVersion(
            schema,
            normalize_text(content.type, content.text),
            targets,
            compute_fingerprint(content.type, content.text, _list_references(content, targets)),
        )
        with self._lock:
            self._versions[key] = version
        return version

    def _read_fingerprint(self, subject: str, number: int, path: tuple[str, ...]) -> str:
        if subject in path:
            return _UNKNOWN  # a circular reference, which registries do not accept
        version = self._read(subject, number, path)
        return _UNKNOWN if version is None else version.fingerprint


def _list_references(content: SchemaContent, targets: Iterable[str]) -> tuple[str, ...]:
    items = zip(content.references, targets, strict=True)
    return tuple(sorted(format_reference(item.name, item.subject, target) for item, target in items))


def read_schemas(
    connections: Connections, selection: SchemaSelection, *, with_names: bool = False
) -> SchemaState:
    """Read the selected subjects. The result also includes registries that could not be read.

    A registry that does not respond, or whose settings cannot be used, does not prevent kdeclare from reading
    the others.
    with_names: whether to read the names of all subjects, in order to count unmanaged subjects.
    """
    clients = connections.get(RegistryClients)
    by_endpoint: dict[Endpoint, dict[str, SubjectQuery]] = {}
    if selection.has_all:
        by_endpoint = {name: {} for name in clients.names}
    for query in selection.queries:
        queries = by_endpoint.setdefault(query.endpoint, {})
        known = queries.get(query.subject)
        queries[query.subject] = query if known is None else known.merge(query)
    return SchemaState(
        {
            endpoint: _read_registry(
                clients,
                clients.choose(endpoint),
                tuple(queries.values()),
                with_names=with_names,
                has_all=selection.has_all,
            )
            for endpoint, queries in by_endpoint.items()
        }
    )


def _read_registry(
    clients: RegistryClients,
    choice: EndpointChoice,
    queries: Sequence[SubjectQuery],
    *,
    with_names: bool,
    has_all: bool,
) -> RegistrySnapshot:
    if choice.name is None:
        return RegistrySnapshot(choice)
    try:
        registry = clients.open(choice.name)
        info = registry.identify()
        reader = RegistryReader(registry)
        names = registry.list_subjects() if with_names or has_all else None
        latest = registry.list_latest() if has_all else None
        for schema in (latest or {}).values():
            reader.add(schema)
        if has_all and names is not None:
            requested = {query.subject for query in queries}
            queries = (*queries, *(SubjectQuery(choice.name, name) for name in sorted(names - requested)))
        subjects = read_in_parallel(queries, lambda query: reader.read_subject(query, info, latest))
    except Fault as fault:
        return RegistrySnapshot(choice, problem=fault)
    except KdeclareError as problem:  # for example, a TLS file that cannot be used
        return RegistrySnapshot(
            choice, problem=Fault(UNREACHABLE, summarize_diagnostics(problem.diagnostics))
        )
    by_name = {query.subject: subject for query, subject in zip(queries, subjects, strict=True)}
    return RegistrySnapshot(choice, info, by_name, names=names, is_whole=has_all)


def list_subjects(snapshots: Iterable[RegistrySnapshot]) -> list[str]:
    """Return the names of all subjects that were read and exist, sorted. Raises Fault."""
    names: set[str] = set()
    for snapshot in snapshots:
        if snapshot.problem is not None:
            raise snapshot.problem
        names |= {name for name, subject in snapshot.subjects.items() if subject.latest is not None}
    return sorted(names)


def read_in_parallel(items: Iterable[_Item], read: Callable[[_Item], _Result]) -> list[_Result]:
    """Call ``read`` for all items in parallel. Return the results in the order of the items. Raises Fault."""
    listed = list(items)
    if len(listed) < 2:
        return list(map(read, listed))
    with ThreadPoolExecutor(min(_READERS, len(listed))) as pool:
        return list(pool.map(read, listed))


def collect_subjects(connections: Connections, selection: SchemaSelection) -> SchemaState:
    """Read the selected subjects. See `Collector`."""
    return read_schemas(connections, selection)


def collect_expected_subjects(
    connections: Connections, selection: SchemaSelection, expected: ExpectedObjects
) -> CollectResult:
    """Read the selected subjects for a plan. See `Collector`."""
    return CollectResult(read_schemas(connections, selection, with_names=expected.reads_all_names))


def find_endpoints(live: LiveState) -> Mapping[str, EndpointStatus]:
    """Return the id and the problem, if any, of each registry that kdeclare tried to read.

    The key is the full name of the registry. See `ListsEndpoints`.
    """
    state = live.find(SchemaState)
    snapshots = state.registries.values() if state is not None else ()
    return {
        f"{ENVIRONMENT_FIELD}/{snapshot.choice.name}": EndpointStatus(
            (snapshot.info.id or "") if snapshot.info is not None else "",
            "" if snapshot.problem is None else snapshot.problem.message or snapshot.problem.error,
        )
        for snapshot in snapshots
        if snapshot.choice.name is not None
    }
