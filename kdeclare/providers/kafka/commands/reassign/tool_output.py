"""The exact output of Kafka's kafka-reassign-partitions tool, which scripts parse."""

from collections.abc import Collection, Iterable, Mapping

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.commands.reassign.assignments_file import PartitionAssignment, dump_assignments
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move, ReplicaDirs


@dataclass(frozen=True, slots=True)
class VerifyState:
    """The state of one partition compared with the requested replicas.

    current: the current replicas, or None if the partition does not exist.
    moving: whether the partition is being reassigned, even if its target is different from the requested
        replicas.
    """

    partition: TopicPartition
    target: tuple[int, ...]
    current: tuple[int, ...] | None
    moving: bool


def render_proposal(current: Iterable[PartitionAssignment], proposed: Iterable[PartitionAssignment]) -> str:
    """Render the output of Kafka's tool for ``--generate``."""
    return (
        f"Current partition replica assignment\n{dump_assignments(current)}\n\n"
        f"Proposed partition reassignment configuration\n{dump_assignments(proposed)}\n"
    )


def render_rollback_hint(current: Iterable[PartitionAssignment]) -> str:
    """Render what ``--execute`` prints first: the current replicas, in the format of reassignment files."""
    return (
        f"Current partition replica assignment\n\n{dump_assignments(current)}\n\n"
        "Save this to use as the --reassignment-json-file option during rollback\n"
    )


def render_started(partitions: Iterable[TopicPartition]) -> str:
    """Render the line that ``--execute`` prints about the reassignments that were started."""
    number, names = _format_names(partitions)
    return f"Successfully started partition reassignment{_format_plural_suffix(number)} for {names}\n"


def render_moves(moves: Mapping[TopicPartition, Move]) -> str:
    """Render the output of Kafka's tool for ``--list``."""
    if not moves:
        return "No partition reassignments found.\n"
    lines = [_format_move(partition, moves[partition]) for partition in sorted(moves)]
    return "".join(f"{line}\n" for line in ("Current partition reassignments:", *lines))


def render_verification(states: Iterable[VerifyState]) -> str:
    """Render what ``--verify`` prints about partitions, without log directories or throttles."""
    lines = [_format_verify_state(state) for state in sorted(states, key=lambda state: state.partition)]
    return "".join(f"{line}\n" for line in ("Status of partition reassignment:", *lines))


def render_cancelled(partitions: Iterable[TopicPartition]) -> str:
    """Render what ``--cancel`` prints. partitions: the partitions whose reassignment was active."""
    number, names = _format_names(partitions)
    if not number:
        return "None of the specified partition reassignments are active.\n"
    return f"Successfully cancelled partition reassignment{_format_plural_suffix(number)} for: {names}\n"


def _format_move(partition: TopicPartition, move: Move) -> str:
    adding = f" adding: {_format_ids(move.adding)}." if move.adding else ""
    removing = f" removing: {_format_ids(move.removing)}." if move.removing else ""
    return f"{partition}: replicas: {_format_ids(move.replicas)}.{adding}{removing}"


def _format_verify_state(state: VerifyState) -> str:
    if state.moving:
        return f"Reassignment of partition {state.partition} is still in progress."
    if state.current == state.target:
        return f"Reassignment of partition {state.partition} is completed."
    # For a missing partition, Kafka's tool prints the same message with an empty replica set.
    current, target = _format_ids(state.current or ()), _format_ids(state.target)
    return (
        f"There is no active reassignment of partition {state.partition}, "
        f"but replica set is {current} rather than {target}."
    )


def _format_names(partitions: Iterable[TopicPartition]) -> tuple[int, str]:
    names = [str(partition) for partition in sorted(partitions)]
    return len(names), ",".join(names)


def _format_plural_suffix(number: int) -> str:
    return "" if number == 1 else "s"


def _format_ids(replicas: Iterable[int]) -> str:
    return ",".join(map(str, replicas))


VERIFY_AGAIN = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed.\n"
)
NO_MOVES = "None of the specified partition moves are active.\n"


@dataclass(frozen=True, slots=True, order=True)
class DirState:
    """The state of one replica compared with the requested log directory.

    dirs: the directories of the replica, or None if the broker does not have the replica.
    is_silent: whether the broker did not respond.
    """

    broker: int
    partition: TopicPartition
    target: str
    dirs: ReplicaDirs | None
    is_silent: bool = False

    @property
    def moving(self) -> bool:
        """Whether the replica is moving to any log directory."""
        return self.dirs is not None and self.dirs.path is not None and self.dirs.arriving is not None


def render_dir_states(states: Iterable[DirState]) -> str:
    """Render what ``--verify`` prints about log directories; an empty line if ``states`` is empty."""
    return "".join(f"{_format_dir_state(state)}\n" for state in sorted(states, key=_get_sort_key)) or "\n"


def render_dirs_started(replicas: Iterable[DirState]) -> str:
    """Render the lines for replicas that are in their target directory or are moving to it."""
    # Kafka's tool also prints the space at the end of the line.
    return "".join(
        f"Successfully started moving log directory to {r.target} for replica {r.partition} "
        f"with broker {r.broker} \n"
        for r in sorted(replicas, key=_get_sort_key)
    )


def render_dirs_not_started(replicas: Iterable[DirState]) -> str:
    """Render the error for replicas that have not started to move to their target directory."""
    names = [_format_replica(replica) for replica in sorted(replicas, key=_get_sort_key)]
    plural_suffix = "" if len(names) == 1 else "s"
    return f"Timed out before log directory move{plural_suffix} could be started for: {','.join(names)}"


def render_throttle_set(rate: int) -> str:
    """Render the line about the throttle between brokers."""
    return f"The inter-broker throttle limit was set to {rate} B/s\n"


def render_dirs_throttle_set(rate: int) -> str:
    """Render the line about the throttle between log directories."""
    return f"The replica-alter-dir throttle limit was set to {rate} B/s\n"


def render_throttles_cleared(brokers: Collection[int], topics: Collection[str]) -> str:
    """Render the lines about removed throttles, or nothing if no throttle was removed."""
    text = ""
    if brokers:
        plural_suffix = "" if len(brokers) == 1 else "s"
        text += (
            f"Clearing broker-level throttles on broker{plural_suffix} "
            f"{','.join(map(str, sorted(brokers)))}\n"
        )
    if topics:
        plural_suffix = "" if len(topics) == 1 else "s"
        text += f"Clearing topic-level throttles on topic{plural_suffix} {','.join(sorted(topics))}\n"
    return text


def _format_dir_state(state: DirState) -> str:
    partition, broker, dirs = state.partition, state.broker, state.dirs
    if state.is_silent:
        return f"Partition {partition} cannot be found in any live log directory on broker {broker}."
    if dirs is None or dirs.path is None:
        return (
            f"Partition {partition} is not found in any live log dir on broker {broker}. "
            "There is likely an offline log directory on the broker."
        )
    if dirs.arriving == state.target:
        return f"Reassignment of replica {_format_replica(state)} is still in progress."
    location = f"Partition {partition} on broker {broker} is"
    if dirs.arriving is not None:
        return f"{location} being moved to log dir {dirs.arriving} instead of {state.target}."
    if dirs.path != state.target:
        return f"{location} not being moved from log dir {dirs.path} to {state.target}."
    return f"Reassignment of replica {_format_replica(state)} completed successfully."


def _format_replica(state: DirState) -> str:
    return f"{state.partition}-{state.broker}"


def _get_sort_key(state: DirState) -> tuple[int, TopicPartition]:
    return state.broker, state.partition
