"""``kdeclare providers``."""

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode

_EPILOG = build_epilog("kdeclare providers", "kdeclare providers --format json", codes=(0, 1))


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    command(app, "providers", epilog=_EPILOG)(providers)


def providers(*, output: Format = "text", console: Console) -> ExitCode:
    """List the installed providers and their kinds.

    A provider is a Python package that adds the kinds of one external system. APIVERSION is the apiVersion of
    the manifests of these kinds. Exits with 1 if a provider cannot be used.
    """
    from kdeclare.app.provider_list import list_providers
    from kdeclare.report.provider_list import ProviderList, render_providers_text

    statuses = list_providers()
    if console.is_json:
        console.write_document(ProviderList(statuses))
    else:
        console.out(render_providers_text(statuses, console.style, console.width))
    return ExitCode.ERROR if any(item.problem for item in statuses) else ExitCode.OK
