"""From what a kind wants a manifest to say to edits of the documents that say it now."""

from collections.abc import Iterator, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import KdeclareError, Place, error
from kdeclare.core.jsontypes import JsonValue, as_text, as_texts
from kdeclare.core.resources.capabilities import FieldEdit, Plain, SettingEdit, ValueEdit
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import SHOWN, is_secret
from kdeclare.manifests.editing.edits import Append, Drop, Path, Put, Value, plain_text
from kdeclare.manifests.editing.splicing import is_null
from kdeclare.manifests.editing.subject import Located, Subject
from kdeclare.manifests.syntax.nodes import node_at

_BY_PART = (FieldOp.APPEND, FieldOp.SUBTRACT)
_PARTS = ("append", "subtract")


def locate_edits(subject: Subject, wanted: FieldEdit) -> Iterator[Located]:
    """Yield the edits of documents. Raises KdeclareError for what is never edited."""
    path = ("spec", *wanted.path)
    match wanted:
        case ValueEdit(value=value):
            edit = (
                _edit_list(subject, path, value)
                if isinstance(value, list)
                else _edit_value(subject, path, value)
            )
            yield from edit
        case SettingEdit(fields=fields):
            yield from _edit_setting(subject, path, fields)


def refuse_secret(resource: ResourceId, field: FieldChange, name: str, place: Place | None = None) -> None:
    """Raises KdeclareError (``secret-not-written``) for a value of the field that nobody must see."""
    if field.after != SHOWN and not is_secret(field.value):
        return
    raise KdeclareError(
        error(
            "secret-not-written",
            "A secret is not written into a manifest",
            f"'{name}' of {resource} is sensitive: everybody who reads the manifest would read its value.",
            hint="Write ${env.NAME} or ${file.PATH} there by hand, and apply it.",
            place=place,
            resource=str(resource),
            subject=name,
        )
    )


def _edit_value(subject: Subject, path: Path, value: Plain) -> Iterator[Located]:
    node = subject.source.at(path)
    if value is None and (node is None or is_null(node)):
        return
    if node is None or subject.reader.peek(node) != plain_text(value):
        documents = subject.source.saying(path) or [subject.source.base]
        yield subject.edited(documents[-1], Put(path, value))


def _edit_list(subject: Subject, path: Path, elements: list[Plain]) -> Iterator[Located]:
    """In a list that is there already, only the elements that are others."""
    node = subject.source.at(path)
    if not isinstance(node, SequenceNode):
        documents = subject.source.saying(path) or subject.source.saying(path[:-1]) or [subject.source.base]
        yield subject.edited(documents[-1], Put(path, list(elements)))
        return
    document, before = subject.source.saying(path)[-1], _texts(subject, node)
    for index, element in enumerate(elements[: len(before)]):
        if before[index] != str(element):
            yield subject.edited(document, Put((*path, index), element))
    for element in elements[len(before) :]:
        yield subject.edited(document, Append(path, element))
    for index in reversed(range(len(elements), len(before))):
        yield subject.edited(document, Drop((*path, index)))


def _texts(subject: Subject, node: Node) -> list[str]:
    said = subject.reader.peek(node)
    return list(said) if isinstance(said, list) else []


def _edit_setting(subject: Subject, path: Path, fields: Sequence[FieldChange]) -> Iterator[Located]:
    node, last = subject.source.at(path), fields[-1]
    if last.op is FieldOp.DELETE:
        yield from _unset(subject, path)
        return
    refuse_secret(subject.id, last, str(path[-1]), subject.source.place(path))
    if last.op in _BY_PART and (node is None or is_null(node) or isinstance(node, MappingNode)):
        yield from _edit_parts(subject, path, fields)
    else:
        yield from _edit_whole(subject, path, last.after)


def _unset(subject: Subject, path: Path) -> Iterator[Located]:
    """Without the key; where that would only show what stands beneath, null says "no override"."""
    node = subject.source.at(path)
    if node is None or is_null(node):
        return
    *beneath, top = subject.source.saying(path)
    exposed = [found for document in beneath if (found := node_at(document.root, path)) is not None]
    yield subject.edited(top, Drop(path) if all(map(is_null, exposed)) else Put(path, None))


def _edit_whole(subject: Subject, path: Path, after: JsonValue) -> Iterator[Located]:
    node = subject.source.at(path)
    if node is None:
        yield subject.edited(subject.source.base, Put(path, _value_of(after)))
        return
    document = subject.source.saying(path)[-1]
    if isinstance(after, list) and not is_null(node) and not isinstance(node, MappingNode):
        yield from subject.set_of(document, path, node, [element.strip() for element in as_texts(after)])
    elif not (isinstance(node, ScalarNode) and not is_null(node) and _is_same(subject, path, node, after)):
        yield subject.edited(document, Put(path, _value_of(after)))


def _value_of(after: JsonValue) -> Value:
    """What a setting is to be, as manifests state it."""
    if isinstance(after, list):
        return list(as_texts(after))
    return after if after is None or isinstance(after, int) else as_text(after)


def _is_same(subject: Subject, path: Path, node: ScalarNode, after: JsonValue) -> bool:
    text = subject.reader.peek(node)
    return isinstance(text, str) and subject.kind.is_same_value(path[1:], text, after)


def _edit_parts(subject: Subject, path: Path, fields: Sequence[FieldChange]) -> Iterator[Located]:
    """What was appended must be in by now, and what was subtracted out."""
    source = subject.source
    leaves = {part: source.at((*path, part)) for part in _PARTS}
    wanted = {part: subject.texts(leaf) if leaf is not None else [] for part, leaf in leaves.items()}
    for field in fields:
        elements = [element.strip() for element in as_texts(field.value)]
        into, out_of = _PARTS if field.op is FieldOp.APPEND else reversed(_PARTS)
        wanted[into] += [element for element in elements if element not in wanted[into]]
        wanted[out_of] = [element for element in wanted[out_of] if element not in elements]
    if not isinstance(source.at(path), MappingNode):
        documents = source.saying(path) or [source.base]
        stated: Value = {part: [*elements] for part, elements in wanted.items() if elements}
        yield subject.edited(documents[-1], Put(path, stated))
        return
    for part in _PARTS:
        yield from _edit_part(subject, (*path, part), wanted[part])


def _edit_part(subject: Subject, path: Path, wanted: list[str]) -> Iterator[Located]:
    leaf = subject.source.at(path)
    if leaf is None or is_null(leaf):
        if wanted:
            documents = subject.source.saying(path) or subject.source.saying(path[:-1])
            yield subject.edited(documents[-1], Put(path, list(wanted)))
        return
    documents = subject.source.saying(path)
    holder = node_at(documents[-1].root, path[:-1])
    alone = isinstance(holder, MappingNode) and len(holder.value) == 1
    if not wanted and len(documents) == 1 and not alone and isinstance(leaf, SequenceNode) and leaf.value:
        yield subject.edited(documents[-1], Drop(path))
    else:
        yield from subject.set_of(documents[-1], path, leaf, wanted)
