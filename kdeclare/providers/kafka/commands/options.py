"""The options of Kafka's tools (TopicCommand, ConfigCommand), and the parsing of their values."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.adhoc import VerifyTimeout, WriteManifest
from kdeclare.cli.console import Console
from kdeclare.cli.options.option_groups import OverrideOptions
from kdeclare.cli.options.option_values import parse_settings
from kdeclare.cli.options.single_options import ChosenOptions, ProviderOptionsMarker
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.whole_number import parse_whole_number
from kdeclare.providers.kafka.commands.clients.client_options import ClientOptions
from kdeclare.providers.kafka.ids import ConfigScope, parse_broker_id

if TYPE_CHECKING:
    from kdeclare.app.adhoc.run import AdhocOptions
    from kdeclare.engine.planning.request import PlanScope
    from kdeclare.providers.kafka.commands.clients.client_query import ClientEntityQuery
    from kdeclare.providers.kafka.commands.describe_configs import ResourceQuery

Configs = Mapping[str, object]
"""Configs in the format of manifests.

A config is a value, ``{append, subtract}``, or None for no override.
"""

_COMMA_OUTSIDE_BRACKETS = re.compile(r",(?=[^\]]*(?:\[|$))")
"""ConfigCommand's regular expression for commas between pairs. It does not match commas in ``[a,b]``."""
_SCOPES_BY_TYPE = {scope.entity_type: scope for scope in ConfigScope}
_UNSUPPORTED_TYPES = ("broker-loggers",)
_TYPES = "topics, brokers, groups, client-metrics, users, clients and ips"


@dataclass(frozen=True, slots=True)
class TopicNames:
    """The topic names that the user passes: as arguments, or with ``--topic`` as in Kafka's tools."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Topic names. A name with characters other than letters, digits, '.', '_' and '-' is a "
            "regular expression that must match the whole name of a topic.",
            show_default=False,
        ),
    ] = None
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME[,…]", help="Topic names, as in Kafka's tools. Repeatable."),
    ] = None

    def given(self) -> tuple[str, ...]:
        """Return all names in order. Raises BadParameter for an empty name, which would select all topics."""
        names = [*(self.names or ()), *split_names(self.topic)]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="NAME" if not self.topic else "--topic")
        return tuple(names)


def split_names(texts: Iterable[str] | None) -> list[str]:
    """Split names at commas, as Kafka's tools do."""
    return [part.strip() for text in texts or () for part in text.split(",")]


Deletions = Annotated[ChosenOptions, ProviderOptionsMarker(deletions=True, provider="kafka")]


