"""Checks across resources: duplicate declarations, name collisions, and names outside the project's scope."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.patterns import RE2_HINT, PatternError, compile_pattern, is_pattern
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Kind
from kdeclare.core.resources.name_scope import NameScope, report_out_of_scope
from kdeclare.core.resources.plan_capabilities import (
    find_affected,
)
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.syntax.nodes import find_position

ResourceCheck = Callable[[Sequence[DesiredResource]], Iterator[Diagnostic]]
"""A check across all resources of a project. Every diagnostic has a position and names a resource."""


def build_duplicate_resource_error(
    resource: ResourceId,
    place: SourcePosition | None,
    first_position: SourcePosition | None,
    *,
    is_rule: bool = False,
) -> Diagnostic:
    """Return the error for a second declaration of a resource.

    is_rule: whether the declared object is a rule (a policy or defaults), for which overlays are not allowed.
    """
    overlay_hint = "" if is_rule else ". Put differences between environments into an overlay"
    return error(
        "duplicate-resource",
        "Resource declared twice",
        f"{resource} is declared here and at {first_position}.",
        hint=f"Remove one of the two declarations{overlay_hint}.",
        place=place,
        resource=str(resource),
    )


def parse_name_scope(entries_by_kind: Mapping[str, list[str]], root: Node) -> NameScope:
    """Return the name scope that a project file declares (``spec.scope``).

    Raises KdeclareError for unknown kinds and invalid patterns.
    """
    problems = list(_check_scope_entries(entries_by_kind, root))
    if problems:
        raise KdeclareError(*sort_diagnostics(problems))
    return NameScope({kind: tuple(entries) for kind, entries in entries_by_kind.items()})


def check_name_scope(
    desired: Iterable[DesiredResource], scope: NameScope, kinds: Mapping[str, Kind]
) -> Iterator[Diagnostic]:
    """Yield an error for each declared resource that is outside the scope.

    A resource is also reported if it affects a resource outside the scope.
    """
    if not scope.entries:
        return
    for item in desired:
        forbidden = scope.find_forbidden({item.id, *find_affected(kinds[item.id.kind], item.body)})
        if forbidden:
            yield report_out_of_scope(item.id, forbidden, scope, item.source)


def _check_scope_entries(entries_by_kind: Mapping[str, list[str]], root: Node) -> Iterator[Diagnostic]:
    for kind, entries in entries_by_kind.items():
        if kind not in KINDS:
            yield error(
                "unknown-kind",
                "Unknown kind",
                f"'spec.scope' has an entry for the kind '{kind}', which does not exist.",
                hint=format_suggestion(kind, KINDS) or f"Use one of the kinds {', '.join(KINDS)}.",
                place=find_position(root, ("spec", "scope", kind), key=True),
            )
        for n, entry in enumerate(entries):
            if not is_pattern(entry):
                continue
            try:
                compile_pattern(entry[1:-1])
            except PatternError as pattern_error:
                yield error(
                    "bad-pattern",
                    "Invalid regular expression",
                    f"The entry {entry} of 'spec.scope.{kind}' is not a regular expression: "
                    f"{pattern_error.located_reason}.",
                    hint=RE2_HINT,
                    place=find_position(root, ("spec", "scope", kind, n)),
                )
