"""Shell completion for Kafka's commands: names, configs (``retention.ms=…``, ``k=v,k=[v,v]``), and keys."""

from collections.abc import Iterable, Iterator, Mapping

from kdeclare.cli.interactive.candidates import (
    CompletionOffer,
    CompletionRule,
    CompletionValue,
    make_plain_rule,
)
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT
from kdeclare.providers.kafka.client_quota.entity import EntityType
from kdeclare.providers.kafka.commands.acl.acl_completion import make_acl_rules
from kdeclare.providers.kafka.commands.clients.client_completion import (
    complete_keys as complete_client_keys,
)
from kdeclare.providers.kafka.commands.clients.client_completion import (
    complete_names,
    find_types,
)
from kdeclare.providers.kafka.commands.clients.client_completion import (
    complete_settings as complete_client_settings,
)
from kdeclare.providers.kafka.commands.clients.client_query import CLIENT_ENTITY_TYPES
from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import list_choices
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigQuery

_READ_ONLY = "read-only"
_COMMANDS = frozenset({("topic",), ("config",), ("group",), ("reassign",), ("acl",), ("usage",)})
_NEW_TOPIC = ("new", "topic")
_NAME_OPTIONS = {
    ConfigScope.TOPIC: "topic",
    ConfigScope.BROKER: "broker",
    ConfigScope.GROUP: "group",
    ConfigScope.CLIENT_METRICS: "client_metrics",
}
"""For each resource type, the option with which the command line names resources."""


def complete(place: CursorContext, names: Names) -> CompletionOffer | None:
    """Complete a parameter of the Kafka commands. Return None for any other parameter."""
    if place.wanted is None or (place.path[:1] not in _COMMANDS and place.path[:2] != _NEW_TOPIC):
        return None
    rules = _ACL_RULES if place.path[:1] == ("acl",) else _RULES_BY_OPTION
    for spelling in place.wanted.spellings:
        if spelling in rules:
            return rules[spelling](place, names)
    if not place.wanted.spellings and place.path[:1] in (("topic",), ("usage",)):
        return _TOPIC_RULE(place, names)
    if not place.wanted.spellings and place.path[:1] == ("group",):
        return _GROUP_RULE(place, names)
    return None


def find_overrides(names: Names, resource: ConfigResource) -> Mapping[str, str | None]:
    """Return the overrides of a resource. The value of a sensitive key is None."""

    def read_overrides(connections: Connections) -> Mapping[str, str | None]:
        configs_by_resource = connections.get(KafkaConnection).cluster.configs(
            [ConfigQuery(resource, overrides=True)]
        )
        return {key: entry.value for key, entry in configs_by_resource.get(resource, {}).items()}

    no_overrides: Mapping[str, str | None] = {}
    return names.ask(resource, read_overrides, no_overrides)


