"""Parse the responses of a schema registry."""

import re
from collections.abc import Mapping
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.http.client import HttpResponse
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    CompatibilityResult,
    Mode,
    RegisteredSchema,
    Registration,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SubjectVersion,
)

T = TypeVar("T")

MAX_MESSAGE_CHARS = 2000
"""The maximum number of characters of a registry's message that kdeclare displays."""

_ERRORS: Final[Mapping[int, str]] = {
    409: port.INCOMPATIBLE,
    40401: port.SUBJECT_NOT_FOUND,
    40402: port.VERSION_NOT_FOUND,
    40403: port.SCHEMA_NOT_FOUND,
    40404: port.SUBJECT_SOFT_DELETED,
    40405: port.SUBJECT_NOT_SOFT_DELETED,
    40406: port.VERSION_SOFT_DELETED,
    40407: port.VERSION_NOT_SOFT_DELETED,
    40408: port.LEVEL_NOT_SET,
    40901: port.INCOMPATIBLE,
    42201: port.INVALID_SCHEMA,
    42202: port.INVALID_VERSION,
    42203: port.INVALID_LEVEL,
    42205: port.NOT_PERMITTED,
    42206: port.REFERENCE_EXISTS,
    42208: port.INVALID_SUBJECT,
    42209: port.SCHEMA_TOO_LARGE,
}
"""The error codes of Faults by the ``error_code`` of the registry.

The HTTP status is not sufficient: for the same error, one registry responds with 409 and others with 404.
"""
_UNKNOWN_LEADER = 50004


_EMPTY_AVRO = SchemaContent(SchemaType.AVRO, "")
_JAVA_CLASS_PREFIX = re.compile(r"^(?:[a-z]\w*\.)+[A-Z]\w*: ")


