"""``kdeclare config describe``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Format, Reach
from kdeclare.model.exits import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.looking_configs import WhichResources

_EPILOG = epilog(
    "kdeclare config describe --topic orders",
    "kdeclare config describe --broker 1 --all      and what holds there otherwise",
    "kdeclare config describe --entity-type brokers --entity-default",
    codes=(0, 1, 64, 130),
)
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
    topic: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Of this topic. Repeatable.")] = None
    broker: Annotated[list[str] | None, typer.Option(metavar="ID", help="Of this broker. Repeatable.")] = None
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="What is set for all brokers of the cluster.")
    ] = False

    def which(self) -> "WhichResources":
        """As the use-cases want it. Raises BadParameter for what contradicts itself, or is not there."""
        from kdeclare.app.looking_configs import WhichResources
        from kdeclare.model.ids import ConfigScope

        kind = self._kind()
        names = [*(self.entity_name or ()), *(self.topic or ()), *(self.broker or ())]
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


def register(group: typer.Typer) -> None:
    """Put the command into the group ``config``."""
    command(group, "describe", epilog=_EPILOG)(describe)


def describe(
    *,
    entities: Entities,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also what is not set there, of all keys that kdeclare knows."),
    ] = False,
    output: Format = "text",
    reach: Reach,
    console: Console,
) -> ExitCode:
    """Show configs of topics or brokers, and where each value comes from.

    Without a name, of all of the type.
    """
    from kdeclare.app.looking_configs import describe_configs

    which = entities.which()
    workspace = reach.workspace()
    console.progress("Reading the cluster", 0, 0)
    view = describe_configs(workspace, which, everything=everything)
    if console.is_json:
        from kdeclare.report.configs_json import configs_document

        console.out_json(configs_document(view))
        return ExitCode.OK
    from kdeclare.report.configs_text import configs_text

    console.notices(view.diagnostics)
    console.out(configs_text(view, console.width, console.style))
    return ExitCode.OK


def _broker_id(text: str) -> str:
    """The id as Kafka writes it. Raises BadParameter for what is none."""
    if not (text.isascii() and text.isdecimal()):
        raise typer.BadParameter(f"'{text}' is no id of a broker; those are numbers.", param_hint="--broker")
    return str(int(text))


def _unsupported(kind: str) -> str:
    known = "kdeclare knows topics and brokers"
    if kind in _OTHERS:
        return f"{known}; for {kind}, use Kafka's own kafka-configs.sh."
    return f"'{kind}' is no type of entity; {known}."
