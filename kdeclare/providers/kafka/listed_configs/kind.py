"""The base class of `GroupConfig` and `ClientMetrics`."""

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyWords
from kdeclare.core.resources.audit_rules import AuditRules
from kdeclare.core.resources.changes import Change, Reason
from kdeclare.core.resources.declared_absence import ResourceState
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import ConfigsLifecycle
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.manifest_capabilities import Export, ExportRequest, OmittedObjects
from kdeclare.core.resources.manifest_text import render_manifest
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.resources.plan_capabilities import Evidence
from kdeclare.providers.kafka.config.config_diff import LiveConfigs
from kdeclare.providers.kafka.config.config_record import Applied, AppliedValue, get_applied
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody, ConfigsKind
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.listed_configs.collector import (
    NOT_PERMITTED,
    UNSUPPORTED,
    ListedConfigsSelection,
    ListedConfigsState,
    read_listed_configs,
)
from kdeclare.providers.kafka.listed_configs.fleet import ListedConfigRules
from kdeclare.providers.kafka.live import ConfigEntry, get_own_source
from kdeclare.providers.kafka.request_values import ConfigQuery


class ListedLifecycle(ConfigsLifecycle):
    """The lifecycle options for the configs of a group or a client metrics subscription."""

    state: ResourceState = "present"


LIFECYCLE_DESCRIPTION = "How to treat configs that kdeclare did not set, and whether to delete all configs."


class ListedConfigsKind(ConfigsKind):
    """The base class of kinds for groups and client metrics subscriptions.

    noun, plural: the display names of the resources.

    Kafka stores configs for any group id, whether or not the group exists, and for any subscription name.
    Kafka lists a resource only while one of its configs is set.
    """

    first_reason = Reason.DECLARED
    consists_of_configs = True
    noun: str
    plural: str
    policy_words: PolicyWords
    audit_rules: AuditRules = ListedConfigRules()

    @abstractmethod
    def render_spec(self, live_configs: LiveConfigs, keys: Sequence[str]) -> list[str]:
        """Return the lines of a manifest's ``spec`` that declare the overrides of ``keys``."""

    @abstractmethod
    def name_permission(self, name: str) -> str:
        """Return the permission that is required to read the configs of a resource."""

    def select_configs(self, query: ConfigQuery) -> Selections:
        """See `ConfigsKind`."""
        return (ListedConfigsSelection({query.resource: query}),)

    def find_entries(self, name: str, live: LiveState) -> Mapping[str, ConfigEntry] | None:
        """Return the live configs of the resource, or an empty mapping if no config is set."""
        return live.get(ListedConfigsState).configs.get(self.to_config_resource(name), {})

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`. If the configs of a resource cannot be read, the resource stays unchanged and owned."""
        state = live.get(ListedConfigsState)
        fault = self._find_fault(resource.name, state)
        if fault is not None:
            return Difference(None, owned, diagnostics=(self._report_unreadable(resource, desired, fault),))
        return super().diff(resource, desired, live, owned, context)

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`. A group or client metrics subscription is absent if it has no configs."""
        if owned is not None and not desired.get_body(ConfigsBody).adopt:
            return owned
        entries = self.find_entries(desired.id.name, live) or {}
        own_source = get_own_source(self.to_config_resource(desired.id.name))
        overrides = [key for key, entry in entries.items() if entry.source is own_source]
        # The diff deletes these keys, whatever their values are.
        deleted: dict[str, Applied] = dict.fromkeys(overrides, AppliedValue(""))
        return self.make_record({**get_applied(owned), **deleted}) if deleted else owned

    def _find_fault(self, name: str, state: ListedConfigsState) -> Fault | None:
        """Return the Fault if the configs of a resource could not be read; otherwise None."""
        config_resource = self.to_config_resource(name)
        if config_resource in state.configs:
            return None
        return state.unreadable.get(config_resource) or state.listing_faults.get(self.config_scope)

    def find_proven_fields(self, change: Change, evidence: Evidence) -> Set[str]:
        """Return an empty set: the value of every changed field must match an operation of the plan."""
        return frozenset()

    def select_every(self) -> Selections:
        """Select every resource that has overrides."""
        return (ListedConfigsSelection(every=frozenset({self.config_scope})),)

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return the names of all resources with overrides. Raises Fault if some of them cannot be read."""
        state = live.get(ListedConfigsState)
        if self.config_scope in state.listing_faults:
            fault = state.listing_faults[self.config_scope]
            raise Fault(fault.error, self._explain_fault(fault, self.plural), fault.kind)
        for resource, fault in state.unreadable.items():
            if resource.scope is self.config_scope:
                raise Fault(fault.error, self._explain_fault(fault, resource.name), fault.kind)
        return [resource.name for resource in state.configs if resource.scope is self.config_scope]

    def list_names(self, connections: Connections) -> Sequence[str]:
        """Return the names of all resources that have overrides."""
        cluster = connections.get(KafkaConnection).cluster
        return sorted(resource.name for resource in cluster.list_config_resources(self.config_scope))

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return one manifest for each resource with overrides."""
        state = read_listed_configs(connections, ListedConfigsSelection(every=frozenset({self.config_scope})))
        if self.config_scope in state.listing_faults:
            reason = (
                f"{self.name}: {self._explain_fault(state.listing_faults[self.config_scope], self.plural)}"
            )
            return Export({}, (OmittedObjects(1, "kind", "kinds", reason),))
        requested = sorted(r.name for r in state.configs if request.matches(r.name))
        permitted = [name for name in requested if request.permits(ResourceId(self.name, name))]
        manifests = {name: self._render_manifest(name, state) for name in permitted}
        out_of_scope_count = len(requested) - len(permitted)
        unreadable_count = sum(request.matches(resource.name) for resource in state.unreadable)
        return Export(
            manifests,
            (
                OmittedObjects(
                    out_of_scope_count, self.noun, self.plural, "outside the scope of the project"
                ),
                OmittedObjects(
                    unreadable_count, self.noun, self.plural, "whose configs the brokers refuse to describe"
                ),
            ),
        )

    def _render_manifest(self, name: str, state: ListedConfigsState) -> str:
        config_resource = self.to_config_resource(name)
        own_source = get_own_source(config_resource)
        entries = state.configs[config_resource]
        keys = sorted(key for key, entry in entries.items() if entry.source is own_source)
        return render_manifest(
            self.name, name, self.render_spec(self.build_live_configs(name, entries), keys), []
        )

    def _explain_fault(self, fault: Fault, subject: str) -> str:
        """Return why configs cannot be read. subject: a name, or the plural display name."""
        if fault.error == UNSUPPORTED:
            return f"these brokers cannot list {self.plural} with configs, which requires Kafka 4.1 or later"
        if fault.error in NOT_PERMITTED:
            return f"the principal is not permitted to read the configs of {subject}"
        return f"the brokers refuse to describe {subject}: {fault.message or fault.error} ({fault.error})"

    def _report_unreadable(
        self, resource: ResourceId, desired: DesiredResource | None, fault: Fault
    ) -> Diagnostic:
        make_diagnostic, outcome = (
            (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
        )
        is_permission_missing = fault.error in NOT_PERMITTED
        permission = self.name_permission(resource.name)
        reason = (
            f"without {permission}, kdeclare cannot read the configs"
            if is_permission_missing
            else self._explain_fault(fault, resource.name)
        )
        return make_diagnostic(
            "not-visible",
            "Configs not visible",
            f"{resource} {outcome}: {reason}.",
            hint=f"Grant kdeclare {permission}." if is_permission_missing else "",
            place=desired.source if desired else None,
            resource=str(resource),
        )
