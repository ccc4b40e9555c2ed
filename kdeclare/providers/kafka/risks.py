"""Say what the change of one field can do at worst, and why, in a sentence.

Kinds call these functions for every field that they put into a change; `Kind.assess_field` is the way in for
fields that no diff has made (rollbacks, operations).
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue, as_ints, as_list
from kdeclare.core.resources.changes import Action, FieldChange, Risk
from kdeclare.core.units import describe_amount
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry

NO_FEWER_PARTITIONS = "Kafka cannot remove partitions again."
TOPIC_DELETED = "All records of the topic are deleted."

_CONFIGS = "configs."
_NO_RISK = (Risk.SAFE, "")
_RETENTION_TIME = frozenset({"retention.ms", "log.retention.ms"})
_RETENTION_SIZE = frozenset({"retention.bytes", "log.retention.bytes"})
_CLEANUP = frozenset({"cleanup.policy", "log.cleanup.policy"})
_UNCLEAN = "unclean.leader.election.enable"
_OF_TOPICS = {
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.cleanup.policy": "cleanup.policy",
}
"""Broker-wide defaults, and the topic config that each is the default of."""

Rated = tuple[Risk, str]


def with_risk(field: FieldChange, rated: Rated) -> FieldChange:
    """Return the field with this risk and its cause."""
    if (field.risk, field.cause) == rated:
        return field  # most fields of a creation: a copy of each takes longer than all the rest
    return replace(field, risk=rated[0], cause=rated[1])


def assess_topic_field(
    action: Action, field: FieldChange, live: Mapping[str, ConfigEntry] | None = None
) -> FieldChange:
    """A field of a topic. live: the configs that hold now, those included that only brokers set."""
    return with_risk(field, _of_topic(action, field, live or {}))


def assess_broker_field(field: FieldChange) -> FieldChange:
    """A dynamic config of brokers."""
    losing = _loses_records(field, None)
    return with_risk(field, losing or (Risk.DISRUPTIVE, "It changes how running brokers work."))


def assess_worker_field(field: FieldChange) -> FieldChange:
    """An override of Connect workers, or a worker that has not followed yet."""
    return with_risk(field, (Risk.DISRUPTIVE, "It changes how running Connect workers work."))


def assess_placement_field(field: FieldChange) -> FieldChange:
    """Replicas of a partition, log directories, and the throttle rates that accompany their moves."""
    return with_risk(field, _of_placement(field))


def _of_topic(action: Action, field: FieldChange, live: Mapping[str, ConfigEntry]) -> Rated:
    path = field.path.split(".")[0]
    if action is Action.CREATE:
        return _NO_RISK
    if action is Action.DELETE:
        return (Risk.DESTRUCTIVE, TOPIC_DELETED) if path == "partitions" else _NO_RISK
    if path == "partitions":
        return Risk.IRREVERSIBLE, NO_FEWER_PARTITIONS
    if path in ("replicationFactor", "assignments", "replicas"):
        return _of_placement(field)
    entry = live.get(field.path.removeprefix(_CONFIGS))
    return _loses_records(field, entry.value if entry else None) or _NO_RISK


def _of_placement(field: FieldChange) -> Rated:
    before, after = _count(field.before), _count(field.after)
    path = field.path.split(".")[0]
    if path == "log_dir":
        return Risk.DISRUPTIVE, "Replicas are copied to other log directories."
    if path not in ("replicationFactor", "assignments", "replicas") or field.before is None:
        return _NO_RISK  # a rate of throttled moves, or the first replicas of an added partition
    if before is not None and after is not None and after < before:
        return Risk.DISRUPTIVE, "Fewer brokers hold the records."
    lists = isinstance(field.before, list) and isinstance(field.after, list)
    if lists and sorted(as_ints(field.before)) == sorted(as_ints(field.after)):
        return Risk.DISRUPTIVE, "Another replica is preferred as the leader."
    return Risk.DISRUPTIVE, "Replicas are copied between brokers."


def _count(value: JsonValue) -> int | None:
    """How many replicas; of a topic with several replication factors, the lowest."""
    if isinstance(value, list):
        return len(value)
    return value if isinstance(value, int) else None


def _loses_records(field: FieldChange, now: JsonValue) -> Rated | None:
    """The risk of a config by which Kafka drops records that it would have kept, else None.

    now: the value that holds where there is no override yet.
    """
    key = field.path.removeprefix(_CONFIGS)
    if key == _UNCLEAN:
        return _of_unclean_elections(field)
    name = _OF_TOPICS.get(key, key)
    if name not in _RETENTION_TIME | _RETENTION_SIZE | _CLEANUP:
        return None
    before = now if field.before is None else field.before
    if name in _CLEANUP:
        return _of_cleanup(name, before, field.after)
    return _of_retention(name, before, field.after)


def _of_retention(key: str, before: JsonValue, after: JsonValue) -> Rated | None:
    info = catalog(ConfigScope.TOPIC).get(key)
    default = info.default if info else None
    low, high = (_limit(value if value is not None else default) for value in (after, before))
    if low >= high:
        return None
    amount = describe_amount(key, int(low)) + (", the default," if after is None else "")
    if key in _RETENTION_TIME:
        return Risk.DESTRUCTIVE, f"Records older than {amount} are deleted."
    return Risk.DESTRUCTIVE, f"The oldest records of partitions with more than {amount} are deleted."


def _of_cleanup(key: str, before: JsonValue, after: JsonValue) -> Rated | None:
    added = _policies(key, after) - _policies(key, before)
    reasons = {
        "compact": "Compaction removes all records of a key but the latest.",
        "delete": "Records beyond the retention limits are deleted.",
    }
    told = " ".join(reason for policy, reason in reasons.items() if policy in added)
    return (Risk.DESTRUCTIVE, told) if told else None


def _of_unclean_elections(field: FieldChange) -> Rated | None:
    if str(field.after).lower() != "true" or str(field.before).lower() == "true":
        return None
    return Risk.DESTRUCTIVE, "A replica that is not in sync may lead; the records that it lacks are lost."


def _policies(key: str, value: JsonValue) -> set[str]:
    if value is None:
        return set(catalog(ConfigScope.TOPIC).default_list(key))
    parts = value.split(",") if isinstance(value, str) else as_list(value)
    return {str(part).strip() for part in parts}


def _limit(value: JsonValue) -> float:
    """A retention limit; any negative one is none."""
    try:
        limit = float(value) if isinstance(value, str | int | float) else math.inf
    except ValueError:
        return math.inf
    return limit if limit >= 0 else math.inf
