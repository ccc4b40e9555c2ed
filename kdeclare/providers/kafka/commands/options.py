"""The options of Kafka's own tools (TopicCommand, ConfigCommand), and what their values mean."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.adhoc import VerifyTimeout, WriteManifest
from kdeclare.cli.console import Console
from kdeclare.cli.options import ChosenOptions, OverrideOptions, ProviderOptionsMarker, parse_settings
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.ids import parse_broker_id

if TYPE_CHECKING:
    from kdeclare.app.adhoc.run import AdhocOptions
    from kdeclare.engine.planning.request import PlanScope
    from kdeclare.providers.kafka.commands.describe_configs import ResourceQuery

Configs = Mapping[str, object]
"""As in a manifest's ``configs``: a value, ``{append, subtract}``, or None for no override."""

_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?=[^\]]*(?:\[|$))")
"""ConfigCommand's own way of telling the commas between pairs from those in ``[a,b]``."""
_ENTITY_TYPES = ("topics", "brokers")
_UNSUPPORTED_TYPES = ("users", "clients", "groups", "client-metrics", "ips", "broker-loggers")


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Names of topics, as arguments or by Kafka's own option."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Topics by name; one with other characters than letters, digits, '.', '_' and '-' is a "
            "regular expression that a whole name must match.",
            show_default=False,
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME[,…]", help="The same, as Kafka's tools take it. Repeatable."),
    ] = None

    def given(self) -> tuple[str, ...]:
        """All of them, in order. Raises BadParameter for an empty one, which must not come to mean all."""
        names = [*(self.names or ()), *split_names(self.topic)]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="NAME" if not self.topic else "--topic")
        return tuple(names)


def split_names(texts: Iterable[str] | None) -> list[str]:
    """What stands between commas, as Kafka's tools take several names."""
    return [part.strip() for text in texts or () for part in text.split(",")]


Deletions = Annotated[ChosenOptions, ProviderOptionsMarker(deletions=True, provider="kafka")]


@dataclass(frozen=True, slots=True)
class GuardOptions(OverrideOptions):
    """What is asked of the brokers beforehand, and how moves are guarded."""

    choices: Annotated[ChosenOptions, ProviderOptionsMarker(provider="kafka")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntityOptions:
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

    def build_query(self) -> "ResourceQuery":
        """As the use-cases want it. Raises BadParameter for what contradicts itself, or is not there."""
        from kdeclare.providers.kafka.commands.describe_configs import ResourceQuery
        from kdeclare.providers.kafka.ids import ConfigScope

        entity_type = self._resolve_entity_type()
        names = [*(self.entity_name or ()), *split_names(self.topic), *split_names(self.broker)]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="--entity-name")
        default = self.entity_default or self.broker_defaults
        if entity_type == "topics":
            if default:
                raise typer.BadParameter("topics have no default entity.", param_hint="--entity-default")
            return ResourceQuery(ConfigScope.TOPIC, tuple(names))
        return ResourceQuery(ConfigScope.BROKER, tuple(map(_parse_broker_id, names)), default)

    def _resolve_entity_type(self) -> str:
        """The one type of entity that the options are about."""
        shortcuts = {
            "topics": ("--topic", bool(self.topic)),
            "brokers": (
                "--broker" if self.broker else "--broker-defaults",
                bool(self.broker) or self.broker_defaults,
            ),
        }
        options_by_type = {kind: option for kind, (option, used) in shortcuts.items() if used}
        if self.entity_type is not None:
            if self.entity_type not in _ENTITY_TYPES:
                raise typer.BadParameter(_explain_unsupported(self.entity_type), param_hint="--entity-type")
            options_by_type.setdefault(self.entity_type, "--entity-type")
        if len(options_by_type) > 1:
            raise typer.BadParameter(
                "one command is about one type of entity.", param_hint=" / ".join(options_by_type.values())
            )
        if not options_by_type:
            raise typer.BadParameter("needs topics or brokers.", param_hint="--entity-type")
        return next(iter(options_by_type))


def _parse_broker_id(text: str) -> str:
    """The id as Kafka writes it. Raises BadParameter for what is none."""
    broker_id = text.lstrip("0") or text[:1]
    if parse_broker_id(broker_id) is None:
        raise typer.BadParameter(f"'{text}' is no id of a broker; those are numbers.", param_hint="--broker")
    return broker_id


def _explain_unsupported(entity_type: str) -> str:
    supported_text = "kdeclare knows topics and brokers"
    if entity_type in _UNSUPPORTED_TYPES:
        return f"{supported_text}; for {entity_type}, use Kafka's own kafka-configs.sh."
    return f"'{entity_type}' is no type of entity; {supported_text}."


