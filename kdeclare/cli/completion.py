"""What the shell's Tab offers for options, from files alone: no cluster is asked.

Whatever is wrong stays unsaid, as words on the screen would be taken for what is offered; the command
itself says it.
"""

from collections.abc import Callable, Sequence

import typer

from kdeclare.cli.invocation import Invocation


def complete_environments(context: typer.Context, incomplete: str) -> list[str]:
    """The environments of the project."""
    from kdeclare.app.known_names import list_environment_names

    return _filter_names(lambda: list_environment_names(context.params.get("project")), incomplete)


def complete_resources(context: typer.Context, incomplete: str) -> list[str]:
    """What the project declares in the environment that is chosen, as KIND/NAME."""
    from kdeclare.app.known_names import list_declared_names
    from kdeclare.app.workspace import WorkspaceOptions

    params = context.params
    options = WorkspaceOptions(params.get("project"), params.get("env"))
    return _filter_names(lambda: list_declared_names(Invocation().workspace(options)), incomplete)


def _filter_names(list_names: Callable[[], Sequence[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in list_names() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  a trace would stand in the middle of the line that is typed
        return []
