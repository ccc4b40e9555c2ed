"""Checks between resources, which no kind can do on one of its own."""

from collections.abc import Callable, Iterator, Sequence

from kdeclare.core.diagnostics import Diagnostic, Place, error
from kdeclare.core.ids import ResourceId
from kdeclare.core.kind import Desired

Check = Callable[[Sequence[Desired]], Iterator[Diagnostic]]
"""What is wrong between the resources of a project; the diagnostics have place and resource."""


def declared_twice(
    resource: ResourceId, place: Place, first: Place | None, *, is_rule: bool = False
) -> Diagnostic:
    """For a second declaration of one thing. is_rule: of what holds in all environments."""
    overlaid = "" if is_rule else "; what differs by environment belongs into an overlay"
    return error(
        "duplicate-resource",
        "Resource declared twice",
        f"{resource} is declared here and at {first}.",
        hint=f"Take one of the two out{overlaid}.",
        place=place,
        resource=str(resource),
    )


def name_collisions(kind: str) -> Check:
    """A check for names of one kind that differ only in ``.`` and ``_``: Kafka's metrics mix them up, and
    it refuses the second topic."""

    def check(desired: Sequence[Desired]) -> Iterator[Diagnostic]:
        first: dict[str, Desired] = {}
        for item in desired:
            name = item.id.name
            if item.id.kind != kind:
                continue
            other = first.setdefault(name.replace(".", "_"), item)
            if other is not item:
                yield _collision(item, other)

    return check


def _collision(item: Desired, other: Desired) -> Diagnostic:
    return error(
        "name-collision",
        "Names collide",
        f"'{item.id.name}' collides with '{other.id.name}' ({other.source}): "
        "Kafka takes '.' and '_' for the same character there.",
        hint="Rename one of the two.",
        place=item.source,
        resource=str(item.id),
        subject=str(other.id),
    )