@dataclass(frozen=True, slots=True)
class GuardOptions(OverrideOptions):
    """Options for policy overrides, for validation by brokers, and for the guards of reassignments."""

    choices: Annotated[ChosenOptions, ProviderOptionsMarker(provider="kafka")] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EntityOptions:
    """The options of kafka-configs that select resources, including short forms such as ``--topic``."""

    entity_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Type: topics, brokers, groups, client-metrics, users, clients or ips. To select a client "
            "id of a user, pass both types and both names.",
        ),
    ] = None
    entity_name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Name of a resource, or id of a broker. Repeatable."),
    ] = None
    entity_default: Annotated[
        bool,
        typer.Option(
            "--entity-default",
            help="Cluster-wide defaults of all brokers, or the default user, client id or IP address.",
        ),
    ] = False
    topic: Annotated[
        list[str] | None, typer.Option(metavar="NAME[,…]", help="Topics by name. Repeatable.")
    ] = None
    broker: Annotated[list[str] | None, typer.Option(metavar="ID[,…]", help="Brokers by id. Repeatable.")] = (
        None
    )
    broker_defaults: Annotated[
        bool, typer.Option("--broker-defaults", help="Cluster-wide defaults of all brokers.")
    ] = False
    group: Annotated[list[str] | None, typer.Option(metavar="ID", help="A group by its id. Repeatable.")] = (
        None
    )
    client_metrics: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A client metrics subscription by name. Repeatable."),
    ] = None

    def build_client_query(self, clients: ClientOptions) -> "ClientEntityQuery | None":
        """Return the users, client ids or IP addresses to read or change.

        Return None if the command is about other resources. Raises BadParameter for conflicting options.
        """
        from kdeclare.providers.kafka.commands.clients.client_query import build_client_query

        types = self.entity_type or []
        query = build_client_query(clients, types, self.entity_name or [], default=self.entity_default)
        others = self._list_shortcuts()
        if query is not None and others:
            used = [*clients.list_used(), *(["--entity-type"] if types else []), *others]
            raise typer.BadParameter(
                "use only one of these options in a command.", param_hint=" / ".join(used)
            )
        return query

    def _list_shortcuts(self) -> list[str]:
        used = {
            "--topic": self.topic,
            "--broker": self.broker,
            "--broker-defaults": self.broker_defaults,
            "--group": self.group,
            "--client-metrics": self.client_metrics,
        }
        return [option for option, value in used.items() if value]

    def build_query(self) -> "ResourceQuery":
        """Return the resources to read or change. Raises BadParameter for conflicting or missing options."""
        from kdeclare.providers.kafka.commands.describe_configs import ResourceQuery

        entity_type = self._resolve_entity_type()
        names = [
            *(self.entity_name or ()),
            *split_names(self.topic),
            *split_names(self.broker),
            *(self.group or ()),
            *(self.client_metrics or ()),
        ]
        if not all(names):
            raise typer.BadParameter("a name is empty.", param_hint="--entity-name")
        default = self.entity_default or self.broker_defaults
        if entity_type != "brokers":
            if default:
                raise typer.BadParameter(
                    f"{entity_type} have no default entity.", param_hint="--entity-default"
                )
            return ResourceQuery(_SCOPES_BY_TYPE[entity_type], tuple(names))
        return ResourceQuery(ConfigScope.BROKER, tuple(map(_parse_broker_id, names)), default)

    def _resolve_entity_type(self) -> str:
        shortcuts = {
            "topics": ("--topic", bool(self.topic)),
            "brokers": (
                "--broker" if self.broker else "--broker-defaults",
                bool(self.broker) or self.broker_defaults,
            ),
            "groups": ("--group", bool(self.group)),
            "client-metrics": ("--client-metrics", bool(self.client_metrics)),
        }
        options_by_type = {kind: option for kind, (option, used) in shortcuts.items() if used}
        for entity_type in self.entity_type or ():
            if entity_type not in _SCOPES_BY_TYPE:
                raise typer.BadParameter(_explain_unsupported(entity_type), param_hint="--entity-type")
            options_by_type.setdefault(entity_type, "--entity-type")
        if len(options_by_type) > 1:
            raise typer.BadParameter(
                "use only one of these options in a command.", param_hint=" / ".join(options_by_type.values())
            )
        if not options_by_type:
            raise typer.BadParameter(
                "specify topics, brokers, groups, client metrics, users, client ids or IP addresses.",
                param_hint="--entity-type",
            )
        return next(iter(options_by_type))


def _parse_broker_id(text: str) -> str:
    """Return a broker id without leading zeros. Raises BadParameter if the string is not a broker id."""
    broker_id = text.lstrip("0") or text[:1]
    if parse_broker_id(broker_id) is None:
        raise typer.BadParameter(
            f"'{text}' is not a broker id. Broker ids are numbers.", param_hint="--broker"
        )
    return broker_id


def _explain_unsupported(entity_type: str) -> str:
    supported_text = f"kdeclare supports {_TYPES}"
    if entity_type in _UNSUPPORTED_TYPES:
        return f"{supported_text}; for {entity_type}, use Kafka's kafka-configs.sh."
    return f"'{entity_type}' is not an entity type; {supported_text}."


