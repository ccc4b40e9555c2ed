"""Ownership of list elements: kdeclare takes away only what it added (contract, section 4, Lists)."""

from collections.abc import Mapping
from typing import Any

from kdeclare.core.kind import Desired
from kdeclare.providers.kafka.port import NewTopic
from tests.engine.world import World, topic

POLICY = "cleanup.policy"


def part(**parts: list[str]) -> Desired:
    """The topic with a part of its cleanup.policy."""
    return topic("x", configs={POLICY: parts})


def live_world(policy: str) -> World:
    """A topic that someone else made with this cleanup.policy."""
    world = World()
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {POLICY: policy})])
    return world


def record(world: World) -> Mapping[str, Any]:
    """What is owned of the list."""
    found: Mapping[str, Any] = world.owned()["Topic/x"]["configs"][POLICY]
    return found


def test_element_present_before_its_part_stays_when_the_part_leaves() -> None:
    world = live_world("delete,compact")
    world.apply(part(append=["compact"]))
    assert record(world)["added"] == []
    world.apply(topic("x"))
    assert world.overrides("x") == {POLICY: "delete,compact"}


def test_element_that_was_added_goes_when_the_part_leaves() -> None:
    world = live_world("delete")
    world.apply(part(append=["compact"]))
    assert record(world)["added"] == ["compact"]
    world.apply(part(append=["compact"]))
    assert record(world)["added"] == ["compact"], "a later apply does not forget it"
    world.apply(topic("x"))
    assert world.overrides("x") == {POLICY: "delete"}


def test_element_that_someone_else_removed_is_owned_once_added_again() -> None:
    world = live_world("delete,compact")
    world.apply(part(append=["compact"]))
    world.set("x", cleanup_policy="delete")
    world.apply(part(append=["compact"]))
    assert record(world)["added"] == ["compact"]


def test_elements_of_a_whole_list_stay_owned_when_declared_in_part() -> None:
    world = live_world("delete")
    world.apply(topic("x", configs={POLICY: ["delete", "compact"]}))
    world.apply(part(append=["compact"]))
    assert world.overrides("x") == {POLICY: "compact"}, "delete was owned and is no longer declared"
    assert record(world)["added"] == ["compact"]
