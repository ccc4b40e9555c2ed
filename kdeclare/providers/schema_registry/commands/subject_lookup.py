"""Find subjects in the schema registries of an environment, and their declared and owned resources."""

from collections.abc import Mapping, Sequence

from kdeclare.app.adhoc.ownership import ResourceOwnership
from kdeclare.core.diagnostics import (
    ENDPOINT_UNREACHABLE,
    Diagnostic,
    KdeclareError,
    error,
    summarize_diagnostics,
)
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.endpoint_choice import list_requested_endpoints
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.suggestions import format_suggestion
from kdeclare.providers.schema_registry.client.port import RegisteredSchema, SchemaRegistry
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import SchemaRecord
from kdeclare.providers.schema_registry.schema.spec import SchemaBody


@dataclass(frozen=True, slots=True)
class LocatedSubject:
    """A subject in one registry. A subject without versions is absent.

    registry: the name of the registry in the environment.
    numbers: the numbers of the versions that are not soft-deleted, in ascending order.
    deleted: the numbers of the soft-deleted versions, in ascending order.
    """

    registry: str
    client: SchemaRegistry
    name: str
    numbers: tuple[int, ...] = ()
    deleted: tuple[int, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether the subject has any versions."""
        return bool(self.numbers or self.deleted)

    def read_version(self, number: int) -> RegisteredSchema:
        """Return a version, which can be soft-deleted.

        Raises Fault, and KdeclareError if the version does not exist.
        """
        is_deleted = number in self.deleted
        schema = self.client.read_version(self.name, number, include_deleted=is_deleted)
        if schema is None:
            raise KdeclareError(_report_missing_version(self, number))
        return schema


class SubjectOwners:
    """The declared and the owned resource of each subject, by the name of the registry and the subject."""

    def __init__(self, ownership: ResourceOwnership, clients: RegistryClients) -> None:
        self._declared: dict[tuple[str | None, str], DesiredResource] = {}
        for item in ownership.declared.values():
            if isinstance(item.body, SchemaBody):
                self._declared[clients.choose(item.body.registry).name, item.body.subject] = item
        self._owned = {
            (record.registry, record.subject): resource
            for resource, record in ownership.owned.items()
            if isinstance(record, SchemaRecord)
        }

    def find_declared(self, registry: str, subject: str) -> DesiredResource | None:
        """Return the declared resource of a subject; None if no manifest declares the subject."""
        return self._declared.get((registry, subject))

    def find_declared_id(self, registry: str, subject: str) -> str | None:
        """Return the id of the declared resource of a subject; None if no manifest declares the subject."""
        item = self.find_declared(registry, subject)
        return None if item is None else str(item.id)

    def find_owner_id(self, registry: str, subject: str) -> str | None:
        """Return the id of the owned resource of a subject; None if kdeclare does not own the subject."""
        return self._owned.get((registry, subject))


def list_registries(clients: RegistryClients, registry: str | None) -> Sequence[str]:
    """Return the requested registry, or all registries of the environment.

    Raises KdeclareError if there is none.
    """
    return list_requested_endpoints(registry, clients.names, clients.choose)


def describe_problem(problem: Fault | KdeclareError) -> str:
    """Return why a registry could not be read, as a clause."""
    if isinstance(problem, Fault):
        return (problem.message or problem.error).rstrip(".")
    return summarize_diagnostics(problem.diagnostics).rstrip(".")


def locate_subject(clients: RegistryClients, subject: str, registry: str | None) -> LocatedSubject:
    """Return an existing subject. registry: its registry; None to search all registries of the environment.

    Raises KdeclareError if the subject is absent or in several registries, or if a registry cannot be read,
    because this registry could contain a subject of the same name.
    """
    searched = _search_registries(clients, subject, registry)
    found = [item for item in searched.values() if item.exists]
    if not found:
        raise KdeclareError(_report_missing_subject(subject, searched))
    return _take_only(subject, found)


def locate_target(clients: RegistryClients, subject: str, registry: str | None) -> LocatedSubject:
    """Return the subject under which a schema would be registered. It need not exist yet.

    Raises KdeclareError if the subject is in several registries, if the subject is absent and several
    registries could contain it, or if a registry cannot be read.
    """
    searched = _search_registries(clients, subject, registry)
    found = [item for item in searched.values() if item.exists]
    return _take_only(subject, found or list(searched.values()))


def _search_registries(
    clients: RegistryClients, subject: str, registry: str | None
) -> Mapping[str, LocatedSubject]:
    searched: dict[str, LocatedSubject] = {}
    for name in list_registries(clients, registry):
        try:
            searched[name] = _read_numbers(name, clients.open(name), subject)
        except (Fault, KdeclareError) as problem:
            raise KdeclareError(_report_unreadable(name, problem)) from None
    return searched


def _read_numbers(registry: str, client: SchemaRegistry, subject: str) -> LocatedSubject:
    all_numbers = client.list_versions(subject, include_deleted=True)
    numbers = client.list_versions(subject) if all_numbers else ()
    deleted = tuple(number for number in all_numbers if number not in numbers)
    return LocatedSubject(registry, client, subject, numbers, deleted)


def _take_only(subject: str, found: Sequence[LocatedSubject]) -> LocatedSubject:
    if len(found) == 1:
        return found[0]
    names = ", ".join(item.registry for item in found)
    detail = (
        f"The subject '{subject}' exists in the registries {names}."
        if found[0].exists
        else f"The subject '{subject}' does not exist yet, and the environment has the registries {names}."
    )
    raise KdeclareError(
        error(
            "ambiguous-registry",
            "Registry is ambiguous",
            detail,
            hint="Pass --registry with the name of one of them.",
        )
    )


def _report_unreadable(registry: str, problem: Fault | KdeclareError) -> Diagnostic:
    return error(
        ENDPOINT_UNREACHABLE,
        "Schema registry cannot be read",
        f"registries/{registry}: {describe_problem(problem)}.",
        hint="Check that the registry is running, or pass --registry to name another registry.",
    )


def _report_missing_subject(subject: str, searched: Mapping[str, LocatedSubject]) -> Diagnostic:
    known: set[str] = set()
    for item in searched.values():
        known |= item.client.list_subjects()
    return error(
        "unknown-subject",
        "Subject does not exist",
        f"The subject '{subject}' does not exist in {', '.join(searched)}.",
        hint=format_suggestion(subject, sorted(known))
        or "Run 'kdeclare schema-registry list' to see all subjects.",
    )


def _report_missing_version(subject: LocatedSubject, number: int) -> Diagnostic:
    def format_numbers(numbers: Sequence[int]) -> str:
        return ", ".join(map(str, numbers)) or "none"

    if number in subject.deleted:
        return error(
            "unknown-version",
            "Version is soft-deleted",
            f"Version {number} of subject '{subject.name}' in registry '{subject.registry}' is soft-deleted, "
            "and the registry does not return it.",
            hint=f"Use another version of the subject: {format_numbers(subject.numbers)}.",
        )
    deleted = f" (soft-deleted: {format_numbers(subject.deleted)})" if subject.deleted else ""
    return error(
        "unknown-version",
        "Version does not exist",
        f"The subject '{subject.name}' in registry '{subject.registry}' has no version {number}.",
        hint=f"Use an existing version of the subject: {format_numbers(subject.numbers)}{deleted}.",
    )
