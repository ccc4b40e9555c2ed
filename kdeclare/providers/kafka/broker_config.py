"""Kind `BrokerConfig`: dynamic configs of one broker, or the cluster-wide default for all brokers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.collector import Selections
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import ConfigsLifecycle
from kdeclare.core.resources.kind import (
    NAME,
    DesiredResource,
    Difference,
    SpecProblem,
    narrow,
)
from kdeclare.core.resources.manifest_capabilities import (
    Export,
    ExportRequest,
)
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import Evidence
from kdeclare.providers.kafka.collector import KafkaSelection, observe
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET
from kdeclare.providers.kafka.config.config_ops import (
    expand_thread_pools,
    group_by_occurrence,
)
from kdeclare.providers.kafka.config.config_record import Applied, ConfigsRecord
from kdeclare.providers.kafka.config.config_value import ConfigValue
from kdeclare.providers.kafka.config.configs_kind import (
    ConfigMap,
    ConfigsBody,
    ConfigsKind,
    ConfigsSpec,
    make_configs_field,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.fleet.facts import ConfigAuditRules
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, parse_broker_id
from kdeclare.providers.kafka.live import ConfigEntry, KafkaState
from kdeclare.providers.kafka.manifest_edits import (
    count_omitted_configs,
    count_unreadable,
    render_config_lines,
)
from kdeclare.providers.kafka.operations.alter_configs import CLUSTER_DEFAULT as CLUSTER_DEFAULT
from kdeclare.providers.kafka.plan_evidence import find_proven_broker_fields
from kdeclare.providers.kafka.policies.declared_topics import BROKER_WORDS
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.risks import assess_broker_field

CLUSTER_DEFAULTS = ConfigResource(ConfigScope.BROKER, "")

HELD_BY_CLUSTER = frozenset({"min.insync.replicas"})
"""The keys whose cluster-wide value cannot be deleted if eligible leader replicas (KIP-966) are enabled."""


class BrokerLifecycle(ConfigsLifecycle):
    """The lifecycle options for the configs of a broker."""

    refused_options: ClassVar[Mapping[str, str]] = {
        "state": "A broker exists with or without overrides. To delete an override, set the config to null."
    }


class BrokerConfigSpec(ConfigsSpec):
    """The ``spec`` of a BrokerConfig manifest."""

    configs: ConfigMap = make_configs_field(ConfigScope.BROKER)
    lifecycle: Annotated[
        BrokerLifecycle, Field(description="How to treat configs that kdeclare did not set.")
    ] = BrokerLifecycle()


@dataclass(frozen=True, slots=True)
class BrokerConfigRecord(ConfigsRecord):
    """The owned dynamic configs of one broker, or of the cluster-wide default."""


class BrokerConfigKind(ConfigsKind):
    """Dynamic broker configs (KIP-226)."""

    name = "BrokerConfig"
    spec: type[BaseModel] = BrokerConfigSpec
    record: type[OwnedRecord] = BrokerConfigRecord
    config_scope = ConfigScope.BROKER
    policy_words: PolicyWords = BROKER_WORDS
    audit_rules: AuditRules = ConfigAuditRules()

    def parse(self, name: str, spec: BaseModel) -> tuple[ConfigsBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, BrokerConfigSpec)
        values, problems = self.parse_configs(name, spec.configs)
        return self.make_body(spec, values), problems + self.check_ignored(name, spec)

    def parse_configs(
        self, name: str, configs: Mapping[str, Any]
    ) -> tuple[dict[str, ConfigValue], tuple[SpecProblem, ...]]:
        """See `ConfigsKind`. Also check the broker id, and whether each key is allowed in this resource."""
        resource = f"{self.name}/{name}"
        values, problems = super().parse_configs(name, configs)
        problems += tuple(_check_scopes(resource, name, configs))
        if name != CLUSTER_DEFAULT and parse_broker_id(name) is None:
            name_problem = error(
                "illegal-broker-name",
                "Invalid name of a BrokerConfig",
                f"'{name}' is neither '{CLUSTER_DEFAULT}' nor a broker id.",
                hint=f"Use '{CLUSTER_DEFAULT}', or an integer from 0 to 2147483647 without leading zeros.",
                resource=resource,
            )
            problems += (SpecProblem(NAME, name_problem),)
        return values, problems

    def make_record(self, configs: Mapping[str, Applied]) -> BrokerConfigRecord:
        """See `ConfigsKind`."""
        return BrokerConfigRecord(configs)

    def to_config_resource(self, name: str) -> ConfigResource:
        """See `ConfigsKind`. The config resource of the cluster-wide default has an empty name."""
        return ConfigResource(ConfigScope.BROKER, "" if name == CLUSTER_DEFAULT else name)

    def list_undeletable_keys(self, name: str) -> frozenset[str]:
        """See `ConfigsKind`."""
        return HELD_BY_CLUSTER if name == CLUSTER_DEFAULT else frozenset()

    def select_configs(self, query: ConfigQuery) -> Selections:
        """See `ConfigsKind`."""
        return (KafkaSelection(configs={query.resource: query}),)

    def find_entries(self, name: str, live: LiveState) -> Mapping[str, ConfigEntry] | None:
        """Return the live configs of a broker or of the cluster-wide default.

        Return None if the broker is not registered.
        """
        cluster = live.get(KafkaState)
        broker_ids = {str(broker.id) for broker in cluster.cluster.brokers}
        if name != CLUSTER_DEFAULT and name not in broker_ids:
            return None
        return cluster.configs.get(self.to_config_resource(name), {})

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`. If a declared broker is not registered, report an error. The resource stays owned."""
        if desired is not None and self.find_entries(resource.name, live) is None:
            return Difference(None, owned, (), (self._report_unknown_broker(desired, live),))
        return super().diff(resource, desired, live, owned, context)

    def _report_unknown_broker(self, desired: DesiredResource, live: LiveState) -> Diagnostic:
        broker_ids = ", ".join(str(broker.id) for broker in live.get(KafkaState).cluster.brokers)
        return error(
            "unknown-broker",
            "Unknown broker",
            f"Broker {desired.id.name} is not registered in the cluster. The registered brokers are "
            f"{broker_ids}.",
            hint="Correct the broker id in metadata.name, or start the broker and plan again.",
            place=desired.source,
            resource=str(desired.id),
        )

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_broker_field(field)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """See `providers.kafka.plan_evidence`."""
        return find_proven_broker_fields(evidence)

    def divide_into_stages(
        self, fields: Sequence[FieldChange], entries: Mapping[str, ConfigEntry]
    ) -> Sequence[Sequence[FieldChange]]:
        """See `ConfigsKind`.

        Resize a thread pool in stages: one stage can at most double or halve its size.
        """
        return expand_thread_pools(group_by_occurrence(fields), entries)

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the name of the cluster-wide default, and the sorted ids of all brokers."""
        brokers = connections.get(KafkaConnection).cluster.describe().brokers
        return [CLUSTER_DEFAULT, *map(str, sorted(broker.id for broker in brokers))]

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return one manifest for each broker with overrides, and one for the cluster-wide overrides."""
        if request.is_selective:
            return Export({})
        cluster = connections.get(KafkaConnection).cluster
        names = [CLUSTER_DEFAULT, *(str(broker.id) for broker in cluster.describe().brokers)]
        config_resources = [
            self.to_config_resource(name) for name in names if request.permits(ResourceId(self.name, name))
        ]
        queries = {entity: ConfigQuery(entity, overrides=True) for entity in config_resources}
        live = observe(cluster, KafkaSelection(configs=queries), permits_unreadable=True)
        texts: dict[str, str] = {}
        for config_resource, entries in live.configs.items():
            name = config_resource.name or CLUSTER_DEFAULT
            live_configs = self.build_live_configs(name, entries)
            left_out_keys = NEVER_RESET | self.list_undeletable_keys(name)
            lines = render_config_lines(live_configs, [k for k in sorted(entries) if k not in left_out_keys])
            if lines:
                comments = [f"Dynamic configs imported from cluster {live.cluster.id}."]
                texts[name] = render_manifest(self.name, name, lines, comments)
        omitted = count_omitted_configs(live, HELD_BY_CLUSTER)
        return Export(texts, (*omitted, *count_unreadable(live, "broker")))


def _check_scopes(resource: str, name: str, configs: Iterable[str]) -> Iterator[SpecProblem]:
    keys = load_catalog(ConfigScope.BROKER)
    for key in configs:
        info = keys.get(key)
        if info is not None and info.mode == "per-listener":
            yield _report_misplaced(
                resource,
                key,
                f"'{key}' can be changed at run time only for a single listener of a broker.",
                f"Declare listener.name.<listener>.{key} in a BrokerConfig whose name is a broker id.",
            )
        elif info is not None and info.mode == "per-broker" and name == CLUSTER_DEFAULT:
            yield _report_misplaced(
                resource,
                key,
                f"'{key}' can only be set for an individual broker, not for the cluster-wide default.",
                f"Declare '{key}' in a BrokerConfig for each broker instead of in '{CLUSTER_DEFAULT}'.",
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
