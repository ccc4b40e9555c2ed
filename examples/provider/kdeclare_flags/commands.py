"""``kdeclare flag``: change a flag ad hoc, without a manifest.

It is imported only when somebody types this command.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from kdeclare.cli.adhoc import run_and_show
from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.options import Format, Overriding, Where, Yes
from kdeclare.core.exits import ExitCode
from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.parts import Connections, LiveState
from kdeclare_flags.provider import FLAG, FlagSpec
from kdeclare_flags.service import Contents


def register(app: typer.Typer) -> None:
    """Put the group into the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "set")(set_rollout)
    app.add_typer(group, name="flag", help="Feature flags ad hoc: set.")


@dataclass(frozen=True, slots=True)
class Rolling:
    """What is said of a flag afterwards."""

    is_rolling: bool

    def describe(self) -> str:
        """See `report.adhoc_views.Summary`."""
        return "clients are about to follow" if self.is_rolling else "all clients follow"

    def to_json(self) -> Json:
        """See `report.adhoc_views.Summary`."""
        return {"rolling": self.is_rolling}


def set_rollout(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The flag.")],
    rollout: Annotated[int, typer.Argument(metavar="PERCENT", min=0, max=100, help="Of how many users.")],
    yes: Yes = False,
    output: Format = "text",
    overriding: Overriding,
    where: Where,
    console: Console,
) -> ExitCode:
    """Set for how many users a flag is on.

    Shows the plan and asks first; 'kdeclare rollback' undoes it.
    """
    from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
    from kdeclare.app.scope import Scope
    from kdeclare.report.adhoc_views import AdhocWords

    def ask(connections: Connections) -> AdhocRequest:
        body, problems = FLAG.parse(name, FlagSpec(rollout=rollout))
        return AdhocRequest(
            (Desired(ResourceId(FLAG.name, name), body),),
            diagnostics=tuple(problem.diagnostic for problem in problems),
        )

    def summarize(resource: ResourceId, live: LiveState) -> Rolling:
        return Rolling(resource.name in live.get(Contents).rolling)

    overrides = overriding.overrides()
    workspace, options = where.workspace(), AdhocOptions(Scope(overrides=overrides), tell=console.say)
    set_flag = AdhocCommand(ask, summarize, AdhocWords(ongoing="clients are about to follow"))
    return run_and_show(
        console,
        "Set this flag?",
        lambda how: run_adhoc(workspace, set_flag, options, how),
        overrides,
        yes=yes,
    )
