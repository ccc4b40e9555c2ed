"""Kind `Topic`: partitions, replication factor or assignments, and configs."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from pydantic import BaseModel

from kdeclare.core.audit_rules import AuditRules
from kdeclare.core.capabilities import Evidence, Export, ExportRequest
from kdeclare.core.changes import Action, Change, FieldChange
from kdeclare.core.collector import Selections
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired, Difference, Path, Problem
from kdeclare.core.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.manifest_edits import DeclaredFields, ManifestEdits
from kdeclare.core.operations import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.planning import CannotPlanError
from kdeclare.core.policy_subjects import PolicyWords, ReviewInputs
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_ops import PREFIX
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import declared_override_facts, declared_topic_facts
from kdeclare.providers.kafka.fleet.rules import TOPIC, TopicRules, list_topics, pick_topics
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.manifest_edits import (
    find_topic_edits,
    is_as_changed,
    lay_out_topic,
    locate_topic_field,
)
from kdeclare.providers.kafka.operations.alter_configs import list_ops
from kdeclare.providers.kafka.plan_evidence import find_proven_of_topic, normalize_topic_field
from kdeclare.providers.kafka.policies.declared import DeclaredTopic
from kdeclare.providers.kafka.policies.requests import TopicReview, start_review
from kdeclare.providers.kafka.policies.words import TOPIC_WORDS
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.providers.kafka.reassignment.placing import Arrangement, Placement, PlacementError
from kdeclare.providers.kafka.risks import TOPIC_DELETED, assess_topic_field
from kdeclare.providers.kafka.selection import KafkaSelection
from kdeclare.providers.kafka.topic.body_json import topic_from, topic_json
from kdeclare.providers.kafka.topic.diff import (
    INVALID_PARTITIONS,
    TOPIC_ID,
    diff_topic,
    min_isr_problems,
    not_placed,
)
from kdeclare.providers.kafka.topic.export import export_topics
from kdeclare.providers.kafka.topic.operations import topic_operations
from kdeclare.providers.kafka.topic.spec import EXCLUSIVE, TopicBody, TopicSpec, is_legal_name, parse_topic
from kdeclare.providers.kafka.topic.stated import stated
from kdeclare.providers.kafka.topic_effects import (
    Effect,
    Stated,
    find_effects,
    find_field_topic,
    find_static_topic_state,
)


class TopicKind:
    """Topics, with the semantics of KIP-4 as Kafka shipped them."""

    name = "Topic"
    spec: type[BaseModel] = TopicSpec
    config_scope = ConfigScope.TOPIC
    deletion_cause = TOPIC_DELETED
    policy_words: PolicyWords = replace(TOPIC_WORDS, is_name=is_legal_name)
    exclusive_fields: Mapping[str, frozenset[str]] = EXCLUSIVE
    audit_rules: AuditRules = TopicRules(
        identity_field=TOPIC_ID,
        replaced="It was deleted and created again outside kdeclare since it was last applied: it is another "
        "topic, and earlier records are gone.",
        orphan_replaced="The topic that was applied is gone and no longer declared. Another one has its name "
        "and is kept.",
        impossible=frozenset({INVALID_PARTITIONS}),
    )

    def parse(self, name: str, spec: TopicSpec) -> tuple[TopicBody, tuple[Problem, ...]]:
        """See `core.kind.Kind`."""
        return parse_topic(name, spec)

    def select(self, name: str, body: TopicBody | None, owned: Json) -> Selections:
        """The topic, its declared and owned keys, and whatever else is set on it."""
        resource = ConfigResource(ConfigScope.TOPIC, name)
        keys = frozenset(body.configs if body else ()) | frozenset((owned or {}).get("configs", ()))
        return (KafkaSelection(frozenset({name}), {resource: ConfigQuery(resource, keys, overrides=True)}),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: Json,
        context: PlanContext,
    ) -> Difference:
        """See `core.kind.Kind`."""
        return diff_topic(resource, desired, live.get(KafkaState), owned, context.get(Placement).place)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_topic_field(action, field)

    def is_rated_by_live_state(self, field: FieldChange) -> bool:
        """A config that is or becomes unset: then it is the brokers' value that holds."""
        return field.path.startswith(PREFIX) and None in (field.before, field.after)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """See `providers.kafka.plan_evidence`."""
        return normalize_topic_field(resource.name, field)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_of_topic(change.id.name, change.action, evidence)

    def find_static_diagnostics(self, desired: Desired) -> tuple[Diagnostic, ...]:
        """What can be said of the replication factor where that is declared, too."""
        return min_isr_problems(desired)

    def list_exclusive_settings(self, name: str, body: TopicBody) -> Mapping[str, Json]:
        """The replicas of each partition, or their number."""
        if body.assignments is not None:
            return {f"replicas of {name}-{n}": list(r) for n, r in body.assignments.items()}
        factor = body.replication_factor
        return {} if factor is None else {f"replication factor of {name}": factor}

    def arranges(self, name: str, body: TopicBody, topics: Iterable[str]) -> Mapping[str, Arrangement]:
        """Its assignments, or its strategy."""
        if body.assignments is not None:
            brokers = frozenset(broker for replicas in body.assignments.values() for broker in replicas)
            return {name: Arrangement(brokers, exact=True)}
        return {name: Arrangement(strategy=body.strategy)} if body.strategy else {}

    def find_static_topic_state(self, name: str, body: TopicBody) -> Mapping[str, Stated]:
        """See `providers.kafka.topic.stated`."""
        return {name: stated(body)}

    def find_declared(self, desired: Desired) -> Mapping[str, DeclaredTopic]:
        """What the resource says of topics; others than topics state them, too."""
        return {name: DeclaredTopic(name, found) for name, found in find_static_topic_state(desired).items()}

    def find_policy_effects(self, op: Operation) -> Mapping[str, Effect]:
        """See `providers.kafka.topic_effects`."""
        return find_effects(op)

    def start_review(self, inputs: ReviewInputs) -> TopicReview:
        """See `providers.kafka.policies.requests`."""
        return start_review(inputs)

    def select_every(self) -> Selections:
        """No more than their names; policies read what else they ask for."""
        return ()

    def list_live(self, live: LiveState) -> Collection[str]:
        """Those that are not internal."""
        return [topic.name for topic in live.get(KafkaState).topics.values() if not topic.internal]

    def find_field_subject(self, path: str) -> str | None:
        """The topic whose replicas it is about."""
        return find_field_topic(path)

    def plan_operations(
        self, change: Change, desired: Desired | None, live: LiveState, owned: Json, context: PlanContext
    ) -> tuple[Operation, ...]:
        """See `providers.kafka.topic.operations`."""
        body, place = desired.body if desired else None, context.get(Placement).place
        try:
            return topic_operations(change, body, live.get(KafkaState), owned, place)
        except PlacementError as reason:
            source = desired.source if desired else None
            raise CannotPlanError(not_placed(str(change.id), str(reason), source)) from reason

    def merge_ownership(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        """See `core.kind.Kind`: a creation gives all, the other operations their own fields."""
        if any(op.verb == "topic.delete" for op in done):
            return None
        if all_done or any(op.verb == "topic.create" for op in done):
            return after
        if not done or after is None:
            return before
        if before is not None and before.get(TOPIC_ID, after.get(TOPIC_ID)) != after.get(TOPIC_ID):
            before = None  # it was about another topic
        record: dict[str, Json] = {"configs": {}, "preventDestroy": False, **(before or {})}
        if TOPIC_ID in after:
            record[TOPIC_ID] = after[TOPIC_ID]
        for op in done:
            if op.verb == "configs.alter":
                keys = {item.key for item in list_ops(op)}
                kept = {k: v for k, v in record["configs"].items() if k not in keys}
                record["configs"] = kept | {k: v for k, v in after["configs"].items() if k in keys}
            else:
                names = ("partitions", "replicationFactor", "assignments")
                record |= {name: after[name] for name in names if name in after}
        return record

    def record_identity(
        self, record: Json, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
    ) -> Json:
        """With the topic id; where nothing proves it, the next apply adds it."""
        created = next((op for op in done if op.verb == "topic.create"), None)
        if record is None or created is None:
            return record
        found = created_ids.get(created.id)
        return self.forget_identity(record) | ({TOPIC_ID: found} if found else {})

    def forget_identity(self, record: Json) -> Json:
        """Without the topic id."""
        return {name: value for name, value in record.items() if name != TOPIC_ID}

    def find_undeletable(self, names: Collection[str], connections: Connections) -> Mapping[str, str]:
        """Kafka's internal topics."""
        topics = connections.get(KafkaConnection).cluster.topics(sorted(names)).values()
        return {topic.name: "It is one of Kafka's internal topics." for topic in topics if topic.internal}

    def is_self_contained(self, name: str, body: TopicBody) -> bool:
        """Unless it is a strategy that says where its replicas are to be."""
        return body.strategy is None

    def find_live_key(self, name: str, body: TopicBody | None, owned: Json) -> LiveKey:
        """The topic of its name."""
        return LiveKey(TOPIC, name)

    def list_facts(self, body: TopicBody, owned: Json) -> DeclaredFacts | None:
        """Its size, its id and its configs; of assignments only the diff can tell."""
        if body.assignments is not None:
            return None
        record = owned or {}
        configs = declared_override_facts(
            ConfigScope.TOPIC, body.configs, record.get("configs", {}), remove_unmanaged=body.remove_unmanaged
        )
        return declared_topic_facts(body.partitions, body.replication_factor, record.get(TOPIC_ID), configs)

    def find_concerned(self, name: str, body: TopicBody, keys: Collection[LiveKey]) -> list[LiveKey]:
        """The topic, where it says where its replicas are to be."""
        return pick_topics(keys, self.arranges(name, body, list_topics(keys)))

    def to_json(self, name: str, body: TopicBody) -> Json:
        """See `providers.kafka.topic.body_json`."""
        return topic_json(name, body)

    def from_json(self, json: Json) -> TopicBody:
        """See `providers.kafka.topic.body_json`."""
        return topic_from(json)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.manifest_edits`."""
        return find_topic_edits(change, declared)

    def lay_out_spec(self, change: Change) -> Sequence[str]:
        """See `providers.kafka.manifest_edits`."""
        return lay_out_topic(change)

    def is_same_value(self, path: Path, text: str, value: Json) -> bool:
        """As Kafka takes the values of a config."""
        return catalog(self.config_scope).same(str(path[-1]), text, value)

    def is_as_changed(self, name: str, before: TopicBody | None, after: TopicBody, change: Change) -> bool:
        """See `providers.kafka.manifest_edits`."""
        keys = catalog(self.config_scope)
        return is_as_changed(lambda body: self.to_json(name, body), before, after, change, keys)

    def locate_field(self, path: str) -> Sequence[Path]:
        """See `providers.kafka.manifest_edits`."""
        return locate_topic_field(path)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """All topics of the cluster but the internal ones, sorted."""
        topics = connections.get(KafkaConnection).cluster.topics()
        return sorted(name for name, topic in topics.items() if not topic.internal)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `providers.kafka.topic.export`."""
        return export_topics(connections.get(KafkaConnection).cluster, request)
