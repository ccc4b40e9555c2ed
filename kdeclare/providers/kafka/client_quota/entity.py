"""Whom a quota is for: users, client ids and IP addresses, by name or by default."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Self
from urllib.parse import quote, unquote

from kdeclare.core.jsontypes import Json


class EntityType(StrEnum):
    """The types of Kafka's quota entities (org.apache.kafka.common.quota.ClientQuotaEntity)."""

    USER = "user"
    CLIENT_ID = "client-id"
    IP = "ip"


_FIELDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "clientId", EntityType.IP: "ip"}
"""What manifests and plans call each type."""
_ANY = "*"
_WORDS = {EntityType.USER: "user", EntityType.CLIENT_ID: "client id", EntityType.IP: "IP address"}


@dataclass(frozen=True, slots=True)
class QuotaEntity:
    """One entity. ``parts`` has a name for each of its types, in the order of types; None is the default.

    An entity with a default is not one with the name ``<default>``, which Kafka allows.
    """

    parts: tuple[tuple[EntityType, str | None], ...]

    @classmethod
    def of(cls, names: Mapping[EntityType, str | None]) -> Self:
        """Return the entity with these names by type; None is the default."""
        return cls(tuple((type_, names[type_]) for type_ in EntityType if type_ in names))

    @classmethod
    def from_json(cls, json: Mapping[str, str | None]) -> Self:
        """Return the entity that `to_json` has written."""
        return cls.of({type_: json[field] for type_, field in _FIELDS.items() if field in json})

    def to_json(self) -> Json:
        """Return the names by the fields of a manifest; null is the default."""
        return {_FIELDS[type_]: name for type_, name in self.parts}

    @classmethod
    def parse_key(cls, key: str) -> Self:
        """Return the entity that has this `key`."""
        stated = (part.partition("=") for part in key.split(","))
        return cls.of({EntityType(t): None if name == _ANY else unquote(name) for t, _, name in stated})

    @property
    def key(self) -> str:
        """One text for one entity, whatever its names contain: ``user=alice,client-id=*``.

        Names are escaped as in URLs, as Kafka itself does; the default is a star.
        """
        texts = (_ANY if name is None else quote(name, safe="") for _, name in self.parts)
        return ",".join(f"{type_}={text}" for (type_, _), text in zip(self.parts, texts, strict=True))

    @property
    def is_ip(self) -> bool:
        """Whether it is an IP address, or the default of them: these have limits of their own."""
        return any(type_ is EntityType.IP for type_, _ in self.parts)

    def __str__(self) -> str:
        return " with ".join(
            f"the default {_WORDS[type_]}" if name is None else f"{_WORDS[type_]} '{name}'"
            for type_, name in self.parts
        )


DEFAULT_USER = QuotaEntity.of({EntityType.USER: None})
DEFAULT_PAIR = QuotaEntity.of({EntityType.USER: None, EntityType.CLIENT_ID: None})


def find_shadowing(entity: QuotaEntity) -> tuple[QuotaEntity, ...]:
    """Return the entities whose limits always hold in place of those of this one, where both state a key.

    Brokers take the first entity with a limit: user with client id, user with default client id, user,
    default user with client id, default user with default client id, default user, client id, default client
    id (org.apache.kafka.server.quota.DefaultQuotaCallback in ClientQuotaManager). Every request has a user
    and a client id, so a default that comes earlier leaves nothing for what comes later.
    """
    names = dict(entity.parts)
    if entity.is_ip:
        return ()
    if EntityType.CLIENT_ID not in names:
        return (QuotaEntity.of({**names, EntityType.CLIENT_ID: None}),)
    if EntityType.USER in names:
        return ()
    pair = QuotaEntity.of({**names, EntityType.USER: None})
    return tuple(dict.fromkeys((pair, DEFAULT_PAIR, DEFAULT_USER)))
