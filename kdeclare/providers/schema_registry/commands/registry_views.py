"""The results of the `kdeclare schema-registry` commands. The JSON output has the same structure."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    SchemaReference,
    SchemaType,
    SubjectVersion,
)
from kdeclare.providers.schema_registry.schemas.differences import DifferenceScope, SchemaDifference
from kdeclare.providers.schema_registry.schemas.subject_names import NamingStrategy, RecordPart

RegistryName = Annotated[str, Field(description="The name of the registry in the environment.")]
DeclaredBy = Annotated[
    str | None,
    Field(description="The resource, as KIND/NAME, if a manifest declares the subject; otherwise null."),
]
OwnedBy = Annotated[
    str | None,
    Field(description="The resource, as KIND/NAME, if kdeclare owns the subject; otherwise null."),
]


class LevelOrigin(StrEnum):
    """The origin of the compatibility level of a subject."""

    OWN = "own"
    INHERITED = "inherited"
    UNKNOWN = "unknown"  # the registry does not tell own and inherited levels apart


@dataclass(frozen=True, slots=True)
class UnreadableRegistryView:
    """A registry that was not read. message: the reason, as a clause."""

    schema_name = "UnreadableRegistryDocument"

    registry: RegistryName
    message: str


@dataclass(frozen=True, slots=True)
class SubjectView:
    """One subject.

    latest_version: None if all versions are soft-deleted.
    deleted_versions: the number of soft-deleted versions; None if they were not read.
    """

    schema_name = "SubjectDocument"

    registry: RegistryName
    subject: str
    type: Annotated[
        SchemaType | None,
        Field(
            description="The type of the latest version. Null if all versions are soft-deleted and the "
            "registry does not return them."
        ),
    ]
    latest_version: Annotated[int | None, Field(description="Null if all versions are soft-deleted.")]
    versions: Annotated[int, Field(description="The number of versions, not counting soft-deleted ones.")]
    deleted_versions: Annotated[
        int | None, Field(description="The number of soft-deleted versions; null without --deleted.")
    ]
    level: Annotated[CompatibilityLevel, Field(description="The level that applies to the subject.")]
    level_origin: LevelOrigin
    declared_by: DeclaredBy
    owned_by: OwnedBy


@dataclass(frozen=True, slots=True)
class SubjectListView:
    """The subjects of schema registries, sorted by registry and subject."""

    exit_code: Annotated[int, Field(description="1 if a registry could not be read.")]
    subjects: tuple[SubjectView, ...]
    unreadable: tuple[UnreadableRegistryView, ...]


@dataclass(frozen=True, slots=True)
class NamingView:
    """The subject name strategy that the name of a subject follows.

    topic: None for ``RecordNameStrategy``.
    """

    schema_name = "NamingDocument"

    strategy: NamingStrategy
    topic: Annotated[str | None, Field(description="Null if the subject is the same for all topics.")]
    part: Annotated[
        RecordPart | None, Field(description="Null if the strategy does not distinguish keys and values.")
    ]


@dataclass(frozen=True, slots=True)
class SubjectDetailView:
    """A subject and one of its versions. Version numbers are in ascending order.

    deleted: whether the version is soft-deleted.
    referrers: the versions that refer to this version; None if the registry does not report them.
    naming: None if the subject follows none of the naming strategies.
    """

    registry: RegistryName
    subject: str
    version: int
    id: Annotated[int, Field(description="The id that records contain.")]
    deleted: Annotated[bool, Field(description="Whether the version is soft-deleted.")]
    type: SchemaType
    text: Annotated[str, Field(description="The schema as it was registered.")]
    references: tuple[SchemaReference, ...]
    referrers: Annotated[
        tuple[SubjectVersion, ...] | None,
        Field(description="The versions that refer to this version; null if they could not be read."),
    ]
    versions: Annotated[tuple[int, ...], Field(description="All versions except the soft-deleted ones.")]
    deleted_versions: tuple[int, ...]
    level: Annotated[CompatibilityLevel, Field(description="The level that applies to the subject.")]
    level_origin: LevelOrigin
    naming: Annotated[
        NamingView | None, Field(description="Null if the name does not match any subject name strategy.")
    ]
    declared_by: DeclaredBy
    owned_by: OwnedBy


@dataclass(frozen=True, slots=True)
class SchemaSideView:
    """One side of a comparison: a version of the subject, or a file. The other field is None."""

    schema_name = "SchemaSideDocument"

    version: int | None
    file: str | None
    type: SchemaType


@dataclass(frozen=True, slots=True)
class SchemaLineView:
    """A row of a side-by-side comparison. If a schema has no line in the row, the line is None."""

    schema_name = "SchemaLineDocument"

    change: Annotated[str, Field(description="equal, changed, added or removed.")]
    before_number: int | None
    before: str | None
    after_number: int | None
    after: str | None


@dataclass(frozen=True, slots=True)
class SchemaDiffView:
    """The differences between two schemas. The lines of both are in the same layout.

    equal_texts: whether the texts are equal, including their layout.
    """

    exit_code: Annotated[
        int, Field(description="With --detailed-exitcode, 2 if there are differences; otherwise 0.")
    ]
    registry: RegistryName
    subject: str
    before: SchemaSideView
    after: SchemaSideView
    scope: Annotated[
        DifferenceScope, Field(description="Whether the differences concern only the documentation.")
    ]
    equal_texts: Annotated[bool, Field(description="Whether the texts are equal, including their layout.")]
    differences: tuple[SchemaDifference, ...]
    lines: Annotated[
        tuple[SchemaLineView, ...], Field(description="Both schemas line by line, in the same layout.")
    ]


class RegistrationOutcome(StrEnum):
    """The effect of registering a schema."""

    NEW_SUBJECT = "new-subject"
    NEW_VERSION = "new-version"
    LATEST_VERSION = "latest-version"  # nothing: the latest version already has this content
    OLDER_VERSION = "older-version"  # nothing: an older version already has this content


class CheckResult(StrEnum):
    """The result of a compatibility check."""

    COMPATIBLE = "compatible"
    INCOMPATIBLE = "incompatible"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class RegistrationView:
    """The effect of registering a schema.

    version: the version with this content; None for a new version, whose number only the registry knows.
    mode: the mode of the subject if it does not permit a registration; otherwise None.
    """

    schema_name = "RegistrationDocument"

    outcome: RegistrationOutcome
    version: Annotated[int | None, Field(description="The version with this content; null if it is new.")]
    latest_version: Annotated[int | None, Field(description="Null if the subject has no versions.")]
    mode: Annotated[
        str | None,
        Field(description="The mode of the subject if it does not permit registration; otherwise null."),
    ]


@dataclass(frozen=True, slots=True)
class CompatibilityView:
    """The result of the compatibility check of the registry.

    level: the level that the result is about. current_level: the level that applies to the subject.
    reasons: the messages of the registry; for an unchecked schema, why it was not checked.
    """

    schema_name = "CompatibilityDocument"

    result: CheckResult
    level: CompatibilityLevel
    current_level: CompatibilityLevel
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SchemaCheckView:
    """The check of a schema in a file.

    differences: the differences from the latest version; empty for a new subject.
    """

    exit_code: Annotated[int, Field(description="1 if the schema is incompatible.")]
    registry: RegistryName
    subject: str
    file: str
    type: SchemaType
    references: tuple[SchemaReference, ...]
    registration: RegistrationView
    compatibility: CompatibilityView
    scope: Annotated[
        DifferenceScope, Field(description="Whether the differences concern only the documentation.")
    ]
    differences: Annotated[
        tuple[SchemaDifference, ...], Field(description="The differences from the latest version.")
    ]


def build_registry_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the commands' output, by name; see `publish_schemas`."""
    return publish_schemas(
        {
            "schema-registry-check": SchemaCheckView,
            "schema-registry-describe": SubjectDetailView,
            "schema-registry-diff": SchemaDiffView,
            "schema-registry-list": SubjectListView,
        }
    )
