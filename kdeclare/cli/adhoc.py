"""Shared code for the ad hoc commands of providers: options, making the change, and showing the result."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.confirmation import ConfirmationPrompt
from kdeclare.cli.console import Console
from kdeclare.cli.options.single_options import validate_duration
from kdeclare.cli.run_output import ApplyFlags, execute_run
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kdeclare.app.apply import ApplyOptions
    from kdeclare.app.workspace import Workspace
    from kdeclare.core.parts import Connections
    from kdeclare.core.resources.kind import Kind
    from kdeclare.report.adhoc import AdhocResult


WriteManifest = Annotated[
    bool,
    typer.Option(
        "--write-manifest",
        help="Also write the change to the manifest, keeping its comments and formatting.",
    ),
]
VerifyTimeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        callback=validate_duration,
        help="How long to wait until the cluster's metadata shows the change.",
    ),
]


@dataclass(frozen=True, slots=True)
class Declared:
    """The resource that an ad hoc command changes, with the fields to set.

    spec: a valid spec of ``kind`` that contains only the fields given on the command line.
    """

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
    """Ask for confirmation, change one resource to match ``declared``, and show the result.

    Fields that ``declared`` does not set are left unchanged. kdeclare does not take ownership of the changed
    fields. Raises KdeclareError.
    """
    from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
    from kdeclare.core.resources.ids import ResourceId
    from kdeclare.core.resources.kind import DesiredResource
    from kdeclare.engine.planning.request import PlanScope

    def ask(connections: "Connections") -> AdhocRequest:
        parsed_body, problems = declared.kind.parse(declared.name, declared.spec)
        desired = DesiredResource(ResourceId(declared.kind.name, declared.name), parsed_body)
        return AdhocRequest((desired,), diagnostics=tuple(problem.diagnostic for problem in problems))

    options = AdhocOptions(PlanScope(overrides=overrides), write=write_manifest, tell=console.say)
    command = AdhocCommand(ask)
    return run_and_show(
        console, question, lambda how: run_adhoc(workspace, command, options, how), overrides, yes=yes
    )


def run_and_show(
    console: Console,
    question: str,
    run_command: "Callable[[ApplyOptions], AdhocResult | None]",
    overrides: Mapping[str, str],
    *,
    yes: bool,
    wait: bool = True,
) -> ExitCode:
    """Ask for confirmation, execute an ad hoc command, and show the result. Raises KdeclareError."""
    apply_flags = ApplyFlags(wait=wait, skip_stale=True, overrides=overrides)
    return execute_run(
        console,
        ConfirmationPrompt(console, question, yes),
        apply_flags,
        run_command,
        lambda view, seconds: _show_result(console, view, seconds),
    )


def _show_result(console: Console, view: "AdhocResult", seconds: float) -> ExitCode:
    from kdeclare.report.adhoc import compute_adhoc_exit_code

    if console.is_json:
        from kdeclare.report.adhoc import build_adhoc_document

        console.write_document(build_adhoc_document(view, round(seconds, 3)))
        return compute_adhoc_exit_code(view)
    if view.run is None:
        console.notices(problem for problems in view.failed.values() for problem in problems)
    from kdeclare.report.adhoc import render_adhoc_text

    console.out(render_adhoc_text(view, console.style))
    return compute_adhoc_exit_code(view)
