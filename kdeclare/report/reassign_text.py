"""What Kafka's kafka-reassign-partitions tool prints, to the letter: scripts read it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kdeclare.manifests.reassignment_json import Assignment, reassignment_json
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move


@dataclass(frozen=True, slots=True)
class VerifyState:
    """How one partition stands to the replicas that were asked for.

    current: its replicas; None where there is no such partition.
    moving: whether it is being reassigned, be it to these replicas or to others.
    """

    partition: TopicPartition
    target: tuple[int, ...]
    current: tuple[int, ...] | None
    moving: bool


def current_and_proposed(current: Iterable[Assignment], proposed: Iterable[Assignment]) -> str:
    """The answer of ``--generate``."""
    return (
        f"Current partition replica assignment\n{reassignment_json(current)}\n\n"
        f"Proposed partition reassignment configuration\n{reassignment_json(proposed)}\n"
    )


def rollback_hint(current: Iterable[Assignment]) -> str:
    """What ``--execute`` prints first: where the partitions are, as a file to move them back with."""
    return (
        f"Current partition replica assignment\n\n{reassignment_json(current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )


def started(partitions: Iterable[TopicPartition]) -> str:
    """What ``--execute`` prints last."""
    number, names = _named(partitions)
    return f"Successfully started partition reassignment{_plural(number)} for {names}\n"


def list_text(moves: Mapping[TopicPartition, Move]) -> str:
    """The answer of ``--list``."""
    if not moves:
        return "No partition reassignments found.\n"
    lines = [_listed(partition, moves[partition]) for partition in sorted(moves)]
    return "".join(f"{line}\n" for line in ("Current partition reassignments:", *lines))


def verify_text(states: Iterable[VerifyState]) -> str:
    """The answer of ``--verify`` about partitions; log directories and throttles come after it."""
    lines = [_verified(state) for state in sorted(states, key=lambda state: state.partition)]
    return "".join(f"{line}\n" for line in ("Status of partition reassignment:", *lines))


def cancelled(partitions: Iterable[TopicPartition]) -> str:
    """The answer of ``--cancel``, given those of the partitions whose reassignment was active."""
    number, names = _named(partitions)
    if not number:
        return "None of the specified partition reassignments are active.\n"
    return f"Successfully cancelled partition reassignment{_plural(number)} for: {names}\n"


def _listed(partition: TopicPartition, move: Move) -> str:
    adding = f" adding: {_ids(move.adding)}." if move.adding else ""
    removing = f" removing: {_ids(move.removing)}." if move.removing else ""
    return f"{partition}: replicas: {_ids(move.replicas)}.{adding}{removing}"


def _verified(state: VerifyState) -> str:
    if state.moving:
        return f"Reassignment of partition {state.partition} is still in progress."
    if state.current == state.target:
        return f"Reassignment of partition {state.partition} is completed."
    # of a partition that is not there Kafka's tool says the same, with nothing where the replicas would be
    current, target = _ids(state.current or ()), _ids(state.target)
    return (
        f"There is no active reassignment of partition {state.partition}, "
        f"but replica set is {current} rather than {target}."
    )


def _named(partitions: Iterable[TopicPartition]) -> tuple[int, str]:
    """How many there are, and their names."""
    names = [str(partition) for partition in sorted(partitions)]
    return len(names), ",".join(names)


def _plural(number: int) -> str:
    return "" if number == 1 else "s"


def _ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))
