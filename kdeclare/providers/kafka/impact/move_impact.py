"""Observe how many bytes the reassignments of a plan copy, their minimum duration, and the disk usage."""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.units import format_count, format_duration, format_names, format_size
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.impact import wording
from kdeclare.providers.kafka.impact.copied_bytes import (
    ReplicaMove,
    ReplicaSizes,
    ThrottleRates,
    Traffic,
    collect_replica_sizes,
    compute_disk_usage,
    compute_least_duration,
    compute_traffic,
)
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import get_replicas_before, get_targets
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.reassignment.completion import is_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import ThrottleArgs, find_group, get_pace
from kdeclare.providers.kafka.reassignment.pace import Pace
from kdeclare.providers.kafka.reassignment.throttles import RATE_KEYS, build_transfer
from kdeclare.providers.kafka.request_values import LogDir

_MAX_NAMED_BROKERS = 3
_COPIED = "how many bytes the moves copy"
_TOO_SLOW = "reading the data for the impact of the plan took too long"
_LEADER_RATE_KEY, _FOLLOWER_RATE_KEY = RATE_KEYS


@dataclass(frozen=True, slots=True)
class MoveGroup:
    """The moves that share a throttle and run in the same batches.

    moves: the moves of each resource. rates: the throttle rates of each broker.
    """

    pace: Pace
    moves: Mapping[str, Sequence[ReplicaMove]]
    rates: Mapping[int, ThrottleRates]

    @property
    def pause_count(self) -> int:
        """The number of pauses between the batches of these moves."""
        partitions = sum(map(len, self.moves.values()))
        return (partitions - 1) // self.pace.batch_size if self.pace.batch_size and partitions else 0


def observe_moves(
    cluster: Cluster, live: KafkaState, operations: Sequence[Operation], deadline: float
) -> Iterator[Observation]:
    """Yield, for each resource that moves replicas, observations about the bytes that its moves copy.

    Nothing is read unless a move copies replicas.

    deadline: no request begins after this time (`time.monotonic`).
    """
    groups = _group_moves(live, operations)
    copying = {
        resource: [move for move in moves if move.incoming]
        for group in groups
        for resource, moves in group.moves.items()
        if any(move.incoming for move in moves)
    }
    if not copying:
        return
    log_dirs = _read_log_dirs(cluster, copying.values(), deadline)
    if isinstance(log_dirs, Fault | str):
        for resource in copying:
            yield wording.build_unknown(resource, None, _COPIED, log_dirs)
        return
    sizes = collect_replica_sizes(log_dirs)
    whole = compute_traffic(
        [move for group in groups for moves in group.moves.values() for move in moves], sizes
    )
    disks = _predict_disks(log_dirs, whole)
    for group in groups:
        duration = _compute_duration(group, sizes)
        for resource in group.moves.keys() & copying.keys():
            traffic = compute_traffic(group.moves[resource], sizes)
            if traffic.unknown:
                yield _build_unknown_sizes(resource, traffic, copying[resource], log_dirs)
            if len(traffic.unknown) < len(copying[resource]):
                yield _build_copied(resource, traffic, group, duration, disks)


def _group_moves(live: KafkaState, operations: Sequence[Operation]) -> Sequence[MoveGroup]:
    throttles = {op.id: op.args for op in operations if isinstance(op.args, ThrottleArgs)}
    paces: dict[str, Pace] = {}
    rates: dict[str, Mapping[int, ThrottleRates]] = defaultdict(dict)
    moves: dict[str, dict[str, list[ReplicaMove]]] = defaultdict(lambda: defaultdict(list))
    for op in operations:
        if not is_reassignment(op):
            continue
        name = find_group(op) or ""
        paces[name] = get_pace(op)
        for throttle in (throttles[id_] for id_ in op.needs if id_ in throttles):
            rates[name] = _list_rates(throttle)
        moves[name][str(op.resource)] += _list_moves(live, op)
    return [MoveGroup(pace, moves[name], rates[name]) for name, pace in sorted(paces.items())]


def _list_moves(live: KafkaState, op: Operation) -> Iterator[ReplicaMove]:
    for name, target in get_targets(op).items():
        partition = TopicPartition.parse(name)
        topic = live.topics.get(partition.topic)
        if topic is None or partition.partition >= len(topic.partitions):
            continue  # the plan adds this partition, and it has no records yet
        current = topic.partitions[partition.partition]
        transfer = build_transfer(partition, get_replicas_before(op, name), live.moves.get(partition), target)
        outgoing = tuple(broker for broker in current.replicas if broker not in target)
        yield ReplicaMove(partition, current.leader, transfer.destinations, outgoing)


def _list_rates(throttle: ThrottleArgs) -> Mapping[int, ThrottleRates]:
    """Return, by broker, the throttle rates that the plan sets or keeps during the moves."""
    rates: dict[str, dict[str, int]] = defaultdict(dict)
    for entries in (throttle.entries, throttle.relies_on or {}):
        for entity, values in entries.items():
            scope, _, broker = entity.partition("/")
            if scope == ConfigScope.BROKER:
                rates[broker] |= {key: int(rate) for key, rate in values.items() if isinstance(rate, str)}
    return {
        int(broker): ThrottleRates(values.get(_FOLLOWER_RATE_KEY), values.get(_LEADER_RATE_KEY))
        for broker, values in rates.items()
    }


def _read_log_dirs(
    cluster: Cluster, moves: Iterable[Iterable[ReplicaMove]], deadline: float
) -> Mapping[int, Sequence[LogDir]] | Fault | str:
    if time.monotonic() > deadline:
        return _TOO_SLOW
    try:
        return cluster.log_dirs(sorted({move.partition.topic for each in moves for move in each}))
    except Fault as fault:
        return fault


