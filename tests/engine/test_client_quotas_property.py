"""Quotas converge whatever is declared, set by others or interrupted; rollbacks restore them by key."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.testing.faults import Crash
from tests.engine.world import World, desired

ENTITIES: Mapping[str, Mapping[str, object]] = {
    "a": {"user": "a"},
    "b": {"user": {"default": True}},
    "c": {"user": "a", "clientId": {"default": True}},
}
KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
Limits = Mapping[str, float | None]
Declared = Mapping[str, Limits]

LIMITS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([1, 2, 3]))
LIMITS_OR_NONE = st.dictionaries(st.sampled_from(KEYS), st.sampled_from([None, 1, 2, 3]))
DECLARED = st.dictionaries(st.sampled_from(list(ENTITIES)), LIMITS_OR_NONE)
OTHERS = st.dictionaries(st.sampled_from(list(ENTITIES)), LIMITS)
DELETING = PlanScope(allow_deletes=True, max_deletes=None)


def parse_entity(name: str) -> QuotaEntity:
    fields = {"user": EntityType.USER, "clientId": EntityType.CLIENT_ID}
    stated = {type_: ENTITIES[name][field] for field, type_ in fields.items() if field in ENTITIES[name]}
    return QuotaEntity.of({type_: n if isinstance(n, str) else None for type_, n in stated.items()})


def make_manifests(declared: Declared) -> list[DesiredResource]:
    return [desired("ClientQuota", n, entity=ENTITIES[n], limits=limits) for n, limits in declared.items()]


def read_limits(world: World) -> dict[str, dict[str, float]]:
    found = world.cluster.quotas()
    return {name: dict(found[parse_entity(name)]) for name in ENTITIES if parse_entity(name) in found}


def set_by_others(world: World, quotas: Declared) -> None:
    results = world.cluster.elsewhere().alter_quotas({parse_entity(name): quotas[name] for name in quotas})
    assert set(results.values()) <= {None}


@given(others=OTHERS, first=DECLARED, then=DECLARED)
def test_apply_changes_only_declared_limits(others: Declared, first: Declared, then: Declared) -> None:
    world = World()
    set_by_others(world, others)
    assert world.apply(*make_manifests(first)).complete
    assert world.apply(*make_manifests(then), scope=DELETING).complete
    assert not world.plan(*make_manifests(then)).has_changes
    for name in ENTITIES:
        has = read_limits(world).get(name, {})
        for key in KEYS:
            if key in then.get(name, {}):
                assert has.get(key) == then[name][key]
            elif key in first.get(name, {}):
                assert key not in has
            else:
                assert has.get(key) == others.get(name, {}).get(key)


@given(first=DECLARED, then=DECLARED, meanwhile=OTHERS)
def test_rollback_restores_limits_without_concurrent_changes(
    first: Declared, then: Declared, meanwhile: Declared
) -> None:
    world = World()
    world.apply(*make_manifests(first))
    before, owned = read_limits(world), world.owned()
    if not world.plan(*make_manifests(then), scope=DELETING).operations:
        return
    world.apply(*make_manifests(then), scope=DELETING)
    after = read_limits(world)
    set_by_others(world, meanwhile)
    world.rollback()
    for name in ENTITIES:
        for key in KEYS:
            now, was, became = (side.get(name, {}).get(key) for side in (read_limits(world), before, after))
            changed = meanwhile.get(name, {}).get(key, became)
            assert now == (was if changed in (became, was) else changed)
    if not meanwhile:
        assert world.owned() == owned


@given(first=DECLARED, then=DECLARED, crash=st.integers(1, 3), after_effect=st.booleans())
def test_killed_run_is_completed_by_next_apply(
    first: Declared, then: Declared, crash: int, after_effect: bool
) -> None:
    world = World()
    world.apply(*make_manifests(first))
    world.cluster.faults.crash(after_effect=after_effect, nth=crash)
    try:
        world.apply(*make_manifests(then), scope=DELETING)
    except Crash:
        world.cluster.faults.clear()
        world.apply(*make_manifests(then), scope=DELETING)
    assert not world.plan(*make_manifests(then)).has_changes
    assert set(world.owned()) == {f"ClientQuota/{name}" for name in then}
