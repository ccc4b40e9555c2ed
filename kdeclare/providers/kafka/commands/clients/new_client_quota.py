"""The command ``kdeclare new client-quota``, which creates a manifest for the quota of an entity."""

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
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine

_EPILOG = build_epilog(
    "kdeclare new client-quota checkout --user checkout --limit producer_byte_rate=10MiB",
    "kdeclare new client-quota defaults --client-defaults --limit request_percentage=50",
    codes=(0, 1, 64),
)


def register(app: typer.Typer) -> None:
    """Register the command with ``kdeclare new``."""
    command(app, "client-quota", epilog=_EPILOG)(client_quota)


@dataclass(frozen=True, slots=True)
class EntityOptions:
    """The options that name the entity of a quota: a user, a client id, both, or an IP address."""

    user: Annotated[str | None, typer.Option(metavar="NAME", help="The user.")] = None
    user_defaults: Annotated[
        bool, typer.Option("--user-defaults", help="All users without quotas of their own.")
    ] = False
    client: Annotated[str | None, typer.Option(metavar="ID", help="The client id.")] = None
    client_defaults: Annotated[
        bool, typer.Option("--client-defaults", help="All client ids without quotas of their own.")
    ] = False
    ip: Annotated[str | None, typer.Option(metavar="ADDRESS", help="The IP address.")] = None
    ip_defaults: Annotated[
        bool, typer.Option("--ip-defaults", help="All IP addresses without quotas of their own.")
    ] = False

    def list_parts(self) -> Iterator[tuple[str, str, str | None]]:
        """Yield the field, the option and the name of each user, client id or IP address of the entity.

        The name None means the default entity.

        Raises BadParameter if the options name no entity, or both a name and the default of the same type.
        """
        choices = (
            ("user", "--user", self.user, self.user_defaults),
            ("clientId", "--client", self.client, self.client_defaults),
            ("ip", "--ip", self.ip, self.ip_defaults),
        )
        if not any(name is not None or default for _, _, name, default in choices):
            raise typer.BadParameter(
                "name a user, a client id or an IP address.", param_hint="--user / --client / --ip"
            )
        for field, option, name, default in choices:
            if name is not None and default:
                raise typer.BadParameter(f"cannot be combined with {option}-defaults.", param_hint=option)
            if name is not None or default:
                yield field, option if name is not None else f"{option}-defaults", name


def client_quota(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the manifest.")],
    *,
    entity: EntityOptions,
    limit: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE", help="A limit, with one of Kafka's quota keys. Repeatable, required."
        ),
    ],
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Write a manifest for a client quota and print its path.

    Before the file is written, the manifest is checked in the same way as by kdeclare validate. The command
    does not contact a cluster and does not overwrite files.
    """
    from kdeclare.core.resources.ids import ResourceId

    spec = list(_render_spec_lines(entity, parse_settings("--limit", limit)))
    return write_new_manifest(console, setting, ResourceId("ClientQuota", name), spec)


def _render_spec_lines(entity: EntityOptions, limits: Mapping[str, str]) -> "Iterator[SpecLine]":
    from kdeclare.app.authoring.scaffolds import SpecLine, render_value

    parts = tuple(entity.list_parts())
    yield SpecLine("entity:", parts[0][1])
    for field, option, name in parts:
        value = "{default: true}" if name is None else render_value(name, text=True)
        yield SpecLine(f"  {field}: {value}", option)
    yield SpecLine("limits:", "--limit")
    for key, value in limits.items():
        yield SpecLine(f"  {render_value(key)}: {render_value(value)}", f"--limit {key}")
