"""Kind `Reassignment`: where replicas are to be, partition by partition or by a rule for topics."""

from collections.abc import Collection, Iterable, Mapping, Set

from pydantic import BaseModel

from kdeclare.core.capabilities import Evidence
from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Problem
from kdeclare.core.live_codec import LiveKey
from kdeclare.core.operation_type import with_inverse
from kdeclare.core.operations import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.providers.kafka.fleet.rules import list_topics, pick_topics
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.partitions import topics_of
from kdeclare.providers.kafka.plan_evidence import find_proven_of_reassignment
from kdeclare.providers.kafka.reassignment.body_json import reassignment_from, reassignment_json
from kdeclare.providers.kafka.reassignment.diff import PREFIX, diff_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import ReassignPartitions
from kdeclare.providers.kafka.reassignment.placing import Arrangement, Placement
from kdeclare.providers.kafka.reassignment.spec import (
    EXCLUSIVE,
    ReassignmentBody,
    ReassignmentSpec,
    parse_reassignment,
)
from kdeclare.providers.kafka.risks import assess_placement_field
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic_effects import find_field_topic
from kdeclare.providers.kafka.topic_identity import identities

_REASSIGN = ReassignPartitions()


class ReassignmentKind:
    """A desired state like any other: once it is reached, it plans to nothing. It owns nothing."""

    name = "Reassignment"
    spec: type[BaseModel] = ReassignmentSpec
    exclusive_fields: Mapping[str, frozenset[str]] = EXCLUSIVE

    def parse(self, name: str, spec: ReassignmentSpec) -> tuple[ReassignmentBody, tuple[Problem, ...]]:
        """See `core.kind.Kind`."""
        return parse_reassignment(name, spec)

    def select(self, name: str, body: ReassignmentBody | None, owned: Json) -> Selections:
        """The topics of its partitions; all of them where it has patterns."""
        return (KafkaSelection(body.names, every_topic=body.has_patterns),) if body else ()

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """See `core.kind.Kind`."""
        if desired is None:
            return Difference(None)
        return diff_reassignment(resource, desired, live.get(KafkaState), context.get(Placement).place)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_placement_field(field)

    def find_affected(self, body: ReassignmentBody) -> Collection[ResourceId]:
        """The topics that it names; those of patterns are known when it is planned."""
        return [ResourceId("Topic", topic) for topic in sorted(body.names)]

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """The field: operations name partitions as it does."""
        return field

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_of_reassignment(evidence)

    def list_exclusive_settings(self, name: str, body: ReassignmentBody) -> Mapping[str, Json]:
        """The replicas of its partitions, and with them the replication factor of their topics."""
        replicas: dict[str, Json] = {f"replicas of {t.partition}": list(t.replicas) for t in body.targets}
        sizes = {f"replication factor of {t.partition.topic}": len(t.replicas) for t in body.targets}
        return replicas | sizes

    def arranges(self, name: str, body: ReassignmentBody, topics: Iterable[str]) -> Mapping[str, Arrangement]:
        """The brokers of its partitions, or its rule for every topic that it is about."""
        rule = Arrangement(
            without=body.drain, only=body.target_brokers, strategy=body.strategy, even=body.rebalance
        )
        found = dict.fromkeys(body.matching(topics), rule)
        brokers: dict[str, set[int]] = {}
        for target in body.targets:
            brokers.setdefault(target.partition.topic, set()).update(target.replicas)
        return found | {t: Arrangement(frozenset(ids), exact=True) for t, ids in brokers.items()}

    def find_field_subject(self, path: str) -> str | None:
        """The topic whose replicas it is about."""
        return find_field_topic(path)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """One operation for what keeps its size, and one with the guard lifted for what is to change it."""
        pace = (desired.body.pace if desired else None) or None
        groups: dict[bool, dict[str, FieldChange]] = {}
        for field in change.fields:
            resized = len(field.before) != len(field.after)
            groups.setdefault(resized, {})[field.path.removeprefix(PREFIX)] = field
        operations: list[Operation] = []
        for allow, fields in sorted(groups.items()):
            suffix = f"#{len(operations) + 1}" if operations else ""
            op = Operation(
                id=f"{_REASSIGN.name}:{change.id}{suffix}",
                verb=_REASSIGN.name,
                resource=change.id,
                args=ReassignArgs(
                    {name: tuple(field.after) for name, field in fields.items()},
                    allow,
                    pace=pace,
                    group=str(change.id) if pace else None,
                ),
                expect={n: f.before for n, f in fields.items()}
                | identities(topics_of(fields), live.get(KafkaState)),
            )
            operations.append(with_inverse(_REASSIGN, op))
        return tuple(operations)

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """It owns nothing."""
        return None

    def is_self_contained(self, name: str, body: ReassignmentBody) -> bool:
        """Never: it is about topics, and which of them there are, only the cluster knows."""
        return False

    def find_live_key(self, name: str, body: ReassignmentBody | None, owned: Json) -> LiveKey | None:
        """None: topics are not its own."""
        return None

    def find_concerned(self, name: str, body: ReassignmentBody, keys: Collection[LiveKey]) -> list[LiveKey]:
        """The topics that it is about."""
        return pick_topics(keys, self.arranges(name, body, list_topics(keys)))

    def to_json(self, name: str, body: ReassignmentBody) -> Json:
        """See `providers.kafka.reassignment.body_json`."""
        return reassignment_json(body)

    def from_json(self, json: Json) -> ReassignmentBody:
        """See `providers.kafka.reassignment.body_json`."""
        return reassignment_from(json)
