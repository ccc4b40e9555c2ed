"""Whose configs are meant, in the words of kafka-configs."""

from dataclasses import dataclass
from typing import Annotated

import typer

TOPICS, BROKERS = "topics", "brokers"
_OTHERS = ("users", "clients", "ips", "groups", "client-metrics", "broker-loggers")
_DEFAULT = "cluster-default"


@dataclass(frozen=True)
class Entities:
    """Topics, brokers, or what all brokers have by default."""

    entity_type: Annotated[
        str | None, typer.Option(metavar="topics|brokers", help="What --entity-name names.")
    ] = None
    entity_name: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A topic, or a broker's id. Repeatable.")
    ] = None
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="What all brokers have by default.")
    ] = False
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,…]", help="Topics, by name or regular expression.")
    ] = None
    broker: Annotated[list[str] | None, typer.Option(metavar="ID[,…]", help="Brokers by id.")] = None
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="The same as --entity-type brokers --entity-default.")
    ] = False

    def topics(self) -> list[str]:
        """The topics that are named, as on the command line. Raises BadParameter."""
        return [*(self.topic or ()), *self._named(TOPICS)]

    def brokers(self) -> list[str]:
        """Ids of brokers, and ``cluster-default``. Raises BadParameter, also where nothing is named."""
        ids = [i.strip() for text in (*(self.broker or ()), *self._named(BROKERS)) for i in text.split(",")]
        for broker in ids:
            if not (broker.isascii() and broker.isdigit()):
                raise typer.BadParameter(f"'{broker}' is no broker id.", param_hint="--broker")
        default = self.broker_defaults or (self.entity_default and self.entity_type == BROKERS)
        found = [*(str(int(broker)) for broker in ids), *([_DEFAULT] if default else [])]
        self._check(found)
        return found

    def _named(self, kind: str) -> list[str]:
        return list(self.entity_name or ()) if self.entity_type == kind else []

    def _check(self, brokers: list[str]) -> None:
        kind = self.entity_type
        if kind in _OTHERS:
            raise typer.BadParameter(
                f"kdeclare manages configs of topics and brokers, not of {kind}.", param_hint="--entity-type"
            )
        if kind not in (None, TOPICS, BROKERS):
            raise typer.BadParameter(f"takes topics or brokers, not '{kind}'.", param_hint="--entity-type")
        if kind is None and (self.entity_name or self.entity_default):
            raise typer.BadParameter("needs --entity-type topics or brokers.", param_hint="--entity-name")
        if kind == TOPICS and self.entity_default:
            raise typer.BadParameter(
                "Kafka has no default of all topics; their defaults are the brokers'.",
                param_hint="--entity-default",
            )
        if not (brokers or self.topics()):
            raise typer.BadParameter(
                "name topics or brokers: --topic NAME, --broker ID or --broker-defaults.",
                param_hint="--entity-name",
            )
        if brokers and self.topics():
            raise typer.BadParameter("goes with topics or with brokers, not both.", param_hint="--topic")
