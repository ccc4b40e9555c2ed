"""Kind `GroupConfig`: the dynamic configs of one consumer, share or streams group (KIP-848, KIP-932)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.changes import Action, FieldChange
from kdeclare.core.resources.kind import SpecProblem, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.providers.kafka.config.config_diff import LiveConfigs
from kdeclare.providers.kafka.config.config_record import Applied, ConfigsRecord
from kdeclare.providers.kafka.config.config_value import (
    ConfigValue,
    Value,
)
from kdeclare.providers.kafka.config.configs_kind import (
    ConfigMap,
    ConfigsBody,
    ConfigsSpec,
    make_configs_field,
)
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.listed_configs.kind import (
    LIFECYCLE_DESCRIPTION,
    ListedConfigsKind,
    ListedLifecycle,
)
from kdeclare.providers.kafka.manifest_edits import render_config_lines
from kdeclare.providers.kafka.policies.declared_topics import list_scope_key_types
from kdeclare.providers.kafka.risks import assess_group_field


class GroupConfigSpec(ConfigsSpec):
    """The ``spec`` of a GroupConfig manifest."""

    configs: ConfigMap = make_configs_field(ConfigScope.GROUP)
    lifecycle: Annotated[ListedLifecycle, Field(description=LIFECYCLE_DESCRIPTION)] = ListedLifecycle()


@dataclass(frozen=True, slots=True)
class GroupConfigRecord(ConfigsRecord):
    """The owned configs of one group."""


class GroupConfigKind(ListedConfigsKind):
    """Dynamic group configs. ``metadata.name`` is the group id."""

    name = "GroupConfig"
    spec: type[BaseModel] = GroupConfigSpec
    record: type[OwnedRecord] = GroupConfigRecord
    config_scope = ConfigScope.GROUP
    noun, plural = "group", "groups"
    policy_words = PolicyWords(
        {"configs": PolicyField(dict[str, str], keys=partial(list_scope_key_types, ConfigScope.GROUP))}
    )

    def parse(self, name: str, spec: BaseModel) -> tuple[ConfigsBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        spec = narrow(spec, GroupConfigSpec)
        values, problems = self.parse_configs(name, spec.configs)
        return self.make_body(spec, values), problems + self.check_ignored(name, spec)

    def parse_configs(
        self, name: str, configs: Mapping[str, Any]
    ) -> tuple[dict[str, ConfigValue], tuple[SpecProblem, ...]]:
        """See `ConfigsKind`. Leading and trailing spaces in values are removed."""
        values, problems = super().parse_configs(name, configs)
        return {key: _strip_blanks(value) for key, value in values.items()}, problems

    def make_record(self, configs: Mapping[str, Applied]) -> GroupConfigRecord:
        """See `ConfigsKind`."""
        return GroupConfigRecord(configs)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """See `providers.kafka.risks`."""
        return assess_group_field(field)

    def render_spec(self, live_configs: LiveConfigs, keys: Sequence[str]) -> list[str]:
        """See `ListedConfigsKind`."""
        return render_config_lines(live_configs, keys)

    def name_permission(self, name: str) -> str:
        """See `ListedConfigsKind`."""
        return f"the DescribeConfigs permission on group {name}"


def _strip_blanks(value: ConfigValue) -> ConfigValue:
    """Return the value without leading and trailing spaces.

    Brokers accept a value with such spaces, but then the group coordinator ignores the configs of the group,
    and the group is not listed (docs/kafka-observed.md).
    """
    if isinstance(value, Value) and isinstance(value.value, str) and value.value != value.value.strip():
        return replace(value, value=value.value.strip())
    return value
