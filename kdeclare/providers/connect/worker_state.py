"""Data classes for Kafka Connect workers: groups, reported state and observed state. Secrets are masked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Annotated

from pydantic import Field, PlainSerializer

from kdeclare.core.clock import format_second
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_list, as_text, as_text_or_none, as_texts, hash_json
from kdeclare.core.operations.argument_binding import OMIT_EMPTY, OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.provider.provider import TypedSetting
from kdeclare.core.secrets.secret_hashes import is_mark, mark_hash, mark_value
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, SecretRef, is_sensitive_key


@dataclass(frozen=True, slots=True)
class WorkerGroup(Arguments):
    """The workers of one Connect cluster, and the connection settings, without secrets.

    If the environment configures the workers as a named Connect cluster, only ``endpoint`` is set.

    urls: one URL per worker (``https://host:port``).
    ca_file: a PEM file, relative to the project folder; None for the trust store of the system.
    cert_file, key_file: PEM files of the client certificate; None without a client certificate.
    headers: the names and values of headers for every request. A value is a reference (``Bearer
        ${env.TOKEN}``).
    endpoint: the name of the Connect cluster in the environment.
    """

    urls: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    ca_file: Annotated[str | None, OMIT_NONE] = None
    cert_file: Annotated[str | None, OMIT_NONE] = None
    key_file: Annotated[str | None, OMIT_NONE] = None
    headers: Annotated[tuple[tuple[str, str], ...], OMIT_EMPTY] = ()
    endpoint: Annotated[str | None, OMIT_NONE] = None

    def __post_init__(self) -> None:
        if bool(self.urls) is (self.endpoint is not None):
            raise ValueError("a group of workers has either URLs or the name of an endpoint")

    def __str__(self) -> str:
        return ",".join(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The URLs of the workers; for a named Connect cluster, only its full name."""
        return self.urls if self.endpoint is None else (f"connect/{self.endpoint}",)


_UtcSecond = Annotated[
    datetime, PlainSerializer(format_second, return_type=str), Field(description="UTC, ISO 8601.")
]


@dataclass(frozen=True, slots=True)
class Certificate:
    """The leaf certificate of a chain.

    subject, issuer: in the format of RFC 2253.
    """

    sha256: Annotated[str, Field(description="The SHA-256 hash of the DER encoding, in hex.")]
    subject: str
    issuer: str
    not_before: _UtcSecond
    not_after: _UtcSecond


@dataclass(frozen=True, slots=True)
class Listener:
    """One listener, as reported by its worker."""

    name: str
    port: int
    certificate: Annotated[Certificate | None, Field(description="Null without TLS.")] = None


@dataclass(frozen=True, slots=True)
class AppliedUpdate:
    """The last update that a worker has applied. sha256: the hash of its overrides (`hash_overrides`)."""

    offset: int
    at: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The last update that a worker could not apply, with the reason.

    offset: the offset of the update; None if the error is not about an update.
    """

    offset: int | None
    at: str
    message: str


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """The status that the plug-in of one worker reports (``GET …/status``).

    worker_id, mode: an empty string if unknown.
    leader: whether the worker is the leader; None if unknown.
    seen: the offset of the last update that the worker has read.
    overrides: the overridden keys.
    whitelist: the keys that can be overridden.
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
    """The state of one worker at one time.

    served: the certificate from a TLS handshake; None without TLS.
    trouble: the reason why ``status`` or ``served`` is missing.
    """

    url: str
    status: PluginStatus | None = None
    served: Certificate | None = None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """The state of all workers of a group at one time.

    overrides: the raw values in the topic that stores the overrides, including placeholders; None if no
        worker reports the overrides. Raw values can be secrets, which must be masked or hashed before
        they are shown or stored.
    """

    at: datetime
    overrides: Mapping[str, str] | None = field(repr=False)
    workers: tuple[WorkerSnapshot, ...] = ()


def hash_overrides(overrides: Mapping[str, str]) -> str:
    """Return the SHA-256 (in hex) of the canonical JSON of raw overrides. Workers report the same hash."""
    return hash_json(dict(overrides))


def dump_group(group: WorkerGroup) -> dict[str, JsonValue]:
    """Convert a group to plain data for operations and records. Unset fields are omitted."""
    files = {"ca_file": group.ca_file, "cert_file": group.cert_file, "key_file": group.key_file}
    if group.endpoint is not None:
        return {"endpoint": group.endpoint}
    document: dict[str, JsonValue] = {"urls": list(group.urls)}
    document |= {name: file for name, file in files.items() if file is not None}
    return document | ({"headers": [list(pair) for pair in group.headers]} if group.headers else {})


def bind_group(document: Mapping[str, JsonValue]) -> WorkerGroup:
    """Restore a group from the result of `dump_group`."""
    if "endpoint" in document:
        return WorkerGroup(endpoint=as_text(document["endpoint"]))
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
    """Whether a value consists only of placeholders of Connect's config providers (KIP-297).

    Placeholders are not secret: the topic that stores the overrides contains only the placeholders, and each
    worker resolves them.
    """
    return bool(text) and not _PLACEHOLDER.sub("", text)


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Whether an argument ``KEY=VALUE`` of ``connect worker-config`` contains a secret.

    Placeholders are not secret. Return None for any other command, and for the value of an option.
    """
    if setting.option or setting.command[:2] != _COMMAND:
        return None
    return is_sensitive_key(setting.key) and not is_placeholder(setting.value)


def redact_value(key: str, raw: str | None) -> JsonValue:
    """Return a raw value for display. If the value is a secret, return a mask instead."""
    if raw is None or not is_sensitive_key(key) or is_placeholder(raw):
        return raw
    return SENSITIVE_MASK


def mark_secret(location: str, key: str, raw: str | None, known_hashes: Sequence[str]) -> JsonValue:
    """Return a raw value for views. A secret is replaced with a string that contains a part of a hash.

    location: the workers that store the value.
    known_hashes: the hashes of possible values. If the secret matches one of these hashes, that hash is used.

    Raises KdeclareError if the hashes were made with a secret key that is not available.
    """
    if raw is None or redact_value(key, raw) != SENSITIVE_MASK:
        return raw
    return mark_value(location, key, raw, known_hashes)


def mark_new_value(value: str | SecretRef | None) -> JsonValue:
    """Return the new value that an operation sets, in the form that views use."""
    return mark_hash(value.secret) if isinstance(value, SecretRef) else value


def redact_marked(stored_value: JsonValue) -> JsonValue:
    """Return a value from a view for display. If the value represents a secret, return a mask instead."""
    return SENSITIVE_MASK if is_mark(stored_value) else stored_value
