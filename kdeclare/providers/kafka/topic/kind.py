"""Kind `Topic`: partitions, replication factor or assignments, and configs."""

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.jsontypes import JsonObject, JsonValue
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.plans.plan_hooks import CannotPlanError
from kdeclare.core.policies.policy_fields import PolicyWords
from kdeclare.core.policies.policy_subjects import ReviewInputs
from kdeclare.core.resources.audit_rules import AuditRules, ImpossibleField
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
)
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields
from kdeclare.core.resources.plan_capabilities import Evidence
from kdeclare.providers.kafka.collector import KafkaSelection
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_ops import CONFIG_FIELD_PREFIX
from kdeclare.providers.kafka.config.config_record import get_applied
from kdeclare.providers.kafka.config.config_value import ListPatch, convert_config, is_same_config
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import (
    TOPIC,
    ConfigAuditRules,
    compute_declared_override_facts,
    compute_declared_topic_facts,
    list_topic_names,
    select_topic_keys,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.manifest_edits import (
    export_topics,
    find_topic_edits,
    is_as_changed,
    is_topic_field_claimed,
    locate_topic_field,
    render_topic_spec,
)
from kdeclare.providers.kafka.operations.alter_configs import list_ops
from kdeclare.providers.kafka.operations.kafka_operation_type import (
    StaticTopicState,
    TopicEffect,
    find_effects,
    find_field_topic,
    find_static_topic_state,
)
from kdeclare.providers.kafka.operations.topics import ASSIGNED_FIELDS
from kdeclare.providers.kafka.plan_evidence import find_proven_topic_fields, normalize_topic_field
from kdeclare.providers.kafka.policies.declared_topics import TOPIC_WORDS, DeclaredTopic, compute_override
from kdeclare.providers.kafka.reassignment.placement_request import (
    PlacementConstraint,
    PlacementContext,
    PlacementError,
)
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.risks import TOPIC_DELETED, assess_topic_field
from kdeclare.providers.kafka.topic.diff import (
    INVALID_PARTITIONS,
    TOPIC_ID,
    check_min_isr,
    diff_topic,
    ignore_fields,
    report_no_placement,
)
from kdeclare.providers.kafka.topic.operations import build_topic_operations
from kdeclare.providers.kafka.topic.record import TopicRecord, narrow_topic
from kdeclare.providers.kafka.topic.spec import (
    EXCLUSIVE_FIELDS,
    TopicBody,
    TopicSpec,
    bind_topic,
    dump_topic,
    is_legal_name,
    parse_topic,
)

if TYPE_CHECKING:
    from kdeclare.providers.kafka.policies.requests import TopicReview


class TopicRules(ConfigAuditRules):
    """Audit rules for topics: a declared partition count below the live count is an error in the manifest."""

    def find_impossible(self, desired: DesiredResource, live: LiveState) -> ImpossibleField:
        """Return the live partition count of a topic, and the declared partition count, which is lower."""
        topic = live.get(KafkaState).topics[desired.id.name]
        return ImpossibleField("partitions", len(topic.partitions), desired.get_body(TopicBody).partitions)


class TopicKind:
    """The kind `Topic`, with the semantics of KIP-4 as Kafka implements it."""

    name = "Topic"
    spec: type[BaseModel] = TopicSpec
    record: type[OwnedRecord] = TopicRecord
    config_scope = ConfigScope.TOPIC
    deletion_cause = TOPIC_DELETED
    policy_words: PolicyWords = replace(TOPIC_WORDS, is_name=is_legal_name)
    exclusive_fields: Mapping[str, frozenset[str]] = EXCLUSIVE_FIELDS
    audit_rules: AuditRules = TopicRules(
        identity_field=TOPIC_ID,
        replaced="The topic was deleted and re-created outside kdeclare since it was last applied. The "
        "records of the deleted topic are gone.",
        orphan_replaced="The topic was deleted and re-created outside kdeclare, and no manifest declares the "
        "topic anymore. kdeclare leaves the new topic unchanged.",
        impossible=frozenset({INVALID_PARTITIONS}),
    )

    def is_location(self, path: str) -> bool:
        """Return whether a field determines which brokers or how many brokers store data; see `MovesData`."""
        return path.startswith(("replicas.", "assignments.")) or path == "replicationFactor"

    def parse(self, name: str, spec: BaseModel) -> tuple[TopicBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_topic(name, narrow(spec, TopicSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the topic, its declared and owned config keys, and all other overrides of the topic."""
        body = narrow_optional(body, TopicBody)
        resource = ConfigResource(ConfigScope.TOPIC, name)
        keys = frozenset(body.configs if body else ()) | frozenset(get_applied(owned))
        return (KafkaSelection(frozenset({name}), {resource: ConfigQuery(resource, keys, overrides=True)}),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_topic(
            resource, desired, live.get(KafkaState), narrow_topic(owned), context.get(PlacementContext).place
        )

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_topic_field(action, field)

    def is_rated_by_live_state(self, field: FieldChange) -> bool:
        """Return whether a change sets or removes the override of a config.

        The risk of such a change also depends on the default that the topic inherits from the broker.
        """
        return field.path.startswith(CONFIG_FIELD_PREFIX) and None in (field.before, field.after)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """See `providers.kafka.plan_evidence`."""
        return normalize_topic_field(resource.name, field)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_topic_fields(change.id.name, change.action, evidence)

    def find_static_diagnostics(self, desired: DesiredResource) -> tuple[Diagnostic, ...]:
        """Check min.insync.replicas against the replication factor, if both are declared."""
        return check_min_isr(desired)

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return the settings that only one resource can declare.

        These are the replicas of each partition or, without assignments, the replication factor.
        """
        body = narrow(body, TopicBody)
        if body.assignments is not None:
            return {f"replicas of {name}-{n}": list(r) for n, r in body.assignments.items()}
        factor = body.replication_factor
        return {} if factor is None else {f"replication factor of {name}": factor}

    def find_placement_constraints(
        self, name: str, body: object, topics: Iterable[str]
    ) -> Mapping[str, PlacementConstraint]:
        """Return the placement constraint of the declared assignments or strategy."""
        body = narrow(body, TopicBody)
        if body.assignments is not None:
            brokers = frozenset(broker for replicas in body.assignments.values() for broker in replicas)
            return {name: PlacementConstraint(brokers, exact=True)}
        return {name: PlacementConstraint(strategy=body.strategy)} if body.strategy else {}

    def find_static_topic_state(self, name: str, body: object) -> Mapping[str, StaticTopicState]:
        """Return those properties of the topic that follow from the manifest alone, without a cluster."""
        return {name: build_static_topic_state(narrow(body, TopicBody))}

    def find_declared(self, desired: DesiredResource) -> Mapping[str, DeclaredTopic]:
        """Return a mapping from the name of the declared topic to the topic."""
        return {name: DeclaredTopic(name, state) for name, state in find_static_topic_state(desired).items()}

    def find_policy_effects(self, op: Operation) -> Mapping[str, TopicEffect]:
        """See `providers.kafka.operations.kafka_operation_type`."""
        return find_effects(op)

    def start_review(self, inputs: ReviewInputs) -> "TopicReview":
        """See `providers.kafka.policies.requests`."""
        from kdeclare.providers.kafka.policies.requests import start_review

        return start_review(inputs)

    def start_snapshot_review(
        self, live: LiveState, names: Sequence[str], labels: Mapping[str, Mapping[str, str]]
    ) -> "TopicReview":
        """See `providers.kafka.policies.requests`."""
        from kdeclare.providers.kafka.policies.requests import start_snapshot_review

        return start_snapshot_review(live, names, labels)

    def select_every(self) -> Selections:
        """Return no selection, because each policy selects the live state that it needs."""
        return ()

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of the topics that are not internal."""
        return [topic.name for topic in live.get(KafkaState).topics.values() if not topic.internal]

    def find_field_subject(self, path: str) -> str | None:
        """Return the name of the topic whose replicas a field describes."""
        return find_field_topic(path)

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> TopicBody:
        """See `IgnoresChanges`."""
        return ignore_fields(desired, live.get(KafkaState))

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """See `providers.kafka.topic.operations`."""
        body, placer = desired.get_body(TopicBody) if desired else None, context.get(PlacementContext).place
        try:
            return build_topic_operations(change, body, live.get(KafkaState), narrow_topic(owned), placer)
        except PlacementError as reason:
            source = desired.source if desired else None
            raise CannotPlanError(report_no_placement(str(change.id), str(reason), source)) from reason

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`. After a topic is created, all its fields are owned.

        After any other operation, only the fields that the operation changed are added to the record.
        """
        is_created = any(op.verb == "topic.create" for op in done)
        if any(op.verb == "topic.delete" for op in done) and not is_created:
            return None
        old, new = narrow_topic(before), narrow_topic(after)
        if all_done or is_created:
            return new
        if not done or new is None:
            return old
        if old is None or (old.topicId or new.topicId) != new.topicId:
            old = TopicRecord()  # nothing was owned, or the record belongs to a different topic
        record = replace(old, topicId=new.topicId)
        for op in done:
            if op.verb == "configs.alter":
                keys = frozenset(item.key for item in list_ops(op))
                record = replace(record, configs=merge_fields(record.configs, new.configs, keys))
            else:
                record = _with_shape(record, new)
        return record

    def record_identity(
        self, record: OwnedRecord | None, done: tuple[Operation, ...], created_ids: Mapping[str, str | None]
    ) -> OwnedRecord | None:
        """Add the id of the created topic to the record. If the id is unknown, the next apply adds the id."""
        created = next((op for op in done if op.verb == "topic.create"), None)
        applied = narrow_topic(record)
        if applied is None or created is None:
            return applied
        return replace(applied, topicId=created_ids.get(created.id) or None)

    def forget_identity(self, record: OwnedRecord | None) -> OwnedRecord | None:
        """Return the record without the topic id."""
        applied = narrow_topic(record)
        return None if applied is None else replace(applied, topicId=None)

    def remove_from_live(self, resource: ResourceId, live: LiveState) -> LiveState:
        """See `Replaceable`."""
        state = live.get(KafkaState)
        config_resource = ConfigResource(ConfigScope.TOPIC, resource.name)
        return live.with_part(
            replace(
                state,
                topics={name: topic for name, topic in state.topics.items() if name != resource.name},
                configs={item: found for item, found in state.configs.items() if item != config_resource},
                moves={item: move for item, move in state.moves.items() if item.topic != resource.name},
            )
        )

    def find_undeletable(self, names: Collection[str], live: LiveState) -> Mapping[str, str]:
        """Return the names of internal topics, with the reason why internal topics cannot be deleted."""
        topics = live.get(KafkaState).topics
        internal = (name for name in sorted(names) if name in topics and topics[name].internal)
        return dict.fromkeys(internal, "It is an internal topic of Kafka.")

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return whether no placement strategy is declared.

        A strategy needs the live state of the whole cluster.
        """
        return narrow(body, TopicBody).strategy is None

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """Return the key of the live topic."""
        return LiveKey(TOPIC, name)

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts about the topic's partition count, replication factor, id and configs.

        Return None if the manifest declares assignments or ignores fields.
        """
        body = narrow(body, TopicBody)
        if body.assignments is not None or body.ignored:
            return None
        record = narrow_topic(owned)
        configs = compute_declared_override_facts(
            ConfigScope.TOPIC, body.configs, get_applied(record), remove_unmanaged=body.remove_unmanaged
        )
        topic_id = record.topicId if record is not None else None
        return compute_declared_topic_facts(body.partitions, body.replication_factor, topic_id, configs)

    def find_concerned(self, name: str, body: object, keys: Collection[LiveKey]) -> list[LiveKey]:
        """Return the topic's key if the manifest constrains the topic's replicas; otherwise an empty list."""
        return select_topic_keys(
            keys, self.find_placement_constraints(name, narrow(body, TopicBody), list_topic_names(keys))
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_topic(name, narrow(body, TopicBody))

    def from_json(self, json: JsonObject) -> TopicBody:
        """See `BodyCodec`."""
        return bind_topic(json)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.manifest_edits`."""
        return find_topic_edits(change, declared)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `providers.kafka.manifest_edits`."""
        return render_topic_spec(change)

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Return whether Kafka reads both strings as the same config value."""
        return is_same_config(str(path[-1]), text, value, load_catalog(self.config_scope))

    def convert_value(self, path: SpecPath, text: str) -> str | None:
        """See `ConvertsValues`. Configs can be amounts, such as ``7d`` and ``50MiB``."""
        return convert_config(path, text, load_catalog(self.config_scope))

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.manifest_edits`."""
        before = narrow_optional(before, TopicBody)
        after = narrow(after, TopicBody)
        catalog = load_catalog(self.config_scope)
        return is_as_changed(lambda body: self.to_json(name, body), before, after, change, catalog)

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """See `providers.kafka.manifest_edits`."""
        return locate_topic_field(path)

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `providers.kafka.manifest_edits`."""
        return is_topic_field_claimed(field, stated)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the sorted names of all topics that are not internal."""
        topics = connections.get(KafkaConnection).cluster.topics()
        return sorted(name for name, topic in topics.items() if not topic.internal)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """See `providers.kafka.manifest_edits`."""
        return export_topics(connections.get(KafkaConnection).cluster, request)


def _with_shape(record: TopicRecord, after: TopicRecord) -> TopicRecord:
    return replace(
        record,
        partitions=record.partitions if after.partitions is None else after.partitions,
        replicationFactor=(
            record.replicationFactor if after.replicationFactor is None else after.replicationFactor
        ),
        assignments=record.assignments if after.assignments is None else after.assignments,
    )


def build_static_topic_state(body: TopicBody) -> StaticTopicState:
    """Return the partitions, replicas and overrides that a topic created from the manifest would have."""
    replicas = body.assignments or {}
    sizes = {len(brokers) for brokers in replicas.values()}
    configs = {
        k: compute_override(load_catalog(ConfigScope.TOPIC), k, config_value)
        for k, config_value in body.configs.items()
    }
    fields = {f"configs.{key}" for key, value in configs.items() if value is not None}
    needs_placement = body.strategy is not None and not replicas
    if replicas or needs_placement:
        fields |= ASSIGNED_FIELDS
    fields |= {"partitions"} if body.partitions is not None else set()
    fields |= {"replicationFactor"} if body.replication_factor is not None else set()
    effect = TopicEffect(
        created=True,
        partitions=body.partitions,
        factor=min(sizes) if sizes else body.replication_factor,
        replicas=replicas,
        configs=configs,
        fields=frozenset(fields),
    )
    patched_keys = frozenset(
        key for key, config_value in body.configs.items() if isinstance(config_value, ListPatch)
    )
    return StaticTopicState(effect, patched_keys, needs_placement)
