"""What the shell's Tab offers for options, from files alone: no cluster is asked.

Whatever is wrong stays unsaid, as words on the screen would be taken for what is offered; the command
itself says it.
"""

from collections.abc import Callable, Sequence

import typer

from kdeclare.cli.line import Line


def environments(context: typer.Context, incomplete: str) -> list[str]:
    """The environments of the project."""
    from kdeclare.app.known_names import environment_names

    return _offered(lambda: environment_names(context.params.get("project")), incomplete)


def resources(context: typer.Context, incomplete: str) -> list[str]:
    """What the project declares in the environment that is chosen, as KIND/NAME."""
    from kdeclare.app.known_names import declared
    from kdeclare.app.workspace import Options

    said = context.params
    options = Options(said.get("project"), said.get("env"))
    return _offered(lambda: declared(Line().workspace(options)), incomplete)


def _offered(known: Callable[[], Sequence[str]], incomplete: str) -> list[str]:
    try:
        return [name for name in known() if name.startswith(incomplete)]
    except Exception:  # noqa: BLE001  a trace would stand in the middle of the line that is typed
        return []
