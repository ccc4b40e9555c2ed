"""Shell completion for users, client ids, IP addresses, and their quotas and SCRAM credentials."""

from collections.abc import Iterable, Mapping

from kdeclare.cli.interactive.candidates import CompletionOffer, CompletionValue
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.client_quota.collector import read_quotas
from kdeclare.providers.kafka.client_quota.entity import (
    LIMITS,
    EntityType,
    LiveLimit,
    QuotaEntity,
    format_limit,
    list_allowed_limits,
)
from kdeclare.providers.kafka.commands.clients.client_query import CLIENT_ENTITY_TYPES
from kdeclare.providers.kafka.scram_user.collector import read_scram_users
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism

_OPTIONS = {EntityType.USER: "user", EntityType.CLIENT_ID: "client", EntityType.IP: "ip"}
"""For each entity type, the option with which the command line names an entity."""
_CREDENTIAL_FORM = "[iterations=8192,password="


def find_types(place: CursorContext) -> list[EntityType]:
    """Return the entity types on the command line: user, client id or IP address."""
    given = place.given
    types = [CLIENT_ENTITY_TYPES[t] for t in given.get("entity_type", ()) if t in CLIENT_ENTITY_TYPES]
    types += [type_ for type_, option in _OPTIONS.items() if option in given or f"{option}_defaults" in given]
    return list(dict.fromkeys(types))


def list_clients(type_: EntityType, names: Names) -> list[str]:
    """Return the users, client ids or IP addresses that have quotas.

    The users include those that have only SCRAM credentials.
    """
    live = {dict(entity.parts).get(type_) for entity in _read_limits(names)}
    users = _read_users(names) if type_ is EntityType.USER else ()
    return sorted({name for name in live if name is not None}.union(users))


def complete_names(type_: EntityType, place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    """Complete the name of a user, a client id or an IP address."""
    used = place.given.get(place.wanted.name, ()) if place.wanted else ()
    return (CompletionValue(name) for name in list_clients(type_, names) if name not in used)


def complete_settings(place: CursorContext, names: Names, prefix: str, text: str) -> CompletionOffer:
    """Complete a quota key or a SCRAM mechanism. For the value, suggest the current limit."""
    limits, credentials = _find_current(place, names)
    key, sign, value = text.partition("=")
    if sign:
        current = limits.get(key)
        values = [CompletionValue(str(current), "now")] if current is not None else []
        return CompletionOffer(values, value, f"{prefix}{key}=")
    keys = [CompletionValue(f"{k}=", _format_hint(k, limits)) for k in _list_limit_keys(place)]
    for mechanism in Mechanism if _is_about_users(place) else ():
        number = credentials.get(mechanism)
        about = f"now {number} iterations" if number is not None else ""
        keys.append(CompletionValue(f"{mechanism}={_CREDENTIAL_FORM}", about))
    return CompletionOffer(keys, text, prefix)


def complete_keys(place: CursorContext, names: Names) -> list[CompletionValue]:
    """Complete a key to delete.

    Suggest the existing limits and credentials, or all keys if the entity has none.
    """
    limits, credentials = _find_current(place, names)
    existing = [CompletionValue(key, _format_hint(key, limits)) for key in sorted(limits)]
    existing += [
        CompletionValue(mechanism.value, f"{credentials[mechanism]} iterations")
        for mechanism in sorted(credentials)
    ]
    if existing:
        return existing
    mechanisms = [mechanism.value for mechanism in Mechanism] if _is_about_users(place) else []
    return [CompletionValue(key) for key in (*_list_limit_keys(place), *mechanisms)]


def _list_limit_keys(place: CursorContext) -> list[str]:
    return list_allowed_limits(is_for_ips=EntityType.IP in find_types(place))


def _is_about_users(place: CursorContext) -> bool:
    return find_types(place) == [EntityType.USER]


def _format_hint(key: str, limits: Mapping[str, LiveLimit]) -> str:
    if key in limits:
        return f"now {format_limit(key, limits[key])}"
    return LIMITS[key].unit if key in LIMITS else ""


def _find_current(place: CursorContext, names: Names) -> tuple[Mapping[str, LiveLimit], Credentials]:
    """Return the limits and credentials of the entity on the command line.

    Without an entity, both are empty.
    """
    types = find_types(place)
    texts = list(place.given.get("entity_name", ()))
    parts: dict[EntityType, str | None] = {}
    for type_ in types:
        own = place.first(_OPTIONS[type_])
        is_default = f"{_OPTIONS[type_]}_defaults" in place.given
        if own is None and not is_default and texts:
            own = texts.pop(0)
        parts[type_] = own
    entity = QuotaEntity.of(parts)
    user = parts.get(EntityType.USER) if len(types) == 1 else None
    credentials: Credentials = _read_users(names).get(user, {}) if user is not None else {}
    return _read_limits(names).get(entity, {}), credentials


def _read_limits(names: Names) -> Mapping[QuotaEntity, Mapping[str, LiveLimit]]:
    def read(connections: Connections) -> Mapping[QuotaEntity, Mapping[str, LiveLimit]]:
        return read_quotas(connections).limits

    nothing: Mapping[QuotaEntity, Mapping[str, LiveLimit]] = {}
    return names.ask("quotas", read, nothing)


def _read_users(names: Names) -> Mapping[str, Credentials]:
    def read(connections: Connections) -> Mapping[str, Credentials]:
        return read_scram_users(connections).users

    nothing: Mapping[str, Credentials] = {}
    return names.ask("scram-users", read, nothing)
