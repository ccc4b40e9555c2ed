"""Rate the risk of a change to one field, and explain the risk in one sentence.

Kinds call these functions for the field changes of a diff. `Kind.assess_field` calls them for all other field
changes, such as those of a rollback or of a single operation.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_ints, as_list
from kdeclare.core.resources.changes import Action, FieldChange, Risk
from kdeclare.core.units import format_amount
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry

NO_FEWER_PARTITIONS = "Kafka cannot remove partitions."
TOPIC_DELETED = "All records of the topic are deleted."

_CONFIGS = "configs."
_NO_RISK = (Risk.SAFE, "")
_RETENTION_TIME = frozenset({"retention.ms", "log.retention.ms"})
_RETENTION_SIZE = frozenset({"retention.bytes", "log.retention.bytes"})
_CLEANUP = frozenset({"cleanup.policy", "log.cleanup.policy"})
_UNCLEAN = "unclean.leader.election.enable"
_REMOTE_STORAGE = "remote.storage.enable"
_TOPIC_KEYS = {
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.cleanup.policy": "cleanup.policy",
}
"""For each broker config that sets the default of a topic config, the key of the topic config."""

RiskRating = tuple[Risk, str]


def with_risk(field: FieldChange, rating: RiskRating) -> FieldChange:
    """Return a copy of the field change with a risk and its cause."""
    if (field.risk, field.cause) == rating:
        return field  # the common case for new topics, where copying fields would be slow
    return replace(field, risk=rating[0], cause=rating[1])


def assess_topic_field(
    action: Action, field: FieldChange, live: Mapping[str, ConfigEntry] | None = None
) -> FieldChange:
    """Rate a change to a field of a topic. live: the effective configs, including inherited values."""
    return with_risk(field, _rate_topic_field(action, field, live or {}))


def assess_broker_field(field: FieldChange) -> FieldChange:
    """Rate a change to a dynamic broker config."""
    loss_rating = _rate_record_loss(field, None)
    return with_risk(field, loss_rating or (Risk.DISRUPTIVE, "Changes the behavior of running brokers."))


def assess_group_field(field: FieldChange) -> FieldChange:
    """Rate a change to a dynamic config of a group."""
    return with_risk(field, (Risk.DISRUPTIVE, "Changes how brokers coordinate the members of the group."))


def assess_worker_field(field: FieldChange) -> FieldChange:
    """Rate a change to an override on Connect workers, or to a worker that does not use the overrides yet."""
    return with_risk(field, (Risk.DISRUPTIVE, "Changes the behavior of running Connect workers."))


def assess_placement_field(field: FieldChange) -> FieldChange:
    """Rate a change to the replicas of a partition, to log directories or to throttle rates."""
    return with_risk(field, _rate_placement(field))


def _rate_topic_field(action: Action, field: FieldChange, live: Mapping[str, ConfigEntry]) -> RiskRating:
    path = field.path.split(".")[0]
    if action is Action.CREATE:
        return _NO_RISK
    if action is Action.DELETE:
        return (Risk.DESTRUCTIVE, TOPIC_DELETED) if path == "partitions" else _NO_RISK
    if path == "partitions":
        return Risk.IRREVERSIBLE, NO_FEWER_PARTITIONS
    if path in ("replicationFactor", "assignments", "replicas"):
        return _rate_placement(field)
    entry = live.get(field.path.removeprefix(_CONFIGS))
    return _rate_record_loss(field, entry.value if entry else None) or _NO_RISK


def _rate_placement(field: FieldChange) -> RiskRating:
    before, after = _count_replicas(field.before), _count_replicas(field.after)
    path = field.path.split(".")[0]
    if path == "log_dir":
        return Risk.DISRUPTIVE, "Replicas are copied to other log directories."
    if path not in ("replicationFactor", "assignments", "replicas") or field.before is None:
        return _NO_RISK  # a throttle rate, or the replicas of an added partition
    if before is not None and after is not None and after < before:
        return Risk.DISRUPTIVE, "Fewer brokers store the records."
    has_lists = isinstance(field.before, list) and isinstance(field.after, list)
    if has_lists and sorted(as_ints(field.before)) == sorted(as_ints(field.after)):
        return Risk.DISRUPTIVE, "Another replica becomes the preferred leader."
    return Risk.DISRUPTIVE, "Replicas are copied between brokers."


def _count_replicas(value: JsonValue) -> int | None:
    """Return a replica count: the length of a list, or the value itself if it is a number; otherwise None."""
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, int) else None


def _rate_record_loss(field: FieldChange, inherited_value: JsonValue) -> RiskRating | None:
    """Return the risk of a config change that makes Kafka delete more records; otherwise None.

    inherited_value: the effective value if the key has no override.
    """
    key = field.path.removeprefix(_CONFIGS)
    if key == _UNCLEAN:
        return _rate_unclean_elections(field)
    name = _TOPIC_KEYS.get(key, key)
    if name not in _RETENTION_TIME | _RETENTION_SIZE | _CLEANUP | {_REMOTE_STORAGE}:
        return None
    before = inherited_value if field.before is None else field.before
    if name == _REMOTE_STORAGE:
        ends = before == "true" and field.after != "true"
        return (Risk.DESTRUCTIVE, "Kafka deletes the records in remote storage.") if ends else None
    if name in _CLEANUP:
        return _rate_cleanup(name, before, field.after)
    return _rate_retention(name, before, field.after)


def _rate_retention(key: str, before: JsonValue, after: JsonValue) -> RiskRating | None:
    info = load_catalog(ConfigScope.TOPIC).get(key)
    default = info.default if info else None
    new_limit, old_limit = (
        _parse_limit(value if value is not None else default) for value in (after, before)
    )
    if new_limit >= old_limit:
        return None
    amount = format_amount(key, int(new_limit)) + (", the default," if after is None else "")
    if key in _RETENTION_TIME:
        return Risk.DESTRUCTIVE, f"Records older than {amount} are deleted."
    return Risk.DESTRUCTIVE, f"The oldest records of partitions with more than {amount} are deleted."


def _rate_cleanup(key: str, before: JsonValue, after: JsonValue) -> RiskRating | None:
    added = _parse_policies(key, after) - _parse_policies(key, before)
    reasons = {
        "compact": "Compaction removes all records of a key except the latest.",
        "delete": "Records beyond the retention limits are deleted.",
    }
    cause = " ".join(reason for policy, reason in reasons.items() if policy in added)
    return (Risk.DESTRUCTIVE, cause) if cause else None


def _rate_unclean_elections(field: FieldChange) -> RiskRating | None:
    if str(field.after).lower() != "true" or str(field.before).lower() == "true":
        return None
    return Risk.DESTRUCTIVE, "An out-of-sync replica can become leader; the records it lacks are lost."


def _parse_policies(key: str, value: JsonValue) -> set[str]:
    if value is None:
        return set(load_catalog(ConfigScope.TOPIC).get_default_elements(key))
    parts = value.split(",") if isinstance(value, str) else as_list(value)
    return {str(part).strip() for part in parts}


def _parse_limit(value: JsonValue) -> float:
    """Parse a retention limit. A negative limit means unlimited."""
    try:
        limit = float(value) if isinstance(value, str | int | float) else math.inf
    except (ValueError, OverflowError):
        return math.inf
    return limit if limit >= 0 else math.inf