@dataclass(frozen=True, slots=True)
class AfterChangeOptions:
    """The options of ad hoc commands for waiting and for updating the manifest."""

    write_manifest: WriteManifest = False
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait for replica moves to finish.")] = (
        False
    )
    verify_timeout: VerifyTimeout = 30.0

    def options(self, scope: "PlanScope", console: Console) -> "AdhocOptions":
        """Return the ``AdhocOptions`` for the run of an ad hoc command."""
        from kdeclare.app.adhoc.run import AdhocOptions

        return AdhocOptions(scope, self.verify_timeout, write=self.write_manifest, tell=console.say)


@dataclass(frozen=True, slots=True)
class ConfigChangeOptions:
    """The options for config changes: the options of kafka-configs, and two more options for lists."""

    add_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Set configs; write K=[V1,V2] if a value contains commas."),
    ] = None
    delete_config: Annotated[list[str] | None, typer.Option(metavar="K[,…]", help="Remove overrides.")] = None
    append_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Add missing elements to a list (KIP-339)."),
    ] = None
    subtract_config: Annotated[
        list[str] | None,
        typer.Option(metavar="K=V[,…]", help="Remove elements from a list (KIP-339)."),
    ] = None

    def configs(self) -> Configs:
        """Return all changes by key. Raises BadParameter if the options conflict."""
        return merge_config_changes(
            parse_pairs("--add-config", self.add_config),
            parse_keys(self.delete_config),
            parse_pairs("--append-config", self.append_config),
            parse_pairs("--subtract-config", self.subtract_config),
        )


def parse_replica_assignment(text: str | None) -> dict[int, tuple[int, ...]]:
    """Parse a replica assignment such as ``1:2,2:3``, in the order of the partitions. Raises BadParameter."""
    if text is None:
        return {}
    parts = [part.strip() for part in text.split(",")]
    return {n: _parse_brokers(part, text) for n, part in enumerate(parts)}


def _parse_brokers(part: str, text: str) -> tuple[int, ...]:
    ids = [broker.strip() for broker in part.split(":")]
    if not all(parse_whole_number(broker) is not None for broker in ids):
        raise typer.BadParameter(
            f"'{text}' is not a replica assignment. Write BROKER:BROKER,BROKER:BROKER: commas separate "
            "partitions, and colons separate the brokers of a partition.",
            param_hint="--replica-assignment",
        )
    if len(set(ids)) != len(ids):
        raise typer.BadParameter(
            f"'{part}' lists a broker twice; a broker can hold only one replica of a partition.",
            param_hint="--replica-assignment",
        )
    return tuple(map(int, ids))


def parse_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """Parse ``k=v,k=[a,b]``. Brackets enclose values that contain commas. Raises BadParameter."""
    pairs = parse_settings(
        option, (pair for text in texts or () for pair in _COMMA_OUTSIDE_BRACKETS.split(text))
    )
    return {key: _strip_brackets(value) for key, value in pairs.items()}


def _strip_brackets(value: str) -> str:
    in_brackets = value.startswith("[") and value.endswith("]")
    return value[1:-1].strip() if in_brackets else value


def parse_keys(texts: Iterable[str] | None) -> tuple[str, ...]:
    """Parse keys (``k1,k2``) from all occurrences of the option. Remove duplicates."""
    return tuple(dict.fromkeys(k.strip() for text in texts or () for k in text.split(",") if k.strip()))


def merge_config_changes(
    values: Mapping[str, str],
    deleted_keys: Iterable[str],
    appended_lists: Mapping[str, str],
    subtracted_lists: Mapping[str, str],
) -> Configs:
    """Merge the changes of all options into one mapping of configs.

    Raises BadParameter if a key is changed more than once. Only append and subtract can be combined.
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
            f"'{duplicate_keys[0]}' is also changed by another option; Kafka accepts one change per key.",
            param_hint=option,
        )
    configs.update(additions)
