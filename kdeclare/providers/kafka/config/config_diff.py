"""The three-way diff of declared, live and owned configs. The changes follow KIP-339.

The diff compares overrides, not effective values: a key that is set to its default differs from an unset key.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from secrets import token_hex
from typing import TypeAlias

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_hashes import SecretHasher, is_hash_of
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret, SecretRef
from kdeclare.providers.kafka.config.catalog import Catalog, split_list
from kdeclare.providers.kafka.config.config_record import (
    Applied,
    AppliedListPatch,
    AppliedValue,
    get_own_elements,
)
from kdeclare.providers.kafka.config.config_value import ConfigValue, ListPatch, Unset, Value, as_secret
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
"""The config keys of reassignment throttles.

Other clients often set throttles, so kdeclare removes only throttles that it owns.
"""

ConfigOverride: TypeAlias = str | list[str] | None
"""An override as it appears in plans: a string, list elements, `SENSITIVE_MASK`, or None for unset."""


@dataclass(frozen=True, slots=True)
class LiveConfigs:
    """The live configs of one resource, with the information that the diff needs.

    source: the config source of overrides on this resource.
    undeletable: the keys that the cluster refuses to delete.
    omitted: the keys whose values the cluster does not return. They may be set.
    """

    resource: str
    live: Mapping[str, ConfigEntry]
    source: ConfigSource
    catalog: Catalog
    undeletable: frozenset[str] = frozenset()
    omitted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    """The result of a config diff.

    fields: the field changes, ordered by key. For the same key, APPEND comes before SUBTRACT.
    owned: the owned configs after the change, by key.
    unmanaged: overrides that are neither declared nor owned, and are left unchanged.
    drifted: owned keys whose live value differs from the last applied value.
    kept: owned keys that are no longer declared and that the cluster refuses to delete.
    unowned: keys with a live override that is not owned and that would change.
    literal_secrets: keys that are declared with a literal value and that only the cluster reports as
        sensitive.
    """

    fields: tuple[FieldChange, ...]
    owned: Mapping[str, Applied]
    unmanaged: tuple[str, ...]
    drifted: tuple[str, ...]
    kept: tuple[str, ...]
    literal_secrets: tuple[str, ...] = ()
    unowned: tuple[str, ...] = ()


def diff_configs(
    live: LiveConfigs,
    config_values: Mapping[str, ConfigValue],
    owned: Mapping[str, Applied],
    *,
    reset_unmanaged: bool,
    ignored: Set[str] = frozenset(),
) -> ConfigDiff:
    """Compute the changes that turn live overrides into declared overrides, and the resulting ownership.

    ignored: undeclared keys that are left unchanged, whether kdeclare owns them or not.
    """
    kept_records = {key: record for key, record in owned.items() if key in ignored}
    owned = {key: record for key, record in owned.items() if key not in ignored} if kept_records else owned
    fields: list[FieldChange] = []
    unmanaged: list[str] = []
    kept: list[str] = []
    existing = config_values if live.live or live.omitted else {}  # a new resource has no live configs
    settled = {
        key for key, config_value in existing.items() if _is_settled(live, key, config_value, owned.get(key))
    }
    hidden_secrets = (
        _find_hidden_secrets(live, config_values, owned) if len(settled) < len(config_values) else {}
    )
    config_values = {**config_values, **hidden_secrets}
    overrides = {
        key: value
        for key in live.live
        if key not in settled and key not in ignored and (value := find_override(live, key)) is not None
    }
    for key in sorted({*config_values, *owned, *overrides} - settled):
        before = overrides.get(key)
        if key in config_values:
            fields += _diff_declared(live, key, config_values[key], before, owned.get(key))
        elif (removals := _diff_undeclared(key, before, owned.get(key))) and key in live.undeletable:
            kept.append(key)
        elif reset_unmanaged and key in overrides.keys() - NEVER_RESET - live.undeletable:
            fields.append(_build_field(key, FieldOp.DELETE, before, None))
        elif removals:
            fields += removals
        elif before is not None:
            unmanaged.append(key)
    return ConfigDiff(
        tuple(fields),
        {
            key: _build_record(config_value, overrides.get(key), owned.get(key))
            for key, config_value in config_values.items()
        }
        | kept_records,
        tuple(unmanaged),
        tuple(
            key
            for key in sorted(owned.keys() - settled - live.omitted)
            if _has_drifted(live, key, overrides.get(key), owned[key])
        ),
        tuple(kept),
        tuple(key for key, secret in hidden_secrets.items() if secret.reference is None),
        tuple(key for key in _list_changed_keys(fields) if key in overrides and key not in owned)
        if overrides
        else (),
    )


def _is_settled(live: LiveConfigs, key: str, config_value: ConfigValue, record: Applied | None) -> bool:
    """Return whether the live, declared and last applied values are equal."""
    if key in live.omitted:  # the live value is assumed to be the value that was applied last
        return isinstance(record, AppliedValue) and record == _build_record(config_value, None, record)
    entry = live.live.get(key)
    return (
        entry is not None
        and isinstance(config_value, Value)
        and entry.value == config_value.value
        and entry.source is live.source
        and not entry.sensitive
        and (record is None or (isinstance(record, AppliedValue) and record.value == config_value.value))
    )


def _list_changed_keys(fields: Sequence[FieldChange]) -> Mapping[str, None]:
    return dict.fromkeys(field.path.removeprefix("configs.") for field in fields)


def find_override(live: LiveConfigs, key: str) -> ConfigOverride:
    """Return the override of a key on this resource; None if the key has no override."""
    entry = live.live.get(key)
    if entry is None or entry.source is not live.source:
        return None
    return to_plan_value(key, entry, live.catalog)


def to_plan_value(key: str, entry: ConfigEntry, catalog: Catalog) -> str | list[str]:
    """Return the value of a config entry as it appears in plans.

    Return `SENSITIVE_MASK` if the key is sensitive, or if Kafka hides its value by returning null.
    """
    if entry.sensitive or entry.value is None:
        return SENSITIVE_MASK
    if is_list_key(key, entry, catalog):
        return list(split_list(entry.value))
    return catalog.normalize(key, entry.value)


def split_elements(value: ConfigOverride) -> list[str]:
    """Return the list elements of an override. A hidden or unset override has no elements.

    The override can be a string, for example if the list key belongs to a broker plug-in. Split such a string
    into elements.
    """
    if value is None or value == SENSITIVE_MASK:
        return []
    return list(split_list(value)) if isinstance(value, str) else value


def is_list_key(key: str, entry: ConfigEntry | None, catalog: Catalog) -> bool:
    """Return whether a key has the type LIST. The type in the cluster takes precedence over the catalog."""
    if entry is not None and entry.type in (ConfigType.LIST, ConfigType.PASSWORD):
        return entry.type is ConfigType.LIST
    info = catalog.get(key)
    return info is not None and info.is_list


def _diff_declared(
    live: LiveConfigs, key: str, config_value: ConfigValue, before: ConfigOverride, record: Applied | None
) -> list[FieldChange]:
    entry = live.live.get(key)
    if isinstance(config_value, Value):
        return _diff_value(live, key, config_value.value, entry, before)
    if isinstance(config_value, Unset):
        return [] if before is None else [_build_field(key, FieldOp.DELETE, before, None)]
    if isinstance(config_value, Secret):
        return (
            []
            if _is_as_declared(config_value, entry, before, record)
            else [_build_field(key, FieldOp.SET, before, SENSITIVE_MASK, config_value.as_json())]
        )
    return _diff_list_patch(live, key, config_value, before, record)


def _diff_value(
    live: LiveConfigs,
    key: str,
    value: str | tuple[str, ...],
    entry: ConfigEntry | None,
    before: ConfigOverride,
) -> list[FieldChange]:
    if isinstance(value, tuple) or is_list_key(key, entry, live.catalog):
        declared_elements = (
            value if isinstance(value, tuple) else tuple(p.strip() for p in value.split(",") if p.strip())
        )
        info = live.catalog.get(key)
        return _diff_whole_list(key, declared_elements, before, patches=info is None or info.can_be_patched)
    if isinstance(before, str) and live.catalog.is_same_value(key, before, value):
        return []
    return [_build_field(key, FieldOp.SET, before, str(value))]


def _is_as_declared(
    secret: Secret, entry: ConfigEntry | None, before: ConfigOverride, record: Applied | None
) -> bool:
    """Return whether the live value of a secret equals the declared value.

    A hidden live value is assumed to be the value that was applied last.
    """
    if before is None or entry is None:
        return False
    if secret.doubtful and not entry.sensitive and entry.value is not None:
        return is_hash_of(secret.digest, entry.value)
    return isinstance(record, SecretRef) and record.secret in {secret.digest, secret.stored or secret.digest}


def _find_hidden_secrets(
    live: LiveConfigs, config_values: Mapping[str, ConfigValue], owned: Mapping[str, Applied]
) -> dict[str, Secret]:
    """Return the values that are secret only because the cluster hides them, such as configs of plug-ins."""
    secrets: dict[str, Secret] = {}
    for key, config_value in config_values.items():
        if isinstance(config_value, Value) and _is_hidden(live, key):
            secrets[key] = _as_hidden_secret(live, key, config_value, owned.get(key))
        elif isinstance(config_value, Secret) and config_value.doubtful and _is_hidden(live, key):
            SCRUBBER.register(config_value.value)
            secrets[key] = replace(config_value, doubtful=False)
    return secrets


def _as_hidden_secret(live: LiveConfigs, key: str, config_value: Value, record: Applied | None) -> Secret:
    """Return a value as a secret, even if the key is not sensitive in the catalog."""
    secret = replace(config_value.hidden, doubtful=False) if config_value.hidden else as_secret(config_value)
    SCRUBBER.register(secret.value)
    if secret.digest:
        return secret
    if isinstance(record, SecretRef) and is_hash_of(record.secret, secret.value):
        return replace(secret, digest=record.secret)
    return replace(secret, digest=SecretHasher(token_hex()).make_hash(live.resource, key, secret.value))


def _is_hidden(live: LiveConfigs, key: str) -> bool:
    """Return whether the cluster hides the value of a key, or will hide it once the key is set."""
    entry = live.live.get(key)
    if entry is not None:
        return entry.sensitive
    return live.catalog.can_hide_unknown_keys and live.catalog.get(key) is None


def _diff_whole_list(
    key: str, declared_elements: Sequence[str], before: ConfigOverride, *, patches: bool
) -> list[FieldChange]:
    """Return the field changes of a list. patches: whether Kafka supports APPEND and SUBTRACT for the key."""
    if before is None:
        return [_build_field(key, FieldOp.SET, None, list(declared_elements))]
    current_elements = [element.strip() for element in split_elements(before)]
    current, declared = set(current_elements), set(declared_elements)
    if current == declared:
        return []
    if isinstance(before, str) or not patches:
        return [_build_field(key, FieldOp.SET, before, list(declared_elements))]
    if current < declared:
        return [_build_append(key, before, [e for e in declared_elements if e not in current])]
    if current > declared:
        return [_build_subtract(key, before, {e for e in current_elements if e not in declared})]
    return [_build_field(key, FieldOp.SET, before, list(declared_elements))]


def _diff_list_patch(
    live: LiveConfigs, key: str, patch: ListPatch, before: ConfigOverride, record: Applied | None
) -> list[FieldChange]:
    """Append missing elements, then subtract surplus elements, so that the list is never empty in between."""
    fields: list[FieldChange] = []
    current_elements = split_elements(before)
    current = {e.strip() for e in current_elements}
    missing = [e for e in patch.append if e not in current]
    appended: ConfigOverride = before
    if missing:
        start = list(live.catalog.get_default_elements(key)) if before is None else current_elements
        appended = [*start, *(e for e in missing if e not in start)]
        fields.append(_build_field(key, FieldOp.APPEND, before, appended, missing))
    surplus = (set(patch.subtract) | set(get_own_elements(record))) - set(patch.append)
    if appended is None:
        surplus &= set(patch.subtract)
        # an unset key has no override to subtract from, but inherited elements must be removed as well
        start = list(live.catalog.get_default_elements(key))
        effective = live.live.get(key)
        unreadable = patch.subtract if effective is None else ()  # new topic: inherited elements are unknown
        inherited = {*start, *unreadable, *split_list((effective and effective.value) or "")}
        if surplus & {e.strip() for e in inherited}:
            after = [e for e in start if e.strip() not in surplus]
            fields.append(_build_field(key, FieldOp.SUBTRACT, None, after, sorted(surplus)))
    elif surplus & {e.strip() for e in split_elements(appended)}:
        fields.append(_build_subtract(key, appended, surplus))
    return fields


def _diff_undeclared(key: str, before: ConfigOverride, record: Applied | None) -> list[FieldChange]:
    """Remove an override that is no longer declared. For a list patch, remove only the owned elements."""
    if before is None or record is None:
        return []
    if isinstance(record, AppliedListPatch):
        own = set(get_own_elements(record)) & {e.strip() for e in split_elements(before)}
        return [_build_subtract(key, before, own)] if own else []
    if isinstance(record, AppliedValue) and record.value is None:
        return []  # null was last applied, so kdeclare does not own the current override
    return [_build_field(key, FieldOp.DELETE, before, None)]


def _build_append(key: str, before: list[str], elements: list[str]) -> FieldChange:
    return _build_field(key, FieldOp.APPEND, before, [*before, *elements], elements)


def _build_subtract(key: str, before: str | list[str], elements: set[str]) -> FieldChange:
    """Subtract elements from a list.

    Keep the spaces in the live elements, because Kafka compares elements exactly.
    """
    current_elements = split_elements(before)
    removed = [e for e in current_elements if e.strip() in elements]
    return _build_field(
        key, FieldOp.SUBTRACT, before, [e for e in current_elements if e.strip() not in elements], removed
    )


def _build_field(
    key: str, op: FieldOp, before: ConfigOverride, after: ConfigOverride, value: JsonValue = None
) -> FieldChange:
    return FieldChange(f"configs.{key}", op, before, after, value)


def _build_record(config_value: ConfigValue, before: ConfigOverride, record: Applied | None) -> Applied:
    """Return the value that kdeclare owns after applying ``config_value`` to the override ``before``."""
    if isinstance(config_value, Value):
        value = config_value.value if isinstance(config_value.value, tuple) else str(config_value.value)
        return record if isinstance(record, AppliedValue) and record.value == value else AppliedValue(value)
    if isinstance(config_value, Unset):
        return AppliedValue(None)
    if isinstance(config_value, Secret):
        return config_value.ref
    own = set(get_own_elements(record))
    current = _strip_elements(before)
    added = tuple(element for element in config_value.append if element in own or element not in current)
    return AppliedListPatch(config_value.append, config_value.subtract, added)


def _has_drifted(live: LiveConfigs, key: str, before: ConfigOverride, record: Applied) -> bool:
    """Return whether the live override differs from the last applied value."""
    if isinstance(record, SecretRef):
        return before is None
    if isinstance(record, AppliedListPatch):
        current = _strip_elements(before)
        return not set(record.append) <= current or bool(current & set(record.subtract))
    applied = record.value
    if applied is None or before is None or before == SENSITIVE_MASK:
        return (applied is None) != (before is None)
    if isinstance(before, list) or isinstance(applied, tuple):
        elements = applied if isinstance(applied, tuple) else split_list(applied)
        return _strip_elements(before) != {element.strip() for element in elements}
    return not live.catalog.is_same_value(key, before, applied)


def _strip_elements(before: ConfigOverride) -> set[str]:
    return {element.strip() for element in split_elements(before)}
