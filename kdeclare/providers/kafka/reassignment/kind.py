"""Kind `Reassignment`: target replicas of individual partitions, or a rule for topics."""

from collections.abc import Collection, Iterable, Mapping, Set

from pydantic import BaseModel

from kdeclare.core.jsontypes import (
    JsonObject,
    JsonValue,
    as_bool,
    as_int,
    as_ints,
    as_list,
    as_object,
    as_text,
    as_texts,
)
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import LiveKey
from kdeclare.core.operations.argument_binding import dump_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.operations.operation_type import with_inverse
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, SpecProblem, narrow, narrow_optional
from kdeclare.core.resources.owned_record import NoRecord, OwnedRecord
from kdeclare.core.resources.plan_capabilities import (
    Evidence,
)
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.fleet.facts import list_topic_names, select_topic_keys
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.kafka_operation_type import build_identity_view, find_field_topic
from kdeclare.providers.kafka.operations.partitions import collect_topics
from kdeclare.providers.kafka.plan_evidence import find_proven_reassignment_fields
from kdeclare.providers.kafka.reassignment.diff import REPLICAS_PREFIX, diff_reassignment
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.reassignment.operations.reassign import ReassignPartitions
from kdeclare.providers.kafka.reassignment.pace import bind_pace
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementConstraint,
    PlacementContext,
    Strategy,
)
from kdeclare.providers.kafka.reassignment.spec import (
    EXCLUSIVE_FIELDS,
    ReassignmentBody,
    ReassignmentSpec,
    Target,
    parse_reassignment,
)
from kdeclare.providers.kafka.risks import assess_placement_field

_REASSIGN = ReassignPartitions()


