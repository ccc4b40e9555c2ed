"""The interface to one schema registry, and the values that it returns.

The methods mirror the API of Confluent Schema Registry, which Karapace and Apicurio Registry also implement.
Where these products differ, a client sends requests to find out what the registry supports; it does not check
the name of the product.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Protocol

from kdeclare.core.frozen_dataclass import dataclass

UNREACHABLE: Final = "REGISTRY_UNREACHABLE"
"""The error code for a request that was certainly not sent."""
NOT_TRUSTED: Final = "REGISTRY_NOT_TRUSTED"
LOST: Final = "REGISTRY_LOST"
"""The error code for a request without a response, and for a failure inside the registry (HTTP 5xx)."""
BAD_RESPONSE: Final = "REGISTRY_RESPONSE_NOT_UNDERSTOOD"
NOT_AUTHORIZED: Final = "REGISTRY_AUTHORIZATION_FAILED"
NOT_A_REGISTRY: Final = "REGISTRY_NOT_FOUND"
"""The error code for HTTP 404 or 405 without one of the registry's own error codes."""
THROTTLED: Final = "REGISTRY_TOO_MANY_REQUESTS"
NO_LEADER: Final = "REGISTRY_HAS_NO_LEADER"
"""The error code for a change that the registry did not make, because none of its servers is the leader."""
REJECTED: Final = "REGISTRY_REQUEST_REJECTED"
"""The error code for a refusal whose ``error_code`` kdeclare does not know."""
SUBJECT_NOT_FOUND: Final = "SUBJECT_NOT_FOUND"
VERSION_NOT_FOUND: Final = "VERSION_NOT_FOUND"
SCHEMA_NOT_FOUND: Final = "SCHEMA_NOT_FOUND"
SUBJECT_SOFT_DELETED: Final = "SUBJECT_SOFT_DELETED"
SUBJECT_NOT_SOFT_DELETED: Final = "SUBJECT_NOT_SOFT_DELETED"
VERSION_SOFT_DELETED: Final = "SCHEMA_VERSION_SOFT_DELETED"
VERSION_NOT_SOFT_DELETED: Final = "SCHEMA_VERSION_NOT_SOFT_DELETED"
LEVEL_NOT_SET: Final = "SUBJECT_COMPATIBILITY_NOT_CONFIGURED"
INCOMPATIBLE: Final = "INCOMPATIBLE_SCHEMA"
INVALID_SCHEMA: Final = "INVALID_SCHEMA"
INVALID_VERSION: Final = "INVALID_VERSION"
INVALID_LEVEL: Final = "INVALID_COMPATIBILITY_LEVEL"
NOT_PERMITTED: Final = "OPERATION_NOT_PERMITTED"
"""The error code for a change that the mode does not permit, for example in the mode READONLY."""
REFERENCE_EXISTS: Final = "REFERENCE_EXISTS"
"""The error code for the deletion of a version that another schema refers to."""
INVALID_SUBJECT: Final = "INVALID_SUBJECT"
SCHEMA_TOO_LARGE: Final = "SCHEMA_TOO_LARGE"
ERRORS: Final = frozenset(
    {
        UNREACHABLE,
        NOT_TRUSTED,
        LOST,
        BAD_RESPONSE,
        NOT_AUTHORIZED,
        NOT_A_REGISTRY,
        THROTTLED,
        NO_LEADER,
        REJECTED,
        SUBJECT_NOT_FOUND,
        VERSION_NOT_FOUND,
        SCHEMA_NOT_FOUND,
        SUBJECT_SOFT_DELETED,
        SUBJECT_NOT_SOFT_DELETED,
        VERSION_SOFT_DELETED,
        VERSION_NOT_SOFT_DELETED,
        LEVEL_NOT_SET,
        INCOMPATIBLE,
        INVALID_SCHEMA,
        INVALID_VERSION,
        INVALID_LEVEL,
        NOT_PERMITTED,
        REFERENCE_EXISTS,
        INVALID_SUBJECT,
        SCHEMA_TOO_LARGE,
    }
)
"""All error codes that a Fault about a schema registry can have."""


class SchemaType(StrEnum):
    """The language of a schema."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"


class CompatibilityLevel(StrEnum):
    """The earlier versions that a new version must be compatible with, and the direction of compatibility."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether a new version must be compatible with all earlier versions, not only with the latest."""
        return self.value.endswith("_TRANSITIVE")


