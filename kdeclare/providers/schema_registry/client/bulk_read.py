"""Read the state of many subjects, with several requests at the same time."""

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.schema_registry.client.port import (
    RegisteredSchema,
    RegistryInfo,
    SchemaRegistry,
    SubjectLevel,
)

MAX_THREADS = 16
_LISTING_THRESHOLD = 50
"""For fewer subjects, the latest versions are read one by one, because a list contains all subjects."""


@dataclass(frozen=True, slots=True)
class SubjectState:
    """The state of one subject.

    latest: the latest version; None if the subject is absent or soft-deleted.
    versions, deleted_versions: the numbers of the versions, and of the soft-deleted versions.
    """

    subject: str
    latest: RegisteredSchema | None
    versions: tuple[int, ...]
    deleted_versions: tuple[int, ...]
    level: SubjectLevel


def read_subjects(
    registry: SchemaRegistry, info: RegistryInfo, subjects: Iterable[str]
) -> Mapping[str, SubjectState | Fault]:
    """Read the states of subjects, which can be absent.

    info: what `SchemaRegistry.identify` has just returned.
    Return a Fault for a subject that could not be read. Raises Fault if no subject can be read.
    """
    names = sorted(set(subjects))
    if not names:
        return {}
    latest_by_subject = registry.list_latest() if len(names) >= _LISTING_THRESHOLD else None

    def read(subject: str) -> SubjectState | Fault:
        try:
            return _read_subject(registry, info, subject, latest_by_subject)
        except Fault as fault:
            return fault

    with ThreadPoolExecutor(min(MAX_THREADS, len(names)), thread_name_prefix="subjects") as pool:
        return dict(zip(names, pool.map(read, names), strict=True))


def _read_subject(
    registry: SchemaRegistry,
    info: RegistryInfo,
    subject: str,
    latest_by_subject: Mapping[str, RegisteredSchema] | None,
) -> SubjectState:
    latest = registry.read_version(subject) if latest_by_subject is None else latest_by_subject.get(subject)
    all_versions = registry.list_versions(subject, include_deleted=True)
    versions: tuple[int, ...] = ()
    if latest is not None and all_versions == (latest.version,):
        versions = all_versions
    elif all_versions:
        versions = registry.list_versions(subject)
    deleted_versions = tuple(sorted(set(all_versions) - set(versions)))
    level = registry.read_level(subject, global_level=info.level)
    return SubjectState(subject, latest, versions, deleted_versions, level)
