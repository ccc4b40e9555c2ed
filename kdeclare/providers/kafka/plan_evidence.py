"""Check, for Kafka resources, that the field changes in a plan file match the operations of the plan.

The same field can have different values in a change and in its operations. Operations list the replicas of
every partition, but a change can contain only the replication factor. Operations can resize a thread pool in
steps, but a change contains only the final size.
"""

from collections.abc import Set
from dataclasses import replace

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Action, FieldChange
from kdeclare.core.resources.plan_capabilities import (
    Evidence,
    Values,
)
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_ops import CONFIG_FIELD_PREFIX, THREAD_POOLS, get_config_key
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.reassignment.throttles import ALL_RATE_KEYS

FACTOR = "replicationFactor"
_REPLICAS = "replicas."
_ASSIGNMENTS = "assignments."
_COUNTS = frozenset({"partitions", FACTOR})


def normalize_config(scope: ConfigScope, field: FieldChange) -> FieldChange:
    """Return a config field with normalized values: a list becomes a string with commas."""
    if not field.path.startswith(CONFIG_FIELD_PREFIX):
        return field
    keys, key = load_catalog(scope), get_config_key(field)

    def normalize(value: JsonValue) -> JsonValue:
        if isinstance(value, list | tuple):
            return ",".join(map(str, value))
        return keys.normalize(key, value) if isinstance(value, str) else value

    return replace(field, before=normalize(field.before), after=normalize(field.after))


def normalize_topic_field(topic: str, field: FieldChange) -> FieldChange:
    """Return a topic field in the format of operations, with the topic and partition in the path."""
    number = field.path.removeprefix(_ASSIGNMENTS)
    if number != field.path:
        return replace(field, path=f"{_REPLICAS}{topic}-{number}")
    return normalize_config(ConfigScope.TOPIC, field)


def find_proven_topic_fields(topic: str, action: Action, evidence: Evidence) -> Set[str]:
    """Return the fields of a topic that may differ between the change and the operations."""
    shown_values, operation_values = evidence.shown, evidence.done
    if action is Action.CREATE:
        # The counts are determined by the assignments.
        return (
            _COUNTS - shown_values.keys()
            if any(path.startswith(_REPLICAS) for path in shown_values)
            else frozenset()
        )
    proven = find_moved_elsewhere(evidence)
    factor = shown_values.get(FACTOR)
    for path, values in operation_values.items():
        if not path.startswith(_REPLICAS):
            continue
        # An added partition has no records, so it can be created first and moved afterwards.
        is_added = values[0] is None and shown_values.get(path, values)[-1] == values[-1]
        # The change contains only the replication factor, because kdeclare chose these replicas.
        is_resized = path not in shown_values and len(values) == 2 and _is_resized(factor, values)
        if is_added or is_resized:
            proven.add(path)
    is_any_resized = any(
        _is_resized(factor, values)
        for path, values in operation_values.items()
        if _is_replica_of(topic, path)
    )
    if (
        factor is not None
        and FACTOR not in operation_values
        and (is_any_resized or any(_is_replica_of(topic, path) for path in evidence.shared))
    ):
        proven.add(FACTOR)
    return proven


def find_proven_reassignment_fields(evidence: Evidence) -> Set[str]:
    """Return the fields of a Reassignment that may differ between the change and the operations.

    These are the replica fields of partitions that an operation of another resource moves, and throttle rates
    that no operation changes.
    """
    return find_moved_elsewhere(evidence) | {rate for rate in ALL_RATE_KEYS if rate not in evidence.done}


def find_proven_broker_fields(evidence: Evidence) -> Set[str]:
    """Return the thread pools that the operations grow or shrink in steps to the planned size."""
    pools = (
        {f"{CONFIG_FIELD_PREFIX}{key}" for key in THREAD_POOLS} & evidence.shown.keys() & evidence.done.keys()
    )
    return {path for path in pools if _is_monotonic(evidence.shown[path], evidence.done[path])}


def find_moved_elsewhere(evidence: Evidence) -> set[str]:
    """Return the replica fields of partitions that an operation of another resource moves.

    If two resources request different replicas for a partition, the next plan resolves the conflict.
    """
    idle_paths = evidence.shown.keys() - evidence.done.keys()
    return {path for path in idle_paths if path.startswith(_REPLICAS) and path in evidence.shared}


def _is_resized(factor: Values | None, replicas: Values) -> bool:
    return factor is not None and isinstance(replicas[-1], list) and len(replicas[-1]) == factor[-1]


def _is_replica_of(topic: str, path: str) -> bool:
    name, _, number = path.removeprefix(_REPLICAS).rpartition("-")
    return path.startswith(_REPLICAS) and name == topic and number.isdecimal()


def _is_monotonic(shown_values: Values, operation_values: Values) -> bool:
    """Return whether the operations only grow or only shrink a thread pool, from the old to the new size."""
    if (shown_values[0], shown_values[-1]) != (operation_values[0], operation_values[-1]):
        return False
    numbers = [parse_whole_number(value) for value in operation_values if isinstance(value, str)]
    sizes = [number for number in numbers if number is not None]
    return sizes in (sorted(sizes), sorted(sizes, reverse=True))