@dataclass(frozen=True, slots=True)
class AfterChangeOptions:
    """What is done once the cluster has done its part."""

    write_manifest: WriteManifest = False
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for moves of replicas to end.")] = (
        False
    )
    verify_timeout: VerifyTimeout = 30.0

    def options(self, scope: "PlanScope", console: Console) -> "AdhocOptions":
        """Return them as the use cases take them."""
        from kdeclare.app.adhoc.run import AdhocOptions

        return AdhocOptions(scope, self.verify_timeout, write=self.write_manifest, tell=console.say)


@dataclass(frozen=True, slots=True)
class ConfigChangeOptions:
    """Changes of configs, as kafka-configs writes them, and the two that it lacks."""

    add_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Set configs; K=[V1,V2] where a value holds commas."),
    ] = None
    delete_config: Annotated[list[str] | None, typer.Option(metavar="K[,…]", help="Take overrides away.")] = (
        None
    )
    append_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Put elements into a list, if they are not in it (KIP-339)."),
    ] = None
    subtract_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Take elements out of a list (KIP-339)."),
    ] = None

    def configs(self) -> Configs:
        """All of it. Raises BadParameter."""
        return merge_config_changes(
            parse_pairs("--add-config", self.add_config),
            parse_keys(self.delete_config),
            parse_pairs("--append-config", self.append_config),
            parse_pairs("--subtract-config", self.subtract_config),
        )


def parse_replica_assignment(text: str | None) -> dict[int, tuple[int, ...]]:
    """``1:2,2:3``: the brokers of partition 0, of partition 1 … Raises BadParameter."""
    if text is None:
        return {}
    parts = [part.strip() for part in text.split(",")]
    return {n: _parse_brokers(part, text) for n, part in enumerate(parts)}


def _parse_brokers(part: str, text: str) -> tuple[int, ...]:
    ids = [broker.strip() for broker in part.split(":")]
    if not all(broker.isascii() and broker.isdigit() for broker in ids):
        raise typer.BadParameter(
            f"'{text}' is not of the form BROKER:BROKER,BROKER:BROKER, a list of brokers for each partition.",
            param_hint="--replica-assignment",
        )
    if len(set(ids)) != len(ids):
        raise typer.BadParameter(
            f"'{part}' names a broker twice; a partition has one replica on a broker.",
            param_hint="--replica-assignment",
        )
    return tuple(map(int, ids))


def parse_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """``k=v,k=[a,b]``: pairs, brackets round values with commas (ConfigCommand). Raises BadParameter."""
    pairs = parse_settings(
        option, (pair for text in texts or () for pair in _COMMA_OUTSIDE_BRACKETS.split(text))
    )
    return {key: _strip_brackets(value) for key, value in pairs.items()}


def _strip_brackets(value: str) -> str:
    in_brackets = value.startswith("[") and value.endswith("]")
    return value[1:-1].strip() if in_brackets else value


def parse_keys(texts: Iterable[str] | None) -> tuple[str, ...]:
    """``k1,k2``, as often as it was given."""
    return tuple(dict.fromkeys(k.strip() for text in texts or () for k in text.split(",") if k.strip()))


def merge_config_changes(
    values: Mapping[str, str],
    deleted_keys: Iterable[str],
    appended_lists: Mapping[str, str],
    subtracted_lists: Mapping[str, str],
) -> Configs:
    """All of it as configs. A key stands in one of them; only appended and subtracted go together.

    Raises BadParameter.
    """
    list_patches: dict[str, object] = {
        key: {
            name: [element.strip() for element in given[key].split(",") if element.strip()]
            for name, given in (("append", appended_lists), ("subtract", subtracted_lists))
            if key in given
        }
        for key in {**appended_lists, **subtracted_lists}
    }
    configs: dict[str, object] = dict(values)
    _merge_configs(configs, dict.fromkeys(deleted_keys), "--delete-config")
    _merge_configs(configs, list_patches, "--append-config and --subtract-config")
    return configs


def _merge_configs(configs: dict[str, object], additions: Configs, option: str) -> None:
    duplicate_keys = sorted(configs.keys() & additions.keys())
    if duplicate_keys:
        raise typer.BadParameter(
            f"'{duplicate_keys[0]}' is to be changed in another way, too; Kafka "
            f"takes one change of a key at a time.",
            param_hint=option,
        )
    configs.update(additions)
