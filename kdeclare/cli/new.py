"""``kdeclare new``."""

from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.cli.options import Setting
from kdeclare.core.exits import ExitCode

_EPILOG = epilog(
    "kdeclare new topic orders --partitions 12 --replication-factor 3 --config retention.ms=604800000",
    "kdeclare new topic clicks --config cleanup.policy=compact,delete --config 'retention.ms=${var.short}'",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    group.callback()(lambda: None)  # or the only command would need no name
    command(group, "topic", epilog=_EPILOG)(topic)
    app.add_typer(group, name="new", help="Manifests to begin with.")


def topic(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The topic's name.")],
    *,
    partitions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many (default: not stated).")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="How many replicas of each (default: not stated).")
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A config, as Kafka's own tools take it. Repeatable."),
    ] = None,
    setting: Setting,
    console: Console,
) -> ExitCode:
    """Write the manifest of a topic, and print where it is.

    It is checked as validate does before it is written. No cluster is asked, and nothing is overwritten.
    """
    import os
    import shlex

    from kdeclare.app.scaffolds import TopicWish, new_topic
    from kdeclare.cli.options import read_settings

    configs = read_settings("--config", config)
    if any(len(text.splitlines()) > 1 for pair in configs.items() for text in pair):
        raise typer.BadParameter("a config has no line breaks.", param_hint="--config")
    wish = TopicWish(name, partitions, replication_factor, configs)
    options = setting.options()
    made = new_topic(wish, options.project, options.env, os.environ)
    console.notices(made.notices)
    console.out(f"{made.file}\n")
    alone = "" if made.in_project else f" {shlex.quote(str(made.file))} --bootstrap-server HOST:PORT"
    # as given on this line: what a shell was given holds for its next line, too
    given = (("--project", setting.project), ("--env", setting.env))
    there = "".join(f" {option} {shlex.quote(str(value))}" for option, value in given if value is not None)
    console.note(f"Next: kdeclare plan{alone}{there}")
    return ExitCode.OK
