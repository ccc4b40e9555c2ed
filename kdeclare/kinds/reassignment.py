"""Kind `Reassignment`: where the replicas of named partitions are to be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.kinds.base import Desired, Difference, Path, Placer, Problem
from kdeclare.kinds.query import Query
from kdeclare.kinds.verbs.base import identities, with_inverse
from kdeclare.kinds.verbs.reassign import ReassignPartitions, topics_of
from kdeclare.model.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.model.diagnostics import Diagnostic, denied, error
from kdeclare.model.ids import ConfigScope, ResourceId, TopicPartition
from kdeclare.model.jsontypes import Json
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation

GUARD = "replication-factor-guard"
EXPECTED_REPLICAS = "expected-replicas"
MOVE_IN_FLIGHT = "move-in-flight"
UNKNOWN_PARTITION = "unknown-partition"

_REASSIGN = ReassignPartitions()
_PREFIX = "replicas."


BrokerId = Annotated[int, Field(ge=0, le=2**31 - 1)]


class PartitionSpec(BaseModel):
    """One partition's wish; ``expectedReplicas`` makes it a compare-and-set."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    topic: str
    partition: Annotated[int, Field(ge=0, le=2**31 - 1)]
    replicas: Annotated[list[BrokerId], Field(min_length=1)]
    expectedReplicas: Annotated[list[BrokerId], Field(min_length=1)] | None = None  # noqa: N815