class Mode(StrEnum):
    """The mode of a registry or of a subject. The mode determines which changes are permitted."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def permits_registration(self) -> bool:
        """Whether a new version can be registered without an explicit id."""
        return self is Mode.READWRITE


@dataclass(frozen=True, slots=True)
class SchemaReference:
    """A reference from a schema to a registered version of another subject.

    name: the name that the schema text uses: a full name in Avro, an import path in Protobuf, a URI in JSON
        Schema.
    """

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class SchemaContent:
    """The content of a schema in requests and responses of the registry. kdeclare never changes ``text``."""

    type: SchemaType
    text: str
    references: tuple[SchemaReference, ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """One registered version of a subject.

    id: the id that records contain. In some registries, equal schemas of different subjects have the same id;
        in others, they do not.
    """

    subject: str
    version: int
    id: int
    content: SchemaContent


@dataclass(frozen=True, slots=True)
class Registration:
    """The response to the registration of a schema.

    version: the number of the version that contains the schema, which is not always the latest version; None
        if the registry registered the schema without reporting the version.
    """

    id: int
    version: int | None


@dataclass(frozen=True, slots=True)
class SubjectVersion:
    """The subject and the number of a version."""

    subject: str
    version: int


@dataclass(frozen=True, slots=True)
class CompatibilityResult:
    """The result of the registry's compatibility check of a schema that is not registered.

    reasons: the registry's own messages. Some registries give no reasons.
    is_checked: whether the registry could check the schema. It is False if the registry reported that the
        subject has no versions, or could not parse a schema with references: Apicurio Registry does not
        resolve references in a check. ``is_compatible`` is then True.
    """

    is_compatible: bool
    reasons: tuple[str, ...] = ()
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class SubjectLevel:
    """The compatibility level of a subject.

    effective: the level that applies to the subject.
    own: the level that is set on the subject; None if the subject inherits the global level.
    is_own_known: whether ``own`` is reliable. Some registries report the global level for a subject without a
        level of its own. If such a registry reports the global level, the subject may or may not have a level
        of its own: ``own`` is None, and ``is_own_known`` is False.
    """

    effective: CompatibilityLevel
    own: CompatibilityLevel | None
    is_own_known: bool = True


@dataclass(frozen=True, slots=True)
class RegistryInfo:
    """The information that a registry reports about itself.

    id: identifies the registry and its Kafka cluster, for example ``lkc-1/schema-registry``; None if the
        registry has no id.
    version: the software version of the registry, for display; empty if the registry does not report it.
    level: the global compatibility level.
    mode: the global mode; None if the registry has no modes.
    distinguishes_own_levels: whether the registry is known to report that a subject has no level of its own;
        see `SubjectLevel`.
    """

    id: str | None
    version: str
    level: CompatibilityLevel
    mode: Mode | None
    distinguishes_own_levels: bool


class SchemaRegistry(Protocol):
    """One schema registry. Safe to use from several threads.

    Every method can raise Fault. The message of the Fault is the registry's own message, or a text that
    refers to the registry as "it". The kind of the Fault is UNKNOWN if a change got no response or HTTP 5xx,
    and RETRIABLE if a read got no response or HTTP 5xx. If a subject or version does not exist, a read
    returns None or an empty result, and does not raise a Fault.
    """

    def identify(self) -> RegistryInfo:
        """Return the information that the registry reports about itself."""

    def list_subjects(self, *, include_deleted: bool = False) -> frozenset[str]:
        """Return the names of all subjects; with ``include_deleted``, also of soft-deleted subjects."""

    def list_versions(self, subject: str, *, include_deleted: bool = False) -> tuple[int, ...]:
        """Return the numbers of the versions in ascending order; empty if the subject does not exist."""

    def read_version(
        self, subject: str, version: int | None = None, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """Return one version, or the latest version if ``version`` is None.

        Return None if the version does not exist.
        """

    def find_version(
        self, subject: str, content: SchemaContent, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """Return the version that the registry considers equal to ``content``; None if there is none.

        Registries differ in which contents they consider equal. Raises Fault INVALID_SCHEMA if the registry
        cannot parse the content.
        """

    def list_latest(self) -> Mapping[str, RegisteredSchema] | None:
        """Return the latest version of each subject; None if the registry needs one request per subject."""

    def register(self, subject: str, content: SchemaContent) -> Registration:
        """Register ``content`` without normalizing it.

        If the subject already has an equal version, return that version.
        """

    def check_compatibility(
        self, subject: str, content: SchemaContent, *, level: CompatibilityLevel | None = None
    ) -> CompatibilityResult:
        """Check whether ``content`` is compatible with the versions that the level of the subject requires.

        The registry always uses the level at the time of the request; it cannot check at a different level.
        level: the effective level, if the caller has just read it. This saves requests.
        """

    def read_level(self, subject: str, *, global_level: CompatibilityLevel | None = None) -> SubjectLevel:
        """Return the compatibility level of a subject. The subject does not have to exist.

        global_level: the global level, if the caller has just read it. This saves a request.
        """

    def read_global_level(self) -> CompatibilityLevel:
        """Return the global level, which applies to subjects without a level of their own."""

    def set_level(self, subject: str | None, level: CompatibilityLevel) -> None:
        """Set the level of a subject, or the global level if ``subject`` is None.

        Apicurio Registry removes the level of a subject instead of setting it to NONE.
        """

    def delete_level(self, subject: str) -> None:
        """Remove the level of a subject, if it has one. The subject then inherits the global level."""

    def read_mode(self, subject: str | None = None) -> Mode | None:
        """Return the effective mode of a subject, or the global mode; None if the registry has no modes."""

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> None:
        """Soft-delete a version.

        With ``permanent``, permanently delete a version that is already soft-deleted.

        The versions of a soft-deleted subject count as soft-deleted, too.
        """

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """Soft-delete all versions of a subject.

        With ``permanent``, permanently delete a soft-deleted subject.

        Return the numbers of the deleted versions.
        """

    def list_referrers(self, subject: str, version: int) -> tuple[SubjectVersion, ...]:
        """Return the versions whose schemas refer to the given version."""

    def close(self) -> None:
        """Close connections. A second call has no effect."""
