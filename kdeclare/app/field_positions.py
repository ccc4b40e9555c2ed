"""Add the positions of fields in the manifests to the diagnostics of a plan.

Providers and systems do not know the manifest files, so their diagnostics name only the field.
"""

from collections.abc import Iterator
from dataclasses import replace

from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import FIELD_SUBJECT_PREFIX, Diagnostic, SourcePosition
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.resources.manifest_capabilities import locate_field
from kdeclare.manifests.provenance import ProjectSources, Source, read_sources


def locate_fields(workspace: Workspace, diagnostics: tuple[Diagnostic, ...]) -> tuple[Diagnostic, ...]:
    """Add to each diagnostic about a field the position of that field in the manifest.

    If the manifest does not declare the field, add the position of the innermost declared field around it.
    """
    if not any(map(_is_about_field, diagnostics)):
        return diagnostics  # the usual case, in which no manifest is read again
    sources = read_sources(workspace.project, workspace.environ, KINDS)
    return tuple(
        replace(item, place=_find_position(sources, item) or item.place) if _is_about_field(item) else item
        for item in diagnostics
    )


def _is_about_field(diagnostic: Diagnostic) -> bool:
    subject = diagnostic.subject
    return bool(diagnostic.resource and subject and subject.startswith(FIELD_SUBJECT_PREFIX))


def _find_position(sources: ProjectSources, diagnostic: Diagnostic) -> SourcePosition | None:
    assert diagnostic.resource is not None
    assert diagnostic.subject is not None
    resource = ResourceId.parse(diagnostic.resource)
    source = sources.by_id.get(resource)
    if source is None:
        return None
    path = diagnostic.subject.removeprefix(FIELD_SUBJECT_PREFIX)
    positions = (_place_innermost(source, steps) for steps in locate_field(resource.kind, path))
    return next((position for position in positions if position is not None), None)


def _place_innermost(source: Source, steps: SpecPath) -> SourcePosition | None:
    """Return the position of a field or, if it is not declared, of the innermost field that contains it."""
    positions = (source.place(("spec", *prefix)) for prefix in _list_prefixes(steps))
    return next((position for position in positions if position is not None), None)


def _list_prefixes(steps: SpecPath) -> Iterator[SpecPath]:
    for length in range(len(steps), -1, -1):
        yield steps[:length]