class _Response(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Error(_Response):
    error_code: int
    message: str = ""


class _Reference(_Response):
    name: str
    subject: str
    version: int


class _RegisteredSchema(_Response):
    subject: str
    version: int
    id: int
    text: str = Field(alias="schema")
    schema_type: SchemaType | None = Field(None, alias="schemaType")
    references: tuple[_Reference, ...] | None = None

    def build_value(self, default: SchemaContent = _EMPTY_AVRO) -> RegisteredSchema:
        references = default.references
        if self.references is not None:
            references = tuple(SchemaReference(one.name, one.subject, one.version) for one in self.references)
        content = SchemaContent(self.schema_type or default.type, self.text, references)
        return RegisteredSchema(self.subject, self.version, self.id, content)


class _Registration(_Response):
    id: int
    version: int | None = None


class _Compatibility(_Response):
    is_compatible: bool
    messages: tuple[str, ...] | None = None


class _Level(_Response):
    level: CompatibilityLevel | None = Field(None, alias="compatibilityLevel")


class _Mode(_Response):
    mode: Mode


class _SubjectVersion(_Response):
    subject: str
    version: int


class _Scope(_Response):
    clusters: dict[str, str] = {}


class _Metadata(_Response):
    id: str = ""
    scope: _Scope = _Scope()


class _Version(_Response):
    version: str = ""


_ERROR = TypeAdapter(_Error)
_NAMES: TypeAdapter[tuple[str, ...]] = TypeAdapter(tuple[str, ...])
_NUMBERS: TypeAdapter[tuple[int, ...]] = TypeAdapter(tuple[int, ...])
_SCHEMA = TypeAdapter(_RegisteredSchema)
_SCHEMAS: TypeAdapter[tuple[_RegisteredSchema, ...]] = TypeAdapter(tuple[_RegisteredSchema, ...])
_REGISTRATION = TypeAdapter(_Registration)
_COMPATIBILITY = TypeAdapter(_Compatibility)
_LEVEL = TypeAdapter(_Level)
_MODE = TypeAdapter(_Mode)
_SUBJECT_VERSIONS: TypeAdapter[tuple[_SubjectVersion, ...]] = TypeAdapter(tuple[_SubjectVersion, ...])
_METADATA = TypeAdapter(_Metadata)
_VERSION = TypeAdapter(_Version)


def parse_names(body: bytes) -> tuple[str, ...]:
    """Parse a list of subjects. Raises Fault."""
    return _parse(_NAMES, body)


def parse_numbers(body: bytes) -> tuple[int, ...]:
    """Parse a list of version numbers or ids. Raises Fault."""
    return _parse(_NUMBERS, body)


def parse_schema(body: bytes, default: SchemaContent = _EMPTY_AVRO) -> RegisteredSchema:
    """Parse one version. Raises Fault.

    default: the type and the references of the version if the response does not contain them.
    """
    return _parse(_SCHEMA, body).build_value(default)


def parse_schemas(body: bytes) -> tuple[RegisteredSchema, ...]:
    """Parse a list of versions. Raises Fault."""
    return tuple(one.build_value() for one in _parse(_SCHEMAS, body))


def parse_registration(body: bytes) -> Registration:
    """Parse the response to a registration. Raises Fault."""
    response = _parse(_REGISTRATION, body)
    return Registration(response.id, response.version)


def parse_compatibility(body: bytes) -> CompatibilityResult:
    """Parse the response to a compatibility check. Raises Fault."""
    response = _parse(_COMPATIBILITY, body)
    messages = tuple(shorten(one) for one in response.messages or ())
    return CompatibilityResult(response.is_compatible, () if response.is_compatible else messages)


def parse_level(body: bytes) -> CompatibilityLevel | None:
    """Parse a compatibility level. Return None if the response has no level. Raises Fault."""
    return _parse(_LEVEL, body).level


def parse_mode(body: bytes) -> Mode | None:
    """Parse a mode. Return None for an empty response. Raises Fault."""
    return _parse(_MODE, body).mode if body else None


def parse_subject_versions(body: bytes) -> tuple[SubjectVersion, ...]:
    """Parse the list of versions whose schema has a given id. Raises Fault."""
    return tuple(SubjectVersion(one.subject, one.version) for one in _parse(_SUBJECT_VERSIONS, body))


def parse_id(body: bytes) -> str | None:
    """Parse the id of a registry: its Kafka cluster and its own name. Raises Fault."""
    metadata = _parse(_METADATA, body)
    names = ("kafka-cluster", "schema-registry-cluster")
    parts = [metadata.scope.clusters[name] for name in names if metadata.scope.clusters.get(name)]
    return "/".join(parts) or metadata.id or None


def parse_product_version(body: bytes) -> str:
    """Parse the version of the registry. Raises Fault."""
    return _parse(_VERSION, body).version


def build_fault(response: HttpResponse, *, is_change: bool) -> Fault:
    """Return the Fault for a response with an error status. The Fault has the registry's message."""
    status = response.status
    error_code, message = _parse_error(response.body)
    message = message or f"it responded with HTTP {status} {response.reason}".strip()
    if status in (401, 403):
        return Fault(port.NOT_AUTHORIZED, message)
    if error_code in _ERRORS:
        return Fault(_ERRORS[error_code], message)
    if status == 429:
        return Fault(port.THROTTLED, message, FaultKind.RETRIABLE)
    if error_code == _UNKNOWN_LEADER:
        return Fault(port.NO_LEADER, message, FaultKind.RETRIABLE)
    if status >= 500:
        return Fault(port.LOST, message, FaultKind.UNKNOWN if is_change else FaultKind.RETRIABLE)
    if status in (404, 405):
        return Fault(port.NOT_A_REGISTRY, f"it does not support this request ({message})")
    return Fault(port.REJECTED, message)


def shorten(text: str) -> str:
    """Shorten a registry's message if it is too long for the output."""
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


def _parse_error(body: bytes) -> tuple[int, str]:
    """Return the registry's error code and message; 0 and an empty message if the body has no such fields."""
    try:
        response = _ERROR.validate_json(body)
    except ValidationError:
        return 0, ""
    return response.error_code, shorten(_JAVA_CLASS_PREFIX.sub("", response.message).strip())


def _parse(adapter: TypeAdapter[T], body: bytes) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as exception:
        first_error = exception.errors(include_input=False)[0]  # The input can be long.
        location = ".".join(map(str, first_error["loc"])) or "document"
        message = f"its response is invalid ({location}: {first_error['msg']})"
        raise Fault(port.BAD_RESPONSE, message) from None
