"""New names for topics that exist: Kafka cannot rename, so a new name is a new, empty topic."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from kdeclare.core.changes import Action, Reason
from kdeclare.core.compared import Compared
from kdeclare.core.diagnostics import Diagnostic, Place, denied, warning
from kdeclare.core.jsontypes import Json, canonical_json
from kdeclare.core.operations import Operation
from kdeclare.providers.kafka.live import Topic
from kdeclare.providers.kafka.topic_effects import find_effects

RENAME = "rename"
NAME_COLLISION = "name-collision"

_SIMILAR = 0.6
"""difflib's own bound for close matches."""


def order_colliding_names(
    operations: Sequence[Operation], live: Mapping[str, Topic]
) -> tuple[list[Operation], list[Diagnostic]]:
    """Create a topic only after the one that its name collides with is deleted, or not at all.

    Kafka refuses 'a.b' while 'a_b' exists: their metrics have the same name. Without the edge, the old topic
    could be deleted and the new one still be refused.
    """
    deletions = {name: op.id for op in operations for name, e in find_effects(op).items() if e.deleted}
    existing: dict[str, list[str]] = {}
    for name in sorted(live):
        existing.setdefault(_metric_name(name), []).append(name)
    ordered: list[Operation] = []
    problems: list[Diagnostic] = []
    for op in operations:
        created = [name for name, effect in find_effects(op).items() if effect.created]
        for name in created:
            for other in existing.get(_metric_name(name), ()):
                if other == name:
                    continue
                if other in deletions:
                    reason = f"Kafka refuses the name while '{other}' exists"
                    op = replace(op, needs={**op.needs, deletions[other]: reason})
                    problems.append(_rename(str(op.resource), name, other, deleted=True))
                else:
                    problems.append(_collision(op, name, other))
        ordered.append(op)
    return ordered, problems


def find_renames(compared: Sequence[Compared], reported: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    """Topics with a similar name and the same declaration as the only one that is not declared anymore.

    reported: what is known already; a new name is reported once.
    """
    known = {d.resource for d in reported if d.code in (RENAME, NAME_COLLISION)}
    old = _by_declaration([i for i in compared if i.desired is None and _is_topic(i)], lambda i: i.owned)
    new = _by_declaration([i for i in compared if _is_new(i)], lambda i: i.difference.owned)
    for declaration, items in new.items():
        former = old.get(declaration, [])
        if len(items) != 1 or len(former) != 1 or str(items[0].id) in known:
            continue
        if SequenceMatcher(None, items[0].id.name, former[0].id.name).ratio() >= _SIMILAR:
            change = former[0].change
            deleted = change is not None and change.action is Action.DELETE and not change.blocked
            place = items[0].desired.source if items[0].desired else None
            yield _rename(str(items[0].id), items[0].id.name, former[0].id.name, deleted=deleted, place=place)


def _is_topic(item: Compared) -> bool:
    return item.id.kind == "Topic" and item.change is not None and item.change.action is not Action.FORGET


def _is_new(item: Compared) -> bool:
    change = item.change
    return (
        item.id.kind == "Topic"
        and change is not None
        and change.action is Action.CREATE
        and change.reason is Reason.DECLARED
    )


def _by_declaration(
    items: Sequence[Compared], record: Callable[[Compared], Json]
) -> dict[str, list[Compared]]:
    """By what was declared of each; ids and protection say nothing of the topic itself."""
    found: dict[str, list[Compared]] = {}
    for item in items:
        stated = {k: v for k, v in (record(item) or {}).items() if k not in ("topicId", "preventDestroy")}
        found.setdefault(canonical_json(stated), []).append(item)
    return found


def _metric_name(topic: str) -> str:
    """What Kafka's metrics make of a name (`Topic.unifyCollisionChars`)."""
    return topic.replace(".", "_")


def _rename(resource: str, name: str, other: str, *, deleted: bool, place: Place | None = None) -> Diagnostic:
    fate = f"'{other}' is deleted with all its records" if deleted else f"'{other}' keeps its records"
    return warning(
        RENAME,
        "Kafka cannot rename topics",
        f"'{name}' looks like a new name for '{other}'. It is created empty, and {fate}.",
        hint="To keep the records, copy them and move the clients before the old topic is deleted.",
        place=place,
        resource=resource,
    )


def _collision(op: Operation, name: str, other: str) -> Diagnostic:
    return denied(
        NAME_COLLISION,
        "Names collide",
        f"Topic '{name}' cannot be created while '{other}' exists: Kafka treats '.' and '_' as the same "
        "character in metric names.",
        hint="Choose another name. If this is meant as a rename: Kafka cannot rename topics; the old topic "
        "has to be deleted, with its records, in the same plan.",
        resource=str(op.resource),
    )
