"""The base class of kinds whose resources consist of configs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, JsonValue, as_bool, as_object, as_texts
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import LiveState, PlanContext
from kdeclare.core.resources.adoption import adopt_settings
from kdeclare.core.resources.changes import Action, Change, FieldChange, Reason, find_highest_risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.ignored_changes import ConfigsLifecycle
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import DeclaredFields, ManifestEdits
from kdeclare.core.resources.owned_record import OwnedRecord, merge_fields
from kdeclare.core.resources.raw_text import RawText
from kdeclare.providers.kafka.config.catalog import Catalog, load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import make_schema_extra
from kdeclare.providers.kafka.config.config_diff import ConfigDiff, LiveConfigs, diff_configs
from kdeclare.providers.kafka.config.config_ops import (
    build_config_operations,
    filter_config_fields,
    group_by_occurrence,
)
from kdeclare.providers.kafka.config.config_record import Applied, ConfigsRecord, get_applied
from kdeclare.providers.kafka.config.config_value import (
    CONFIGS_DESCRIPTION,
    UNMANAGED_DESCRIPTION,
    ConfigValue,
    bind_config_values,
    convert_config,
    dump_config_values,
    is_same_config,
    parse_config_values,
    warn_literal_secret,
)
from kdeclare.providers.kafka.config.ignored_configs import check_ignored_configs, find_ignored_keys
from kdeclare.providers.kafka.fleet.facts import compute_declared_override_facts
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, get_own_source
from kdeclare.providers.kafka.manifest_edits import (
    find_config_edits,
    is_as_changed,
    is_setting_claimed,
    render_declared_configs,
)
from kdeclare.providers.kafka.operations.alter_configs import list_ops
from kdeclare.providers.kafka.plan_evidence import normalize_config
from kdeclare.providers.kafka.policies.declared_topics import compute_overrides, filter_overrides
from kdeclare.providers.kafka.request_values import ConfigQuery
from kdeclare.providers.kafka.settings_action import find_settings_action

ConfigMap = Annotated[dict[str, Any], RawText(may_be_secret=True)]
"""Configs by key, as in a manifest."""


class ConfigsSpec(BaseModel):
    """The common fields of specs that declare configs. Subclasses define the keys of ``configs``."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    configs: ConfigMap = {}
    unmanagedConfigs: Annotated[  # noqa: N815
        Literal["keep", "remove"], Field(description=UNMANAGED_DESCRIPTION)
    ] = "keep"
    lifecycle: Annotated[
        ConfigsLifecycle, Field(description="How to treat configs that kdeclare did not set.")
    ] = ConfigsLifecycle()


def make_configs_field(scope: ConfigScope) -> Any:
    """Return the field ``configs`` of a spec. The schema for editors contains the known keys."""
    return Field({}, description=CONFIGS_DESCRIPTION, json_schema_extra=make_schema_extra(scope))


@dataclass(frozen=True, slots=True)
class ConfigsBody:
    """The declared configs of one resource.

    remove_unmanaged: whether to reset overrides that are neither declared nor owned.
    adopt: whether to take over overrides that other clients set.
    is_partial: whether the body is only a part of a resource, as in ad hoc commands.
    ignored: the paths of configs that kdeclare leaves unchanged once they have been set.
    """

    configs: Mapping[str, ConfigValue] = field(default_factory=dict)
    remove_unmanaged: bool = False
    adopt: bool = False
    is_partial: bool = False
    ignored: tuple[str, ...] = ()


