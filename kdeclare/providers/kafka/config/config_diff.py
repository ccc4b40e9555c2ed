"""The three-way diff of configs: declared, live and owned (KIP-339 ops come out).

Compares overrides, never effective values: a key set to its default is not a key that is unset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from secrets import token_hex
from typing import TypeAlias

from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import SecretHasher, matches
from kdeclare.core.secrets.secret_refs import SHOWN, Secret, SecretRef
from kdeclare.providers.kafka.config.catalog import Catalog, split_list
from kdeclare.providers.kafka.config.config_record import Applied, AppliedParts, AppliedWhole, own_elements
from kdeclare.providers.kafka.config.wishes import Parts, Unset, Whole, Wish, as_secret
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType

NEVER_RESET = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Throttles of moves, often someone else's: reset only where kdeclare owns them."""

Override: TypeAlias = str | list[str] | None
"""What is set on one resource, as plans write it: a text, a list's elements, `SHOWN`, or None for unset."""


@dataclass(frozen=True, slots=True)
class ConfigSide:
    """What the diff is told of one resource.

    source: the config source of an override on this very resource.
    undeletable: keys that the cluster holds and refuses to delete.
    """

    resource: str
    live: Mapping[str, ConfigEntry]
    source: ConfigSource
    catalog: Catalog
    undeletable: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """fields: in the order of keys, APPEND before SUBTRACT of one key.

    owned: what kdeclare is responsible for afterwards, by key.
    unmanaged: override keys neither declared nor owned, that stay.
    drifted: owned keys whose live value is no longer what was last applied.
    kept: owned keys that are declared no longer and that the cluster refuses to delete.
    unowned: keys that would change although their override is not owned.
    literal: keys declared with a literal that is sensitive although the catalogue does not say so.
    """

    fields: tuple[FieldChange, ...]
    owned: Mapping[str, Applied]
    unmanaged: tuple[str, ...]
    drifted: tuple[str, ...]
    kept: tuple[str, ...]
    literal: tuple[str, ...] = ()
    unowned: tuple[str, ...] = ()


def diff_configs(
    side: ConfigSide, wishes: Mapping[str, Wish], owned: Mapping[str, Applied], *, reset_unmanaged: bool
) -> ConfigDiff:
    """Ops that bring the overrides of one resource from live to declared, and who owns what then."""
    fields: list[FieldChange] = []
    unmanaged: list[str] = []
    kept: list[str] = []
    settled = {key for key, wish in wishes.items() if _is_settled(side, key, wish, owned.get(key))}
    hidden = _hidden(side, wishes, owned) if len(settled) < len(wishes) else {}
    wishes = {**wishes, **hidden}
    now = {
        key: value for key in side.live if key not in settled and (value := override(side, key)) is not None
    }
    for key in sorted({*wishes, *owned, *now} - settled):
        before = now.get(key)
        if key in wishes:
            fields += _declared(side, key, wishes[key], before, owned.get(key))
        elif (gone := _undeclared(key, before, owned.get(key))) and key in side.undeletable:
            kept.append(key)
        elif reset_unmanaged and key in now.keys() - NEVER_RESET - side.undeletable:
            fields.append(_field(key, FieldOp.DELETE, before, None))
        elif gone:
            fields += gone
        elif before is not None:
            unmanaged.append(key)
    return ConfigDiff(
        tuple(fields),
        {key: _owned_record(wish, now.get(key), owned.get(key)) for key, wish in wishes.items()},
        tuple(unmanaged),
        tuple(key for key in sorted(owned.keys() - settled) if _drifted(side, key, now.get(key), owned[key])),
        tuple(kept),
        tuple(key for key, secret in hidden.items() if secret.reference is None),
        tuple(key for key in _changing(fields) if key in now and key not in owned),
    )


def _is_settled(side: ConfigSide, key: str, wish: Wish, record: Applied | None) -> bool:
    """Whether live is what is declared and what was last applied, to the letter, as in most plans."""
    entry = side.live.get(key)
    return (
        entry is not None
        and isinstance(wish, Whole)
        and entry.value == wish.value
        and entry.source is side.source
        and not entry.sensitive
        and (record is None or (isinstance(record, AppliedWhole) and record.value == wish.value))
    )


def _changing(fields: Sequence[FieldChange]) -> Mapping[str, None]:
    return dict.fromkeys(field.path.removeprefix("configs.") for field in fields)


