"""Kind `BrokerConfig`: dynamic configs of one broker, or of all of them by default."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.resources.adoption import SettingsLifecycle, adopt_settings
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.capabilities import (
    DeclaredFields,
    Evidence,
    Export,
    ExportRequest,
    ManifestEdits,
)
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import NAME, Desired, Difference, Path, Problem, narrow, narrow_optional
from kdeclare.core.resources.manifest_text import manifest
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields
from kdeclare.core.resources.policy_subjects import PolicyWords
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.catalog.hover import config_keys
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigDiff, ConfigSide, diff_configs
from kdeclare.providers.kafka.config.config_ops import (
    by_occurrence,
    config_fields,
    config_operations,
    in_steps,
)
from kdeclare.providers.kafka.config.config_record import ConfigsRecord, get_applied
from kdeclare.providers.kafka.config.wishes import (
    CONFIGS_DESCRIPTION,
    UNMANAGED_DESCRIPTION,
    Wish,
    literal_secret,
    parse_wishes,
    wishes_from,
    wishes_json,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import BROKER_CONFIG, ConfigRules, declared_override_facts
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.manifest_edits import (
    claims_setting,
    config_lines,
    count_configs_left_out,
    find_config_edits,
    is_as_changed,
    lay_out_configs,
)
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT as CLUSTER_DEFAULT
from kdeclare.providers.kafka.operations.alter_configs import list_ops, own_source
from kdeclare.providers.kafka.plan_evidence import find_proven_of_brokers, normalize_config
from kdeclare.providers.kafka.policies.declared import BROKER_WORDS, describe_overrides, describe_wishes
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.providers.kafka.risks import assess_broker_field

CLUSTER_DEFAULTS = ConfigResource(ConfigScope.BROKER, "")

HELD_BY_CLUSTER = frozenset({"min.insync.replicas"})
"""With eligible leader replicas on, the cluster keeps a cluster-wide value and refuses to delete it."""


class BrokerConfigSpec(BaseModel):
    """``spec`` of a BrokerConfig manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    configs: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description=CONFIGS_DESCRIPTION, json_schema_extra=config_keys(ConfigScope.BROKER)),
    ] = {}
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"], Field(description=UNMANAGED_DESCRIPTION)
    ] = "keep"
    lifecycle: Annotated[
        SettingsLifecycle, Field(description="What may happen to settings that others made.")
    ] = SettingsLifecycle()


@dataclass(frozen=True, slots=True)
class BrokerConfigBody:
    """Declared dynamic configs."""

    configs: Mapping[str, Wish] = field(default_factory=dict)
    remove_unmanaged: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class BrokerConfigRecord(ConfigsRecord):
    """What is owned of the dynamic configs of one broker, or of all by default."""


