"""The command ``kdeclare new acl``, which creates a manifest for the permissions of principals."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.commands.new import write_new_manifest
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ProjectOptions
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.app.authoring.scaffolds import SpecLine

_EPILOG = build_epilog(
    "kdeclare new acl checkout --principal User:checkout --produce orders --produce 'payments.*'",
    "kdeclare new acl billing --principal User:billing --consume orders --group billing",
    codes=(0, 1, 64),
)
_Names = list[str] | None


def register(app: typer.Typer) -> None:
    """Register the command with ``kdeclare new``."""
    command(app, "acl", epilog=_EPILOG)(acl)


@dataclass(frozen=True, slots=True)
class RoleOptions:
    """The options for roles. In names, a star at the end means all names with this prefix."""

    produce: Annotated[_Names, typer.Option(metavar="TOPIC", help="A topic to write to. Repeatable.")] = None
    consume: Annotated[_Names, typer.Option(metavar="TOPIC", help="A topic to read from. Repeatable.")] = None
    group: Annotated[
        _Names, typer.Option(metavar="GROUP", help="A group that reads the topics of --consume. Repeatable.")
    ] = None
    transactions: Annotated[
        _Names, typer.Option(metavar="ID", help="A transactional id for transactions. Repeatable.")
    ] = None
    streams: Annotated[
        _Names, typer.Option(metavar="ID", help="An application id of Kafka Streams. Repeatable.")
    ] = None
    observe: Annotated[
        _Names,
        typer.Option(metavar="TOPIC", help="A topic to describe without reading records. Repeatable."),
    ] = None

    def list_fields(self) -> Iterator[tuple[str, str, Sequence[str] | Mapping[str, Sequence[str]]]]:
        """For each role that the user passed, yield the field of the spec, the option, and the value."""
        if self.produce:
            yield "produce", "--produce", self.produce
        consumed = {"topics": self.consume or [], "groups": self.group or []}
        if any(consumed.values()):
            yield "consume", "--consume" if self.consume else "--group", consumed
        if self.transactions:
            yield "transactions", "--transactions", self.transactions
        if self.streams:
            yield "streams", "--streams", self.streams
        if self.observe:
            yield "observe", "--observe", {"topics": self.observe}


def acl(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the manifest.")],
    *,
    principal: Annotated[
        list[str],
        typer.Option(metavar="PRINCIPAL", help="A principal, such as User:checkout. Repeatable, required."),
    ],
    roles: RoleOptions,
    host: Annotated[
        _Names,
        typer.Option(
            metavar="HOST", help="An IP address that the principals connect from (default: any). Repeatable."
        ),
    ] = None,
    setting: ProjectOptions,
    console: Console,
) -> ExitCode:
    """Write a manifest for ACLs and print its path.

    The options are the roles of the manifest; a star at the end of a name means all names with this prefix.
    Before the file is written, the manifest is checked in the same way as by kdeclare validate. The command
    does not contact a cluster and does not overwrite files.
    """
    from kdeclare.core.resources.ids import ResourceId

    spec = list(_render_spec_lines(principal, roles, host or []))
    return write_new_manifest(console, setting, ResourceId("Acl", name), spec)


def _render_spec_lines(
    principals: Sequence[str], roles: RoleOptions, hosts: Sequence[str]
) -> "Iterator[SpecLine]":
    from kdeclare.app.authoring.scaffolds import SpecLine, render_value

    fields = tuple(roles.list_fields())
    if not fields:
        raise typer.BadParameter(
            "name at least one role.", param_hint="--produce / --consume / --transactions / --streams"
        )
    if len(principals) == 1:
        yield SpecLine(f"principal: {render_value(principals[0])}", "--principal")
    else:
        yield SpecLine(f"principals: {_render_list(principals)}", "--principal")
    if hosts:
        yield SpecLine(f"hosts: {_render_list(hosts)}", "--host")
    for field, option, value in fields:
        if isinstance(value, Mapping):
            names = ", ".join(f"{key}: {_render_list(items)}" for key, items in value.items() if items)
            yield SpecLine(f"{field}: {{{names}}}", option)
        else:
            yield SpecLine(f"{field}: {_render_list(value)}", option)


def _render_list(names: Sequence[str]) -> str:
    from kdeclare.app.authoring.scaffolds import render_value

    return f"[{', '.join(render_value(name, text=True) for name in names)}]"
