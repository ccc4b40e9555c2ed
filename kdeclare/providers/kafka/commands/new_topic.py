"""The command ``kdeclare new topic``, which creates a manifest for a topic."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.commands.new import write_new_manifest
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.cli.options.option_values import parse_settings
from kdeclare.core.exit_codes import ExitCode

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine

_EPILOG = build_epilog(
    "kdeclare new topic orders --partitions 12 --replication-factor 3 --config retention.ms=604800000",
    "kdeclare new topic clicks --config cleanup.policy=compact,delete --config 'retention.ms=${var.short}'",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Register the command with ``kdeclare new``."""
    command(app, "topic", epilog=_EPILOG)(topic)


def topic(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the topic.")],
    *,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of partitions (default: omitted).")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of replicas of each partition (default: omitted)."),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Config override, as in Kafka's tools. Repeatable."),
    ] = None,
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Write a manifest for a topic and print its path.

    Before the file is written, the manifest is checked in the same way as by kdeclare validate. The command
    does not contact a cluster and does not overwrite files.
    """
    from kdeclare.core.diagnostics import KdeclareError
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.providers.kafka.topic.kind import TopicKind
    from kdeclare.providers.kafka.topic.spec import TopicSpec

    configs = parse_settings("--config", config)
    if any(len(text.splitlines()) > 1 for pair in configs.items() for text in pair):
        raise typer.BadParameter("a config cannot contain line breaks.", param_hint="--config")
    kind = TopicKind()
    _, problems = kind.parse(name, TopicSpec())
    if problems:
        raise KdeclareError(*(problem.diagnostic for problem in problems))
    spec = list(_render_spec_lines(partitions, replication_factor, configs))
    return write_new_manifest(console, setting, ResourceId(kind.name, name), spec)


def _render_spec_lines(
    partitions: int | None, factor: int | None, configs: Mapping[str, str]
) -> "Iterator[SpecLine]":
    from kdeclare.app.authoring.scaffolds import SpecLine, render_value

    if partitions is not None:
        yield SpecLine(f"partitions: {partitions}", "--partitions")
    if factor is not None:
        yield SpecLine(f"replicationFactor: {factor}", "--replication-factor")
    if configs:
        yield SpecLine("configs:", "--config")
    for key, text in configs.items():
        yield SpecLine(f"  {render_value(key)}: {_format_value(key, text)}", f"--config {key}")


def _format_value(key: str, text: str) -> str:
    """Format a value as YAML without escaping references such as ``${var.NAME}``."""
    from kdeclare.app.authoring.scaffolds import render_value
    from kdeclare.core.resources.manifest_text import scalar
    from kdeclare.providers.kafka.config.catalog import load_catalog, split_list
    from kdeclare.providers.kafka.ids import ConfigScope

    info = load_catalog(ConfigScope.TOPIC).get(key)
    if info is None or not info.is_list or "${" in text:
        return render_value(text)
    list_text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    return f"[{', '.join(scalar(element.strip()) for element in split_list(list_text))}]"
