"""``kdeclare connect``."""

import typer

from kdeclare.cli import connect_plugin, connect_worker_config


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    connect_worker_config.register(group)
    connect_plugin.register(group)
    app.add_typer(group, name="connect", help="Kafka Connect's workers: their dynamic configuration.")
