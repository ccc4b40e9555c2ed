"""Workers of Kafka Connect as data: groups of them, what they say and show, and which values are secret."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.clock import format_second
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue, as_list, as_text_or_none, as_texts, fingerprint
from kdeclare.core.operations.binding import EMPTY_UNSTATED, UNSTATED
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.provider.provider import TypedSetting
from kdeclare.core.secrets.secret_hashes import is_mark, mark_hash, mark_value
from kdeclare.core.secrets.secret_refs import SHOWN, SecretRef, is_sensitive_key

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


_Second = Annotated[
    datetime, PlainSerializer(format_second, return_type=str), Field(description="UTC, ISO 8601.")
]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The leaf of a chain.

    subject, issuer: RFC 2253.
    """

    sha256: Annotated[str, Field(description="Hex of its DER.")]
    subject: str
    issuer: str
    not_before: _Second
    not_after: _Second


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener, as its worker tells of it."""

    name: str
    port: int
    certificate: Annotated[Certificate | None, Field(description="Null without TLS.")] = None


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


def write_group(group: WorkerGroup) -> dict[str, JsonValue]:
    """A group as operations and records hold it; what is not said is left out."""
    files = {"ca_file": group.ca_file, "cert_file": group.cert_file, "key_file": group.key_file}
    said: dict[str, JsonValue] = {"urls": list(group.urls)}
    said |= {name: file for name, file in files.items() if file is not None}
    return said | ({"headers": [list(pair) for pair in group.headers]} if group.headers else {})


def read_group(said: Mapping[str, JsonValue]) -> WorkerGroup:
    """The group again."""
    return WorkerGroup(
        as_texts(said["urls"]),
        as_text_or_none(said.get("ca_file")),
        as_text_or_none(said.get("cert_file")),
        as_text_or_none(said.get("key_file")),
        tuple((name, reference) for name, reference in map(as_texts, as_list(said.get("headers", ())))),
    )


_PLACEHOLDER = re.compile(r"\$\{[^{}]*?:(?:[^{}]*?:)?[^{}]*?\}")
"""ConfigTransformer.DEFAULT_PATTERN: ``${provider:[path:]key}``."""
_COMMAND = ("connect", "worker-config")


def is_placeholder(text: str) -> bool:
    """Whether a text is placeholders of Connect's own config providers (KIP-297) and nothing else.

    Such a text is no secret: it stands in the topic as it is, and each worker resolves it.
    """
    return bool(text) and not _PLACEHOLDER.sub("", text)


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether the value of a typed key is secret to workers; None where it is about something else.

    The keys of workers are arguments. Placeholders are no secrets.
    """
    if setting.option or setting.command[:2] != _COMMAND:
        return None
    return is_sensitive_key(setting.key) and not is_placeholder(setting.value)


def show_value(key: str, raw: str | None) -> JsonValue:
    """A raw value for people."""
    if raw is None or not is_sensitive_key(key) or is_placeholder(raw):
        return raw
    return SHOWN


def mark_secret(place: str, key: str, raw: str | None, known: Sequence[str]) -> JsonValue:
    """A raw value as views hold it: of a secret, a mark that tells it from other values.

    place: where it stands. known: hashes of what it may be, whose marks are to be the same.
    Raises KdeclareError where they were made with a key, and none is given.
    """
    if raw is None or show_value(key, raw) != SHOWN:
        return raw
    return mark_value(place, key, raw, known)


def mark_of(value: str | SecretRef | None) -> JsonValue:
    """The same of what an operation is to set."""
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def show_marked(kept_value: JsonValue) -> JsonValue:
    """What a view holds, for people."""
    return SHOWN if is_mark(kept_value) else kept_value