class ReassignmentSpec(BaseModel):
    """``spec`` of a Reassignment manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    partitions: Annotated[list[PartitionSpec], Field(min_length=1)]
    allowReplicationFactorChange: bool = False  # noqa: N815


@dataclass(frozen=True, slots=True)
class Target:
    """The replicas that one partition is to have, in order, and those that it must have before."""

    partition: TopicPartition
    replicas: tuple[int, ...]
    expected: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class ReassignmentBody:
    """Declared replicas of partitions."""

    targets: tuple[Target, ...]
    allow_replication_factor_change: bool = False


class ReassignmentKind:
    """A desired state like any other: once it is reached, it plans to nothing. It owns nothing."""

    name = "Reassignment"
    spec: type[BaseModel] = ReassignmentSpec
    config_scope: ConfigScope | None = None

    def parse(self, name: str, spec: ReassignmentSpec) -> tuple[ReassignmentBody, tuple[Problem, ...]]:
        """See `kinds.base.Kind`."""
        problems: list[Problem] = []
        seen: set[TopicPartition] = set()
        targets: list[Target] = []
        for n, item in enumerate(spec.partitions):
            partition = TopicPartition(item.topic, item.partition)
            if partition in seen:
                problems.append(_invalid(name, ("partitions", n), f"{partition} is named twice."))
            seen.add(partition)
            if len(set(item.replicas)) != len(item.replicas):
                path: Path = ("partitions", n, "replicas")
                problems.append(_invalid(name, path, f"{partition} names a broker twice."))
            expected = tuple(item.expectedReplicas) if item.expectedReplicas else None
            targets.append(Target(partition, tuple(item.replicas), expected))
        return ReassignmentBody(tuple(targets), spec.allowReplicationFactorChange), tuple(problems)

    def query(self, name: str, body: ReassignmentBody | None, owned: Json) -> Query:
        """The topics of its partitions."""
        return Query(frozenset(t.partition.topic for t in body.targets) if body else frozenset())

    def diff(self, resource: ResourceId, desired: Desired | None, live: Snapshot, owned: Json) -> Difference:
        """See `kinds.base.Kind`."""
        if desired is None:
            return Difference(None)
        body: ReassignmentBody = desired.body
        fields: list[FieldChange] = []
        problems: list[Diagnostic] = []
        for target in body.targets:
            current = live.replicas(target.partition)
            if current == target.replicas:
                continue
            wrong = _problem(resource, desired, live, target, current)
            if wrong is not None:
                problems.append(wrong)
            if current is not None:
                path = f"{_PREFIX}{target.partition}"
                fields.append(FieldChange(path, FieldOp.CHANGE, list(current), list(target.replicas)))
        change = None
        if fields:
            blocked = problems[0].code if problems else None
            change = Change(
                resource,
                Action.UPDATE,
                Reason.CHANGED,
                Risk.DISRUPTIVE,
                tuple(fields),
                desired.source,
                blocked,
            )
        return Difference(change, None, (), tuple(problems))

    def wants(self, name: str, body: ReassignmentBody) -> Mapping[str, Json]:
        """The replicas of its partitions, and with them the replication factor of their topics."""
        replicas: dict[str, Json] = {f"replicas of {t.partition}": list(t.replicas) for t in body.targets}
        sizes = {f"replication factor of {t.partition.topic}": len(t.replicas) for t in body.targets}
        return replicas | sizes

    def operations(
        self, change: Change, desired: Desired | None, live: Snapshot, owned: Json, place: Placer
    ) -> tuple[Operation, ...]:
        """One operation for what keeps its size, and one with the guard lifted for what is to change it."""
        groups: dict[bool, dict[str, FieldChange]] = {}
        for field in change.fields:
            resized = len(field.before) != len(field.after)
            groups.setdefault(resized, {})[field.path.removeprefix(_PREFIX)] = field
        operations: list[Operation] = []
        for allow, fields in sorted(groups.items()):
            suffix = f"#{len(operations) + 1}" if operations else ""
            op = Operation(
                id=f"{_REASSIGN.name}:{change.id}{suffix}",
                verb=_REASSIGN.name,
                resource=change.id,
                args={
                    "partitions": {name: field.after for name, field in fields.items()},
                    "allow_replication_factor_change": allow,
                },
                expect={n: f.before for n, f in fields.items()} | identities(topics_of(fields), live),
            )
            operations.append(with_inverse(_REASSIGN, op))
        return tuple(operations)

    def settle(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """It owns nothing."""
        return None

    def export(self, live: Snapshot) -> Mapping[str, str]:
        """Nothing: where replicas are is no wish."""
        return {}


def _problem(
    resource: ResourceId,
    desired: Desired,
    live: Snapshot,
    target: Target,
    current: tuple[int, ...] | None,
) -> Diagnostic | None:
    """What keeps one partition from being moved, if something does."""
    body: ReassignmentBody = desired.body
    partition = target.partition
    known = {broker.id for broker in live.cluster.brokers}
    if current is None:
        topic = f"Topic/{partition.topic}"
        return error(
            UNKNOWN_PARTITION,
            "No such partition",
            f"{partition} is not in the cluster.",
            hint="Create the topic, or correct its name and the partition's number.",
            place=desired.source,
            resource=str(resource),
            subject=topic,
        )
    code, summary, detail, hint = "", "", "", ""
    if missing := sorted(set(target.replicas) - known):
        code, summary = "unknown-broker", "No such broker"
        detail = f"{partition} is to be on {missing}, which the cluster does not have."
        hint = f"It has {sorted(known)}."
    elif target.expected is not None and target.expected != current:
        code, summary = EXPECTED_REPLICAS, "Replicas are not as expected"
        detail = f"{partition} is on {list(current)}, and the manifest expects {list(target.expected)}."
        hint = "Somebody has moved it since: look at it again and correct expectedReplicas."
    elif partition in live.moves:
        code, summary = MOVE_IN_FLIGHT, "A move is in flight"
        detail = f"{partition} is being moved to {list(current)} by someone; it is left alone."
        hint = "Wait until it is over (kdeclare status), then plan again."
    elif len(target.replicas) != len(current) and not body.allow_replication_factor_change:
        code, summary = GUARD, "The replication factor would change"
        detail = (
            f"The replication factor of {partition} would change from {len(current)} "
            f"to {len(target.replicas)}, and the guard of KIP-860 is on."
        )
        hint = "Name as many replicas as it has, or set allowReplicationFactorChange: true."
    if not code:
        return None
    say = error if code == "unknown-broker" else denied
    return say(code, summary, detail, hint=hint, place=desired.source, resource=str(resource))


def _invalid(name: str, path: Path, text: str) -> Problem:
    resource = f"Reassignment/{name}"
    return Problem(path, error("invalid-reassignment", "Invalid reassignment", text, resource=resource))