class ReassignmentKind:
    """The kind `Reassignment`.

    Its resources own no fields, and have no changes once their targets are reached.
    """

    name = "Reassignment"
    spec: type[BaseModel] = ReassignmentSpec
    record: type[OwnedRecord] = NoRecord
    exclusive_fields: Mapping[str, frozenset[str]] = EXCLUSIVE_FIELDS

    def is_location(self, path: str) -> bool:
        """Return whether a field sets replicas or a replication factor; see `MovesData`."""
        return path.startswith(("replicas.", "assignments.")) or path == "replicationFactor"

    def parse(self, name: str, spec: BaseModel) -> tuple[ReassignmentBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_reassignment(name, narrow(spec, ReassignmentSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the topics that the Reassignment names; all topics if it contains patterns."""
        body = narrow_optional(body, ReassignmentBody)
        return (KafkaSelection(body.names, every_topic=body.has_patterns),) if body else ()

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        if desired is None:
            return Difference(None)
        return diff_reassignment(resource, desired, live.get(KafkaState), context.get(PlacementContext).place)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_placement_field(field)

    def find_affected(self, body: object) -> Collection[ResourceId]:
        """Return the topics that are listed by name. Topics that match a pattern are not included."""
        return [ResourceId("Topic", topic) for topic in sorted(narrow(body, ReassignmentBody).names)]

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """Return the field unchanged, because fields and operations use the same names for partitions."""
        return field

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_reassignment_fields(evidence)

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return the declared replicas of partitions, and the replication factors of their topics."""
        body = narrow(body, ReassignmentBody)
        replicas: dict[str, JsonValue] = {
            f"replicas of {t.partition}": list(t.replicas) for t in body.targets
        }
        factors = {f"replication factor of {t.partition.topic}": len(t.replicas) for t in body.targets}
        return replicas | factors

    def find_placement_constraints(
        self, name: str, body: object, topics: Iterable[str]
    ) -> Mapping[str, PlacementConstraint]:
        """Return the declared brokers of the listed partitions, or the rule for each matching topic."""
        body = narrow(body, ReassignmentBody)
        rule = PlacementConstraint(
            excluded_brokers=body.drain,
            only=body.target_brokers,
            strategy=body.strategy,
            rebalance=body.rebalance,
        )
        constraints = dict.fromkeys(body.filter_topics(topics), rule)
        brokers_by_topic: dict[str, set[int]] = {}
        for target in body.targets:
            brokers_by_topic.setdefault(target.partition.topic, set()).update(target.replicas)
        return constraints | {
            t: PlacementConstraint(frozenset(ids), exact=True) for t, ids in brokers_by_topic.items()
        }

    def find_field_subject(self, path: str) -> str | None:
        """Return the topic whose replicas the field describes."""
        return find_field_topic(path)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Build one operation for partitions that keep their replication factor, and one for all others.

        The second operation disables the replication factor guard. An operation without partitions is
        omitted.
        """
        pace = (desired.get_body(ReassignmentBody).pace if desired else None) or None
        groups: dict[bool, dict[str, FieldChange]] = {}
        for field in change.fields:
            changes_factor = len(as_list(field.before)) != len(as_list(field.after))
            groups.setdefault(changes_factor, {})[field.path.removeprefix(REPLICAS_PREFIX)] = field
        operations: list[Operation] = []
        for allow_factor_change, fields in sorted(groups.items()):
            suffix = f"#{len(operations) + 1}" if operations else ""
            op = Operation(
                id=f"{_REASSIGN.name}:{change.id}{suffix}",
                verb=_REASSIGN.name,
                resource=change.id,
                args=ReassignArgs(
                    {name: as_ints(field.after) for name, field in fields.items()},
                    allow_factor_change,
                    pace=pace,
                    group=str(change.id) if pace else None,
                ),
                expect={n: f.before for n, f in fields.items()}
                | build_identity_view(collect_topics(fields), live.get(KafkaState)),
            )
            operations.append(with_inverse(_REASSIGN, op))
        return tuple(operations)

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """Return None: a Reassignment owns no fields."""
        return None

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return False: the diff depends on the topics that exist in the cluster."""
        return False

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return None: the cluster stores no object that represents a Reassignment."""
        return None

    def find_concerned(self, name: str, body: object, keys: Collection[LiveKey]) -> list[LiveKey]:
        """Return the keys of the topics that the Reassignment affects."""
        return select_topic_keys(
            keys,
            self.find_placement_constraints(name, narrow(body, ReassignmentBody), list_topic_names(keys)),
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`."""
        return dump_reassignment(narrow(body, ReassignmentBody))

    def from_json(self, json: JsonObject) -> ReassignmentBody:
        """See `Kind`."""
        return bind_reassignment(json)


def dump_reassignment(body: ReassignmentBody) -> JsonObject:
    """See `Kind.to_json`."""
    return {
        "partitions": [
            {
                "topic": target.partition.topic,
                "partition": target.partition.partition,
                "replicas": list(target.replicas),
                "expectedReplicas": None if target.expected is None else list(target.expected),
            }
            for target in body.targets
        ],
        "allowReplicationFactorChange": body.allow_replication_factor_change,
        "topics": list(body.topics),
        "drain": sorted(body.drain),
        "targetBrokers": sorted(body.target_brokers),
        "rebalance": body.rebalance,
        "strategy": None if body.strategy is None else str(body.strategy),
        "racks": list(body.racks),
        "pace": dump_arguments(body.pace),
    }


def bind_reassignment(json: JsonObject) -> ReassignmentBody:
    """See `Kind.from_json`."""
    strategy = json["strategy"]
    return ReassignmentBody(
        targets=tuple(_bind_target(as_object(item)) for item in as_list(json["partitions"])),
        allow_replication_factor_change=as_bool(json["allowReplicationFactorChange"]),
        topics=as_texts(json["topics"]),
        drain=frozenset(as_ints(json["drain"])),
        target_brokers=frozenset(as_ints(json["targetBrokers"])),
        rebalance=as_bool(json["rebalance"]),
        strategy=None if strategy is None else Strategy(as_text(strategy)),
        racks=as_texts(json["racks"]),
        pace=bind_pace(as_object(json["pace"])),
    )


def _bind_target(item: JsonObject) -> Target:
    expected = item["expectedReplicas"]
    return Target(
        TopicPartition(as_text(item["topic"]), as_int(item["partition"])),
        as_ints(item["replicas"]),
        None if expected is None else as_ints(expected),
    )
