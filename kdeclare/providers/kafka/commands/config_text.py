"""Configs for people: key, value, and where the value comes from."""

from collections.abc import Iterable, Iterator, Mapping

from kdeclare.core.secrets import SHOWN
from kdeclare.providers.kafka.commands.views import ConfigsView, ResourceConfigs
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.table import Cell, Column, Cut, Painted, table
from kdeclare.report.values import clean, plural, show

_WORDS: Mapping[ConfigSource, str] = {
    ConfigSource.TOPIC: "set on the topic",
    ConfigSource.BROKER: "set on the broker",
    ConfigSource.CLUSTER: "set for all brokers",
    ConfigSource.STATIC: "file of the broker",
    ConfigSource.DEFAULT: "Kafka's default",
    ConfigSource.BROKER_LOGGER: "logger of the broker",
    ConfigSource.UNKNOWN: "unknown",
}
_COLUMNS = (
    Column("KEY", cut=Cut.MIDDLE, least=20),
    Column("VALUE", cut=Cut.END),
    Column("SOURCE"),
    Column("WITHOUT IT", cut=Cut.END),
    Column("IN KAFKA'S WORDS"),
)
_WIDE = 120
"""A terminal that has room for the words of Kafka, too."""


def configs_text(view: ConfigsView, width: int | None = None, style: Style = PLAIN) -> str:
    """The whole text, ending in a new line. width: columns of the terminal, None for no bound."""
    blocks = ("".join(f"{line}\n" for line in _resource(item, width, style)) for item in view.resources)
    return "\n".join(blocks) or f"Nothing to show of {clean(view.cluster)}.\n"


def config_table(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    """The lines of a table of keys; what is not set on the resource itself stands back."""
    words = width is None or width >= _WIDE
    return table(_COLUMNS, list(_rows(item, style, words)), width, style, "  ")


def _resource(item: ResourceConfigs, width: int | None, style: Style) -> Iterator[str]:
    own = sum(entry.source is _own(item.resource) for entry in item.entries.values())
    more = len(item.entries) - own
    said = f"{plural(own, 'key')} set" if own else "nothing set"
    yield f"{style.bold(_title(item.resource))}: {said}{f', {more:,} more' if more else ''}"
    if item.entries:
        yield from config_table(item, width, style)


def _title(resource: ConfigResource) -> str:
    if resource.scope is ConfigScope.TOPIC:
        return f"Topic {clean(resource.name)}"
    return f"Broker {clean(resource.name)}" if resource.name else "All brokers (cluster-wide default)"


def _own(resource: ConfigResource) -> ConfigSource:
    if resource.scope is ConfigScope.TOPIC:
        return ConfigSource.TOPIC
    return ConfigSource.BROKER if resource.name else ConfigSource.CLUSTER


def _rows(item: ResourceConfigs, style: Style, words: bool) -> Iterable[tuple[Cell, ...]]:
    own = _own(item.resource)
    for key, entry in sorted(item.entries.items()):
        cells = (
            clean(key),
            SHOWN if entry.sensitive else show(entry.value, key),
            _WORDS[entry.source],
            "" if entry.beneath is None else show(entry.beneath, key),
            entry.source.value if words else "",
        )
        yield cells if entry.source is own else tuple(Painted(cell, style.dim) for cell in cells)
