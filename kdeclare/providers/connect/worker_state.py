"""Workers of Kafka Connect as data: groups of them, what they say and show, and which values are secret."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.clock import format_second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_list, as_text_or_none, as_texts, hash_json
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.provider.provider import TypedSetting
from kdeclare.core.secrets.secret_hashes import is_mark, mark_hash, mark_value
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef, is_sensitive_key

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
    ca_file: Annotated[str | None, OMIT_NONE] = None
    cert_file: Annotated[str | None, OMIT_NONE] = None
    key_file: Annotated[str | None, OMIT_NONE] = None
    headers: Annotated[tuple[tuple[str, str], ...], OMIT_EMPTY] = ()

    def __str__(self) -> str:
        return ",".join(self.urls)


_UtcSecond = Annotated[
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
    not_before: _UtcSecond
    not_after: _UtcSecond


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener, as its worker tells of it."""

    name: str
    port: int
    certificate: Annotated[Certificate | None, Field(description="Null without TLS.")] = None


@dataclass(frozen=True, slots=True)
class AppliedUpdate:
    """The update that a worker runs on. sha256: `hash_overrides` of what it holds."""

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
class PluginStatus:
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
    applied: AppliedUpdate | None = None
    error: Refusal | None = None
    overrides: tuple[str, ...] = ()
    whitelist: tuple[str, ...] = ()
    listeners: tuple[Listener, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """One worker, as it was at one time.

    served: what a handshake showed; None without TLS. trouble: why one of the two is not known.
    """

    url: str
    status: PluginStatus | None = None
    served: Certificate | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """All workers of a group at one time.

    overrides: as they stand in the topic, placeholders and all; may hold secrets, so only `kinds` turn them
        into what is shown or kept. None where no worker tells them.
    """

    at: datetime
    overrides: Mapping[str, str] | None = field(repr=False)
    workers: tuple[WorkerSnapshot, ...] = ()


def hash_overrides(overrides: Mapping[str, str]) -> str:
    """SHA-256, in hex, of the canonical JSON of raw overrides: what a worker that has applied them says."""
    return hash_json(dict(overrides))


def dump_group(group: WorkerGroup) -> dict[str, JsonValue]:
    """A group as operations and records hold it; what is not said is left out."""
    files = {"ca_file": group.ca_file, "cert_file": group.cert_file, "key_file": group.key_file}
    document: dict[str, JsonValue] = {"urls": list(group.urls)}
    document |= {name: file for name, file in files.items() if file is not None}
    return document | ({"headers": [list(pair) for pair in group.headers]} if group.headers else {})


def bind_group(document: Mapping[str, JsonValue]) -> WorkerGroup:
    """The group again."""
    return WorkerGroup(
        as_texts(document["urls"]),
        as_text_or_none(document.get("ca_file")),
        as_text_or_none(document.get("cert_file")),
        as_text_or_none(document.get("key_file")),
        tuple((name, reference) for name, reference in map(as_texts, as_list(document.get("headers", ())))),
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


def redact_value(key: str, raw: str | None) -> JsonValue:
    """A raw value for people."""
    if raw is None or not is_sensitive_key(key) or is_placeholder(raw):
        return raw
    return SENSITIVE_MASK


def mark_secret(location: str, key: str, raw: str | None, known_hashes: Sequence[str]) -> JsonValue:
    """A raw value as views hold it: of a secret, a mark that tells it from other values.

    location: where it stands. known_hashes: hashes of what it may be, whose marks are to be the same.
    Raises KdeclareError where they were made with a key, and none is given.
    """
    if raw is None or redact_value(key, raw) != SENSITIVE_MASK:
        return raw
    return mark_value(location, key, raw, known_hashes)


def mark_new_value(value: str | SecretRef | None) -> JsonValue:
    """The same of what an operation is to set."""
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def redact_marked(stored_value: JsonValue) -> JsonValue:
    """What a view holds, for people."""
    return SENSITIVE_MASK if is_mark(stored_value) else stored_value
