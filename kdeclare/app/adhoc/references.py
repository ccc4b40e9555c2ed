"""Resolve references such as ``${env.NAME}`` in the settings of ad hoc commands, as in manifests."""

from collections.abc import Mapping
from dataclasses import replace

from kdeclare.app.workspace import Workspace
from kdeclare.manifests.syntax.substitution import ReferenceContext, UnresolvedReference, substitute


def resolve_references(
    workspace: Workspace, settings: Mapping[str, object], resource: str
) -> dict[str, object]:
    """Return the settings with all references resolved, including references inside lists and mappings.

    Raises UnresolvedReference with a diagnostic that names the resource.
    """
    project = workspace.project
    context = ReferenceContext(project.folder, workspace.environ, project.environment.variables)

    def resolve_value(value: object) -> object:
        if isinstance(value, str):
            return substitute(value, context, as_text=True)
        if isinstance(value, list | tuple):
            return [resolve_value(item) for item in value]
        return (
            {name: resolve_value(item) for name, item in value.items()}
            if isinstance(value, Mapping)
            else value
        )

    try:
        return {key: resolve_value(value) for key, value in settings.items()}
    except UnresolvedReference as problem:
        raise UnresolvedReference(replace(problem.diagnostic, resource=resource)) from None
