"""The command ``kdeclare connect``: ad hoc changes to worker overrides (KIP-1185), and the plug-in."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.confirmation import build_declined_error, prompt_for_yes
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import StateOptions
from kdeclare.cli.options.option_values import parse_settings
from kdeclare.cli.options.single_options import Format, Yes, validate_duration
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from kdeclare.providers.connect.commands.describe_workers import ChangeView, ProposalView, WorkersRequest
from pathlib import Path


@dataclass(frozen=True, slots=True)
class WorkerOptions(StateOptions):
    """The command-line options that select workers and configure the connection to these workers."""

    worker: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="URL of a worker, https://HOST:PORT. Repeat the option for every worker."
        ),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="ConnectWorkerConfig manifest that declares the workers (default: the only one).",
        ),
    ] = None
    ca_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="CA certificates to trust, as PEM (default: the system's)."),
    ] = None
    cert_file: Annotated[str | None, typer.Option(metavar="FILE", help="Client certificate, as PEM.")] = None
    key_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Key of the client certificate, if it is in a separate file."),
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=REFERENCE",
            help="HTTP header with a reference: 'Authorization=Bearer ${env.TOKEN}'. Repeatable.",
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0.1,
            callback=validate_duration,
            help="How long to wait for the response of one worker.",
        ),
    ] = 10.0

    def to_request(self) -> "WorkersRequest":
        """Convert the options to a request. Raises BadParameter."""
        from kdeclare.providers.connect.commands.describe_workers import WorkersRequest

        if self.worker and self.name is not None:
            raise typer.BadParameter("cannot be combined with --worker.", param_hint="--name")
        connection_options = {
            "--ca-file": self.ca_file,
            "--cert-file": self.cert_file,
            "--key-file": self.key_file,
            "--header": self.header,
        }
        for option, value in connection_options.items():
            if value and not self.worker:
                raise typer.BadParameter(
                    "can only be used with --worker; manifests have their own settings.", param_hint=option
                )
        if self.key_file and not self.cert_file:
            raise typer.BadParameter("requires --cert-file, which is missing.", param_hint="--key-file")
        return WorkersRequest(
            tuple(self.worker or ()),
            self.ca_file,
            self.cert_file,
            self.key_file,
            tuple(self._parse_headers().items()),
            self.name,
            self.timeout,
        )

    def _parse_headers(self) -> dict[str, str]:
        from kdeclare.http.urls import HEADER_NAME  # imported here for a fast start

        headers = parse_settings("--header", self.header)
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name):
                raise typer.BadParameter(
                    f"'{name}' is not a valid name of an HTTP header.", param_hint="--header"
                )
            if "${" not in value:
                raise typer.BadParameter(
                    "the value must be a reference, ${env.NAME} or ${file.PATH}, because other users of the "
                    "machine can read command lines.",
                    param_hint="--header",
                )
        return headers


_WORKERS = "--worker https://a:8083 --worker https://b:8083 --ca-file ca.pem"
_KEY = "listeners.https.ssl.keystore"
_STATUS = build_epilog(
    "kdeclare connect worker-config status                   the workers of the project's manifest",
    f"kdeclare connect worker-config status {_WORKERS}",
    codes=(0, 1, 5, 64, 130),
)
_GET = build_epilog("kdeclare connect worker-config get --name eu --format json", codes=(0, 1, 64, 130))
_VALIDATE = build_epilog(
    f"kdeclare connect worker-config validate {_KEY}.location=/etc/connect/new.p12", codes=(0, 1, 64, 130)
)
_PATCH = build_epilog(
    f"kdeclare connect worker-config patch {_KEY}.location=/etc/connect/new.p12 \\",
    f"      '{_KEY}.password=${{file:/etc/connect/secrets.properties:keystore}}'",
    f"kdeclare connect worker-config patch --remove {_KEY}.location --remove {_KEY}.password --yes",
    codes=(0, 1, 5, 64, 130),
)
_DELETE = build_epilog(
    f"kdeclare connect worker-config delete {_KEY}.location {_KEY}.password", codes=(0, 1, 5, 64, 130)
)

Values = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Overrides to set. For passwords, prefer placeholders of Connect's config providers.",
        show_default=False,
    ),
]
Remove = Annotated[
    list[str] | None,
    typer.Option("--remove", metavar="KEY", help="Override to remove in the same change. Repeatable."),
]
Wait = Annotated[
    float,
    typer.Option(
        "--wait",
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long to wait until all workers have applied the change.",
    ),
]


def register_worker_config(app: typer.Typer) -> None:
    """Add the commands to the group ``connect``."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "get", epilog=_GET)(get)
    command(group, "validate", epilog=_VALIDATE)(validate)
    command(group, "patch", epilog=_PATCH)(patch)
    command(group, "delete", epilog=_DELETE)(delete)
    command(group, "status", epilog=_STATUS)(status)
    app.add_typer(
        group,
        name="worker-config",
        help="Show, validate and change overrides of Connect workers.",
    )


