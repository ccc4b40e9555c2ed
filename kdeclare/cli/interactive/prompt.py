"""What the prompt says: which project, in which environment, at which cluster."""

from prompt_toolkit.formatted_text import StyleAndTextTuples

from kdeclare.cli.line import Line, Shared
from kdeclare.core.diagnostics import KdeclareError

_WIDEST = 40


def prompt(shared: Shared, *, colours: bool) -> StyleAndTextTuples:
    """For prompt_toolkit. Read anew each time: the project file may have changed, or may not be right."""
    try:
        workspace = Line(shared=shared).workspace(shared.defaults)
    except KdeclareError:
        return [("bold" if colours else "", "kdeclare"), ("", "> ")]
    project = workspace.project
    place = f"{project.name}/{project.environment.name}" if project.file else "kdeclare"
    cluster = named(workspace.cluster_name)
    bold, dim = ("bold", "fg:ansibrightblack") if colours else ("", "")
    shown: StyleAndTextTuples = [(bold, place)]
    if cluster not in (project.environment.name,):
        shown += [("", " "), (dim, cluster)]
    return [*shown, ("", "> ")]


def named(servers: str) -> str:
    """A cluster's name, short enough for a prompt: of several addresses the first."""
    first, *others = (part.strip() for part in servers.split(","))
    short = first if len(first) <= _WIDEST else f"{first[: _WIDEST - 1]}…"
    return f"{short},…" if others else short
