"""Complete option values in the user's shell, such as bash, from local files.

Errors are not reported, because the shell would mistake the output for completions. The command reports
errors when the user runs it.
"""

from collections.abc import Callable, Sequence

import typer

from kdeclare.cli.invocation import Invocation


def complete_environments(context: typer.Context, incomplete: str) -> list[str]:
    """Return the environments of the project whose names start with ``incomplete``."""
    from kdeclare.app.known_names import list_environment_names

    return _filter_names(lambda: list_environment_names(context.params.get("project")), incomplete)


def complete_resources(context: typer.Context, incomplete: str) -> list[str]:
    """Return each KIND/NAME declared in the chosen environment that starts with ``incomplete``."""
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
