"""What the plug-in answers, from JSON to values. Fields that are not known here are left out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client.port import BAD_ANSWER, Validation
from kdeclare.providers.connect.worker_state import Applied, Certificate, Listener, Refusal, WorkerStatus

T = TypeVar("T")

MAX_WORDS = 2000
"""Characters of one message of a worker's that are shown."""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Offset(_Answer):
    offset: int


class _Applied(_Offset):
    at: str = ""
    sha256: str


class _Refusal(_Answer):
    offset: int | None = None
    at: str = ""
    message: str = ""


class _Certificate(_Answer):
    sha256: str
    subject: str = ""
    issuer: str = ""
    not_before: datetime
    not_after: datetime


class _Listener(_Answer):
    name: str
    port: int
    certificate: _Certificate | None = None


class _Status(_Answer):
    worker_id: str | None = None
    leader: bool | None = None
    plugin_version: str
    mode: str | None = None
    seen: _Offset | None = None
    applied: _Applied | None = None
    error: _Refusal | None = None
    overrides: tuple[str, ...] = ()
    whitelist: tuple[str, ...] = ()
    listeners: tuple[_Listener, ...] = ()


class _Validation(_Answer):
    valid: bool
    errors: dict[str, tuple[str, ...]] = {}


class _Problem(_Answer):
    message: str


_OVERRIDES: TypeAdapter[dict[str, str]] = TypeAdapter(dict[str, str])
_STATUS = TypeAdapter(_Status)
_VALIDATION = TypeAdapter(_Validation)
_PROBLEM = TypeAdapter(_Problem)


def overrides(body: bytes) -> Mapping[str, str]:
    """The raw overrides. Raises Fault."""
    return _understood(_OVERRIDES, body)


def status(body: bytes) -> WorkerStatus:
    """What a worker says of itself. Raises Fault."""
    said = _understood(_STATUS, body)
    return WorkerStatus(
        worker_id=said.worker_id or "",
        leader=said.leader,
        plugin_version=said.plugin_version,
        mode=said.mode or "",
        seen=said.seen.offset if said.seen else None,
        applied=Applied(said.applied.offset, said.applied.at, said.applied.sha256) if said.applied else None,
        error=Refusal(said.error.offset, said.error.at, shorten(said.error.message)) if said.error else None,
        overrides=said.overrides,
        whitelist=said.whitelist,
        listeners=tuple(
            Listener(one.name, one.port, _certificate(one.certificate)) for one in said.listeners
        ),
    )


def validation(body: bytes) -> Validation:
    """What a worker says of proposed overrides. Raises Fault."""
    said = _understood(_VALIDATION, body)
    errors = {key: tuple(map(shorten, messages)) for key, messages in said.errors.items()}
    return Validation(said.valid, errors)


def problem(body: bytes) -> str:
    """The message of an error as Connect writes it; empty where there is none."""
    try:
        return shorten(_PROBLEM.validate_json(body).message)
    except ValidationError:
        return ""


def shorten(text: str) -> str:
    """A worker's message, cut where it is too long for people."""
    return text if len(text) <= MAX_WORDS else f"{text[:MAX_WORDS]}…"


def _certificate(said: _Certificate | None) -> Certificate | None:
    if said is None:
        return None
    times = (said.not_before.astimezone(UTC), said.not_after.astimezone(UTC))
    return Certificate(said.sha256, said.subject, said.issuer, *times)


def _understood(adapter: TypeAdapter[T], body: bytes) -> T:
    try:
        return adapter.validate_json(body)
    except ValidationError as wrong:
        first = wrong.errors(include_input=False)[0]  # an input can be a secret
        where = ".".join(map(str, first["loc"])) or "the whole"
        raise Fault(BAD_ANSWER, f"its answer is not understood ({where}: {first['msg']})") from None
