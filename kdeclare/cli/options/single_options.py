"""Options that several commands share one by one, with the checks of their values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import typer

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.whole_number import parse_whole_number

Format = Annotated[
    Literal["text", "json"],
    typer.Option(
        "--format", metavar="text|json", help="Format of stdout: text for people, json for scripts."
    ),
]
RunFormat = Annotated[
    Literal["text", "json", "html"],
    typer.Option(
        "--format",
        metavar="text|json|html",
        help="Format of stdout: text for people, json for scripts, html for a browser.",
    ),
]
PlanFormat = Annotated[
    Literal["text", "json", "markdown", "sarif", "html"],
    typer.Option(
        "--format",
        metavar="text|json|markdown|sarif|html",
        help="Format of stdout: text for people, json for scripts, markdown for a comment on a pull request, "
        "sarif for file annotations, html for a browser.",
    ),
]
FindingsFormat = Annotated[
    Literal["text", "json", "sarif"],
    typer.Option(
        "--format",
        metavar="text|json|sarif",
        help="Format of stdout: text for people, json for scripts, sarif for file annotations.",
    ),
]
Paths = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATH",
        help="Files or folders with manifests, or - for standard input (default: all manifests of the "
        "project).",
        show_default=False,
    ),
]
_MAX_SECONDS = 365 * 86400.0
"""The maximum duration in seconds (one year), because Python's sockets and locks limit their timeouts."""


def validate_duration(value: float | None) -> float | None:
    """Return ``value`` unchanged. Raises BadParameter if it is NaN or greater than `_MAX_SECONDS`."""
    if value is not None and not value <= _MAX_SECONDS:
        raise typer.BadParameter(f"{value:g} is not allowed. The maximum is {_MAX_SECONDS:.0f}.")
    return value


def validate_location(value: str | None) -> str | None:
    """Return ``value`` unchanged. Raises BadParameter if it cannot be the location of a state."""
    if value is not None:
        from kdeclare.app.state_stores import check_state_location
        from kdeclare.core.diagnostics import KdeclareError

        try:
            check_state_location(value)
        except KdeclareError as problem:
            raise typer.BadParameter(" ".join(f"{d.detail} {d.hint}" for d in problem.diagnostics)) from None
    return value


def validate_addresses(value: str | None) -> str | None:
    """Return ``value`` unchanged. Raises BadParameter if it is not a list of addresses."""
    for address in value.split(",") if value is not None else ():
        host, _, port = address.strip().rpartition(":")
        if not (host and 0 < (parse_whole_number(port) or 0) < 65536):
            raise typer.BadParameter(
                f"'{address}' does not have the form HOST:PORT, for example localhost:9092."
            )
    return value


Sign = Annotated[
    str | None,
    typer.Option(
        "--sign",
        metavar="KEY",
        help="Sign the saved plan with this key: the path of a private key (Ed25519 in PEM, or any "
        "OpenSSH key), or ${env.NAME} with the text of the key. If the key has a passphrase, put the "
        "passphrase into the environment variable KDECLARE_SIGNING_PASSPHRASE.",
    ),
]
RequireSignature = Annotated[
    bool,
    typer.Option(
        "--require-signature",
        help="Apply a saved plan only if a key that the project trusts has signed it, even if the project "
        "does not require signatures.",
    ),
]
FollowTimeout = Annotated[
    float,
    typer.Option(
        "--follow-timeout",
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long to wait for Connect workers to pick up a change.",
    ),
]
VisibilityTimeout = Annotated[
    float,
    typer.Option(
        "--visibility-timeout",
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long to wait for earlier changes to become visible and for expected objects to appear.",
    ),
]
NoImpact = Annotated[
    bool,
    typer.Option("--no-impact", help="Do not determine the impact of changes on records and consumers."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Graph = Annotated[
    bool, typer.Option("--graph", help="Show the order in which operations run, with the reasons.")
]


@dataclass(frozen=True, slots=True)
class ProviderOptionsMarker:
    """Marks a parameter or dataclass field that is replaced by the plan options of installed providers.

    The value of the parameter or field is a mapping of option names to given values. deletions: True to
    include only the options that are about deletions, False to include only the other options.
    provider: if set, only the options of this provider are included.
    """

    deletions: bool = False
    provider: str | None = None


ChosenOptions = Mapping[str, object]
PlanChoices = Annotated[ChosenOptions, ProviderOptionsMarker()]
DeletionChoices = Annotated[ChosenOptions, ProviderOptionsMarker(deletions=True)]
