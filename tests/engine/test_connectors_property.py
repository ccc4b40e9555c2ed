"""Random connectors, and random changes by another client: every apply converges, and rollbacks restore."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.request import DeletionLimit, PlanScope
from kdeclare.providers.connect.client.connectors_port import LiveConnector, TargetState
from kdeclare.providers.connect.testing import MemoryConnectCluster
from kdeclare.testing.world import declare
from tests.engine.world import World

pytestmark = pytest.mark.hypothesis

NAMES = ("a", "b", "c")
CLASSES = ("FileStreamSink", "org.apache.kafka.connect.file.FileStreamSinkConnector")
SCOPE = PlanScope(allow_deletes=True, max_deletes=DeletionLimit.parse("100%"))
SECRETS = {f"${{env.S{number}}}": f"secret-value-{number}" for number in range(3)}
TEXTS = st.sampled_from(["", "1", "2", "${file:/a:b}"])
REFERENCES = st.sampled_from(sorted(SECRETS)).map(lambda reference: Referenced(SECRETS[reference], reference))
PLACEHOLDERS = st.just("${file:/a:b}")
FOREIGN_KEYS = st.sampled_from(["k1", "k2", "db.password", "platform.id"])

configs = st.fixed_dictionaries(
    {"topics": st.just("t")},
    optional={
        "k1": TEXTS,
        "k2": st.one_of(TEXTS, REFERENCES),
        "db.password": st.one_of(PLACEHOLDERS, REFERENCES),
    },
)
connectors = st.fixed_dictionaries(
    {
        "class": st.sampled_from(CLASSES),
        "tasksMax": st.integers(1, 3),
        "config": configs,
    },
    optional={"state": st.sampled_from(["RUNNING", "PAUSED", "STOPPED"])},
)
projects = st.dictionaries(st.sampled_from(NAMES), connectors)
foreign_configs = st.dictionaries(FOREIGN_KEYS, st.sampled_from(["1", "2", "foreign-secret"]))
foreign_changes = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(st.none(), st.sampled_from(TargetState), foreign_configs),
)


def declare_all(project: dict[str, Any]) -> list[DesiredResource]:
    return [declare("Connector", name, spec) for name, spec in sorted(project.items())]


def make_world(connect: MemoryConnectCluster) -> World:
    world = World(connect_clusters={"eu": connect})
    world.secrets.values.update(SECRETS)
    return world


def change_elsewhere(connect: MemoryConnectCluster, changes: dict[str, Any]) -> None:
    """Delete, pause, stop, resume, create or configure connectors as another client."""
    other = connect.elsewhere()
    for name, change in changes.items():
        live = other.describe_connector(name)
        if isinstance(change, dict):
            base = {"connector.class": "FileStreamSink", "topics": "t"} if live is None else dict(live.config)
            other.replace_config(name, {**base, **change})
        elif live is not None and change is None:
            other.delete_connector(name)
        elif live is not None:
            other.set_state(name, change)
    other.settle()


def read(connect: MemoryConnectCluster) -> dict[str, tuple[dict[str, str], str]]:
    """Return the config and the state of each connector."""
    other = connect.elsewhere()
    other.settle()
    return {name: (dict(live.config), live.state) for name, live in other.list_connectors().items()}


def expect_as_declared(live: LiveConnector | None, name: str, spec: dict[str, Any]) -> None:
    assert live is not None
    assert live.config["connector.class"] in CLASSES
    config = {key: value for key, value in live.config.items() if key != "connector.class"}
    assert config == {"name": name, "tasks.max": str(spec["tasksMax"]), **spec["config"]}
    assert live.state == spec.get("state", live.state)


@given(projects, foreign_changes, projects)
def test_every_apply_converges(
    first: dict[str, Any], changes: dict[str, Any], second: dict[str, Any]
) -> None:
    connect = MemoryConnectCluster()
    world = make_world(connect)
    assert world.apply(*declare_all(first), scope=SCOPE).complete
    change_elsewhere(connect, changes)
    result = world.apply(*declare_all(second), scope=SCOPE)
    assert result.complete, result.results
    for name, spec in second.items():
        expect_as_declared(connect.elsewhere().describe_connector(name), name, spec)
    assert not first.keys() - second.keys() & read(connect).keys()
    assert not world.plan(*declare_all(second), scope=SCOPE).has_changes


@given(projects, foreign_changes, projects)
def test_rollback_restores_configs_and_states(
    first: dict[str, Any], changes: dict[str, Any], second: dict[str, Any]
) -> None:
    connect = MemoryConnectCluster()
    world = make_world(connect)
    assert world.apply(*declare_all(first), scope=SCOPE).complete
    change_elsewhere(connect, changes)
    before, owned_before = read(connect), world.owned()
    run = world.apply(*declare_all(second), scope=SCOPE)
    if run.run_id is None:
        return
    rollback = world.rollback(run.run_id)
    assert rollback.complete, rollback.results
    lost = {d.resource for d in rollback.plan.diagnostics if d.code == "irreversible"}
    after = read(connect)
    for name in before.keys() | after.keys():
        if f"Connector/{name}" not in lost:
            assert after.get(name) == before.get(name)
    if not lost:
        assert world.owned() == owned_before


@given(projects, projects, foreign_changes)
def test_rollback_keeps_what_others_changed(
    first: dict[str, Any], second: dict[str, Any], changes: dict[str, Any]
) -> None:
    connect = MemoryConnectCluster()
    world = make_world(connect)
    assert world.apply(*declare_all(first), scope=SCOPE).complete
    before = read(connect)
    run = world.apply(*declare_all(second), scope=SCOPE)
    done = read(connect)
    change_elsewhere(connect, changes)
    changed = read(connect)
    if run.run_id is None:
        return
    assert world.rollback(run.run_id).complete
    after = read(connect)
    for name in changed.keys() & done.keys() & after.keys():
        theirs = {key for key in {*changed[name][0], *done[name][0]} if _differs(changed, done, name, key)}
        for key in theirs:
            assert after[name][0].get(key) == changed[name][0].get(key), key
    for name in after.keys() - changed.keys():
        assert name in before  # the rollback creates only what the run deleted


def _differs(one: dict[str, Any], other: dict[str, Any], name: str, key: str) -> bool:
    return bool(one[name][0].get(key) != other[name][0].get(key))
