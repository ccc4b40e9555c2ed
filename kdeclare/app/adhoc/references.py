"""References in what is asked for ad hoc: the same as in manifests."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.app.workspace import Workspace
from kdeclare.manifests.syntax.substitution import Scope, Unresolved, substitute


def resolve_references(
    workspace: Workspace, settings: Mapping[str, object], resource: str
) -> dict[str, object]:
    """Return settings with their references read; a list's and a part's elements, too.

    Raises Unresolved with a diagnostic that names the resource.
    """
    project = workspace.project
    scope = Scope(project.folder, workspace.environ, project.environment.variables)

    def read(value: object) -> object:
        if isinstance(value, str):
            return substitute(value, scope, as_text=True)
        if isinstance(value, list | tuple):
            return [read(item) for item in value]
        return {name: read(item) for name, item in value.items()} if isinstance(value, Mapping) else value

    try:
        return {key: read(value) for key, value in settings.items()}
    except Unresolved as problem:
        raise Unresolved(replace(problem.diagnostic, resource=resource)) from None
