"""What Kafka's kafka-reassign-partitions tool prints, to the letter: scripts read it."""

from collections.abc import Collection, Iterable, Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.reassign.assignments_file import Assignment, reassignment_json
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move, ReplicaDirs


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


VERIFY_AGAIN = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed.\n"
)
NO_MOVES = "None of the specified partition moves are active.\n"


@dataclass(frozen=True, slots=True, order=True)
class DirState:
    """How one replica stands to the log directory that was asked for.

    dirs: where it is; None where its broker has no such replica. silent: its broker does not answer.
    """

    broker: int
    partition: TopicPartition
    target: str
    dirs: ReplicaDirs | None
    silent: bool = False

    @property
    def moving(self) -> bool:
        """Whether it is on its way, be it to this directory or to another one."""
        return self.dirs is not None and self.dirs.path is not None and self.dirs.arriving is not None


def dirs_text(states: Iterable[DirState]) -> str:
    """The answer of ``--verify`` about log directories; an empty line where none was named."""
    return "".join(f"{_state(state)}\n" for state in sorted(states, key=_by_broker)) or "\n"


def dirs_started(replicas: Iterable[DirState]) -> str:
    """What ``--execute`` and ``--cancel`` print of replicas that go to a directory or are in it already."""
    # the space at the end of the line is the tool's
    return "".join(
        f"Successfully started moving log directory to {r.target} for replica {r.partition} "
        f"with broker {r.broker} \n"
        for r in sorted(replicas, key=_by_broker)
    )


def dirs_not_started(replicas: Iterable[DirState]) -> str:
    """What it prints of those that are nowhere to be seen."""
    names = [_name(replica) for replica in sorted(replicas, key=_by_broker)]
    many = "" if len(names) == 1 else "s"
    return f"Timed out before log directory move{many} could be started for: {','.join(names)}"


def throttle_set(rate: int) -> str:
    """What it prints of the throttle between brokers."""
    return f"The inter-broker throttle limit was set to {rate} B/s\n"


def dirs_throttle_set(rate: int) -> str:
    """What it prints of the throttle between log directories."""
    return f"The replica-alter-dir throttle limit was set to {rate} B/s\n"


def throttles_cleared(brokers: Collection[int], topics: Collection[str]) -> str:
    """What ``--verify`` and ``--cancel`` print last; nothing of what is not concerned."""
    text = ""
    if brokers:
        many = "" if len(brokers) == 1 else "s"
        text += f"Clearing broker-level throttles on broker{many} {','.join(map(str, sorted(brokers)))}\n"
    if topics:
        many = "" if len(topics) == 1 else "s"
        text += f"Clearing topic-level throttles on topic{many} {','.join(sorted(topics))}\n"
    return text


def _state(state: DirState) -> str:
    partition, broker, dirs = state.partition, state.broker, state.dirs
    if state.silent:
        return f"Partition {partition} cannot be found in any live log directory on broker {broker}."
    if dirs is None or dirs.path is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker {broker}. "
            "There is likely an offline log directory on the broker."
        )
    if dirs.arriving == state.target:
        return f"Reassignment of replica {_name(state)} is still in progress."
    where = f"Partition {partition} on broker {broker} is"
    if dirs.arriving is not None:
        return f"{where} being moved to log dir {dirs.arriving} instead of {state.target}."
    if dirs.path != state.target:
        return f"{where} not being moved from log dir {dirs.path} to {state.target}."
    return f"Reassignment of replica {_name(state)} completed successfully."


def _name(state: DirState) -> str:
    return f"{state.partition}-{state.broker}"


def _by_broker(state: DirState) -> tuple[int, TopicPartition]:
    return state.broker, state.partition
