"""Resolve the references of declared schemas to versions and contents, before anything is registered.

If a reference refers to the latest version of a subject, and the plan also changes the subject, this version
does not exist yet. Its number is unknown, but its content is known. kdeclare therefore compares references by
content.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.providers.schema_registry.schema.content import compute_fingerprint, format_reference
from kdeclare.providers.schema_registry.schema.live import RegistrySnapshot, SchemaState
from kdeclare.providers.schema_registry.schema.spec import TEXT, DeclaredReference, SchemaBody


@dataclass(frozen=True, slots=True)
class ResolvedReference:
    """A reference to a schema whose content is known.

    version: the version of the subject; None if the plan registers it.
    fingerprint: the hash of the content (see `compute_fingerprint`).
    """

    name: str
    subject: str
    version: int | None
    fingerprint: str

    def __str__(self) -> str:
        return format_reference(self.name, self.subject, self.fingerprint)


@dataclass(frozen=True, slots=True)
class ResolvedSchema:
    """A declared schema with resolved references.

    fingerprint: the hash of the content, including the contents of all references.
    problems: the reasons why references cannot be resolved. The other fields are then incomplete.
    """

    references: tuple[ResolvedReference, ...]
    fingerprint: str
    problems: tuple[Diagnostic, ...] = ()

    @property
    def listed(self) -> tuple[str, ...]:
        """The sorted references, in the form that views and changes show."""
        return tuple(sorted(map(str, self.references)))


@dataclass(frozen=True, slots=True)
class PlannedSchemas:
    """The declared schemas of a plan, by the name of the registry and the subject."""

    desired: Mapping[tuple[str, str], DesiredResource] = field(default_factory=dict)

    def find(self, registry: str, subject: str) -> DesiredResource | None:
        """Return the resource that declares a subject; None if no resource declares it."""
        return self.desired.get((registry, subject))


def collect_planned(desired: Iterable[DesiredResource], live: SchemaState) -> PlannedSchemas:
    """Return the declared schemas whose registry was read."""
    planned: dict[tuple[str, str], DesiredResource] = {}
    for item in desired:
        if isinstance(item.body, SchemaBody) and item.body.registry in live.registries:
            choice = live.registries[item.body.registry].choice
            if choice.name is not None:
                planned[choice.name, item.body.subject] = item
    return PlannedSchemas(planned)


def resolve_schema(
    desired: DesiredResource, snapshot: RegistrySnapshot, planned: PlannedSchemas
) -> ResolvedSchema:
    """Return a declared schema with resolved references."""
    return _Resolver(snapshot, planned).resolve(desired, ())


class _Resolver:
    def __init__(self, snapshot: RegistrySnapshot, planned: PlannedSchemas) -> None:
        self._snapshot = snapshot
        self._planned = planned

    def resolve(self, desired: DesiredResource, path: tuple[str, ...]) -> ResolvedSchema:
        """Return a schema with resolved references.

        path: the subjects that refer to this schema, directly or through other subjects, outermost first.
        """
        body = desired.get_body(SchemaBody)
        subject = self._snapshot.find(body.subject) if TEXT in body.ignored else None
        if subject is not None and subject.latest is not None:
            return ResolvedSchema((), subject.latest.fingerprint)  # the live schema stays as it is
        references: list[ResolvedReference] = []
        problems: list[Diagnostic] = []
        for item in body.references:
            resolved = self._resolve_reference(desired, item, (*path, body.subject))
            if isinstance(resolved, Diagnostic):
                problems.append(resolved)
            else:
                references.append(resolved)
        fingerprint = compute_fingerprint(body.type, body.text, map(str, references))
        return ResolvedSchema(tuple(references), fingerprint, tuple(problems))

    def _resolve_reference(
        self, desired: DesiredResource, item: DeclaredReference, path: tuple[str, ...]
    ) -> ResolvedReference | Diagnostic:
        if item.subject in path:
            return _report_circle(desired, (*path, item.subject))
        subject = self._snapshot.find(item.subject)
        version = subject.get(item.version) if subject is not None else None
        target = self._planned.find(self._snapshot.name, item.subject) if item.version is None else None
        if target is None:
            if version is None:
                return _report_missing(desired, item, self._snapshot.name)
            return ResolvedReference(item.name, item.subject, version.number, version.fingerprint)
        planned = self.resolve(target, path)
        if planned.problems:
            return next(_with_resource(desired, planned.problems))
        is_registered = version is not None and version.fingerprint == planned.fingerprint
        number = version.number if version is not None and is_registered else None
        return ResolvedReference(item.name, item.subject, number, planned.fingerprint)


def _with_resource(desired: DesiredResource, problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """Report the problems of a referenced schema again, as problems of the schema that refers to it."""
    for problem in problems:
        yield error(
            problem.code,
            problem.summary,
            problem.detail,
            hint=problem.hint,
            place=desired.source,
            resource=str(desired.id),
        )


def _report_missing(desired: DesiredResource, item: DeclaredReference, registry: str) -> Diagnostic:
    what = f"version {item.version} of subject" if item.version is not None else "subject"
    return error(
        "reference-missing",
        "Referenced schema does not exist",
        f"The reference '{item.name}' of {desired.id} refers to {what} '{item.subject}', which registry "
        f"'{registry}' does not have and no manifest declares.",
        hint="Correct the reference, or declare the referenced schema as well.",
        place=desired.source,
        resource=str(desired.id),
        subject=item.subject,
    )


def _report_circle(desired: DesiredResource, path: tuple[str, ...]) -> Diagnostic:
    start = path.index(path[-1])
    return error(
        "reference-circle",
        "Circular schema references",
        f"The schema references of {desired.id} form a cycle of subjects: {' → '.join(path[start:])}.",
        hint="Move the definitions that the schemas share to a schema without references.",
        place=desired.source,
        resource=str(desired.id),
    )