def get(*, output: Format = "text", workers: WorkerOptions, console: Console) -> ExitCode:
    """Show the overrides of the workers; passwords are masked."""
    from kdeclare.providers.connect.commands.describe_workers import get_overrides

    workers_request, workspace = workers.to_request(), workers.workspace()
    console.progress("Reading the workers", 0, 0)
    view = get_overrides(workspace, workers_request)
    if console.is_json:
        console.write_document(view)
        return ExitCode.OK
    from kdeclare.providers.connect.commands.text import render_overrides

    console.out(render_overrides(view))
    return ExitCode.OK


def status(
    *,
    warn_days: Annotated[
        float,
        typer.Option(
            metavar="DAYS",
            min=0,
            callback=validate_duration,
            help="Warn about certificates that expire within this number of days.",
        ),
    ] = 30.0,
    output: Format = "text",
    workers: WorkerOptions,
    console: Console,
) -> ExitCode:
    """Show whether each worker uses the current overrides.

    Also performs a TLS handshake with each worker, and shows the certificate that the worker presents. Exits
    with 5 if a worker does not respond, lags behind, or presents an unexpected certificate.
    """
    from kdeclare.providers.connect.commands.describe_workers import describe_workers, get_workers_exit_code

    workers_request, workspace = workers.to_request(), workers.workspace()
    console.progress("Reading the workers", 0, 0)
    view = describe_workers(workspace, workers_request, warn_days)
    if console.is_json:
        from kdeclare.providers.connect.commands.text import build_workers_document

        console.write_document(build_workers_document(view))
    else:
        from kdeclare.providers.connect.commands.text import render_workers

        console.out(render_workers(view, console.width, console.style))
    return get_workers_exit_code(view)


def validate(
    values: Values = None,
    *,
    remove: Remove = None,
    output: Format = "text",
    workers: WorkerOptions,
    console: Console,
) -> ExitCode:
    """Validate a change with every worker without making it."""
    from kdeclare.providers.connect.commands.change_overrides import validate_overrides

    requested_values, workers_request, workspace = (
        _parse_changes(values, remove),
        workers.to_request(),
        workers.workspace(),
    )
    console.progress("Reading the workers", 0, 0)
    return _report_proposal(console, validate_overrides(workspace, workers_request, requested_values))


def patch(
    values: Values = None,
    *,
    remove: Remove = None,
    wait: Wait = 30.0,
    yes: Yes = False,
    output: Format = "text",
    workers: WorkerOptions,
    console: Console,
) -> ExitCode:
    """Set and remove overrides, all in one change.

    Validates the change with every worker first, and writes nothing if a worker cannot apply the change. Then
    waits for all workers. Unchanged values are sent again, so that workers reload a keystore file that was
    replaced under the same name.
    """
    from kdeclare.providers.connect.commands.change_overrides import change_overrides

    requested_values, workers_request, workspace = (
        _parse_changes(values, remove),
        workers.to_request(),
        workers.workspace(),
    )
    console.progress("Reading the workers", 0, 0)
    confirmation = _ChangeConfirmation(console, "Change these overrides?", yes)
    return confirmation.outcome(
        lambda agree: change_overrides(workspace, workers_request, requested_values, agree, wait)
    )


def delete(
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="Overrides to remove.")],
    *,
    wait: Wait = 30.0,
    yes: Yes = False,
    output: Format = "text",
    workers: WorkerOptions,
    console: Console,
) -> ExitCode:
    """Remove overrides, all in one change.

    For the removed keys, each worker uses the values in its own configuration file again.
    """
    from kdeclare.providers.connect.commands.change_overrides import change_overrides

    workers_request, workspace = workers.to_request(), workers.workspace()
    console.progress("Reading the workers", 0, 0)
    confirmation = _ChangeConfirmation(console, "Remove these overrides?", yes)
    removed_values = dict.fromkeys(keys)
    return confirmation.outcome(
        lambda agree: change_overrides(
            workspace, workers_request, removed_values, agree, wait, require_existing=True
        )
    )


@dataclass
class _ChangeConfirmation:
    """Asks for confirmation of a change, makes the change, and reports the result.

    refused: the exit code if a worker cannot apply the change; otherwise None.
    """

    console: Console
    question: str
    yes: bool
    refused: ExitCode | None = None

    def confirm(self, proposal: "ProposalView") -> bool:
        """Ask for confirmation unless a worker cannot apply the change. Return whether to continue."""
        console = self.console
        if not proposal.is_good:
            self.refused = _report_proposal(console, proposal)
            return False
        from kdeclare.providers.connect.commands.text import render_proposal

        console.notices(proposal.notices, asking=not self.yes)
        if not console.is_json:
            console.out(render_proposal(proposal, console.style))
        elif not self.yes and sys.stdin.isatty():
            console.say(render_proposal(proposal, console.err_style))
        is_confirmed = self.yes or prompt_for_yes(console, self.question)
        if is_confirmed:
            console.progress("Waiting for the workers", 0, 0)
        return is_confirmed

    def outcome(self, act: "Callable[[Callable[[ProposalView], bool]], ChangeView | None]") -> ExitCode:
        """Make the change and report the result. Raises KdeclareError."""
        view = act(self.confirm)
        console = self.console
        if view is not None:
            return _report_change(console, view)
        if self.refused is not None:
            return self.refused
        if console.is_json:
            return console.fail([build_declined_error()], ExitCode.ERROR)
        console.say("Nothing was changed.")
        return ExitCode.ERROR


