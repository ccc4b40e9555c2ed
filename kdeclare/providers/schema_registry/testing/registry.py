"""`MemoryRegistry`: a schema registry that runs inside the test process."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from threading import RLock
from typing import TypeVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    CompatibilityResult,
    Mode,
    RegisteredSchema,
    Registration,
    RegistryInfo,
    SchemaContent,
    SubjectLevel,
    SubjectVersion,
)
from kdeclare.providers.schema_registry.testing import compatibility, contents
from kdeclare.providers.schema_registry.testing.behavior import CONFLUENT, Behavior
from kdeclare.testing import faults

_Answer = TypeVar("_Answer")

MUTATING_METHODS = frozenset({"register", "set_level", "delete_level", "delete_version", "delete_subject"})
"""The methods of `SchemaRegistry` that change the registry."""


@dataclass(frozen=True, slots=True)
class Call(faults.Call):
    """One request to the registry.

    method: the name of the method of `SchemaRegistry`.
    items: the subject, or the subject and the version.
    """

    @property
    def is_mutating(self) -> bool:
        """Whether the request changes the registry."""
        return self.method in MUTATING_METHODS


@dataclass
class _Version:
    schema: RegisteredSchema
    is_deleted: bool = False


@dataclass
class _State:
    """The data stored in a registry. All clients of the registry share one object of this class."""

    level: CompatibilityLevel
    mode: Mode | None
    subjects: dict[str, dict[int, _Version]] = field(default_factory=dict)
    levels: dict[str, CompatibilityLevel] = field(default_factory=dict)
    subject_modes: dict[str, Mode] = field(default_factory=dict)
    ids: dict[object, int] = field(default_factory=dict)


class MemoryRegistry:
    """Implements `SchemaRegistry` in memory. Thread-safe.

    behavior: the behavior of the product to imitate.
    faults: the rules that make requests fail. A rule that makes a read fail must name the method; a rule
        without a method applies to the methods in ``MUTATING_METHODS``.
    calls: every request, in order.
    """

    def __init__(self, behavior: Behavior = CONFLUENT) -> None:
        self.behavior = behavior
        self.faults: faults.FaultPlan[MemoryRegistry] = faults.FaultPlan()
        self.calls: list[Call] = []
        self._state = _State(behavior.level, behavior.mode)
        self._lock = RLock()

    @property
    def writes(self) -> list[Call]:
        """All requests that change the registry."""
        return [call for call in self.calls if call.is_mutating]

    def elsewhere(self) -> "MemoryRegistry":
        """Return another client of the same registry, without any logged requests or faults."""
        other = MemoryRegistry(self.behavior)
        other._state, other._lock = self._state, self._lock
        return other

    def set_mode(self, mode: Mode, subject: str | None = None) -> None:
        """Set the mode of the registry or of a subject, as an administrator would."""
        if self._state.mode is None:
            raise ValueError(f"{self.behavior.product} has no modes")
        if subject is None:
            self._state.mode = mode
        else:
            self._state.subject_modes[subject] = mode

    def identify(self) -> RegistryInfo:
        """See `SchemaRegistry.identify`."""
        return self._handle(
            "identify",
            lambda: RegistryInfo(
                self.behavior.id,
                self.behavior.version,
                self._state.level,
                self._state.mode,
                self.behavior.distinguishes_own_levels,
            ),
        )

    def list_subjects(self, *, include_deleted: bool = False) -> frozenset[str]:
        """See `SchemaRegistry.list_subjects`."""

        def answer() -> frozenset[str]:
            return frozenset(name for name in self._state.subjects if self._list(name, include_deleted))

        return self._handle("list_subjects", answer)

    def list_versions(self, subject: str, *, include_deleted: bool = False) -> tuple[int, ...]:
        """See `SchemaRegistry.list_versions`."""
        return self._handle(
            "list_versions", lambda: tuple(sorted(self._list(subject, include_deleted))), subject
        )

    def read_version(
        self, subject: str, version: int | None = None, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """See `SchemaRegistry.read_version`."""

        def answer() -> RegisteredSchema | None:
            versions = self._list(subject, include_deleted)
            return versions.get(max(versions, default=0) if version is None else version)

        return self._handle("read_version", answer, subject)

    def find_version(
        self, subject: str, content: SchemaContent, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """See `SchemaRegistry.find_version`."""

        def answer() -> RegisteredSchema | None:
            self._validate(content)
            return self._find(subject, content, include_deleted)

        return self._handle("find_version", answer, subject)

    def list_latest(self) -> Mapping[str, RegisteredSchema] | None:
        """See `SchemaRegistry.list_latest`."""

        def answer() -> Mapping[str, RegisteredSchema] | None:
            if not self.behavior.lists_schemas:
                return None
            versions_by_subject = {name: self._list(name) for name in self._state.subjects}
            return {name: found[max(found)] for name, found in versions_by_subject.items() if found}

        return self._handle("list_latest", answer)

    def register(self, subject: str, content: SchemaContent) -> Registration:
        """See `SchemaRegistry.register`."""

        def answer() -> Registration:
            self._validate(content)
            existing = self._find(subject, content)
            if existing is not None:
                return Registration(existing.id, existing.version)
            self._require_writable(subject)
            result = self._check(subject, content)
            if not result.is_compatible:
                reasons = "; ".join(result.reasons)
                message = f"Schema being registered is incompatible with an earlier schema: {reasons}"
                raise Fault(port.INCOMPATIBLE, message)
            return self._store(subject, content)

        return self._handle("register", answer, subject)

    def check_compatibility(
        self, subject: str, content: SchemaContent, *, level: CompatibilityLevel | None = None
    ) -> CompatibilityResult:
        """See `SchemaRegistry.check_compatibility`."""

        def answer() -> CompatibilityResult:
            self._validate(content)
            if not self._list(subject):
                return CompatibilityResult(True, is_checked=not self.behavior.reports_missing_versions)
            if content.references and not self.behavior.checks_references:
                message = "Could not execute compatibility rule on invalid schema"
                return CompatibilityResult(True, (message,), is_checked=False)
            result = self._check(subject, content)
            return result if self.behavior.explains_checks else replace(result, reasons=())

        return self._handle("check_compatibility", answer, subject)

    def read_level(self, subject: str, *, global_level: CompatibilityLevel | None = None) -> SubjectLevel:
        """See `SchemaRegistry.read_level`."""

        def answer() -> SubjectLevel:
            own = self._state.levels.get(subject)
            default = global_level or self._state.level
            effective = own or default
            if self.behavior.distinguishes_own_levels or (own is None and not self._list(subject)):
                return SubjectLevel(effective, own)
            if (own or CompatibilityLevel.NONE) != effective:
                return SubjectLevel(effective, None)
            if effective != default:
                return SubjectLevel(effective, own)
            return SubjectLevel(effective, None, is_own_known=False)

        return self._handle("read_level", answer, subject)

    def read_global_level(self) -> CompatibilityLevel:
        """See `SchemaRegistry.read_global_level`."""
        return self._handle("read_global_level", lambda: self._state.level)

    def set_level(self, subject: str | None, level: CompatibilityLevel) -> None:
        """See `SchemaRegistry.set_level`."""

        def answer() -> None:
            self._require_writable(subject)
            if subject is None:
                self._state.level = level
                return
            if level is CompatibilityLevel.NONE and not self.behavior.stores_level_none:
                self._state.levels.pop(subject, None)
            else:
                self._state.levels[subject] = level

        self._handle("set_level", answer, *(() if subject is None else (subject,)))

    def delete_level(self, subject: str) -> None:
        """See `SchemaRegistry.delete_level`."""

        def answer() -> None:
            self._require_writable(subject)
            self._state.levels.pop(subject, None)

        self._handle("delete_level", answer, subject)

    def read_mode(self, subject: str | None = None) -> Mode | None:
        """See `SchemaRegistry.read_mode`."""
        return self._handle(
            "read_mode", lambda: self._get_mode(subject), *(() if subject is None else (subject,))
        )

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> None:
        """See `SchemaRegistry.delete_version`."""

        def answer() -> None:
            self._require_writable(subject)
            versions = self._state.subjects.get(subject, {})
            if not versions:
                raise _build_subject_fault(subject)
            if version not in versions:
                raise Fault(port.VERSION_NOT_FOUND, f"Version {version} not found.")
            stored = versions[version]
            described = f"Subject '{subject}' Version {version}"
            if permanent and not stored.is_deleted:
                message = f"{described} was not deleted first before being permanently deleted"
                raise Fault(port.VERSION_NOT_SOFT_DELETED, message)
            if not permanent and stored.is_deleted:
                message = f"{described} was soft deleted. Set permanent=true to delete permanently"
                raise Fault(port.VERSION_SOFT_DELETED, message)
            self._require_unreferenced(subject, [version])
            self._delete(subject, [version], permanent=permanent)

        self._handle("delete_version", answer, subject, str(version))

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """See `SchemaRegistry.delete_subject`."""

        def answer() -> tuple[int, ...]:
            self._require_writable(subject)
            all_versions, live_versions = self._list(subject, include_deleted=True), self._list(subject)
            if not all_versions:
                raise _build_subject_fault(subject)
            if permanent and live_versions:
                message = f"Subject '{subject}' was not deleted first before being permanently deleted"
                raise Fault(port.SUBJECT_NOT_SOFT_DELETED, message)
            if not permanent and not live_versions:
                message = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
                raise Fault(port.SUBJECT_SOFT_DELETED, message)
            versions = sorted(all_versions if permanent else live_versions)
            self._require_unreferenced(subject, versions)
            self._delete(subject, versions, permanent=permanent)
            if self.behavior.deletes_level_with_subject:
                self._state.levels.pop(subject, None)
            return tuple(versions)

        return self._handle("delete_subject", answer, subject)

    def list_referrers(self, subject: str, version: int) -> tuple[SubjectVersion, ...]:
        """See `SchemaRegistry.list_referrers`."""
        return self._handle("list_referrers", lambda: self._find_referrers(subject, version), subject)

    def close(self) -> None:
        """See `SchemaRegistry.close`."""

    def _handle(self, method: str, answer: Callable[[], _Answer], *items: str) -> _Answer:
        with self._lock:
            call = Call(method, items)
            return faults.run_request(
                self.faults, self.calls, call, lambda refused: _answer(refused, answer), self.elsewhere
            )

    def _list(self, subject: str, include_deleted: bool = False) -> Mapping[int, RegisteredSchema]:
        versions = self._state.subjects.get(subject, {})
        return {
            number: stored.schema
            for number, stored in versions.items()
            if include_deleted or not stored.is_deleted
        }

    def _validate(self, content: SchemaContent) -> None:
        """Raise Fault INVALID_SCHEMA if the registry cannot parse the schema or a reference is missing."""
        for one in content.references:
            if one.version not in self._list(one.subject):
                message = f"Unresolved reference: {one.name} (version {one.version} of {one.subject})"
                raise Fault(port.INVALID_SCHEMA, message)
        if content.text or not self.behavior.accepts_empty_text:
            contents.validate(content)

    def _find(
        self, subject: str, content: SchemaContent, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        identity = self._identify(content)
        versions = self._list(subject, include_deleted)
        for number in sorted(versions, reverse=True):
            if self._identify(versions[number].content) == identity:
                return versions[number]
        return None

    def _identify(self, content: SchemaContent) -> object:
        """Return a value that is equal for two schemas if the registry considers them equal."""
        return content if self.behavior.compares_text else contents.normalize_content(content)

    def _check(self, subject: str, content: SchemaContent) -> CompatibilityResult:
        level = self._state.levels.get(subject, self._state.level)
        versions = self._list(subject)
        numbers = sorted(versions, reverse=True)
        earlier_contents = [
            versions[number].content for number in (numbers if level.is_transitive else numbers[:1])
        ]
        reasons = compatibility.find_incompatibilities(level, content, earlier_contents, self._resolve)
        return CompatibilityResult(not reasons, tuple(reasons))

    def _resolve(self, subject: str, version: int) -> SchemaContent:
        return self._state.subjects[subject][version].schema.content

    def _store(self, subject: str, content: SchemaContent) -> Registration:
        versions = self._state.subjects.setdefault(subject, {})
        identity = self._identify(content)
        schema_id = self._state.ids.setdefault(identity, len(self._state.ids) + 1)
        number = max(versions, default=0) + 1  # soft-deleted versions keep their numbers
        versions[number] = _Version(RegisteredSchema(subject, number, schema_id, content))
        return Registration(schema_id, number)

    def _delete(self, subject: str, numbers: list[int], *, permanent: bool) -> None:
        versions = self._state.subjects[subject]
        for number in numbers:
            if permanent:
                del versions[number]
            else:
                versions[number] = replace(versions[number], is_deleted=True)
        if not versions:
            del self._state.subjects[subject]

    def _find_referrers(self, subject: str, version: int) -> tuple[SubjectVersion, ...]:
        return tuple(
            SubjectVersion(name, number)
            for name in sorted(self._state.subjects)
            for number, schema in sorted(self._list(name).items())
            if any((one.subject, one.version) == (subject, version) for one in schema.content.references)
        )

    def _require_unreferenced(self, subject: str, numbers: list[int]) -> None:
        for number in numbers:
            if self._find_referrers(subject, number):
                message = f"One or more references exist to the schema {subject}, version {number}."
                raise Fault(port.REFERENCE_EXISTS, message)

    def _get_mode(self, subject: str | None) -> Mode | None:
        return self._state.subject_modes.get(subject, self._state.mode) if subject else self._state.mode

    def _require_writable(self, subject: str | None) -> None:
        mode = self._get_mode(subject)
        if mode is not None and mode is not Mode.READWRITE:
            where = f"Subject '{subject}'" if subject else "The registry"
            raise Fault(port.NOT_PERMITTED, f"{where} is in the mode {mode.value}")


def _answer(refused: Mapping[str, Fault], answer: Callable[[], _Answer]) -> _Answer:
    for fault in refused.values():
        raise fault
    return answer()


def _build_subject_fault(subject: str) -> Fault:
    return Fault(port.SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")
