"""What could stand at the cursor. The rules go by how options are called, whatever the command."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kdeclare.cli.interactive.configs import (
    list_settings,
    one_setting,
    scope_of,
    some_keys,
    some_settings,
)
from kdeclare.cli.interactive.grammar import Parameter
from kdeclare.cli.interactive.names import Names, files
from kdeclare.cli.interactive.offer import Offer, Rule, Value, plainly
from kdeclare.cli.interactive.place import Place
from kdeclare.core.registry import KINDS
from kdeclare.providers.kafka.broker_config import CLUSTER_DEFAULT
from kdeclare.providers.kafka.config.scope import find_config_scope
from kdeclare.providers.kafka.ids import ConfigScope

_MOST = 500
"""More candidates than this help nobody to choose."""
_ENTITY_TYPES = ("topics", "brokers")


@dataclass(frozen=True)
class Candidate:
    """text: what the word at the cursor becomes. shown: what of it is new. about: a few words on it."""

    text: str
    shown: str
    about: str = ""


def candidates(place: Place, names: Names) -> list[Candidate]:
    """What could be typed here and begins as the word does."""
    offer = _offer(place, names)
    lead = place.lead + offer.lead
    found = (
        Candidate(lead + value.text, value.text, value.about)
        for value in offer.values
        if value.text.startswith(offer.begun)
    )
    return [candidate for candidate, _ in zip(found, range(_MOST), strict=False)]


def _offer(place: Place, names: Names) -> Offer:
    if place.wanted is not None:
        return _rule(place, place.wanted)(place, names)
    if place.is_option:
        return Offer(_options(place), place.text)
    commands = [Value(name, command.about) for name, command in place.command.commands.items()]
    return Offer(commands, place.text)


def _options(place: Place) -> Iterator[Value]:
    if place.path[:1] == ("help",):
        return
    for option in place.command.options:
        if option.repeats or option.name not in place.given:
            yield from (Value(name, option.about) for name in option.spellings if name.startswith("--"))


def _rule(place: Place, wanted: Parameter) -> Rule:
    if wanted.choices:
        return plainly(lambda place, names: map(Value, wanted.choices))
    for spelling in wanted.spellings:
        if spelling in _BY_OPTION:
            return _BY_OPTION[spelling]
    if wanted.metavar in _BY_METAVAR:
        return _BY_METAVAR[wanted.metavar]
    if not wanted.spellings and place.path[:1] == ("topic",):
        return _TOPICS
    return plainly(_files) if wanted.paths or wanted.metavar == "DIR|URI" else plainly(_nothing)


def _topics(place: Place, names: Names) -> Iterable[Value]:
    taken = place.given.get(place.wanted.name, ()) if place.wanted else ()
    return (Value(name) for name in names.topics() if name not in taken)


def _brokers(place: Place, names: Names) -> Iterable[Value]:
    return (Value(str(broker)) for broker in names.brokers())


def _some_brokers(place: Place, names: Names) -> Offer:
    lead, comma, begun = place.text.rpartition(",")
    taken = lead.split(",")
    return Offer([v for v in _brokers(place, names) if v.text not in taken], begun, lead + comma)


def _entities(place: Place, names: Names) -> Iterable[Value]:
    return (_brokers if scope_of(place) is ConfigScope.BROKER else _topics)(place, names)


def _environments(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, names.environments())


def _runs(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, names.runs())


def _runs_to_compare(place: Place, names: Names) -> Iterable[Value]:
    words = place.given.get(place.wanted.name, ()) if place.wanted else ()
    if not words:
        yield Value("diff", "How two runs or plan files differ")
    yield from _runs(place, names)
    if words:
        yield from _files(place, names)


def _resources(place: Place, names: Names) -> Iterable[Value]:
    kind, slash, _ = place.text.partition("/")
    if not slash:
        return (Value(f"{name}/") for name in KINDS)
    scope = find_config_scope(kind)
    live: Iterable[object] = ()
    if scope is ConfigScope.TOPIC:
        live = names.topics()
    elif scope is ConfigScope.BROKER:
        live = (CLUSTER_DEFAULT, *names.brokers())
    known = dict.fromkeys((*names.declared(), *(f"{kind}/{name}" for name in live)))
    return map(Value, known)


def _files(place: Place, names: Names) -> Iterable[Value]:
    return map(Value, files(place.text))


def _nothing(place: Place, names: Names) -> Iterable[Value]:
    return ()


_TOPICS = plainly(_topics)
_BY_OPTION: Mapping[str, Rule] = {
    "--add-config": some_settings,
    "--append-config": list_settings,
    "--broker": plainly(_brokers),
    "--broker-list": _some_brokers,
    "--config": one_setting,
    "--delete-config": some_keys,
    "--entity-name": plainly(_entities),
    "--entity-type": plainly(lambda place, names: map(Value, _ENTITY_TYPES)),
    "--env": plainly(_environments),
    "--kind": plainly(lambda place, names: map(Value, KINDS)),
    "--subtract-config": list_settings,
    "--topic": _TOPICS,
}
_BY_METAVAR: Mapping[str, Rule] = {
    "KIND/NAME": plainly(_resources),
    "RUN_ID": plainly(_runs),
    "RUN_ID | diff A B": plainly(_runs_to_compare),
}
