"""What ad hoc commands of providers share: options, the run, and what is said of it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.confirmation import Asking
from kdeclare.cli.console import Console
from kdeclare.cli.options import measured
from kdeclare.cli.run_output import Manner, carry_out
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kdeclare.app.apply import How
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.parts import Connections
    from kdeclare.core.resources.kind import Kind
    from kdeclare.report.adhoc import AdhocResult


WriteManifest = Annotated[
    bool,
    typer.Option("--write-manifest", help="Put the change into the manifest too, comments and layout kept."),
]
VerifyTimeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        callback=measured,
        help="How long to read metadata until it shows what was done.",
    ),
]


@dataclass(frozen=True, slots=True)
class Declared:
    """A resource as a command line declares it, as far as it says anything. spec: a valid one of the kind."""

    kind: "Kind"
    name: str
    spec: "BaseModel"


def run_declared(
    console: Console,
    question: str,
    declared: Declared,
    workspace: "Workspace",
    overrides: Mapping[str, str],
    *,
    yes: bool,
    write_manifest: bool = False,
) -> ExitCode:
    """Make one resource what is declared, after asking, and show what came of it. Raises KdeclareError.

    Nothing is owned through it, and what is not declared stays as it is.
    """
    from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.core.resources.kind import Desired
    from kdeclare.engine.planning.request import Scope

    def ask(connections: "Connections") -> AdhocRequest:
        body, problems = declared.kind.parse(declared.name, declared.spec)
        desired = Desired(ResourceId(declared.kind.name, declared.name), body)
        return AdhocRequest((desired,), diagnostics=tuple(problem.diagnostic for problem in problems))

    options = AdhocOptions(Scope(overrides=overrides), write=write_manifest, tell=console.say)
    command = AdhocCommand(ask)
    return run_and_show(
        console, question, lambda how: run_adhoc(workspace, command, options, how), overrides, yes=yes
    )


def run_and_show(
    console: Console,
    question: str,
    act: "Callable[[How], AdhocResult | None]",
    overrides: Mapping[str, str],
    *,
    yes: bool,
    wait: bool = True,
) -> ExitCode:
    """Ask, run, and show what came of each resource. Raises KdeclareError."""
    manner = Manner(wait=wait, skip_stale=True, overrides=overrides)
    return carry_out(
        console,
        Asking(console, question, yes),
        manner,
        act,
        lambda view, seconds: _show_result(console, view, seconds),
    )


def _show_result(console: Console, view: "AdhocResult", seconds: float) -> ExitCode:
    from kdeclare.report.adhoc import adhoc_exit_code

    if console.is_json:
        from kdeclare.report.adhoc import describe_adhoc

        console.out_document(describe_adhoc(view, round(seconds, 3)))
        return adhoc_exit_code(view)
    if view.run is None:
        console.notices(problem for problems in view.failed.values() for problem in problems)
    from kdeclare.report.adhoc import adhoc_text

    console.out(adhoc_text(view, console.style))
    return adhoc_exit_code(view)
