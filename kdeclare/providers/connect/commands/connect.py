"""``kdeclare connect``: its groups of commands, and those of the workers' plug-in."""

from pathlib import Path
from typing import Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import epilog
from kdeclare.core.exits import ExitCode
from kdeclare.providers.connect.commands import worker_config


def register(app: typer.Typer) -> None:
    """Put the commands into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    worker_config.register(group)
    _register_plugin(group)
    app.add_typer(group, name="connect", help="Kafka Connect's workers: their dynamic configuration.")


_BUILD_EPILOG = epilog("kdeclare connect plugin build --out build", codes=(0, 1, 64))
_INSTALL_EPILOG = epilog(
    "kdeclare connect plugin install --plugin-path /opt/connect/plugins", codes=(0, 1, 64)
)


def _register_plugin(group: typer.Typer) -> None:
    plugin = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(plugin, "build", epilog=_BUILD_EPILOG)(build)
    command(plugin, "install", epilog=_INSTALL_EPILOG)(install)
    group.add_typer(plugin, name="plugin", help="The plug-in that lets workers be changed while they run.")


def build(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where to put the jar.")] = Path(),
    console: Console,
) -> ExitCode:
    """Compile the workers' plug-in and print the path of its jar.

    Needs a JDK 17 or later. It is compiled against Kafka Connect's own jars, which are downloaded the
    first time (37 MB), or those of KAFKA_HOME; it runs in unmodified workers from Kafka 4.0 on.
    """
    from kdeclare.sandbox import connect_plugin

    jar = connect_plugin.build(out.expanduser().absolute(), lambda text: console.note(f"{text} …"))
    console.out(f"{jar}\n")
    return ExitCode.OK


def install(
    *,
    plugin_path: Annotated[
        Path, typer.Option(metavar="DIR", help="A folder that the workers' plugin.path names.")
    ],
    console: Console,
) -> ExitCode:
    """Compile the workers' plug-in into a folder, and print what a worker's configuration needs.

    Workers load it when they start: restart each of them once, and never again for a certificate. It answers
    the administrators that a worker's configuration names, and nobody else unless that says so.
    """
    from kdeclare.providers.connect.client.plugin.jar import OPEN
    from kdeclare.sandbox import connect_plugin

    done = connect_plugin.install(plugin_path, lambda text: console.note(f"{text} …"))
    for other in done.removed:
        console.note(f"Removed {other}.")
    console.note(f"Installed {done.jar}. Each worker's configuration needs these lines:")
    console.out("".join(f"{line}\n" for line in done.worker_lines))
    console.note(
        f"Create that file on each worker, with name=password lines, readable by the worker's user only. "
        f"Where everybody may change the workers, write {OPEN}=true instead. Without either, the plug-in "
        "accepts no requests."
    )
    return ExitCode.OK
