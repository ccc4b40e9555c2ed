"""Quota entities (users, client ids and IP addresses), and the limits that each type of entity can have."""

import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Self, TypeAlias
from urllib.parse import quote, unquote

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.units import format_amount, parse_size


class EntityType(StrEnum):
    """The types of Kafka's quota entities (org.apache.kafka.common.quota.ClientQuotaEntity)."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


_FIELDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "clientId", EntityType.IP: "ip"}
"""The field name of each entity type in manifests and plans."""
_ANY = "*"
_WORDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "client id", EntityType.IP: "IP address"}


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """One quota entity.

    Kafka allows the name ``<default>``. An entity with this name is not the default entity.
    parts: pairs of a type and a name, in the order of `EntityType`. The name None means the default entity.
    """

    parts: tuple[tuple[EntityType, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[EntityType, str | None]) -> Self:
        """Return the entity with the given name for each type. The name None means the default entity."""
        return cls(tuple((type_, names[type_]) for type_ in EntityType if type_ in names))

    @classmethod
    def from_json(cls, json: Mapping[str, str | None]) -> Self:
        """Return the entity from the result of `to_json`."""
        return cls.of({type_: json[field] for type_, field in _FIELDS.items() if field in json})

    def to_json(self) -> dict[str, str | None]:
        """Return the names by manifest field. The name None means the default entity."""
        return {_FIELDS[type_]: name for type_, name in self.parts}

    @classmethod
    def parse_key(cls, key: str) -> Self:
        """Return the entity from its `key`."""
        parts = (part.partition("=") for part in key.split(","))
        return cls.of({EntityType(t): None if name == _ANY else unquote(name) for t, _, name in parts})

    @property
    def key(self) -> str:
        """A unique string for the entity, such as ``user=alice,client-id=*``.

        Names are URL-encoded, as in Kafka itself. ``*`` means the default entity.
        """
        texts = (_ANY if name is None else quote(name, safe="") for _, name in self.parts)
        return ",".join(f"{type_}={text}" for (type_, _), text in zip(self.parts, texts, strict=True))

    @property
    def is_ip(self) -> bool:
        """Whether the entity is an IP address or the default IP address, which have separate limit keys."""
        return any(type_ is EntityType.IP for type_, _ in self.parts)

    def __str__(self) -> str:
        return " with ".join(
            f"the default {_WORDS[type_]}" if name is None else f"{_WORDS[type_]} '{name}'"
            for type_, name in self.parts
        )


DEFAULT_USER = QuotaEntity.of({EntityType.USER: None})
DEFAULT_PAIR = QuotaEntity.of({EntityType.USER: None, EntityType.CLIENT_ID: None})


def list_shadowing_entities(entity: QuotaEntity) -> tuple[QuotaEntity, ...]:
    """Return the entities whose limits always take precedence over the limits of this entity.

    Brokers use the limit of the first of these entities that has a limit: user with client id, user with
    default client id, user, default user with client id, default user with default client id, default user,
    client id, default client id (org.apache.kafka.server.quota.DefaultQuotaCallback in ClientQuotaManager).

    Every request has a user and a client id, so the default user and the default client id match every
    request.
    """
    names = dict(entity.parts)
    if entity.is_ip:
        return ()
    if EntityType.CLIENT_ID not in names:
        return (QuotaEntity.of({**names, EntityType.CLIENT_ID: None}),)
    if EntityType.USER in names:
        return ()
    default_user_pair = QuotaEntity.of({**names, EntityType.USER: None})
    return tuple(dict.fromkeys((default_user_pair, DEFAULT_PAIR, DEFAULT_USER)))


MAX_LIMIT = 2**53
"""The maximum limit. Brokers store limits as floating-point numbers, which are inexact for larger integers.
"""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """The properties of one quota key (org.apache.kafka.server.config.QuotaConfig).

    is_for_ips: whether the key limits IP addresses. If not, the key limits users and client ids.
    is_whole: whether brokers reject fractions.
    unit: the unit that users see.
    """

    is_for_ips: bool
    is_whole: bool
    unit: str


LIMITS: Mapping[str, LimitInfo] = {
    "producer_byte_rate": LimitInfo(is_for_ips=False, is_whole=True, unit="bytes/s"),
    "consumer_byte_rate": LimitInfo(is_for_ips=False, is_whole=True, unit="bytes/s"),
    "request_percentage": LimitInfo(is_for_ips=False, is_whole=False, unit="%"),
    "controller_mutation_rate": LimitInfo(is_for_ips=False, is_whole=False, unit="mutations/s"),
    "connection_creation_rate": LimitInfo(is_for_ips=True, is_whole=True, unit="connections/s"),
}


def list_allowed_limits(*, is_for_ips: bool) -> list[str]:
    """Return the keys that brokers accept, either for IP addresses or for users and client ids."""
    return [key for key, info in LIMITS.items() if info.is_for_ips is is_for_ips]


def parse_limit(key: str, raw: int | float | str) -> int | float:
    """Parse a declared limit. Raises ValueError with an explanation if brokers would reject the limit.

    The explanation does not quote the value, because the value can come from outside the manifest.
    """
    number: int | float | None = None
    if not isinstance(raw, str):
        number = raw
    elif _NUMBER.fullmatch(raw.strip()):
        number = float(raw)
    elif key.endswith("byte_rate"):
        number = parse_size(raw.strip().removesuffix("/s"))
    if number is None:
        amounts = ", or an amount such as 10MiB" if key.endswith("byte_rate") else ""
        raise ValueError(f"takes a number{amounts}")
    if not 0 < number <= MAX_LIMIT:  # also for NaN
        raise ValueError(f"must be more than 0 and at most {MAX_LIMIT:,}")
    if number == int(number):
        return int(number)
    if LIMITS[key].is_whole:
        raise ValueError(f"must be a whole number of {LIMITS[key].unit}")
    return number


LiveLimit: TypeAlias = int | float | str
"""A live limit. ``inf`` and ``nan``, which brokers accept, are strings, because JSON has no such numbers."""


def to_plan_limit(value: float) -> LiveLimit:
    """Format a live limit for plans: whole numbers as integers, ``inf`` and ``nan`` as strings."""
    if not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) else value


def format_limit(key: str, value: JsonValue) -> str:
    """Return a limit with its unit, such as ``10 MiB/s``."""
    info = LIMITS.get(key)
    if info is None or not isinstance(value, int | float):
        return str(value)
    if info.unit == "bytes/s":
        return f"{format_amount('bytes', int(value))}/s"
    return f"{value:,} {info.unit}"
