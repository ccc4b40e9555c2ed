"""Completions of option values for the user's shell, such as bash. They are read from files, not a cluster.

Errors are not reported here, because the shell would take the output for completions. The command reports
them when it runs.
"""

from collections.abc import Callable, Sequence

import typer

from kdeclare.cli.invocation import Invocation


def complete_environments(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the project whose names start with ``incomplete``."""
    from kdeclare.app.known_names import list_environment_names

    return _filter_names(lambda: list_environment_names(context.params.get("project")), incomplete)


def complete_resources(context: typer.Context, incomplete: str) -> list[str]:
    """Return the resources, as KIND/NAME, that the project declares in the chosen environment.

    Only resources that start with ``incomplete`` are returned.
    """
    from kdeclare.app.known_names import list_declared_names
    from kdeclare.app.workspace import WorkspaceOptions

    params = context.params
    options = WorkspaceOptions(params.get("project"), params.get("env"))
    return _filter_names(lambda: list_declared_names(Invocation().workspace(options)), incomplete)


def _filter_names(list_names: Callable[[], Sequence[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in list_names() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  a traceback would appear in the middle of the command line
        return []
