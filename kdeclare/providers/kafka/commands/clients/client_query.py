"""The users, client ids and IP addresses that a command line names."""

from collections.abc import Mapping, Sequence
from itertools import product

import typer

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.commands.clients.client_options import ClientOptions

CLIENT_ENTITY_TYPES: Mapping[str, EntityType] = {
    "users": EntityType.USER,
    "clients": EntityType.CLIENT_ID,
    "ips": EntityType.IP,
}
"""The entity types of kafka-configs (org.apache.kafka.server.config.ConfigType) that have quotas."""

Names = tuple[str | None, ...]
"""Names of entities of one type. None means the default entity; an empty tuple means all entities."""


@dataclass(frozen=True, slots=True)
class ClientEntityQuery:
    """The entities of a command: users, client ids, IP addresses, or pairs of a user and a client id."""

    names: Mapping[EntityType, Names]

    @property
    def has_names(self) -> bool:
        """Whether the command names every entity, so that no cluster is needed to find the entities."""
        return all(self.names.values())

    def list_entities(self) -> list[QuotaEntity]:
        """Return the named entities. For two types, return every combination of a user and a client id."""
        combinations = product(*self.names.values())
        named = (QuotaEntity.of(dict(zip(self.names, names, strict=True))) for names in combinations)
        return list(dict.fromkeys(named))

    def includes(self, entity: QuotaEntity) -> bool:
        """Return whether the command selects an entity.

        The entity must have exactly the entity types of the command and, for each type, a name that the
        command selects.
        """
        parts = dict(entity.parts)
        return parts.keys() == self.names.keys() and all(
            not names or parts[type_] in names for type_, names in self.names.items()
        )

    def find_users(self) -> tuple[str, ...] | None:
        """Return the users whose SCRAM credentials the command reads or changes. None means no users.

        As in kafka-configs, credentials belong to users, and not to client ids or default users. An empty
        tuple means all users.
        """
        names = self.names.get(EntityType.USER)
        if names is None or len(self.names) > 1:
            return None
        users = tuple(name for name in names if name is not None)
        return users if users or not names else None


def build_client_query(
    options: ClientOptions, types: Sequence[str], names: Sequence[str], *, default: bool
) -> ClientEntityQuery | None:
    """Return the entities that a command names, or None if it names no entity. Raises BadParameter.

    types: the values of --entity-type, in order.
    names: the values of --entity-name, in order.
    default: whether the command line contains --entity-default.
    """
    named = _list_names(options)
    entity_types = [CLIENT_ENTITY_TYPES[text] for text in types if text in CLIENT_ENTITY_TYPES]
    if not named and not entity_types:
        return None
    if len(entity_types) != len(types) or len(set(entity_types)) != len(entity_types):
        raise typer.BadParameter(
            "use users, clients or ips, or users together with clients.", param_hint="--entity-type"
        )
    if not entity_types and (names or default):
        raise typer.BadParameter("specify the type of the entity.", param_hint="--entity-type")
    for type_, type_names in _assign_names(entity_types, names, default=default).items():
        named[type_] = (*named.get(type_, ()), *type_names)
    if EntityType.IP in named and len(named) > 1:
        raise typer.BadParameter(
            "an IP address cannot be combined with a user or a client id.", param_hint="--ip"
        )
    return ClientEntityQuery({type_: named[type_] for type_ in EntityType if type_ in named})


def _list_names(options: ClientOptions) -> dict[EntityType, Names]:
    """Return, for each entity type, the names that the short options contain."""
    named = {
        EntityType.USER: (*(options.user or ()), *((None,) if options.user_defaults else ())),
        EntityType.CLIENT_ID: (*(options.client or ()), *((None,) if options.client_defaults else ())),
        EntityType.IP: (*(options.ip or ()), *((None,) if options.ip_defaults else ())),
    }
    return {type_: names for type_, names in named.items() if names}


def _assign_names(
    types: Sequence[EntityType], names: Sequence[str], *, default: bool
) -> dict[EntityType, Names]:
    """Return the names by type, in the order of the types.

    As in kafka-configs, a missing name means all entities of the last type.
    """
    defaults: Names = (None,) if default else ()
    if len(types) == 1:
        return {types[0]: (*names, *defaults)}
    if len(names) > len(types) or (names and default):
        raise typer.BadParameter(
            "with two types, pass at most one --entity-name for each. For a default entity, write "
            "--user NAME --client-defaults, or --user-defaults --client ID.",
            param_hint="--entity-name",
        )
    if names:
        return {type_: tuple(names[i : i + 1]) for i, type_ in enumerate(types)}
    return dict.fromkeys(types, defaults)
