"""Planning hooks for listed configs: warn about configs that the type of the live group does not use.

Brokers store every config for every group id, regardless of the type of the group (GroupConfigManager).
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from kdeclare.core.diagnostics import Diagnostic, info, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs, PlanStep
from kdeclare.core.resources.kind import DesiredResource, ResourceComparison
from kdeclare.providers.kafka.config.config_value import Unset
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import GroupType, ListedGroup
from kdeclare.providers.kafka.listed_configs.collector import ListedConfigsState
from kdeclare.providers.kafka.listed_configs.fleet import count_unmanaged_configs

_KIND = "GroupConfig"
_TYPES_BY_PREFIX = {
    "consumer.": GroupType.CONSUMER,
    "share.": GroupType.SHARE,
    "streams.": GroupType.STREAMS,
}
"""For each prefix of config keys, the type of the groups that use these keys (GroupConfig of Kafka)."""
_WORDS = {
    GroupType.CLASSIC: "uses the classic protocol",
    GroupType.CONSUMER: "is a consumer group",
    GroupType.SHARE: "is a share group",
    GroupType.STREAMS: "is a streams group",
}


class ListedConfigsPlanning(PlanHooks):
    """The planning hooks for the configs of groups and of client metrics subscriptions."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Prepare the hooks of a plan."""
        self._connections = inputs.connections
        self._live = inputs.live.find(ListedConfigsState)

    def refine(self, operations: tuple[Operation, ...], compared: Sequence[ResourceComparison]) -> PlanStep:
        """Warn about declared configs that do not fit the types of the live groups."""
        declared = [item.desired for item in compared if item.id.kind == _KIND and item.desired is not None]
        if not any(map(_list_typed_keys, declared)):
            return PlanStep(operations)
        try:
            groups = self._connections.get(KafkaConnection).cluster.groups.list_groups()
        except Fault as fault:
            return PlanStep(operations, (_report_unknown_types(fault),))
        return PlanStep(operations, tuple(_check_types(declared, groups)))

    def count_unmanaged(self, known: Set[str]) -> int:
        """Count the groups and subscriptions with configs that are neither declared nor owned."""
        return 0 if self._live is None else count_unmanaged_configs(self._live, known)


def _list_typed_keys(desired: DesiredResource) -> tuple[str, ...]:
    """Return the declared keys that only groups of one type use.

    Keys that are declared as unset are omitted.
    """
    configs = desired.get_body(ConfigsBody).configs
    return tuple(
        key
        for key, value in sorted(configs.items())
        if not isinstance(value, Unset) and key.startswith(tuple(_TYPES_BY_PREFIX))
    )


def _check_types(
    declared: Sequence[DesiredResource], groups: Mapping[str, ListedGroup]
) -> Iterator[Diagnostic]:
    for desired in declared:
        group = groups.get(desired.id.name)
        if group is None:
            continue
        unused = [key for key in _list_typed_keys(desired) if not _is_used(key, group)]
        if unused:
            yield _warn_unused(desired, unused, group)


def _is_used(key: str, group: ListedGroup) -> bool:
    """Return whether a group uses a key, or can use it as soon as its first member joins.

    A classic group without members becomes a consumer or a streams group when a member with the consumer or
    streams protocol joins (KIP-848, KIP-1071). A classic group never becomes a share group.
    """
    type_ = next(type_ for prefix, type_ in _TYPES_BY_PREFIX.items() if key.startswith(prefix))
    if group.type is GroupType.CLASSIC and not group.is_active:
        return type_ is not GroupType.SHARE
    return group.type not in _WORDS or group.type is type_


def _warn_unused(desired: DesiredResource, keys: Sequence[str], group: ListedGroup) -> Diagnostic:
    names = " and ".join(f"'{key}'" for key in keys)
    own_prefix = next((prefix for prefix, type_ in _TYPES_BY_PREFIX.items() if type_ is group.type), None)
    own_keys = f"use the keys that start with '{own_prefix}'" if own_prefix else "use a different group id"
    return warning(
        "group-type-mismatch",
        "Config does not apply to the type of the group",
        f"{names} of {desired.id} {'has' if len(keys) == 1 else 'have'} no effect, because group "
        f"{desired.id.name} {_WORDS[group.type]}.",
        hint=f"Remove {'this key' if len(keys) == 1 else 'these keys'}, or {own_keys}.",
        place=desired.source,
        resource=str(desired.id),
    )


def _report_unknown_types(fault: Fault) -> Diagnostic:
    return info(
        "group-types-unknown",
        "Group types are unknown",
        f"kdeclare could not list the groups, so it did not check whether their configs apply: {fault}.",
    )
