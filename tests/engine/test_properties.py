"""Rules that hold for any desired, live and owned state."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import compute_plan_id, parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import World, desired, topic
from tests.jsontypes import dump_args

POLICIES = ("delete", "compact")
THROTTLED = "leader.replication.throttled.replicas"
ELEMENTS = ("0:1", "0:2", "1:3")
NAMES = ("a", "b", "c")

_policy_list = st.lists(st.sampled_from(POLICIES), unique=True, min_size=1)
_throttle_list = st.lists(st.sampled_from(ELEMENTS), unique=True)


@st.composite
def _parts(draw: st.DrawFn, elements: tuple[str, ...]) -> dict[str, list[str]]:
    append = draw(st.lists(st.sampled_from(elements), unique=True))
    rest = [e for e in elements if e not in append]
    subtract = draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    if not append and not subtract:
        append = [elements[0]]
    return {"append": append, "subtract": subtract}


_configs = st.fixed_dictionaries(
    {},
    optional={
        "retention.ms": st.sampled_from([None, "1", "604800000", "77"]),
        "min.cleanable.dirty.ratio": st.sampled_from(["0.5", "0.50", "0.1", None]),
        "preallocate": st.sampled_from(["true", "false"]),
        "min.insync.replicas": st.sampled_from(["1", "2"]),
        "cleanup.policy": st.one_of(st.none(), _policy_list, _parts(POLICIES)),
        THROTTLED: st.one_of(st.none(), _throttle_list, _parts(ELEMENTS)),
    },
)

_overrides = st.fixed_dictionaries(
    {},
    optional={
        "retention.ms": st.sampled_from(["1", "604800000", "5"]),
        "flush.ms": st.just("9"),
        "cleanup.policy": _policy_list.map(",".join),
        THROTTLED: _throttle_list.map(",".join),
    },
)


@st.composite
def _topics(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Specs by name."""
    found: dict[str, dict[str, Any]] = {}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True)):
        spec: dict[str, Any] = {"configs": draw(_configs)}
        spec["partitions"] = draw(st.integers(1, 4))
        spec["replicationFactor"] = draw(st.integers(1, 3))
        spec["unmanagedConfigs"] = draw(st.sampled_from(["keep", "remove"]))
        found[name] = spec
    return found


_live = st.dictionaries(st.sampled_from(NAMES), st.tuples(st.integers(1, 2), st.integers(1, 3), _overrides))
_brokers = st.fixed_dictionaries(
    {},
    optional={
        "log.cleaner.threads": st.sampled_from(["1", "2"]),
        "num.io.threads": st.sampled_from(["2", "8", "64"]),
        "log.cleanup.policy": st.one_of(_policy_list, _parts(POLICIES)),
    },
)


def _make_world(live: dict[str, tuple[int, int, dict[str, str]]]) -> World:
    """A cluster from before kdeclare was used."""
    world = World(MemoryCluster())
    for name, (partitions, factor, overrides) in live.items():
        world.cluster.create_topics([NewTopic(name, partitions, factor, None, overrides)])
    return world


def _make_declared(specs: dict[str, dict[str, Any]], world: World) -> list[DesiredResource]:
    """Return the specs as resources; never with fewer partitions than live, which is an error by design."""
    existing = world.cluster.topics()
    result = []
    for name, spec in specs.items():
        count = len(existing[name].partitions) if name in existing else 1
        result.append(topic(name, **{**spec, "partitions": max(count, spec["partitions"])}))
    return result


def _apply_until_settled(world: World, declared: list[DesiredResource]) -> Plan:
    plan = world.plan(*declared, scope=PlanScope(allow_deletes=True))
    assert not plan.has_errors, plan.diagnostics
    result = world.run(plan)
    assert result.complete, result.results
    again = world.plan(*declared)
    assert not again.has_changes, again.changes
    assert not again.ownership
    return plan


