"""The names that a project is allowed to declare, change or import (``spec.scope`` in the project file)."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import compile_pattern, is_pattern
from kdeclare.core.resources.ids import ResourceId

OUT_OF_SCOPE = "out-of-scope"

_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class NameScope:
    """The names that a project can use, by kind. A name between slashes is an RE2 pattern for whole names.

    A kind without an entry is unrestricted.
    """

    entries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def permits(self, resource: ResourceId) -> bool:
        """Whether the project is allowed to declare, change or import the resource."""
        entries = self.entries.get(resource.kind)
        if entries is None:
            return True
        return any(
            compile_pattern(entry[1:-1]).matches(resource.name)
            if is_pattern(entry)
            else entry == resource.name
            for entry in entries
        )

    def find_forbidden(self, resources: Iterable[ResourceId]) -> list[ResourceId]:
        """Return the resources outside the scope of the project, sorted."""
        return [id_ for id_ in sorted(resources) if not self.permits(id_)] if self.entries else []


def report_out_of_scope(
    resource: ResourceId | None,
    forbidden: Iterable[ResourceId],
    scope: NameScope,
    place: SourcePosition | None = None,
) -> Diagnostic:
    """Return the error about resources outside the scope of the project.

    resource: the resource that would affect the ``forbidden`` resources; None if no resource does.
    """
    forbidden_ids = list(forbidden)
    kind = forbidden_ids[0].kind
    names = [str(id_) for id_ in forbidden_ids if id_.kind == kind]
    more_text = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    allowed_names = ", ".join(scope.entries.get(kind, ())) or "none"
    detail = f"This project must not declare or change {', '.join(names[:_MAX_NAMED])}{more_text}"
    if resource is not None and resource not in forbidden_ids:
        detail += f", which {resource} would affect"
    return error(
        OUT_OF_SCOPE,
        "Outside the scope of the project",
        f"{detail}. The project's scope allows these names for kind {kind}: {allowed_names}.",
        hint="Declare the resource in the project that it belongs to, "
        "or extend spec.scope in the project file.",
        place=place,
        resource=str(resource) if resource is not None else None,
    )
