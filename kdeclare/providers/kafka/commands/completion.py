"""What the shell offers for topics, brokers and configs: ``retention.ms=…``, ``k=v,k=[v,v]``, ``k,k``."""

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
from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import list_choices
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import ConfigQuery

_READ_ONLY = "read-only"
_COMMANDS = frozenset({("topic",), ("config",), ("reassign",)})
_NEW_TOPIC = ("new", "topic")
_ENTITY_TYPES = ("topics", "brokers")


def complete(place: CursorContext, names: Names) -> CompletionOffer | None:
    """Return what could be typed for a parameter of Kafka's commands; None for any other."""
    if place.wanted is None or (place.path[:1] not in _COMMANDS and place.path[:2] != _NEW_TOPIC):
        return None
    for spelling in place.wanted.spellings:
        if spelling in _BY_OPTION:
            return _BY_OPTION[spelling](place, names)
    if not place.wanted.spellings and place.path[:1] == ("topic",):
        return _TOPICS(place, names)
    return None


def find_overrides(names: Names, resource: ConfigResource) -> Mapping[str, str | None]:
    """Return what is set on a resource itself; None for what Kafka keeps secret."""

    def ask(connections: Connections) -> Mapping[str, str | None]:
        found = connections.get(KafkaConnection).cluster.configs([ConfigQuery(resource, overrides=True)])
        return {key: entry.value for key, entry in found.get(resource, {}).items()}

    nothing: Mapping[str, str | None] = {}
    return names.ask(resource, ask, nothing)


def _topics(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    taken = place.given.get(place.wanted.name, ()) if place.wanted else ()
    return (CompletionValue(name) for name in names.live("Topic") if name not in taken)


def _brokers(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return (CompletionValue(name) for name in names.live("BrokerConfig") if name != CLUSTER_DEFAULT)


def _some_brokers(place: CursorContext, names: Names) -> CompletionOffer:
    lead, comma, begun = place.text.rpartition(",")
    taken = lead.split(",")
    return CompletionOffer([v for v in _brokers(place, names) if v.text not in taken], begun, lead + comma)


def _entities(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    return (_brokers if scope_of(place) is ConfigScope.BROKER else _topics)(place, names)


def scope_of(place: CursorContext) -> ConfigScope:
    """Whose configs the line is about."""
    kind = place.first("entity_type") or ""
    about_brokers = kind.startswith("broker") or "broker" in place.given or "broker_defaults" in place.given
    return ConfigScope.BROKER if about_brokers else ConfigScope.TOPIC


def one_setting(place: CursorContext, names: Names) -> CompletionOffer:
    """``k=v``."""
    return _setting(place, names, "", place.text, only_lists=False)


def some_settings(place: CursorContext, names: Names) -> CompletionOffer:
    """``k=v,k=[v,v]``."""
    last = settings(place.text)[-1]
    return _setting(place, names, place.text[: len(place.text) - len(last)], last, only_lists=False)


def list_settings(place: CursorContext, names: Names) -> CompletionOffer:
    """The same of keys that take a list."""
    last = settings(place.text)[-1]
    return _setting(place, names, place.text[: len(place.text) - len(last)], last, only_lists=True)


def settings(text: str) -> list[str]:
    """The elements of ``k=v,k=[v,v]``; a comma between brackets parts nothing."""
    found = [""]
    depth = 0
    for character in text:
        depth += (character == "[") - (character == "]" and depth > 0)
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


def some_keys(place: CursorContext, names: Names) -> CompletionOffer:
    """``k,k``: those that are set, where that is known."""
    lead, comma, begun = place.text.rpartition(",")
    known, now = load_catalog(scope_of(place)), _now(place, names)
    taken = set(lead.split(","))
    found = [CompletionValue(key, f"now {value}" if value else "") for key, value in sorted(now.items())]
    found = found or [
        CompletionValue(key, _about(info, None)) for key, info in _keys(known, only_lists=False)
    ]
    return CompletionOffer([value for value in found if value.text not in taken], begun, lead + comma)


def _setting(
    place: CursorContext, names: Names, lead: str, text: str, *, only_lists: bool
) -> CompletionOffer:
    known, now = load_catalog(scope_of(place)), _now(place, names)
    key, sign, value = text.partition("=")
    if not sign:
        found = [
            CompletionValue(f"{k}=", _about(i, now.get(k))) for k, i in _keys(known, only_lists=only_lists)
        ]
        return CompletionOffer(found, text, lead)
    info = known.get(key)
    if info is None or info.is_secret:
        return CompletionOffer((), value)
    lead += key + sign
    if not info.is_list:
        return CompletionOffer(_values(known, key, info, now.get(key)), value, lead)
    begun = value.rpartition(",")[2].removeprefix("[")
    taken = set(value.removeprefix("[").split(",")[:-1])
    elements = [CompletionValue(word) for word in list_choices(known, key) if word not in taken]
    return CompletionOffer(elements, begun, lead + value[: len(value) - len(begun)])


def _values(known: Catalog, key: str, info: KeyInfo, now: str | None) -> Iterator[CompletionValue]:
    words = list_choices(known, key)
    said = {info.default: "the default", now: "now"}
    first = [value for value in (now, info.default) if value and value not in words]
    for value in dict.fromkeys((*first, *words)):
        yield CompletionValue(value, said.get(value, ""))


def _keys(known: Catalog, *, only_lists: bool) -> list[tuple[str, KeyInfo]]:
    return [
        (key, info)
        for key, info in known.keys.items()
        if info.mode != _READ_ONLY and (info.is_list or not only_lists)
    ]


def _about(info: KeyInfo, now: str | None) -> str:
    if now is not None:
        return f"now {now}"
    return f"default {info.default}" if info.default else info.type.lower()


def _now(place: CursorContext, names: Names) -> Mapping[str, str | None]:
    """What is set on the one resource that the line names, if it names one."""
    scope = scope_of(place)
    arguments = [argument.name for argument in place.command.arguments]
    named = "broker" if scope is ConfigScope.BROKER else "topic"
    name = place.first(named, "entity_name", *arguments)
    return find_overrides(names, ConfigResource(scope, name)) if name else {}


_TOPICS = make_plain_rule(_topics)
_BY_OPTION: Mapping[str, CompletionRule] = {
    "--add-config": some_settings,
    "--append-config": list_settings,
    "--broker": make_plain_rule(_brokers),
    "--broker-list": _some_brokers,
    "--config": one_setting,
    "--delete-config": some_keys,
    "--entity-name": make_plain_rule(_entities),
    "--entity-type": make_plain_rule(lambda place, names: map(CompletionValue, _ENTITY_TYPES)),
    "--subtract-config": list_settings,
    "--topic": _TOPICS,
}