@given(_live, _topics(), _topics(), _overrides, _brokers)
def test_apply_makes_next_plan_empty(
    live: dict[str, tuple[int, int, dict[str, str]]],
    first: dict[str, dict[str, Any]],
    second: dict[str, dict[str, Any]],
    foreign: dict[str, str],
    broker: dict[str, Any],
) -> None:
    world = _make_world(live)
    _apply_until_settled(world, _make_declared(first, world))
    for name in world.cluster.topics():
        world.set(name, **foreign)
    _apply_until_settled(
        world, [*_make_declared(second, world), desired("BrokerConfig", "2", configs=broker)]
    )
    _apply_until_settled(world, [])


@given(_live, _topics(), _topics(), _brokers)
def test_rollback_restores_all_overrides_and_ownership(
    live: dict[str, tuple[int, int, dict[str, str]]],
    first: dict[str, dict[str, Any]],
    second: dict[str, dict[str, Any]],
    broker: dict[str, Any],
) -> None:
    world = _make_world(live)
    world.apply(*_make_declared(first, world), desired("BrokerConfig", "cluster-default", configs=broker))
    before, owned, shapes = _read_overrides(world), dict(world.owned()), _read_shapes(world)
    done = world.apply(*_make_declared(second, world))
    if done.run_id is None:
        return
    result = world.rollback()
    assert result.complete, result.results
    assert _read_overrides(world) == before
    assert dict(world.owned()) == owned
    grown = {dump_args(op)["topic"] for op in done.plan.operations if op.verb == "partitions.increase"}
    after = _read_shapes(world)
    assert {n: s for n, s in after.items() if n not in grown} == {
        n: s for n, s in shapes.items() if n not in grown
    }


@given(_live, _topics(), _topics())
def test_plan_order_satisfies_edges_and_file_round_trips(
    live: dict[str, tuple[int, int, dict[str, str]]],
    first: dict[str, dict[str, Any]],
    second: dict[str, dict[str, Any]],
) -> None:
    world = _make_world(live)
    world.apply(*_make_declared(first, world))
    plan = world.plan(*_make_declared(second, world), scope=PlanScope(allow_deletes=True))
    place = {op.id: n for n, op in enumerate(plan.operations)}
    assert all(place[need] < place[op.id] for op in plan.operations for need in op.needs)
    for op in plan.operations:
        if op.verb == "configs.alter":
            keys = [item["key"] for item in dump_args(op)["ops"]]
            assert len(keys) == len(set(keys)), "Kafka takes a key once in a request"
        assert get_operation_type(op).expected_state(op)
    text, identity = render_plan_file(plan)
    assert parse_plan(text, "test") == plan
    assert identity == compute_plan_id(plan)
    assert (
        compute_plan_id(world.plan(*_make_declared(second, world), scope=PlanScope(allow_deletes=True)))
        == identity
    )


@given(_live)
def test_plan_of_live_state_is_empty(live: dict[str, tuple[int, int, dict[str, str]]]) -> None:
    world = _make_world(live)
    declared = []
    for name, described in world.cluster.topics().items():
        configs = {
            key: value.split(",") if key in ("cleanup.policy", THROTTLED) and value else value
            for key, value in world.overrides(name).items()
        }
        factor = len(described.partitions[0].replicas)
        spec = {"partitions": len(described.partitions), "replicationFactor": factor, "configs": configs}
        declared.append(topic(name, **spec, unmanagedConfigs="remove"))
    assert not world.plan(*declared).has_changes


def _read_overrides(world: World) -> dict[tuple[str, str], str]:
    """Format numbers as Kafka does: 0.50 is 0.5."""
    return {
        (str(resource), key): load_catalog(resource.scope).normalize(key, value)
        for resource, values in world.cluster.overrides().items()
        for key, value in values.items()
    }


def _read_shapes(world: World) -> dict[str, list[tuple[int, ...]]]:
    topics = world.cluster.topics().items()
    return {name: [p.replicas for p in found.partitions] for name, found in topics}


def test_empty_list_differs_from_unset() -> None:
    world = World()
    world.apply(topic("a", partitions=1, replicationFactor=1, configs={THROTTLED: []}))
    resource = ConfigResource(ConfigScope.TOPIC, "a")
    assert world.cluster.overrides(resource) == {THROTTLED: ""}
    world.apply(topic("a", partitions=1, replicationFactor=1))
    assert world.cluster.overrides(resource) == {}
