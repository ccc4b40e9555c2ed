"""Complete option values in the user's shell, such as bash, from local files.

Errors are not reported, because the shell would mistake the output for completions. The command reports
errors when the user runs it.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import typer

from kdeclare.cli.invocation import Invocation

if TYPE_CHECKING:
    from kdeclare.app.workspace import Workspace


def complete_environments(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the project whose names start with ``incomplete``."""
    from kdeclare.app.known_names import list_environment_names

    return _filter_names(lambda: list_environment_names(context.params.get("project")), incomplete)


def complete_resources(context: typer.Context, incomplete: str) -> list[str]:
    """Return the declared resources of the chosen environment whose KIND/NAME starts with ``incomplete``."""
    from kdeclare.app.known_names import list_declared_names

    return _filter_names(lambda: list_declared_names(_open_workspace(context)), incomplete)


def complete_owned(context: typer.Context, incomplete: str) -> list[str]:
    """Return the owned resources whose KIND/NAME starts with ``incomplete``."""
    from kdeclare.app.known_names import list_owned_names

    return _filter_names(lambda: list_owned_names(_open_workspace(context)), incomplete)


def complete_runs(context: typer.Context, incomplete: str) -> list[str]:
    """Return the past runs whose ids start with ``incomplete``, latest first."""
    from kdeclare.app.known_names import list_run_ids

    return _filter_names(lambda: list_run_ids(_open_workspace(context)), incomplete)


def _open_workspace(context: typer.Context) -> "Workspace":
    from kdeclare.app.workspace import WorkspaceOptions
    from kdeclare.manifests.variables import GivenVariables, parse_assignments

    params = context.params
    variables = GivenVariables(
        tuple(params.get("var_file") or ()), parse_assignments(params.get("var") or ())
    )
    return Invocation().workspace(
        WorkspaceOptions(
            params.get("project"), params.get("env"), state=params.get("state"), variables=variables
        )
    )


def _filter_names(list_names: Callable[[], Sequence[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in list_names() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  a traceback would appear in the middle of the command line
        return []
