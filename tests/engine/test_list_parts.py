"""Ownership of list elements: kdeclare removes only elements that it added (contract, section 4, Lists)."""

from collections.abc import Mapping
from typing import Any

from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.config_diff import ConfigDiff, LiveConfigs, diff_configs
from kdeclare.providers.kafka.config.config_record import Applied, AppliedValue
from kdeclare.providers.kafka.config.config_value import ConfigValue, ListPatch, Value
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import NewTopic
from tests.engine.world import World, topic

POLICY = "cleanup.policy"


def topic_with_patch(**parts: list[str]) -> DesiredResource:
    """Declare the topic with a part of its cleanup.policy."""
    return topic("x", configs={POLICY: parts})


def make_live_world(policy: str) -> World:
    """A topic that another client created with this cleanup.policy."""
    world = World()
    world.cluster.create_topics([NewTopic("x", 1, 1, None, {POLICY: policy})])
    return world


def read_record(world: World) -> Mapping[str, Any]:
    """Return the owned elements of the list."""
    found: Mapping[str, Any] = world.owned()["Topic/x"]["configs"][POLICY]
    return found


def test_list_patch_removal_keeps_preexisting_element() -> None:
    world = make_live_world("delete,compact")
    world.apply(topic_with_patch(append=["compact"]))
    assert read_record(world)["added"] == []
    world.apply(topic("x"))
    assert world.overrides("x") == {POLICY: "delete,compact"}


def test_list_patch_removal_removes_added_element() -> None:
    world = make_live_world("delete")
    world.apply(topic_with_patch(append=["compact"]))
    assert read_record(world)["added"] == ["compact"]
    world.apply(topic_with_patch(append=["compact"]))
    assert read_record(world)["added"] == ["compact"], "a later apply does not forget it"
    world.apply(topic("x"))
    assert world.overrides("x") == {POLICY: "delete"}


def test_element_removed_by_another_client_is_owned_when_added_again() -> None:
    world = make_live_world("delete,compact")
    world.apply(topic_with_patch(append=["compact"]))
    world.set("x", cleanup_policy="delete")
    world.apply(topic_with_patch(append=["compact"]))
    assert read_record(world)["added"] == ["compact"]


def test_whole_list_elements_stay_owned_as_list_patch() -> None:
    world = make_live_world("delete")
    world.apply(topic("x", configs={POLICY: ["delete", "compact"]}))
    world.apply(topic_with_patch(append=["compact"]))
    assert world.overrides("x") == {POLICY: "compact"}, "delete was owned and is no longer declared"
    assert read_record(world)["added"] == ["compact"]


def test_plugin_list_applied_as_text_has_not_drifted() -> None:
    """Only the cluster knows that the key is a list; the manifest and the record hold a text."""
    entries = {"plugin.list": ConfigEntry("a,b", ConfigSource.TOPIC, ConfigType.LIST)}
    side = LiveConfigs("Topic/x", entries, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC))
    owned = {"plugin.list": AppliedValue("b, a")}
    found = diff_configs(side, {"plugin.list": Value("b, a")}, owned, reset_unmanaged=False)
    assert (found.fields, found.drifted) == ((), ())
    others = {"plugin.list": AppliedValue("a")}
    assert diff_configs(side, {}, others, reset_unmanaged=False).drifted == ("plugin.list",)


def compare_plugin_key(entry: ConfigEntry, wish: ConfigValue, owned: Applied | None = None) -> ConfigDiff:
    """Compare a key that only the manifest treats as a list."""
    side = LiveConfigs("Topic/x", {"plugin.key": entry}, ConfigSource.TOPIC, load_catalog(ConfigScope.TOPIC))
    applied = {} if owned is None else {"plugin.key": owned}
    return diff_configs(side, {"plugin.key": wish}, applied, reset_unmanaged=False)


def test_list_typed_as_string_is_compared_by_elements() -> None:
    entry = ConfigEntry("a,b", ConfigSource.TOPIC)
    same = compare_plugin_key(entry, Value(("b", "a")), AppliedValue(("b", "a")))
    assert (same.fields, same.drifted) == ((), ())
    more = ["a", "b", "c"]
    changed = FieldChange("configs.plugin.key", FieldOp.SET, "a,b", more)
    assert compare_plugin_key(entry, Value(tuple(more))).fields == (changed,), "a text takes no elements"
    parts = compare_plugin_key(entry, ListPatch(("b", "c"), ("a",)))
    assert [(field.op, field.before, field.after, field.value) for field in parts.fields] == [
        (FieldOp.APPEND, "a,b", more, ["c"]),
        (FieldOp.SUBTRACT, more, ["b", "c"], ["a"]),
    ]


def test_sensitive_list_elements_are_not_invented() -> None:
    hidden = ConfigEntry(None, ConfigSource.TOPIC, sensitive=True)
    found = compare_plugin_key(hidden, ListPatch(("new",), ("s",)))
    assert [(field.op, field.before, field.after, field.value) for field in found.fields] == [
        (FieldOp.APPEND, SENSITIVE_MASK, ["new"], ["new"]),
    ]
