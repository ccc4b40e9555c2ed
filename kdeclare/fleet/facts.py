"""What two rows must have in common for a resource to be in order, as hashes that Spark compares by itself.

A fact is about one config key: that it has a value, that it is a list of certain elements, or that one
element is in it. Facts prove that a row is in order, or leave it to the diff; they never say what is wrong.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from kdeclare.core.jsontypes import Json
from kdeclare.core.secrets import Secret
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_diff import own_elements, shown_value
from kdeclare.providers.kafka.config.wishes import Parts, Unset, Whole, Wish, may_be_secret
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigType
from kdeclare.providers.kafka.operations.alter_configs import own_source

Hashes = list[int]


class LiveFacts(NamedTuple):
    """Of the overrides of one resource: what is so, and which keys they are."""

    has: Hashes
    keys: Hashes


class DeclaredFacts(NamedTuple):
    """What live must have (``need``) and must not (``forbid``), and which ``keys`` may be overridden.

    gone: of all other keys, those that the diff has something to say about even where it is not asked about
        unmanaged ones; None where it is every one.
    mine: elements that kdeclare put into lists; those that are not needed any more, the diff has to see.
    always: facts cannot tell, as there are secrets or parts of lists that are unset.
    """

    need: Hashes
    forbid: Hashes
    keys: Hashes
    gone: Hashes | None
    mine: Hashes
    always: bool


def live_facts(entity: ConfigResource, entries: Mapping[str, ConfigEntry]) -> LiveFacts:
    """Facts of what is set on the resource itself."""
    own = own_source(entity)
    mine = {key: entry for key, entry in entries.items() if entry.source is own}
    has = [fact for key, entry in mine.items() for fact in _facts_of(entity.scope, key, entry)]
    return LiveFacts(has, [_key(key) for key in mine])


def declared_facts(
    scope: ConfigScope, wishes: Mapping[str, Wish], owned: Mapping[str, Json]
) -> DeclaredFacts:
    """Facts of the declared configs, where ``owned`` says what was last applied, by key."""
    need: Hashes = []
    forbid: Hashes = []
    mine: Hashes = []
    untold = {key for key, wish in wishes.items() if _is_untold(scope, key, wish)}
    for key, wish in wishes.items():
        if key in untold:
            continue  # a quick hash of what may be secret would give it away
        if isinstance(wish, Whole):
            need.append(_whole(scope, key, wish.value))
        elif isinstance(wish, Parts):
            need += [_element(key, element) for element in wish.append]
            forbid += [_element(key, element) for element in wish.subtract]
            mine += [_element(key, element) for element in own_elements(owned.get(key))]
    keys = {key for key, wish in wishes.items() if not isinstance(wish, Unset)}
    gone = sorted({*wishes, *owned} - keys)
    return DeclaredFacts(
        need, forbid, list(map(_key, sorted(keys))), list(map(_key, gone)), mine, always=bool(untold)
    )


def proves_order(
    declared: Mapping[str, Json], live: Mapping[str, Json], *, unmanaged_keys: bool = True
) -> bool:
    """Whether the facts of two rows show that the diff would find nothing; null shows nothing.

    unmanaged_keys: whether a key that is neither declared nor owned is to be found.
    False says nothing at all. `fleet.spark` has the same rule in SQL; a test holds the two together.
    """
    hashes = [
        declared["need"],
        declared["forbid"],
        declared["keys" if unmanaged_keys else "gone"],
        declared["mine"],
        live["has"],
        live["keys"],
    ]
    if declared["alone"] is not True or declared["always"] is not False or live["error"] is not None:
        return False
    if any(column is None for column in hashes):
        return False
    if any(declared[name] not in (None, live[name]) for name in ("partitions", "factor", "topic_id")):
        return False
    need, forbid, keys, mine, has, overridden = map(frozenset, hashes)
    expected = overridden <= keys if unmanaged_keys else not overridden & keys
    return need <= has and not forbid & has and expected and mine <= need


def _is_untold(scope: ConfigScope, key: str, wish: Wish) -> bool:
    """Secrets are known by their hash only; what is taken out of an unset list is not in any override."""
    if isinstance(wish, Secret):
        return True
    if isinstance(wish, Parts):
        return not wish.append
    return may_be_secret(key, wish, catalog(scope))


def _facts_of(scope: ConfigScope, key: str, entry: ConfigEntry) -> tuple[int, ...]:
    if entry.sensitive or entry.value is None:
        return ()
    return _facts(scope, key, entry.value, entry.type)


@lru_cache(maxsize=65536)
def _facts(scope: ConfigScope, key: str, value: str, kind: ConfigType) -> tuple[int, ...]:
    entry = ConfigEntry(value, own_source(ConfigResource(scope, "")), kind)
    return tuple(_facts_shown(key, shown_value(key, entry, catalog(scope))))


def _facts_shown(key: str, shown: Json) -> Iterator[int]:
    if isinstance(shown, str):
        yield _scalar(key, shown)
        return
    elements = frozenset(element.strip() for element in shown)
    yield _list(key, elements)
    for element in sorted(elements):
        yield _element(key, element)


@lru_cache(maxsize=65536)
def _whole(scope: ConfigScope, key: str, value: str | tuple[str, ...]) -> int:
    if isinstance(value, tuple):
        return _list(key, frozenset(value))
    return _scalar(key, catalog(scope).canonical(key, value))


def _scalar(key: str, canonical: str) -> int:
    return _hash("value", key, canonical)


def _list(key: str, elements: frozenset[str]) -> int:
    return _hash("list", key, *sorted(elements))


@lru_cache(maxsize=65536)
def _element(key: str, element: str) -> int:
    return _hash("element", key, element)


@lru_cache(maxsize=4096)
def _key(key: str) -> int:
    return _hash("key", key)


def _hash(*parts: str) -> int:
    """64 bits, signed as Spark's BIGINT is; the lengths keep apart what would read the same when joined."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big", signed=True)