def _list_topics(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    used_texts = place.given.get(place.wanted.name, ()) if place.wanted else ()
    return (CompletionValue(name) for name in names.live("Topic") if name not in used_texts)


def _list_brokers(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return (CompletionValue(name) for name in names.live("BrokerConfig") if name != CLUSTER_DEFAULT)


def _complete_broker_list(place: CursorContext, names: Names) -> CompletionOffer:
    prefix, comma, partial_text = place.text.rpartition(",")
    used_texts = prefix.split(",")
    return CompletionOffer(
        [v for v in _list_brokers(place, names) if v.text not in used_texts], partial_text, prefix + comma
    )


def _list_groups(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    """Suggest groups, with their types and states.

    For commands about configs, also suggest all groups that have configs.
    """
    states = _read_group_states(names)
    if place.path[:1] != ("group",):
        configured = dict.fromkeys(names.live("GroupConfig"), "has configs")
        return (CompletionValue(id_, state) for id_, state in sorted({**states, **configured}.items()))
    used = {*place.given.get("names", ()), *place.given.get("group", ())}
    return (CompletionValue(id_, state) for id_, state in states.items() if id_ not in used)


def _read_group_states(names: Names) -> Mapping[str, str]:
    """Return the type and the state of each group as text."""

    def read_states(connections: Connections) -> Mapping[str, str]:
        listed = connections.get(KafkaConnection).cluster.groups.list_groups()
        return {id_: f"{group.type}, {group.state}" for id_, group in sorted(listed.items())}

    no_groups: Mapping[str, str] = {}
    return names.ask("groups", read_states, no_groups)


def _list_subscriptions(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return map(CompletionValue, names.live("ClientMetrics"))


def _list_entity_types(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    types = (*(scope.entity_type for scope in ConfigScope), *CLIENT_ENTITY_TYPES)
    return map(CompletionValue, types)


def _list_users(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return complete_names(EntityType.USER, place, names)


def _list_client_ids(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return complete_names(EntityType.CLIENT_ID, place, names)


def _list_addresses(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return complete_names(EntityType.IP, place, names)


def _list_entities(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    client_types = find_types(place)
    if client_types:  # with two types, the last one is the type whose name is being typed
        return complete_names(client_types[-1], place, names)
    list_names = {
        ConfigScope.BROKER: _list_brokers,
        ConfigScope.GROUP: _list_groups,
        ConfigScope.CLIENT_METRICS: _list_subscriptions,
    }.get(get_scope(place), _list_topics)
    return list_names(place, names)


def get_scope(place: CursorContext) -> ConfigScope:
    """Return the type of the resources that the command line names. The default is topics."""
    if "broker_defaults" in place.given:
        return ConfigScope.BROKER
    entity_type = place.first("entity_type") or ""
    for scope, option in _NAME_OPTIONS.items():
        if option in place.given or entity_type.startswith(scope.entity_type.removesuffix("s")):
            return scope
    return ConfigScope.TOPIC


def complete_setting(place: CursorContext, names: Names) -> CompletionOffer:
    """Complete a config of the form ``k=v``."""
    return _complete_setting(place, names, "", place.text, only_lists=False)


def complete_settings(place: CursorContext, names: Names) -> CompletionOffer:
    """Complete the last config of a list such as ``k=v,k=[v,v]``."""
    last_setting = split_settings(place.text)[-1]
    prefix = place.text[: len(place.text) - len(last_setting)]
    if find_types(place):
        return complete_client_settings(place, names, prefix, last_setting)
    return _complete_setting(place, names, prefix, last_setting, only_lists=False)


def complete_list_settings(place: CursorContext, names: Names) -> CompletionOffer:
    """Complete the last config of a list such as ``k=v,k=[v,v]``. Suggest only keys whose type is a list."""
    last_setting = split_settings(place.text)[-1]
    return _complete_setting(
        place, names, place.text[: len(place.text) - len(last_setting)], last_setting, only_lists=True
    )


def split_settings(text: str) -> list[str]:
    """Split ``k=v,k=[v,v]`` at commas outside brackets."""
    elements = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]" and depth > 0)
        if character == "," and not depth:
            elements.append("")
        else:
            elements[-1] += character
    return elements


def complete_keys(place: CursorContext, names: Names) -> CompletionOffer:
    """Complete the last key of a list such as ``k,k``.

    Suggest the keys that have overrides, or all keys if no overrides were found.
    """
    prefix, comma, partial_text = place.text.rpartition(",")
    if find_types(place):
        client_keys = [v for v in complete_client_keys(place, names) if v.text not in prefix.split(",")]
        return CompletionOffer(client_keys, partial_text, prefix + comma)
    key_catalog, overrides = load_catalog(get_scope(place)), _find_current_overrides(place, names)
    used_texts = set(prefix.split(","))
    values = [
        CompletionValue(key, f"now {value}" if value else "") for key, value in sorted(overrides.items())
    ]
    values = values or [
        CompletionValue(key, _format_hint(info, None))
        for key, info in _filter_keys(key_catalog, only_lists=False)
    ]
    return CompletionOffer(
        [value for value in values if value.text not in used_texts], partial_text, prefix + comma
    )


def _complete_setting(
    place: CursorContext, names: Names, prefix: str, text: str, *, only_lists: bool
) -> CompletionOffer:
    key_catalog, overrides = load_catalog(get_scope(place)), _find_current_overrides(place, names)
    key, sign, value = text.partition("=")
    if not sign:
        values = [
            CompletionValue(f"{k}=", _format_hint(i, overrides.get(k)))
            for k, i in _filter_keys(key_catalog, only_lists=only_lists)
        ]
        return CompletionOffer(values, text, prefix)
    info = key_catalog.get(key)
    if info is None or info.is_secret:
        return CompletionOffer((), value)
    prefix += key + sign
    if not info.is_list:
        return CompletionOffer(_list_values(key_catalog, key, info, overrides.get(key)), value, prefix)
    partial_text = value.rpartition(",")[2].removeprefix("[")
    used_texts = set(value.removeprefix("[").split(",")[:-1])
    elements = [CompletionValue(word) for word in list_choices(key_catalog, key) if word not in used_texts]
    return CompletionOffer(elements, partial_text, prefix + value[: len(value) - len(partial_text)])


def _list_values(
    key_catalog: Catalog, key: str, info: KeyInfo, current: str | None
) -> Iterator[CompletionValue]:
    value_choices = list_choices(key_catalog, key)
    labels = {info.default: "the default", current: "now"}
    leading_values = [value for value in (current, info.default) if value and value not in value_choices]
    for value in dict.fromkeys((*leading_values, *value_choices)):
        yield CompletionValue(value, labels.get(value, ""))


def _filter_keys(key_catalog: Catalog, *, only_lists: bool) -> list[tuple[str, KeyInfo]]:
    return [
        (key, info)
        for key, info in key_catalog.keys.items()
        if info.mode != _READ_ONLY and (info.can_be_patched or not only_lists)
    ]


def _format_hint(info: KeyInfo, current: str | None) -> str:
    if current is not None:
        return f"now {current}"
    return f"default {info.default}" if info.default else info.type.lower()


def _find_current_overrides(place: CursorContext, names: Names) -> Mapping[str, str | None]:
    scope = get_scope(place)
    arguments = [argument.name for argument in place.command.arguments]
    name = place.first(_NAME_OPTIONS[scope], "entity_name", *arguments)
    return find_overrides(names, ConfigResource(scope, name)) if name else {}


_TOPIC_RULE = make_plain_rule(_list_topics)
_GROUP_RULE = make_plain_rule(_list_groups)
_ACL_RULES = make_acl_rules(_read_group_states)
_RULES_BY_OPTION: Mapping[str, CompletionRule] = {
    "--add-config": complete_settings,
    "--append-config": complete_list_settings,
    "--broker": make_plain_rule(_list_brokers),
    "--broker-list": _complete_broker_list,
    "--client": make_plain_rule(_list_client_ids),
    "--client-metrics": make_plain_rule(_list_subscriptions),
    "--config": complete_setting,
    "--delete-config": complete_keys,
    "--group": _GROUP_RULE,
    "--entity-name": make_plain_rule(_list_entities),
    "--entity-type": make_plain_rule(_list_entity_types),
    "--ip": make_plain_rule(_list_addresses),
    "--subtract-config": complete_list_settings,
    "--topic": _TOPIC_RULE,
    "--user": make_plain_rule(_list_users),
}