def override(side: ConfigSide, key: str) -> Override:
    """The value set on this very resource."""
    entry = side.live.get(key)
    if entry is None or entry.source is not side.source:
        return None
    return shown_value(key, entry, side.catalog)


def shown_value(key: str, entry: ConfigEntry, catalog: Catalog) -> str | list[str]:
    """An entry's value as plans write it. Null from Kafka means that it is hidden, not that it is unset."""
    if entry.sensitive or entry.value is None:
        return SHOWN
    if is_list(key, entry, catalog):
        return list(split_list(entry.value))
    return catalog.canonical(key, entry.value)


def elements_of(value: Override) -> list[str]:
    """The elements of an override. One that is hidden shows none; a text can be of a plug-in's list."""
    if value is None or value == SHOWN:
        return []
    return list(split_list(value)) if isinstance(value, str) else value


def is_list(key: str, entry: ConfigEntry | None, catalog: Catalog) -> bool:
    """Whether a key is LIST-typed; the live cluster's word comes before the catalogue's."""
    if entry is not None and entry.type in (ConfigType.LIST, ConfigType.PASSWORD):
        return entry.type is ConfigType.LIST
    info = catalog.get(key)
    return info is not None and info.is_list


def _declared(
    side: ConfigSide, key: str, wish: Wish, before: Override, record: Applied | None
) -> list[FieldChange]:
    entry = side.live.get(key)
    if isinstance(wish, Unset):
        return [] if before is None else [_field(key, FieldOp.DELETE, before, None)]
    if isinstance(wish, Secret):
        return (
            []
            if _is_as_declared(wish, entry, before, record)
            else [_field(key, FieldOp.SET, before, SHOWN, wish.as_json())]
        )
    if isinstance(wish, Parts):
        return _parts(side, key, wish, before, record)
    value = wish.value
    if isinstance(value, tuple) or is_list(key, entry, side.catalog):
        wanted = (
            value if isinstance(value, tuple) else tuple(p.strip() for p in value.split(",") if p.strip())
        )
        return _whole_list(key, wanted, before)
    if isinstance(before, str) and side.catalog.same(key, before, value):
        return []
    return [_field(key, FieldOp.SET, before, str(value))]


def _is_as_declared(
    wish: Secret, entry: ConfigEntry | None, before: Override, record: Applied | None
) -> bool:
    """What cannot be read back is taken to be what was last applied."""
    if before is None or entry is None:
        return False
    if wish.doubtful and not entry.sensitive and entry.value is not None:
        return matches(wish.digest, entry.value)
    return isinstance(record, SecretRef) and record.secret in {wish.digest, wish.stored or wish.digest}


def _hidden(side: ConfigSide, wishes: Mapping[str, Wish], owned: Mapping[str, Applied]) -> dict[str, Secret]:
    """What has to be kept secret only because the cluster says so: keys of plug-ins, mostly."""
    found: dict[str, Secret] = {}
    for key, wish in wishes.items():
        if isinstance(wish, Whole) and _is_hidden(side, key):
            found[key] = _as_hidden(side, key, wish, owned.get(key))
        elif isinstance(wish, Secret) and wish.doubtful and _is_hidden(side, key):
            SCRUBBER.register(wish.value)
            found[key] = replace(wish, doubtful=False)
    return found


def _as_hidden(side: ConfigSide, key: str, wish: Whole, record: Applied | None) -> Secret:
    """The secret that a wish turned out to be; of a key that the catalogue takes for an open one, too."""
    secret = replace(wish.hidden, doubtful=False) if wish.hidden else as_secret(wish)
    SCRUBBER.register(secret.value)
    if secret.digest:
        return secret
    if isinstance(record, SecretRef) and matches(record.secret, secret.value):
        return replace(secret, digest=record.secret)
    return replace(secret, digest=SecretHasher(token_hex()).make_hash(side.resource, key, secret.value))


def _is_hidden(side: ConfigSide, key: str) -> bool:
    """Whether the cluster hides the value of a key, or will once it is set."""
    entry = side.live.get(key)
    if entry is not None:
        return entry.sensitive
    return side.catalog.hides_unknown and side.catalog.get(key) is None


def _whole_list(key: str, wanted: Sequence[str], before: Override) -> list[FieldChange]:
    if before is None:
        return [_field(key, FieldOp.SET, None, list(wanted))]
    clean = [element.strip() for element in elements_of(before)]
    have, want = set(clean), set(wanted)
    if have == want:
        return []
    if isinstance(before, str):
        return [_field(key, FieldOp.SET, before, list(wanted))]
    if have < want:
        return [_append(key, before, [e for e in wanted if e not in have])]
    if have > want:
        return [_subtract(key, before, {e for e in clean if e not in want})]
    return [_field(key, FieldOp.SET, before, list(wanted))]


