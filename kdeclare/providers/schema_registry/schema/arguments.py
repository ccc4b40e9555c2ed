"""The arguments of operations on subjects, and the ownership record of a subject."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.schema.content import (
    compute_fingerprint,
    format_reference,
    normalize_text,
)
from kdeclare.providers.schema_registry.schema.live import LiveVersion
from kdeclare.providers.schema_registry.schema.spec import OnDelete

REGISTER_NAME, DELETE_NAME = "schema.register", "schema.delete"
"""The names of two operation types: registering and soft-deleting a schema. Each type undoes the other."""


@dataclass(frozen=True, slots=True)
class ReferenceArgs(Arguments):
    """A reference from a schema to a version of another subject.

    version: the version of the subject; None for the latest version, if the same plan registers it.
    content: the hash of the referenced content (see `compute_fingerprint`).
    """

    name: str
    subject: str
    version: int | None
    content: str

    def __str__(self) -> str:
        return format_reference(self.name, self.subject, self.content)


@dataclass(frozen=True, slots=True)
class ContentArgs(Arguments):
    """The content of a version. ``text`` is sent to the registry without any change."""

    type: SchemaType
    text: str
    references: Annotated[tuple[ReferenceArgs, ...], OMIT_EMPTY] = ()

    @property
    def normalized(self) -> str:
        """The normalized text of the schema."""
        return normalize_text(self.type, self.text)

    @property
    def listed(self) -> tuple[str, ...]:
        """The sorted references, in the form that views and changes show."""
        return tuple(sorted(map(str, self.references)))

    @property
    def fingerprint(self) -> str:
        """The hash of the content, including the contents of all references."""
        return compute_fingerprint(self.type, self.text, self.listed)

    @property
    def mark(self) -> str:
        """The content in the form that views use."""
        return mark_content(self.type, self.fingerprint)


def mark_content(type_: SchemaType, fingerprint: str) -> str:
    """Return the string that identifies the content of a schema in views: its language and a hash."""
    return f"{type_.value} @{fingerprint}"


@dataclass(frozen=True, slots=True)
class VersionArgs(Arguments):
    """A version of a subject. ``number`` is None if only the content identifies the version."""

    number: int | None
    content: ContentArgs


@dataclass(frozen=True, slots=True)
class SubjectArgs(Arguments):
    """The subject that an operation changes. endpoint: the name of the registry in the environment."""

    endpoint: Annotated[str, Field(min_length=1)]
    subject: Annotated[str, Field(min_length=1)]

    @property
    def key(self) -> str:
        """A string that identifies the subject among all registries of the environment."""
        return f"{self.endpoint}/{self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterArgs(SubjectArgs):
    """The content to register as the latest version.

    before: the content of the current latest version, for reports; None if the subject does not exist.
    earlier: the contents to register first, oldest first. Used only to restore a deleted subject.
    """

    content: ContentArgs
    before: Annotated[ContentArgs | None, OMIT_NONE] = None
    earlier: Annotated[tuple[ContentArgs, ...], OMIT_EMPTY] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelArgs(SubjectArgs):
    """The level to set. None removes the level of the subject.

    inherited: the global level, if the registry does not distinguish the subject's own level from it.
    is_new: whether the plan creates the subject.
    whole: whether the plan deletes the whole subject.
    """

    level: CompatibilityLevel | None
    inherited: Annotated[CompatibilityLevel | None, OMIT_NONE] = None
    is_new: bool = False
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteArgs(SubjectArgs):
    """The versions to soft-delete, oldest first, with the contents that a rollback registers again.

    whole: whether these are all versions of the subject.
    remaining: the content that becomes the latest version again; None if the whole subject is deleted.
    """

    versions: Annotated[tuple[VersionArgs, ...], Field(min_length=1)]
    whole: bool
    remaining: Annotated[ContentArgs | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeArgs(SubjectArgs):
    """The soft-deleted versions to delete permanently, together with their ids."""

    numbers: Annotated[tuple[int, ...], Field(min_length=1)]


def build_content(version: LiveVersion) -> ContentArgs:
    """Return the content of a live version, as arguments of an operation."""
    return ContentArgs(
        version.content.type,
        version.content.text,
        tuple(
            ReferenceArgs(item.name, item.subject, item.version, target)
            for item, target in zip(version.content.references, version.targets, strict=True)
        ),
    )


@dataclass(frozen=True, slots=True)
class SchemaRecord(OwnedRecord):
    """The latest version of a subject that kdeclare applied, and the level that it set.

    registry: the name of the registry in the environment.
    fingerprint: the hash of the content. If the latest version has a different hash, this is drift.
    version: the number of the version; None if it is unknown.
    compatibility: the level that kdeclare owns; None if it owns no level.
    labels: the labels of the manifest. Policies use these labels if the resource becomes an orphan.
    """

    registry: str
    subject: str
    fingerprint: str
    version: Annotated[int | None, OMIT_NONE] = None
    compatibility: Annotated[CompatibilityLevel | None, OMIT_NONE] = None
    onDelete: OnDelete = "soft"  # noqa: N815
    preventDestroy: bool = False  # noqa: N815
    labels: Annotated[Mapping[str, str], OMIT_EMPTY] = field(default_factory=dict)
