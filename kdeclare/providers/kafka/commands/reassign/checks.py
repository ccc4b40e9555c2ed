"""What `kdeclare reassign` refuses before anything is done, in the words of Kafka's tool."""

from collections.abc import Iterable, Mapping, Sequence

from kdeclare.core.diagnostics import KdeclareError, denied, error
from kdeclare.core.exits import ExitCode
from kdeclare.core.ids import ResourceId
from kdeclare.core.name_scope import NameScope, out_of_scope
from kdeclare.providers.kafka.commands.reassign.assignments_file import Assignment
from kdeclare.providers.kafka.commands.reassign.plans import Replica
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.port import LogDir

_EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)


def existing_moves() -> KdeclareError:
    """What to say where replicas are being moved already."""
    found = denied("existing-assignment", "Replicas are being moved", _EXISTING)
    return KdeclareError(found, exit_code=ExitCode.DENIED)


def check_places(
    assignments: Sequence[Assignment],
    directories: Mapping[Replica, str],
    live: KafkaState,
    there: Mapping[int, Sequence[LogDir]],
) -> None:
    """Refuse brokers, topics, partitions and log directories that are not there. Raises KdeclareError."""
    registered = {broker.id: broker for broker in live.cluster.brokers}
    problems = []
    for id_ in sorted({broker for a in assignments for broker in a.replicas}):
        broker = registered.get(id_)
        if broker is None or broker.fenced:
            hint = "It is registered and does not serve." if broker else f"There are {sorted(registered)}."
            problems.append(error("unknown-broker", "No such broker", f"Unknown broker id {id_}", hint=hint))
    if problems:
        raise KdeclareError(*problems)
    check_topics({a.partition.topic for a in assignments}, live)
    gone = [str(p) for p in sorted(a.partition for a in assignments) if live.replicas(p) is None]
    if gone:
        detail = f"Unable to find partition: {', '.join(gone)}"
        raise KdeclareError(error("unknown-partition", "No such partition", detail))
    _check_directories(directories, there)


def check_names(topics: Iterable[str], scope: NameScope) -> None:
    """Refuse topics outside the scope of the project. Raises KdeclareError."""
    ids = (ResourceId("Topic", topic) for topic in sorted(topics))
    forbidden = [id_ for id_ in ids if not scope.permits(id_)]
    if forbidden:
        raise KdeclareError(out_of_scope(None, forbidden, scope))


def check_topics(topics: Iterable[str], live: KafkaState) -> None:
    """Refuse topics that are not there. Raises KdeclareError."""
    missing = sorted(set(topics) - live.topics.keys())
    if missing:
        raise KdeclareError(
            *(error("unknown-topic", "No such topic", f"Topic {name} not found.") for name in missing)
        )


def _check_directories(directories: Mapping[Replica, str], there: Mapping[int, Sequence[LogDir]]) -> None:
    """A broker that does not say which directories it has is left to answer for itself."""
    problems = []
    for (partition, broker), path in sorted(directories.items()):
        paths = [log_dir.path for log_dir in there.get(broker, ()) if log_dir.error is None]
        if broker in there and path not in paths:
            detail = f"Failed to alter dir for {partition}-{broker}: the broker has no log directory {path}"
            hint = f"It has {', '.join(paths)}." if paths else "None of its log directories is online."
            problems.append(error("unknown-log-dir", "No such log directory", detail, hint=hint))
    if problems:
        raise KdeclareError(*problems)