def _parts(
    side: ConfigSide, key: str, wish: Parts, before: Override, record: Applied | None
) -> list[FieldChange]:
    """APPEND what lacks, then SUBTRACT what is too much: in that order the list is never empty between."""
    fields: list[FieldChange] = []
    there = elements_of(before)
    have = {e.strip() for e in there}
    lacking = [e for e in wish.append if e not in have]
    now: Override = before
    if lacking:
        start = list(side.catalog.default_list(key)) if before is None else there
        now = [*start, *(e for e in lacking if e not in start)]
        fields.append(_field(key, FieldOp.APPEND, before, now, lacking))
    surplus = (set(wish.subtract) | set(own_elements(record))) - set(wish.append)
    if now is None:
        surplus &= set(wish.subtract)
        # Unset, nothing of it is in an override; but what brokers or Kafka add must go too.
        start = list(side.catalog.default_list(key))
        effective = side.live.get(key)
        unseen = wish.subtract if effective is None else ()  # a topic to come: brokers may add anything
        inherited = {*start, *unseen, *split_list((effective and effective.value) or "")}
        if surplus & {e.strip() for e in inherited}:
            after = [e for e in start if e.strip() not in surplus]
            fields.append(_field(key, FieldOp.SUBTRACT, None, after, sorted(surplus)))
    elif surplus & {e.strip() for e in elements_of(now)}:
        fields.append(_subtract(key, now, surplus))
    return fields


def _undeclared(key: str, before: Override, record: Applied | None) -> list[FieldChange]:
    """What was owned and is declared no longer goes; of a list by part, one's own elements."""
    if before is None or record is None:
        return []
    if isinstance(record, AppliedParts):
        mine = set(own_elements(record)) & {e.strip() for e in elements_of(before)}
        return [_subtract(key, before, mine)] if mine else []
    if isinstance(record, AppliedWhole) and record.value is None:
        return []  # what was declared was "no override"
    return [_field(key, FieldOp.DELETE, before, None)]


def _append(key: str, before: list[str], elements: list[str]) -> FieldChange:
    return _field(key, FieldOp.APPEND, before, [*before, *elements], elements)


def _subtract(key: str, before: str | list[str], elements: set[str]) -> FieldChange:
    """Kafka matches elements exactly and takes one occurrence each, so name them as they stand."""
    there = elements_of(before)
    gone = [e for e in there if e.strip() in elements]
    return _field(key, FieldOp.SUBTRACT, before, [e for e in there if e.strip() not in elements], gone)


def _field(key: str, op: FieldOp, before: Override, after: Override, value: JsonValue = None) -> FieldChange:
    return FieldChange(f"configs.{key}", op, before, after, value)


def _owned_record(wish: Wish, before: Override, record: Applied | None) -> Applied:
    """What is owned once ``wish`` is applied to a key with the override ``before``."""
    if isinstance(wish, Unset):
        return AppliedWhole(None)
    if isinstance(wish, Secret):
        return wish.ref
    if isinstance(wish, Parts):
        mine = set(own_elements(record))
        have = _clean_elements(before)
        added = tuple(element for element in wish.append if element in mine or element not in have)
        return AppliedParts(wish.append, wish.subtract, added)
    value = wish.value if isinstance(wish.value, tuple) else str(wish.value)
    return record if isinstance(record, AppliedWhole) and record.value == value else AppliedWhole(value)


def _drifted(side: ConfigSide, key: str, before: Override, record: Applied) -> bool:
    """Whether live is no longer what was last applied."""
    if isinstance(record, SecretRef):
        return before is None
    if isinstance(record, AppliedParts):
        have = _clean_elements(before)
        return not set(record.append) <= have or bool(have & set(record.subtract))
    applied = record.value
    if applied is None or before is None or before == SHOWN:
        return (applied is None) != (before is None)
    if isinstance(before, list) or isinstance(applied, tuple):
        elements = applied if isinstance(applied, tuple) else split_list(applied)
        return _clean_elements(before) != {element.strip() for element in elements}
    return not side.catalog.same(key, before, applied)


def _clean_elements(before: Override) -> set[str]:
    return {element.strip() for element in elements_of(before)}
