"""Configs as policies see them: texts by key, whose values are empty where nobody may see them."""

from collections.abc import Mapping

from kdeclare.core.secrets import Secret
from kdeclare.providers.kafka.config.catalog import Catalog
from kdeclare.providers.kafka.config.wishes import Parts, Unset, Wish, joined
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource

_TYPES = {"LIST": list, "BOOLEAN": bool, "STRING": str, "PASSWORD": str, "CLASS": str}


def find_key_types(known: Catalog) -> Mapping[str, type]:
    """Return the keys of a catalogue; what is not in `_TYPES` is a number."""
    return {key: _TYPES.get(info.type, float) for key, info in known.keys.items()}


def state_value(known: Catalog, key: str, wish: Wish) -> str | None:
    """Return the override that a wish comes to where there was none before; None for no override.

    Parts of a list start from the key's own default (KIP-339).
    """
    if isinstance(wish, Unset | Secret):
        return None
    if not isinstance(wish, Parts):
        return joined(wish.value)
    start = [e for e in known.default_list(key) if e not in wish.subtract]
    return joined([*start, *(e for e in wish.append if e not in start)])


def describe_wishes(known: Catalog, wishes: Mapping[str, Wish]) -> dict[str, str]:
    """Return declared configs as they would be if nothing was set before."""
    values = {key: "" if isinstance(w, Secret) else state_value(known, key, w) for key, w in wishes.items()}
    return {key: value for key, value in values.items() if value is not None}


def describe_overrides(entries: Mapping[str, ConfigEntry], source: ConfigSource) -> dict[str, str]:
    """Return what is set on a resource itself."""
    return {key: entry.value or "" for key, entry in entries.items() if entry.source is source}
