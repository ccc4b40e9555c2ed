"""Options that name Connect workers, and say how to reach them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.options import Where, measured, read_settings

if TYPE_CHECKING:
    from kdeclare.app.connect.which import Named


@dataclass(frozen=True)
class Workers(Where):
    """Which workers, and how to reach them."""

    worker: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", help="A worker, as https://HOST:PORT; name all of them. Repeatable."),
    ] = None
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The ConnectWorkerConfig of the project that names the workers."),
    ] = None
    ca_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Whom to trust, as PEM (default: the system's).")
    ] = None
    cert_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="A certificate to show the workers, as PEM.")
    ] = None
    key_file: Annotated[
        str | None, typer.Option(metavar="FILE", help="Its key, if it is not in the same file.")
    ] = None
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=REFERENCE",
            help="A header, by reference: 'Authorization=Bearer ${env.TOKEN}'. Repeatable.",
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.1, callback=measured, help="How long to wait for one worker's answer."
        ),
    ] = 10.0

    def named(self) -> "Named":
        """As the use-cases want it. Raises BadParameter."""
        from kdeclare.app.connect.which import Named

        if self.worker and self.name is not None:
            raise typer.BadParameter("goes without --worker.", param_hint="--name")
        ways = {
            "--ca-file": self.ca_file,
            "--cert-file": self.cert_file,
            "--key-file": self.key_file,
            "--header": self.header,
        }
        for option, value in ways.items():
            if value and not self.worker:
                raise typer.BadParameter("goes with --worker; a manifest says its own.", param_hint=option)
        if self.key_file and not self.cert_file:
            raise typer.BadParameter("is the key of --cert-file, which is missing.", param_hint="--key-file")
        return Named(
            tuple(self.worker or ()),
            self.ca_file,
            self.cert_file,
            self.key_file,
            tuple(self._headers().items()),
            self.name,
            self.timeout,
        )

    def _headers(self) -> dict[str, str]:
        from kdeclare.providers.connect.worker_state import HEADER_NAME  # every start would pay for it

        headers = read_settings("--header", self.header)
        for name, value in headers.items():
            if not HEADER_NAME.fullmatch(name):
                raise typer.BadParameter(f"'{name}' is no name of an HTTP header.", param_hint="--header")
            if "${" not in value:
                raise typer.BadParameter(
                    "give the value by reference, ${env.NAME} or ${file.PATH}: a command line is for all "
                    "on the machine to read.",
                    param_hint="--header",
                )
        return headers
