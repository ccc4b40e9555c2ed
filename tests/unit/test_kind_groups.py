"""Groups of kinds: their definitions are imported only by commands and plans that concern them."""

from collections.abc import Sequence
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.operations.operation import Operation, UnboundArguments
from kdeclare.core.parts import Connections, LiveState, PlanOptions
from kdeclare.core.plans.plan_hooks import PlanHooks, PlanInputs
from kdeclare.core.plans.state import State
from kdeclare.core.provider.deferred_provider import list_kind_names, list_operation_type_names
from kdeclare.core.provider.group_hooks import GroupHooks
from kdeclare.core.provider.installed_providers import resolve_completely, resolve_group
from kdeclare.core.provider.kind_group import DeferredKindGroup, KindGroup
from kdeclare.core.provider.provider_queries import find_collectors, find_collectors_of
from kdeclare.core.provider.registry import KINDS, OPERATION_TYPES
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.collector import AclSelection, AclState
from kdeclare.providers.kafka.acl.definition import ACLS as ACL_DEFINITION
from kdeclare.providers.kafka.client_quota.definition import CLIENT_QUOTAS as QUOTA_DEFINITION
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.kind_groups import KIND_GROUPS
from kdeclare.providers.kafka.provider import PROVIDER as KAFKA
from kdeclare.testing.world import declare

IMPORTED: list[str] = []


class Hooks(PlanHooks):
    """Hooks that can be recognized."""

    def __init__(self, inputs: PlanInputs) -> None:
        """Take the inputs, as all hooks do."""


class OtherHooks(Hooks):
    """Hooks of another group."""


def make_group(definition: KindGroup, package: str, start_plan: type[Hooks]) -> DeferredKindGroup:
    """The outline of a group with the kinds of a Kafka group, and with hooks that can be recognized."""

    def import_definition() -> KindGroup:
        IMPORTED.append(package)
        return KindGroup(definition.kinds, definition.operation_types, definition.collectors, start_plan)

    return DeferredKindGroup(
        f"kdeclare.providers.kafka.{package}",
        tuple(kind.name for kind in definition.kinds),
        tuple(operation_type.name for operation_type in definition.operation_types),
        import_definition,
    )


@pytest.fixture
def groups() -> Sequence[DeferredKindGroup]:
    IMPORTED.clear()
    return (
        make_group(ACL_DEFINITION, "acl", Hooks),
        make_group(QUOTA_DEFINITION, "client_quota", OtherHooks),
    )


def make_inputs(*, owned: str = "", declared: str = "", live: object = None) -> PlanInputs:
    spec: dict[str, Any] = {"principal": "User:app", "access": []} if declared == "Acl" else {"partitions": 1}
    resources = (declare(declared, "app", spec, {}),) if declared else ()
    state = State("", 1, "", resources={f"{owned}/app": None}) if owned else None  # type: ignore[dict-item]
    parts = () if live is None else (live,)
    return PlanInputs(resources, state, LiveState(*parts), Connections(), PlanOptions())


@pytest.mark.parametrize(
    ("inputs", "takes_part"),
    [
        ({}, False),
        ({"declared": "Topic"}, False),
        ({"owned": "Topic"}, False),
        ({"owned": "Acl"}, True),
        ({"live": AclState()}, True),
    ],
    ids=["nothing", "another kind declared", "another kind owned", "owned", "read"],
)
def test_group_takes_part_in_plans_that_concern_it(
    groups: Sequence[DeferredKindGroup], inputs: dict[str, Any], takes_part: bool
) -> None:
    hooks = GroupHooks(groups, make_inputs(**inputs))
    assert [type(started) for started in hooks.list_started()] == [Hooks] * takes_part
    assert ["acl"] * takes_part == IMPORTED


def make_operation(verb: str) -> Operation:
    return Operation(f"{verb}:1", verb, ResourceId("Acl", "app"), UnboundArguments({}, ""), {})


def test_group_takes_part_as_soon_as_the_plan_has_operations_of_the_group(
    groups: Sequence[DeferredKindGroup],
) -> None:
    hooks = GroupHooks(groups, make_inputs(owned="ClientQuota"))
    assert [type(started) for started in hooks.list_for([make_operation("topic.create")])] == [OtherHooks]
    in_order = [type(started) for started in hooks.list_for([make_operation("acls.delete")])]
    assert in_order == [Hooks, OtherHooks], "in the order of the groups"
    assert [type(started) for started in hooks.list_started()] == in_order
    assert sorted(IMPORTED) == ["acl", "client_quota"]


def test_names_are_known_and_in_display_order() -> None:
    definition = resolve_completely(KAFKA)
    assert tuple(kind.name for kind in definition.kinds) == list_kind_names(KAFKA)
    assert list_kind_names(KAFKA)[:3] == ("Topic", "BrokerConfig", "Reassignment")
    types = tuple(operation_type.name for operation_type in definition.operation_types)
    assert types == list_operation_type_names(KAFKA)
    assert definition.kind_groups == ()


def test_kinds_of_groups_are_found_by_name() -> None:
    for group in KIND_GROUPS:
        definition = resolve_group(group)
        assert [KINDS[name] for name in group.kinds] == list(definition.kinds)
        assert [OPERATION_TYPES[name] for name in group.operation_types] == list(definition.operation_types)


def test_collectors_of_a_group_are_found_by_selection_and_by_live_state() -> None:
    (own,) = ACL_DEFINITION.collectors
    connections = Connections(openers={KafkaConnection: lambda: None})
    assert own not in find_collectors(connections)
    assert own in find_collectors(connections, [AclSelection()])
    assert own not in find_collectors_of(LiveState())
    assert own in find_collectors_of(LiveState(AclState()))


def fail_to_import() -> KindGroup:
    raise ImportError("no module named 'shelves'")


@pytest.mark.parametrize(
    ("group", "detail"),
    [
        (
            DeferredKindGroup("theirs", ("Shelf",), (), KindGroup),
            "the outline of theirs states kinds=('Shelf',), but its definition has ()",
        ),
        (
            DeferredKindGroup("theirs", (), ("shelf.put",), KindGroup),
            "states operation_types=('shelf.put',), but its definition has ()",
        ),
        (DeferredKindGroup("theirs", (), (), fail_to_import), "ImportError: no module named 'shelves'"),
    ],
    ids=["kinds", "operation types", "import"],
)
def test_definition_that_differs_from_outline_is_refused(group: DeferredKindGroup, detail: str) -> None:
    with pytest.raises(KdeclareError) as raised:
        resolve_group(group)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "provider-broken"
    assert detail in diagnostic.detail