class BrokerConfigKind:
    """Brokers' dynamic configs (KIP-226): brokers exist, so every change is an update."""

    name = "BrokerConfig"
    spec: type[BaseModel] = BrokerConfigSpec
    record: type[OwnedRecord] = BrokerConfigRecord
    config_scope = ConfigScope.BROKER
    policy_words: PolicyWords = BROKER_WORDS
    audit_rules: AuditRules = ConfigRules()

    def parse(self, name: str, spec: BaseModel) -> tuple[BrokerConfigBody, tuple[Problem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, BrokerConfigSpec)
        resource = f"{self.name}/{name}"
        wishes, problems = parse_wishes(resource, spec.configs, catalog(ConfigScope.BROKER))
        problems += tuple(_scope_problems(resource, name, spec))
        if name != CLUSTER_DEFAULT and parse_broker_id(name) is None:
            wrong = error(
                "illegal-broker-name",
                "Illegal broker name",
                f"'{name}' is neither '{CLUSTER_DEFAULT}' nor a broker id.",
                hint="Write the id as Kafka does: digits 0 to 9, no leading zeros, at most 2147483647.",
                resource=resource,
            )
            problems += (Problem(NAME, wrong),)
        body = BrokerConfigBody(wishes, spec.unmanagedConfigs == "remove", spec.lifecycle.adopt)
        return body, problems

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Its declared and owned keys, and whatever else is set on it."""
        body = narrow_optional(body, BrokerConfigBody)
        resource = _entity(name)
        keys = frozenset(body.configs if body else ()) | frozenset(get_applied(owned))
        return (KafkaSelection(configs={resource: ConfigQuery(resource, keys, overrides=True)}),)

    def diff(
        self,
        resource: ResourceId,
        desired: Desired | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        cluster = live.get(KafkaState)
        if desired is not None and not _registered(resource, cluster):
            return Difference(None, owned, (), (_unknown_broker(resource, desired, cluster),))
        entity = _entity(resource.name)
        side = ConfigSide(
            str(resource),
            cluster.configs.get(entity, {}),
            own_source(entity),
            catalog(ConfigScope.BROKER),
            HELD_BY_CLUSTER if resource.name == CLUSTER_DEFAULT else frozenset(),
        )
        body = desired.get_body(BrokerConfigBody) if desired else BrokerConfigBody()
        configs = diff_configs(side, body.configs, get_applied(owned), reset_unmanaged=body.remove_unmanaged)
        if desired is None:
            return _undeclared(resource, configs)
        change = None
        known = [_kept(resource, key, desired) for key in configs.kept]
        known += [literal_secret(str(resource), key, desired.source) for key in configs.literal]
        drifted = tuple(f"configs.{key}" for key in configs.drifted)
        if configs.fields:
            reason = Reason.DRIFTED if configs.drifted else Reason.CHANGED
            fields = tuple(map(assess_broker_field, configs.fields))
            risk = highest_risk(fields)
            change = Change(resource, Action.UPDATE, reason, risk, fields, desired.source)
            # what unmanagedConfigs: remove resets, it resets by what the manifest says once that was applied
            adopted = [f"configs.{key}" for key in configs.unowned if key in body.configs or owned is None]
            if adopted:
                change, found = adopt_settings(change, desired, adopted, drifted, Reason.CHANGED)
                known.append(found)
        record = BrokerConfigRecord(configs.owned)
        return Difference(change, record, configs.unmanaged, tuple(known), drifted=drifted)

    def describe_declared(self, desired: Desired) -> Mapping[str, object]:
        """Its configs."""
        body = desired.get_body(BrokerConfigBody)
        return {"configs": describe_wishes(catalog(ConfigScope.BROKER), body.configs)}

    def describe_live(
        self, resource: ResourceId, desired: Desired | None, live: LiveState, owned: OwnedRecord | None
    ) -> Mapping[str, object] | None:
        """The dynamic configs of that very broker, or the cluster-wide ones."""
        cluster, entity = live.get(KafkaState), _entity(resource.name)
        if not _registered(resource, cluster):
            return None
        return {"configs": describe_overrides(cluster.configs.get(entity, {}), own_source(entity))}

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_broker_field(field)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """See `providers.kafka.plan_evidence`."""
        return normalize_config(ConfigScope.BROKER, field)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_of_brokers(evidence)

    def plan_operations(
        self,
        change: Change,
        desired: Desired | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """One atomic operation, and one more for every doubling of a thread pool."""
        entity = _entity(change.id.name)
        cluster = live.get(KafkaState)
        stages = in_steps(by_occurrence(config_fields(change.fields)), cluster.configs.get(entity, {}))
        return tuple(config_operations(change.id, entity, stages, get_applied(owned), cluster))

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`."""
        if all_done:
            return after
        if not done:
            return before
        keys = frozenset(item.key for op in done for item in list_ops(op))
        return BrokerConfigRecord(merge_fields(get_applied(before), get_applied(after), keys))

    def is_self_contained(self, name: str, body: object) -> bool:
        """Always."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """The configs of the broker."""
        return LiveKey(BROKER_CONFIG, name)

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Its configs."""
        body = narrow(body, BrokerConfigBody)
        return declared_override_facts(
            ConfigScope.BROKER,
            body.configs,
            get_applied(owned),
            remove_unmanaged=body.remove_unmanaged,
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`; what is as by default is left out."""
        body = narrow(body, BrokerConfigBody)
        stated: dict[str, JsonValue] = {"configs": wishes_json(body.configs, catalog(ConfigScope.BROKER))}
        stated |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
        return stated | ({"adopt": True} if body.adopt else {})

    def from_json(self, json: JsonObject) -> BrokerConfigBody:
        """See `Kind`."""
        remove, adopt = as_bool(json.get("removeUnmanaged", False)), as_bool(json.get("adopt", False))
        return BrokerConfigBody(wishes_from(as_object(json["configs"])), remove, adopt)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.manifest_edits`."""
        return ManifestEdits(tuple(find_config_edits(change)))

    def claims_field(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `providers.kafka.manifest_edits`."""
        return claims_setting(field, stated)

    def lay_out_spec(self, change: Change) -> Sequence[str]:
        """See `providers.kafka.manifest_edits`."""
        return lay_out_configs(change.fields)

    def is_same_value(self, path: Path, text: str, value: JsonValue) -> bool:
        """As Kafka takes the values of a config."""
        return isinstance(value, str) and catalog(self.config_scope).same(str(path[-1]), text, value)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.manifest_edits`."""
        before = narrow_optional(before, BrokerConfigBody)
        after = narrow(after, BrokerConfigBody)
        keys = catalog(self.config_scope)
        return is_as_changed(lambda body: self.to_json(name, body), before, after, change, keys)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """The default of all brokers, and the ids of brokers, sorted as numbers."""
        brokers = connections.get(KafkaConnection).cluster.describe().brokers
        return [CLUSTER_DEFAULT, *map(str, sorted(broker.id for broker in brokers))]

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """One manifest for each broker, and for the cluster default, that has something set."""
        if request.is_selective:
            return Export({})
        cluster = connections.get(KafkaConnection).cluster
        names = [CLUSTER_DEFAULT, *(str(broker.id) for broker in cluster.describe().brokers)]
        wanted = [_entity(name) for name in names if request.permits(ResourceId(self.name, name))]
        queries = {entity: ConfigQuery(entity, overrides=True) for entity in wanted}
        live = observe(cluster, KafkaSelection(configs=queries))
        texts: dict[str, str] = {}
        for entity, entries in live.configs.items():
            name = entity.name or CLUSTER_DEFAULT
            side = ConfigSide(f"{self.name}/{name}", entries, own_source(entity), catalog(entity.scope))
            held = HELD_BY_CLUSTER if not entity.name else frozenset()
            lines = config_lines(side, [k for k in sorted(entries) if k not in NEVER_RESET | held])
            if lines:
                comments = [f"Dynamic configs imported from cluster {live.cluster.id}."]
                texts[name] = manifest(self.name, name, lines, comments)
        return Export(texts, count_configs_left_out(live, HELD_BY_CLUSTER))


def _entity(name: str) -> ConfigResource:
    return ConfigResource(ConfigScope.BROKER, "" if name == CLUSTER_DEFAULT else name)


def _registered(resource: ResourceId, live: KafkaState) -> bool:
    known = {str(broker.id) for broker in live.cluster.brokers}
    return resource.name == CLUSTER_DEFAULT or resource.name in known


def _unknown_broker(resource: ResourceId, desired: Desired, live: KafkaState) -> Diagnostic:
    known = ", ".join(str(broker.id) for broker in live.cluster.brokers)
    return error(
        "unknown-broker",
        "No such broker",
        f"Broker {resource.name} is not registered in the cluster; it has {known}.",
        hint="Correct the id, or start the broker first.",
        place=desired.source,
        resource=str(resource),
    )


def _undeclared(resource: ResourceId, configs: ConfigDiff) -> Difference:
    """What deleting it would mean: the owned keys reset. Brokers exist, so it is an update."""
    fields = tuple(map(assess_broker_field, configs.fields))
    return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, highest_risk(fields), fields))


def _kept(resource: ResourceId, key: str, desired: Desired) -> Diagnostic:
    return warning(
        "undeletable-config",
        "The cluster keeps this config",
        f"'{key}' is declared no longer, but Kafka refuses to delete it from the cluster default, "
        "so its value stays and kdeclare lets go of it.",
        place=desired.source,
        resource=str(resource),
        subject=key,
    )


def _scope_problems(resource: str, name: str, spec: BrokerConfigSpec) -> Iterator[Problem]:
    keys = catalog(ConfigScope.BROKER)
    for key in spec.configs:
        info = keys.get(key)
        if info is not None and info.mode == "per-listener":
            yield _misplaced(
                resource,
                key,
                f"'{key}' can be changed at run time only for one listener of one broker.",
                f"Write listener.name.<listener>.{key}, in a BrokerConfig named by a broker id.",
            )
        elif info is not None and info.mode == "per-broker" and name == CLUSTER_DEFAULT:
            yield _misplaced(
                resource,
                key,
                f"'{key}' can only be set on a broker id, not on '{CLUSTER_DEFAULT}'.",
                "Write one BrokerConfig a broker.",
            )


def _misplaced(resource: str, key: str, detail: str, hint: str) -> Problem:
    wrong = error(
        "misplaced-config",
        "Config set in the wrong place",
        detail,
        hint=hint,
        resource=resource,
        subject=key,
    )
    return Problem(("configs", key), wrong)
