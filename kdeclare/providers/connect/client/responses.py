"""Convert the JSON responses of workers to values. Unknown fields are ignored.

This module parses the responses of the plug-in. `connector_responses` parses responses about connectors.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.port import BAD_ANSWER, Validation
from kdeclare.providers.connect.worker_state import (
    AppliedUpdate,
    Certificate,
    Listener,
    PluginStatus,
    Refusal,
)

T = TypeVar("T")

MAX_MESSAGE_CHARS = 2000
"""The maximum number of characters of a worker's message that kdeclare displays."""


class Response(BaseModel):
    """The base class of models of JSON responses."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class _Offset(Response):
    offset: int


class _AppliedUpdate(_Offset):
    at: str = ""
    sha256: str


class _Refusal(Response):
    offset: int | None = None
    at: str = ""
    message: str = ""


class _Certificate(Response):
    sha256: str
    subject: str = ""
    issuer: str = ""
    not_before: datetime
    not_after: datetime


class _Listener(Response):
    name: str
    port: int
    certificate: _Certificate | None = None


class _Status(Response):
    worker_id: str | None = None
    leader: bool | None = None
    plugin_version: str
    mode: str | None = None
    seen: _Offset | None = None
    applied: _AppliedUpdate | None = None
    error: _Refusal | None = None
    overrides: tuple[str, ...] = ()
    whitelist: tuple[str, ...] = ()
    listeners: tuple[_Listener, ...] = ()


class _Validation(Response):
    valid: bool
    errors: dict[str, tuple[str, ...]] = {}


class _ErrorResponse(Response):
    message: str


_OVERRIDES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_STATUS = TypeAdapter(_Status)
_VALIDATION = TypeAdapter(_Validation)
_ERROR_RESPONSE = TypeAdapter(_ErrorResponse)


def parse_overrides(body: bytes) -> Mapping[str, str]:
    """Parse the response that contains a worker's raw overrides. Raises Fault."""
    return parse_response(_OVERRIDES, body)


def parse_status(body: bytes) -> PluginStatus:
    """Parse the response that contains the status of a worker. Raises Fault."""
    response = parse_response(_STATUS, body)
    return PluginStatus(
        worker_id=response.worker_id or "",
        leader=response.leader,
        plugin_version=response.plugin_version,
        mode=response.mode or "",
        seen=response.seen.offset if response.seen else None,
        applied=AppliedUpdate(response.applied.offset, response.applied.at, response.applied.sha256)
        if response.applied
        else None,
        error=Refusal(response.error.offset, response.error.at, shorten(response.error.message))
        if response.error
        else None,
        overrides=response.overrides,
        whitelist=response.whitelist,
        listeners=tuple(
            Listener(one.name, one.port, _build_certificate(one.certificate)) for one in response.listeners
        ),
    )


def parse_validation(body: bytes) -> Validation:
    """Parse a worker's response to a request to validate overrides. Raises Fault."""
    response = parse_response(_VALIDATION, body)
    errors = {key: tuple(map(shorten, messages)) for key, messages in response.errors.items()}
    return Validation(response.valid, errors)


def parse_error_message(body: bytes) -> str:
    """Return the message of an error response in Connect's format; empty for any other format."""
    try:
        return shorten(_ERROR_RESPONSE.validate_json(body).message)
    except ValidationError:
        return ""


def shorten(text: str) -> str:
    """Shorten a worker's message if it is too long for the output."""
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}…"


def _build_certificate(response: _Certificate | None) -> Certificate | None:
    if response is None:
        return None
    times = (response.not_before.astimezone(UTC), response.not_after.astimezone(UTC))
    return Certificate(response.sha256, response.subject, response.issuer, *times)


def parse_response(adapter: TypeAdapter[T], body: bytes) -> T:
    """Parse a response. Raises Fault BAD_ANSWER, whose message contains no part of the response."""
    try:
        return adapter.validate_json(body)
    except ValidationError as exception:
        first_error = exception.errors(include_input=False)[0]  # The input can be a secret.
        location = ".".join(map(str, first_error["loc"])) or "document"
        raise Fault(BAD_ANSWER, f"its response is invalid ({location}: {first_error['msg']})") from None