class ConfigsKind(ABC):
    """The base class of kinds whose resources consist of configs.

    Subclasses define the name, the spec and the record, and find the live configs.
    """

    name: str
    spec: type[BaseModel]
    record: type[OwnedRecord]
    config_scope: ConfigScope
    first_reason = Reason.CHANGED
    """The reason that plans show for changes to a resource that kdeclare has never applied."""
    consists_of_configs = False
    """Whether a resource exists only as long as one of its configs is set.

    If not, the resource always exists, as a broker does, so every change is an update.
    """

    @abstractmethod
    def parse(self, name: str, spec: BaseModel) -> tuple[ConfigsBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""

    def parse_configs(
        self, name: str, configs: Mapping[str, Any]
    ) -> tuple[dict[str, ConfigValue], tuple[SpecProblem, ...]]:
        """Return the config values by key, and problems with paths relative to ``spec``."""
        return parse_config_values(f"{self.name}/{name}", configs, self.catalog)

    def make_body(self, spec: ConfigsSpec, values: Mapping[str, ConfigValue]) -> ConfigsBody:
        """Return the body of a spec that declares these config values."""
        ignored = tuple(spec.lifecycle.ignoreChanges)
        return ConfigsBody(values, spec.unmanagedConfigs == "remove", spec.lifecycle.adopt, ignored=ignored)

    def check_ignored(self, name: str, spec: ConfigsSpec) -> tuple[SpecProblem, ...]:
        """Return an error for each entry of ``ignoreChanges`` that is not a config of this kind."""
        return check_ignored_configs(
            f"{self.name}/{name}", spec.lifecycle.ignoreChanges, self.catalog, spec.configs
        )

    def ignore_fields(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> ConfigsBody:
        """See `IgnoresChanges`.

        Some resources, such as brokers, always exist. Whether a config is ignored therefore does not depend
        on the existence of the resource: kdeclare leaves an ignored config unchanged if the config has an
        override, or if kdeclare has applied the config before.
        """
        body = desired.get_body(ConfigsBody)
        if not body.ignored:
            return body
        entries = self.find_entries(desired.id.name, live) or {}
        own_source = get_own_source(self.to_config_resource(desired.id.name))
        known_keys = {key for key, entry in entries.items() if entry.source is own_source}
        settled = find_ignored_keys(body.ignored) & (known_keys | get_applied(owned).keys())
        return replace(body, configs={k: v for k, v in body.configs.items() if k not in settled})

    @abstractmethod
    def select_configs(self, query: ConfigQuery) -> Selections:
        """Select the configs of one resource."""

    @abstractmethod
    def find_entries(self, name: str, live: LiveState) -> Mapping[str, ConfigEntry] | None:
        """Return the live configs of a resource; None if the resource does not exist."""

    @abstractmethod
    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Return the field change with its risk."""

    @abstractmethod
    def make_record(self, configs: Mapping[str, Applied]) -> ConfigsRecord:
        """Return the record of owned configs."""

    def to_config_resource(self, name: str) -> ConfigResource:
        """Return the Kafka config resource with the configs of the resource ``name``."""
        return ConfigResource(self.config_scope, name)

    def list_undeletable_keys(self, name: str) -> frozenset[str]:
        """Return the keys that Kafka refuses to delete."""
        return frozenset()

    @property
    def catalog(self) -> Catalog:
        """The catalog of the kind's config keys."""
        return load_catalog(self.config_scope)

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the declared and owned keys, and all overrides of the resource."""
        body = narrow_optional(body, ConfigsBody)
        keys = frozenset(body.configs if body else ()) | frozenset(get_applied(owned))
        return self.select_configs(ConfigQuery(self.to_config_resource(name), keys, overrides=True))

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        live_configs = self.build_live_configs(resource.name, self.find_entries(resource.name, live) or {})
        body = self.ignore_fields(desired, live, owned) if desired else ConfigsBody()
        configs = diff_configs(
            live_configs,
            body.configs,
            get_applied(owned),
            reset_unmanaged=body.remove_unmanaged,
            ignored=find_ignored_keys(body.ignored) - body.configs.keys(),
        )
        action = self._find_action(live_configs, configs, desired)
        if desired is None:
            return self._diff_undeclared(resource, action, configs)
        change = None
        diagnostics = [_warn_kept_config(resource, key, desired) for key in configs.kept]
        diagnostics += [
            warn_literal_secret(str(resource), key, desired.source) for key in configs.literal_secrets
        ]
        drifted = tuple(f"configs.{key}" for key in configs.drifted)
        if configs.fields:
            first_reason = self.first_reason if owned is None else Reason.CHANGED
            drift_reason = Reason.MISSING if action is Action.CREATE else Reason.DRIFTED
            reason = drift_reason if configs.drifted else first_reason
            fields = self._assess_fields(action, configs)
            risk = find_highest_risk(fields)
            change = Change(resource, action, reason, risk, fields, desired.source)
            # If ``unmanagedConfigs: remove`` resets a key, the reset is an adoption only before the first
            # apply.
            adopted_paths = [
                f"configs.{key}" for key in configs.unowned if key in body.configs or owned is None
            ]
            if adopted_paths:
                change, adoption = adopt_settings(change, desired, adopted_paths, drifted, first_reason)
                diagnostics.append(adoption)
        record = self.make_record(configs.owned)
        return Difference(change, record, configs.unmanaged, tuple(diagnostics), drifted=drifted)

    def build_live_configs(self, name: str, entries: Mapping[str, ConfigEntry]) -> LiveConfigs:
        """Return the live configs of a resource in the form that the diff requires."""
        return LiveConfigs(
            f"{self.name}/{name}",
            entries,
            get_own_source(self.to_config_resource(name)),
            self.catalog,
            self.list_undeletable_keys(name),
        )

    def _diff_undeclared(self, resource: ResourceId, action: Action, configs: ConfigDiff) -> Difference:
        """Return the difference for an orphan: the removal of the overrides that kdeclare owns."""
        fields = self._assess_fields(action, configs)
        if not fields and self.consists_of_configs:
            return Difference(None)  # the resource no longer exists
        return Difference(Change(resource, action, Reason.ORPHANED, find_highest_risk(fields), fields))

    def _find_action(
        self, live_configs: LiveConfigs, configs: ConfigDiff, desired: DesiredResource | None
    ) -> Action:
        if not self.consists_of_configs or (desired is not None and desired.get_body(ConfigsBody).is_partial):
            return Action.UPDATE
        live_paths = [
            f"configs.{key}" for key, e in live_configs.live.items() if e.source is live_configs.source
        ]
        return find_settings_action(configs.fields, live_paths, is_declared=desired is not None)

    def _assess_fields(self, action: Action, configs: ConfigDiff) -> tuple[FieldChange, ...]:
        return tuple(self.assess_field(action, field) for field in configs.fields)

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared configs."""
        return {"configs": compute_overrides(self.catalog, desired.get_body(ConfigsBody).configs)}

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the live overrides of the resource; None if the resource does not exist."""
        entries = self.find_entries(resource.name, live)
        if entries is None:
            return None
        own_source = get_own_source(self.to_config_resource(resource.name))
        return {"configs": filter_overrides(entries, own_source)}

    def normalize_field(self, resource: ResourceId, field: FieldChange) -> FieldChange:
        """See `providers.kafka.plan_evidence`."""
        return normalize_config(self.config_scope, field)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Plan an operation for each stage of the change (see `divide_into_stages`)."""
        entries = self.find_entries(change.id.name, live) or {}
        stages = self.divide_into_stages(filter_config_fields(change.fields), entries)
        config_resource = self.to_config_resource(change.id.name)
        is_whole = change.action is not Action.UPDATE
        return tuple(
            build_config_operations(change.id, config_resource, stages, get_applied(owned), is_whole=is_whole)
        )

    def divide_into_stages(
        self, fields: Sequence[FieldChange], entries: Mapping[str, ConfigEntry]
    ) -> Sequence[Sequence[FieldChange]]:
        """Divide field changes into stages. Each stage becomes one atomic operation."""
        return group_by_occurrence(fields)

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
        return self.make_record(merge_fields(get_applied(before), get_applied(after), keys))

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return True: the diff of a resource needs only the live configs of that resource."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey:
        """Return the key that identifies the live configs of the resource in snapshots."""
        return LiveKey(self.name, name)

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts about the declared and owned configs; None if some of them are ignored."""
        body = narrow(body, ConfigsBody)
        if body.ignored:
            return None
        return compute_declared_override_facts(
            self.config_scope,
            body.configs,
            get_applied(owned),
            remove_unmanaged=body.remove_unmanaged,
        )

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `Kind`. Default values are omitted."""
        body = narrow(body, ConfigsBody)
        document: dict[str, JsonValue] = {"configs": dump_config_values(body.configs, self.catalog)}
        document |= {"removeUnmanaged": True} if body.remove_unmanaged else {}
        document |= {"ignoreChanges": list(body.ignored)} if body.ignored else {}
        return document | ({"adopt": True} if body.adopt else {})

    def from_json(self, json: JsonObject) -> ConfigsBody:
        """See `Kind`."""
        remove, adopt = as_bool(json.get("removeUnmanaged", False)), as_bool(json.get("adopt", False))
        ignored = as_texts(json.get("ignoreChanges", ()))
        return ConfigsBody(bind_config_values(as_object(json["configs"])), remove, adopt, ignored=ignored)

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
        """Return whether ``text`` and ``value`` are the same config value."""
        return is_same_config(str(path[-1]), text, value, self.catalog)

    def convert_value(self, path: SpecPath, text: str) -> str | None:
        """See `ConvertsValues`. Configs can be amounts, such as ``7d`` and ``50MiB``."""
        return convert_config(path, text, self.catalog)

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.manifest_edits`."""
        before = narrow_optional(before, ConfigsBody)
        after = narrow(after, ConfigsBody)
        return is_as_changed(lambda body: self.to_json(name, body), before, after, change, self.catalog)


def _warn_kept_config(resource: ResourceId, key: str, desired: DesiredResource) -> Diagnostic:
    return warning(
        "undeletable-config",
        "Config kept by the cluster",
        f"The manifest no longer declares '{key}', but Kafka does not allow this config to be deleted from "
        "the cluster-wide defaults. The value stays in effect, and kdeclare no longer manages the config.",
        hint=f"To change the value, declare '{key}' again.",
        place=desired.source,
        resource=str(resource),
        subject=key,
    )