def _build_unknown_sizes(
    resource: str,
    traffic: Traffic,
    moves: Iterable[ReplicaMove],
    log_dirs: Mapping[int, Sequence[LogDir]],
) -> Observation:
    """Return the observation about partitions whose size no broker reports, with the reasons."""
    first = traffic.unknown[0]
    leader = next(move.leader for move in moves if move.partition == first)
    offline = [each.error for each in log_dirs.get(leader, ()) if each.error] if leader is not None else []
    if leader is None:
        reason = f"{first} has no leader"
    elif leader not in log_dirs:
        reason = f"broker {leader} does not respond"
    elif offline:
        reason = f"a log directory of broker {leader} is offline ({offline[0]})"
    else:
        reason = f"broker {leader} does not report the size of {first}"
    names = format_names([str(partition) for partition in traffic.unknown])
    return wording.build_unknown(resource, None, f"how many bytes the moves of {names} copy", reason)


@dataclass(frozen=True, slots=True)
class _DiskPrediction:
    """The disk usage of a broker before and after all moves of the plan, in percent."""

    before: int
    after: int


def _predict_disks(
    log_dirs: Mapping[int, Sequence[LogDir]], traffic: Traffic
) -> Mapping[int, _DiskPrediction]:
    """Predict the disk usage of the brokers whose copied and deleted bytes are known."""
    return {
        broker: _DiskPrediction(disk.compute_percent(), disk.compute_percent(each.received - each.deleted))
        for broker, each in traffic.brokers.items()
        if broker not in traffic.incomplete
        and (disk := compute_disk_usage(log_dirs.get(broker, ()))) is not None
    }


def _compute_duration(group: MoveGroup, sizes: ReplicaSizes) -> float | None:
    """Return the minimum duration of moves that share a throttle, in seconds; None without a throttle."""
    if group.pace.throttle is None:
        return None
    traffic = compute_traffic([move for moves in group.moves.values() for move in moves], sizes)
    return compute_least_duration(traffic, group.rates, group.pause_count, group.pace.pause_s or 0)


def _build_copied(
    resource: str,
    traffic: Traffic,
    group: MoveGroup,
    duration: float | None,
    disks: Mapping[int, _DiskPrediction],
) -> Observation:
    brokers: dict[str, JsonValue] = {
        str(broker): {
            "bytes_in": amount.received,
            "bytes_out": amount.sent,
            "bytes_deleted": amount.deleted,
            "disk_percent_before": disks[broker].before if broker in disks else None,
            "disk_percent_after": disks[broker].after if broker in disks else None,
        }
        for broker, amount in traffic.brokers.items()
    }
    figures: dict[str, JsonValue] = {
        "bytes_copied": traffic.copied,
        "partitions_unknown": len(traffic.unknown),
        "throttle": group.pace.throttle,
        "seconds_at_least": None if duration is None else round(duration, 1),
        "brokers": brokers,
    }
    receiving = {b: disks[b] for b, amount in traffic.brokers.items() if amount.received and b in disks}
    sentences = [
        _describe_traffic(traffic),
        _describe_duration(group, duration) if duration else "",
        _describe_fullest_disk(receiving) if receiving else "",
    ]
    text = " ".join(filter(None, sentences))
    return Observation(resource, "copied-bytes", ObservationLevel.INFO, text, None, figures)


def _describe_traffic(traffic: Traffic) -> str:
    if not traffic.copied:
        return "The moves copy no records." if not traffic.unknown else "The other moves copy no records."
    received = {broker: amount.received for broker, amount in traffic.brokers.items() if amount.received}
    sent = {broker: amount.sent for broker, amount in traffic.brokers.items() if amount.sent}
    at_least = "at least " if traffic.unknown else ""
    senders = f" from {_name_brokers(sent)}" if sent else ""
    return f"The moves copy {at_least}{format_size(traffic.copied)}{senders} to {_name_brokers(received)}."


def _name_brokers(amounts: Mapping[int, int]) -> str:
    """Name the brokers with the most bytes: ``brokers 4 (2 GiB), 5 (1 GiB), 6 (1 GiB) and 2 others``."""
    ranked = sorted(amounts, key=lambda broker: (-amounts[broker], broker))
    if len(ranked) == 1:
        return f"broker {ranked[0]}"
    named = [f"{broker} ({format_size(amounts[broker])})" for broker in ranked[:_MAX_NAMED_BROKERS]]
    others = len(ranked) - len(named)
    last = format_count(others, "other") if others else named.pop()
    return f"brokers {', '.join(named)} and {last}"


def _describe_duration(group: MoveGroup, duration: float) -> str:
    others = len(group.moves) - 1
    moves = f"this and the moves of {format_count(others, 'other resource')} take" if others else "this takes"
    rates = {rate for each in group.rates.values() for rate in (each.receiving, each.sending)}
    throttle = f"At {format_size(group.pace.throttle or 0)}/s per broker"
    if rates != {group.pace.throttle}:  # another client set some of the rates
        throttle = "With the throttles of the brokers"
    return f"{throttle}, {moves} at least {format_duration(duration)}."


def _describe_fullest_disk(disks: Mapping[int, _DiskPrediction]) -> str:
    fullest = min(disks, key=lambda broker: (-disks[broker].after, disks[broker].before, broker))
    usage = disks[fullest]
    current = f" (currently {usage.before}%)" if usage.before != usage.after else ""
    return f"Afterwards, the disk of broker {fullest} is {usage.after}% full{current}."
