"""From what a change says of partitions, replicas and assignments to edits of where the manifests say it."""

from collections.abc import Iterator, Mapping, Sequence

from yaml.nodes import Node, SequenceNode

from kdeclare.core.changes import FieldChange
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, info
from kdeclare.manifests.editing.edits import Append, Drop, Path, Put
from kdeclare.manifests.editing.splicing import is_null
from kdeclare.manifests.editing.subject import Located, Subject

_ASSIGNMENTS: Path = ("spec", "assignments")
_COUNTS = ("partitions", "replicationFactor")
PREFIX = "assignments."


def shape_edits(subject: Subject, fields: Sequence[FieldChange]) -> Iterator[Located]:
    """Edits for the fields that are no configs. Raises KdeclareError for what is never edited."""
    replicas = replicas_in(fields)
    if _declares_assignments(subject):
        if not replicas and fields:
            raise KdeclareError(_unknown_replicas(subject, fields[0]))
        for partition, brokers in replicas.items():
            yield from _replicas(subject, (*_ASSIGNMENTS, partition), brokers)
        return
    for field in fields:
        if field.path in _COUNTS and field.after is not None:
            yield from _count(subject, ("spec", field.path), field.after)


def shape_notices(subject: Subject, fields: Sequence[FieldChange]) -> Iterator[Diagnostic]:
    """What is not written, as the manifest says nothing of it."""
    if replicas_in(fields) and not _declares_assignments(subject):
        placed = subject.source.at(("spec", "placement")) is not None
        yield info(
            "assignments-not-declared",
            "Assignments are not written",
            f"The manifest of {subject.id} declares no assignments, so it leaves open where replicas are.",
            hint="Its placement decides where the next apply puts them." if placed else "",
            place=subject.source.place(("metadata", "name")),
            resource=str(subject.id),
        )


def replicas_in(fields: Sequence[FieldChange]) -> Mapping[int, list[int]]:
    """The replicas of partitions, by partition."""
    found = {int(f.path.removeprefix(PREFIX)): f.after for f in fields if f.path.startswith(PREFIX)}
    return {partition: found[partition] for partition in sorted(found) if found[partition] is not None}


def _declares_assignments(subject: Subject) -> bool:
    node = subject.source.at(_ASSIGNMENTS)
    return node is not None and not is_null(node)


def _count(subject: Subject, path: Path, after: int) -> Iterator[Located]:
    node = subject.source.at(path)
    if node is None or subject.reader.peek(node) != str(after):
        documents = subject.source.saying(path) or [subject.source.base]
        yield subject.edited(documents[-1], Put(path, after))


def _replicas(subject: Subject, path: Path, brokers: list[int]) -> Iterator[Located]:
    """In a list that is there already, only the brokers that are others."""
    node = subject.source.at(path)
    if not isinstance(node, SequenceNode):
        document = (subject.source.saying(path) or subject.source.saying(path[:-1]))[-1]
        yield subject.edited(document, Put(path, list(brokers)))
        return
    document, before = subject.source.saying(path)[-1], _texts(subject, node)
    for index, broker in enumerate(brokers[: len(before)]):
        if before[index] != str(broker):
            yield subject.edited(document, Put((*path, index), broker))
    for broker in brokers[len(before) :]:
        yield subject.edited(document, Append(path, broker))
    for index in reversed(range(len(brokers), len(before))):
        yield subject.edited(document, Drop((*path, index)))


def _texts(subject: Subject, node: Node) -> list[str]:
    said = subject.reader.peek(node)
    return list(said) if isinstance(said, list) else []


def _unknown_replicas(subject: Subject, field: FieldChange) -> Diagnostic:
    return error(
        "assignments-unknown",
        "Assignments would have to be written",
        f"The manifest of {subject.id} declares assignments, and the change of its {field.path} does not say "
        "which brokers they are to name.",
        hint="Say them in the change, or change the manifest by hand.",
        place=subject.source.place(_ASSIGNMENTS),
        resource=str(subject.id),
        subject=field.path,
    )
