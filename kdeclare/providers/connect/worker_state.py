"""Workers of Kafka Connect as data: what they say of themselves, and what they show whoever connects."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from pydantic import Field

from kdeclare.core.arguments import Arguments
from kdeclare.core.jsontypes import fingerprint
from kdeclare.core.operation_arguments import EMPTY_UNSTATED, UNSTATED

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""What the name of an HTTP header can be: a token of RFC 9110."""


@dataclass(frozen=True, slots=True)
class WorkerGroup(Arguments):
    """The workers of one Connect cluster, and how to reach them. No secret is in it.

    urls: one a worker, ``https://host:port``.
    ca_file, cert_file, key_file: PEM files, relative to the project's folder; None is the system's trust
        store, and no certificate of one's own.
    headers: of every request, by name: the reference that each is resolved from (``Bearer ${env.TOKEN}``).
    """

    urls: Annotated[tuple[str, ...], Field(min_length=1)]
    ca_file: Annotated[str | None, UNSTATED] = None
    cert_file: Annotated[str | None, UNSTATED] = None
    key_file: Annotated[str | None, UNSTATED] = None
    headers: Annotated[tuple[tuple[str, str], ...], EMPTY_UNSTATED] = ()

    def __str__(self) -> str:
        return ",".join(self.urls)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The leaf of a chain. sha256: hex of its DER. subject, issuer: RFC 2253. Times are UTC."""

    sha256: str
    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener of a worker; certificate: None where it has no TLS."""

    name: str
    port: int
    certificate: Certificate | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The update that a worker runs on. sha256: `overrides_hash` of what it holds."""

    offset: int
    at: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The last update that a worker could not apply, and why; without an offset, what else troubles it."""

    offset: int | None
    at: str
    message: str


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What the plug-in of one worker says (``GET …/status``).

    worker_id, mode: empty, and leader: None, where it does not know. seen: the offset of the last update
    that it has read.
    overrides: the keys that are overridden. whitelist: those that can be.
    """

    worker_id: str
    leader: bool | None
    plugin_version: str
    mode: str
    seen: int | None = None
    applied: Applied | None = None
    error: Refusal | None = None
    overrides: tuple[str, ...] = ()
    whitelist: tuple[str, ...] = ()
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """One worker, as it was at one time.

    served: what a handshake showed; None without TLS. trouble: why one of the two is not known.
    """

    url: str
    status: WorkerStatus | None = None
    served: Certificate | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class WorkersSeen:
    """All workers of a group at one time.

    overrides: as they stand in the topic, placeholders and all; may hold secrets, so only `kinds` turn them
        into what is shown or kept. None where no worker tells them.
    """

    at: datetime
    overrides: Mapping[str, str] | None = field(repr=False)
    workers: tuple[WorkerSeen, ...] = ()


def overrides_hash(overrides: Mapping[str, str]) -> str:
    """SHA-256, in hex, of the canonical JSON of raw overrides: what a worker that has applied them says."""
    return fingerprint(dict(overrides))
