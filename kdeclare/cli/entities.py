"""Whose configs are meant, in the words of kafka-configs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.topic_names import separated
from kdeclare.providers.kafka.ids import parse_broker_id

if TYPE_CHECKING:
    from kdeclare.app.looking_configs import WhichResources

_TYPES = ("topics", "brokers")
_OTHERS = ("users", "clients", "groups", "client-metrics", "ips", "broker-loggers")


@dataclass(frozen=True)
class Entities:
    """Whose configs: the options of Kafka's own tool, and its shortcuts."""

    entity_type: Annotated[
        str | None, typer.Option(metavar="topics|brokers", help="Whose configs they are.")
    ] = None
    entity_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Of this topic, or the broker with this id. Repeatable."),
    ] = None
    entity_default: Annotated[
        bool, typer.Option("--entity-default", help="What is set for all brokers of the cluster.")
    ] = False
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,…]", help="Of these topics. Repeatable.")
    ] = None
    broker: Annotated[
        list[str] | None, typer.Option(metavar="ID[,…]", help="Of these brokers. Repeatable.")
    ] = None
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="What is set for all brokers of the cluster.")
    ] = False

    def which(self) -> "WhichResources":
        """As the use-cases want it. Raises BadParameter for what contradicts itself, or is not there."""
        from kdeclare.app.looking_configs import WhichResources
        from kdeclare.providers.kafka.ids import ConfigScope

        kind = self._kind()
        names = [*(self.entity_name or ()), *separated(self.topic), *separated(self.broker)]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="--entity-name")
        default = self.entity_default or self.broker_defaults
        if kind == "topics":
            if default:
                raise typer.BadParameter("topics have no default entity.", param_hint="--entity-default")
            return WhichResources(ConfigScope.TOPIC, tuple(names))
        return WhichResources(ConfigScope.BROKER, tuple(map(_broker_id, names)), default)

    def _kind(self) -> str:
        """The one type of entity that the options are about."""
        shortcuts = {
            "topics": ("--topic", bool(self.topic)),
            "brokers": (
                "--broker" if self.broker else "--broker-defaults",
                bool(self.broker) or self.broker_defaults,
            ),
        }
        given = {kind: option for kind, (option, used) in shortcuts.items() if used}
        if self.entity_type is not None:
            if self.entity_type not in _TYPES:
                raise typer.BadParameter(_unsupported(self.entity_type), param_hint="--entity-type")
            given.setdefault(self.entity_type, "--entity-type")
        if len(given) > 1:
            raise typer.BadParameter(
                "one command is about one type of entity.", param_hint=" / ".join(given.values())
            )
        if not given:
            raise typer.BadParameter("needs topics or brokers.", param_hint="--entity-type")
        return next(iter(given))


def _broker_id(text: str) -> str:
    """The id as Kafka writes it. Raises BadParameter for what is none."""
    plain = text.lstrip("0") or text[:1]
    if parse_broker_id(plain) is None:
        raise typer.BadParameter(f"'{text}' is no id of a broker; those are numbers.", param_hint="--broker")
    return plain


def _unsupported(kind: str) -> str:
    known = "kdeclare knows topics and brokers"
    if kind in _OTHERS:
        return f"{known}; for {kind}, use Kafka's own kafka-configs.sh."
    return f"'{kind}' is no type of entity; {known}."
