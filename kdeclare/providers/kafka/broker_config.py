"""Kind `BrokerConfig`: dynamic configs of one broker, or the cluster-wide default for all brokers."""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.resources.adoption import SettingsLifecycle, adopt_settings
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, find_highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    NAME,
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
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields
from kdeclare.core.resources.plan_capabilities import (
    Evidence,
)
from kdeclare.core.resources.policy_subjects import PolicyWords
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import make_schema_extra
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigDiff, LiveConfigs, diff_configs
from kdeclare.providers.kafka.config.config_ops import (
    build_config_operations,
    expand_thread_pools,
    filter_config_fields,
    group_by_occurrence,
)
from kdeclare.providers.kafka.config.config_record import ConfigsRecord, get_applied
from kdeclare.providers.kafka.config.config_value import (
    CONFIGS_DESCRIPTION,
    UNMANAGED_DESCRIPTION,
    ConfigValue,
    bind_config_values,
    dump_config_values,
    parse_config_values,
    warn_literal_secret,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import (
    BROKER_CONFIG,
    ConfigAuditRules,
    compute_declared_override_facts,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.manifest_edits import (
    count_omitted_configs,
    find_config_edits,
    is_as_changed,
    is_setting_claimed,
    render_config_lines,
    render_declared_configs,
)
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT as CLUSTER_DEFAULT
from kdeclare.providers.kafka.operations.alter_configs import get_own_source, list_ops
from kdeclare.providers.kafka.plan_evidence import find_proven_broker_fields, normalize_config
from kdeclare.providers.kafka.policies.declared_topics import (
    BROKER_WORDS,
    compute_overrides,
    filter_overrides,
)
from kdeclare.providers.kafka.port import ConfigQuery
from kdeclare.providers.kafka.risks import assess_broker_field

CLUSTER_DEFAULTS = ConfigResource(ConfigScope.BROKER, "")

HELD_BY_CLUSTER = frozenset({"min.insync.replicas"})
"""Keys whose cluster-wide value cannot be deleted if the cluster uses eligible leader replicas (KIP-966)."""


class BrokerConfigSpec(BaseModel):
    """The ``spec`` of a BrokerConfig manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    configs: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description=CONFIGS_DESCRIPTION, json_schema_extra=make_schema_extra(ConfigScope.BROKER)),
    ] = {}
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"], Field(description=UNMANAGED_DESCRIPTION)
    ] = "keep"
    lifecycle: Annotated[
        SettingsLifecycle, Field(description="How to treat configs that other clients set.")
    ] = SettingsLifecycle()


@dataclass(frozen=True, slots=True)
class BrokerConfigBody:
    """The declared dynamic configs of one broker, or of the cluster-wide default."""

    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    remove_unmanaged: bool = False
    adopt: bool = False


@dataclass(frozen=True, slots=True)
class BrokerConfigRecord(ConfigsRecord):
    """The owned dynamic configs of one broker, or of the cluster-wide default."""


class BrokerConfigKind:
    """The kind of dynamic broker configs (KIP-226). Brokers already exist, so every change is an update."""

    name = "BrokerConfig"
    spec: type[BaseModel] = BrokerConfigSpec
    record: type[OwnedRecord] = BrokerConfigRecord
    config_scope = ConfigScope.BROKER
    policy_words: PolicyWords = BROKER_WORDS
    audit_rules: AuditRules = ConfigAuditRules()

    def parse(self, name: str, spec: BaseModel) -> tuple[BrokerConfigBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, BrokerConfigSpec)
        resource = f"{self.name}/{name}"
        config_values, problems = parse_config_values(
            resource, spec.configs, load_catalog(ConfigScope.BROKER)
        )
        problems += tuple(_check_scopes(resource, name, spec))
        if name != CLUSTER_DEFAULT and parse_broker_id(name) is None:
            name_problem = error(
                "illegal-broker-name",
                "Illegal broker name",
                f"'{name}' is neither '{CLUSTER_DEFAULT}' nor a broker id.",
                hint="Write the id as Kafka does: digits 0 to 9, no leading zero, at most 2147483647.",
                resource=resource,
            )
            problems += (SpecProblem(NAME, name_problem),)
        body = BrokerConfigBody(config_values, spec.unmanagedConfigs == "remove", spec.lifecycle.adopt)
        return body, problems

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the declared keys, the owned keys, and all overrides of the broker."""
        body = narrow_optional(body, BrokerConfigBody)
        config_resource = _to_config_resource(name)
        keys = frozenset(body.configs if body else ()) | frozenset(get_applied(owned))
        return (
            KafkaSelection(configs={config_resource: ConfigQuery(config_resource, keys, overrides=True)}),
        )

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        cluster = live.get(KafkaState)
        if desired is not None and not _is_registered(resource, cluster):
            return Difference(None, owned, (), (_report_unknown_broker(resource, desired, cluster),))
        config_resource = _to_config_resource(resource.name)
        live_configs = LiveConfigs(
            str(resource),
            cluster.configs.get(config_resource, {}),
            get_own_source(config_resource),
            load_catalog(ConfigScope.BROKER),
            HELD_BY_CLUSTER if resource.name == CLUSTER_DEFAULT else frozenset(),
        )
        body = desired.get_body(BrokerConfigBody) if desired else BrokerConfigBody()
        configs = diff_configs(
            live_configs, body.configs, get_applied(owned), reset_unmanaged=body.remove_unmanaged
        )
        if desired is None:
            return _diff_undeclared(resource, configs)
        change = None
        diagnostics = [_warn_kept_config(resource, key, desired) for key in configs.kept]
        diagnostics += [
            warn_literal_secret(str(resource), key, desired.source) for key in configs.literal_secrets
        ]
        drifted = tuple(f"configs.{key}" for key in configs.drifted)
        if configs.fields:
            reason = Reason.DRIFTED if configs.drifted else Reason.CHANGED
            fields = tuple(map(assess_broker_field, configs.fields))
            risk = find_highest_risk(fields)
            change = Change(resource, Action.UPDATE, reason, risk, fields, desired.source)
            # Resetting a key because of ``unmanagedConfigs: remove`` is an adoption only before the first
            # apply.
            adopted_paths = [
                f"configs.{key}" for key in configs.unowned if key in body.configs or owned is None
            ]
            if adopted_paths:
                change, adoption = adopt_settings(change, desired, adopted_paths, drifted, Reason.CHANGED)
                diagnostics.append(adoption)
        record = BrokerConfigRecord(configs.owned)
        return Difference(change, record, configs.unmanaged, tuple(diagnostics), drifted=drifted)

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared configs."""
        body = desired.get_body(BrokerConfigBody)
        return {"configs": compute_overrides(load_catalog(ConfigScope.BROKER), body.configs)}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the dynamic configs that are set on this broker, or the cluster-wide configs.

        Return None if the broker is not registered.
        """
        cluster, config_resource = live.get(KafkaState), _to_config_resource(resource.name)
        if not _is_registered(resource, cluster):
            return None
        return {
            "configs": filter_overrides(
                cluster.configs.get(config_resource, {}), get_own_source(config_resource)
            )
        }

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_broker_field(field)

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """See `providers.kafka.plan_evidence`."""
        return normalize_config(ConfigScope.BROKER, field)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_broker_fields(evidence)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Plan one atomic operation, or several operations if a thread pool must be resized in steps."""
        config_resource = _to_config_resource(change.id.name)
        cluster = live.get(KafkaState)
        stages = expand_thread_pools(
            group_by_occurrence(filter_config_fields(change.fields)), cluster.configs.get(config_resource, {})
        )
        return tuple(build_config_operations(change.id, config_resource, stages, get_applied(owned), cluster))

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
        """Return True, because the diff only needs the live configs of this broker."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """Return the key of the live configs of the broker."""
        return LiveKey(BROKER_CONFIG, name)

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts about the declared and owned configs."""
        body = narrow(body, BrokerConfigBody)
        return compute_declared_override_facts(
            ConfigScope.BROKER,
            body.configs,
            get_applied(owned),
            remove_unmanaged=body.remove_unmanaged,
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`. Default values are omitted."""
        body = narrow(body, BrokerConfigBody)
        document: dict[str, JsonValue] = {
            "configs": dump_config_values(body.configs, load_catalog(ConfigScope.BROKER))
        }
        document |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
        return document | ({"adopt": True} if body.adopt else {})

    def from_json(self, json: JsonObject) -> BrokerConfigBody:
        """See `Kind`."""
        remove, adopt = as_bool(json.get("removeUnmanaged", False)), as_bool(json.get("adopt", False))
        return BrokerConfigBody(bind_config_values(as_object(json["configs"])), remove, adopt)

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.manifest_edits`."""
        return ManifestEdits(tuple(find_config_edits(change)))

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """See `providers.kafka.manifest_edits`."""
        return is_setting_claimed(field, stated)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `providers.kafka.manifest_edits`."""
        return render_declared_configs(change.fields)

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Return whether Kafka parses both strings to the same config value."""
        return isinstance(value, str) and load_catalog(self.config_scope).is_same_value(
            str(path[-1]), text, value
        )

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.manifest_edits`."""
        before = narrow_optional(before, BrokerConfigBody)
        after = narrow(after, BrokerConfigBody)
        keys = load_catalog(self.config_scope)
        return is_as_changed(lambda body: self.to_json(name, body), before, after, change, keys)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the name of the cluster-wide default and the broker ids in numeric order."""
        brokers = connections.get(KafkaConnection).cluster.describe().brokers
        return [CLUSTER_DEFAULT, *map(str, sorted(broker.id for broker in brokers))]

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return a manifest for the cluster-wide default and one for each broker, if it has overrides."""
        if request.is_selective:
            return Export({})
        cluster = connections.get(KafkaConnection).cluster
        names = [CLUSTER_DEFAULT, *(str(broker.id) for broker in cluster.describe().brokers)]
        config_resources = [
            _to_config_resource(name) for name in names if request.permits(ResourceId(self.name, name))
        ]
        queries = {entity: ConfigQuery(entity, overrides=True) for entity in config_resources}
        live = observe(cluster, KafkaSelection(configs=queries))
        texts: dict[str, str] = {}
        for config_resource, entries in live.configs.items():
            name = config_resource.name or CLUSTER_DEFAULT
            live_configs = LiveConfigs(
                f"{self.name}/{name}",
                entries,
                get_own_source(config_resource),
                load_catalog(config_resource.scope),
            )
            kept_keys = HELD_BY_CLUSTER if not config_resource.name else frozenset()
            lines = render_config_lines(
                live_configs, [k for k in sorted(entries) if k not in NEVER_RESET | kept_keys]
            )
            if lines:
                comments = [f"Dynamic configs imported from cluster {live.cluster.id}."]
                texts[name] = render_manifest(self.name, name, lines, comments)
        return Export(texts, count_omitted_configs(live, HELD_BY_CLUSTER))


def _to_config_resource(name: str) -> ConfigResource:
    return ConfigResource(ConfigScope.BROKER, "" if name == CLUSTER_DEFAULT else name)


def _is_registered(resource: ResourceId, live: KafkaState) -> bool:
    broker_ids = {str(broker.id) for broker in live.cluster.brokers}
    return resource.name == CLUSTER_DEFAULT or resource.name in broker_ids


def _report_unknown_broker(resource: ResourceId, desired: DesiredResource, live: KafkaState) -> Diagnostic:
    broker_ids = ", ".join(str(broker.id) for broker in live.cluster.brokers)
    return error(
        "unknown-broker",
        "Unknown broker",
        f"Broker {resource.name} is not registered in the cluster, which has the brokers {broker_ids}.",
        hint="Correct the id, or start the broker first.",
        place=desired.source,
        resource=str(resource),
    )


def _diff_undeclared(resource: ResourceId, configs: ConfigDiff) -> Difference:
    """Return the difference of an orphan: an update that resets the owned keys."""
    fields = tuple(map(assess_broker_field, configs.fields))
    return Difference(Change(resource, Action.UPDATE, Reason.ORPHANED, find_highest_risk(fields), fields))


def _warn_kept_config(resource: ResourceId, key: str, desired: DesiredResource) -> Diagnostic:
    return warning(
        "undeletable-config",
        "Config kept by the cluster",
        f"'{key}' is no longer declared, but Kafka refuses to delete it from the cluster default. Its value "
        "stays, and kdeclare no longer manages it.",
        place=desired.source,
        resource=str(resource),
        subject=key,
    )


def _check_scopes(resource: str, name: str, spec: BrokerConfigSpec) -> Iterator[SpecProblem]:
    keys = load_catalog(ConfigScope.BROKER)
    for key in spec.configs:
        info = keys.get(key)
        if info is not None and info.mode == "per-listener":
            yield _report_misplaced(
                resource,
                key,
                f"'{key}' can be changed at run time only for one listener of one broker.",
                f"Declare listener.name.<listener>.{key} in a BrokerConfig named after a broker id.",
            )
        elif info is not None and info.mode == "per-broker" and name == CLUSTER_DEFAULT:
            yield _report_misplaced(
                resource,
                key,
                f"'{key}' can only be set on a broker id, not on '{CLUSTER_DEFAULT}'.",
                "Declare it in one BrokerConfig per broker.",
            )


def _report_misplaced(resource: str, key: str, detail: str, hint: str) -> SpecProblem:
    diagnostic = error(
        "misplaced-config",
        "Config set in the wrong place",
        detail,
        hint=hint,
        resource=resource,
        subject=key,
    )
    return SpecProblem(("configs", key), diagnostic)