def _parse_changes(values: list[str] | None, remove: list[str] | None) -> dict[str, object]:
    requested_values: dict[str, object] = dict(parse_settings("KEY=VALUE", values))
    conflicting_keys = sorted(requested_values.keys() & set(remove or ()))
    if conflicting_keys:
        raise typer.BadParameter(
            f"'{conflicting_keys[0]}' cannot be set and removed in the same change.", param_hint="--remove"
        )
    requested_values |= dict.fromkeys(remove or ())
    if not requested_values:
        raise typer.BadParameter("specify KEY=VALUE or --remove KEY.", param_hint="KEY=VALUE")
    return requested_values


def _report_proposal(console: Console, view: "ProposalView") -> ExitCode:
    from kdeclare.providers.connect.commands.describe_workers import get_proposal_exit_code

    if console.is_json:
        from kdeclare.providers.connect.commands.text import build_proposal_document

        console.write_document(build_proposal_document(view))
    else:
        from kdeclare.providers.connect.commands.text import render_proposal

        console.notices(view.notices)
        console.out(render_proposal(view, console.style))
    return get_proposal_exit_code(view)


def _report_change(console: Console, view: "ChangeView") -> ExitCode:
    from kdeclare.providers.connect.commands.describe_workers import get_change_exit_code

    if console.is_json:
        from kdeclare.providers.connect.commands.text import build_change_document

        console.write_document(build_change_document(view))
    else:
        from kdeclare.providers.connect.commands.text import render_change

        console.out(render_change(view, console.width, console.style))
    return get_change_exit_code(view)


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    register_worker_config(group)
    _register_plugin(group)
    app.add_typer(group, name="connect", help="Configure Kafka Connect workers at run time.")


_BUILD_EPILOG = build_epilog("kdeclare connect plugin build --out build", codes=(0, 1, 64))
_INSTALL_EPILOG = build_epilog(
    "kdeclare connect plugin install --plugin-path /opt/connect/plugins", codes=(0, 1, 64)
)


def _register_plugin(group: typer.Typer) -> None:
    plugin = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(plugin, "build", epilog=_BUILD_EPILOG)(build)
    command(plugin, "install", epilog=_INSTALL_EPILOG)(install)
    group.add_typer(plugin, name="plugin", help="Build or install kdeclare's plug-in for Connect workers.")


def build(
    *,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write the jar to.")] = Path(),
    console: Console,
) -> ExitCode:
    """Write the jar of the workers' plug-in, and print its path.

    Released packages of kdeclare contain the compiled plug-in. Otherwise, this command compiles it, which
    requires JDK 17 or later and the jars of Kafka Connect in KAFKA_HOME. If KAFKA_HOME is not set, the
    command downloads the jars the first time (37 MB). The plug-in runs in unmodified workers of Kafka 4.0
    and later.
    """
    from kdeclare.sandbox import connect_jars

    jar = connect_jars.build(out.expanduser().absolute(), lambda text: console.note(f"{text} …"))
    console.out(f"{jar}\n")
    return ExitCode.OK


def install(
    *,
    plugin_path: Annotated[Path, typer.Option(metavar="DIR", help="A folder of the workers' plugin.path.")],
    console: Console,
) -> ExitCode:
    """Install the workers' plug-in into a folder.

    Prints the configuration that workers need. Workers load the plug-in when they start, so restart each
    worker once. Afterwards, certificate changes do not require a restart. The plug-in accepts only the
    administrators that the worker's configuration names, unless the configuration permits everyone.
    """
    from kdeclare.providers.connect.client.plugin.jar import ADMINS_EXAMPLE, PLUGIN_OPEN
    from kdeclare.sandbox import connect_jars

    installed = connect_jars.install(plugin_path, lambda text: console.note(f"{text} …"))
    for removed_jar in installed.removed:
        console.note(f"Removed {removed_jar}.")
    console.note(f"Installed {installed.jar}. Each worker's configuration needs these lines:")
    console.out("".join(f"{line}\n" for line in installed.worker_lines))
    console.note(
        f"Create {ADMINS_EXAMPLE} on each worker, with one name=password line per administrator. Only the "
        f"worker's user should be able to read the file. To accept requests from everyone, set "
        f"{PLUGIN_OPEN}=true instead. Without the file or this setting, the plug-in accepts no requests."
    )
    return ExitCode.OK
