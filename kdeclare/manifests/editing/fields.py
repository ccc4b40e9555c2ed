"""Convert the field edits of a kind into edits to the manifest or overlay that sets each field."""

from collections.abc import Iterator, Sequence

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import KdeclareError, SourcePosition, error
from kdeclare.core.jsontypes import JsonValue, as_text, as_texts
from kdeclare.core.resources.changes import FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import (
    EntriesEdit,
    ListEntry,
    Plain,
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, is_secret
from kdeclare.manifests.editing.edit_subject import EditSubject, LocatedEdit
from kdeclare.manifests.editing.edits import AppendEdit, DropEdit, EditValue, NodePath, PutEdit, format_scalar
from kdeclare.manifests.editing.text_splice import is_null
from kdeclare.manifests.syntax.nodes import find_node

_BY_PART = (FieldOp.APPEND, FieldOp.SUBTRACT)
_PARTS = ("append", "subtract")


def locate_edits(
    subject: EditSubject, field_edit: ValueEdit | SettingEdit | EntriesEdit
) -> Iterator[LocatedEdit]:
    """Yield the document edits that carry out a field edit.

    Raises KdeclareError if the field must not be edited.
    """
    path = ("spec", *field_edit.path)
    match field_edit:
        case ValueEdit(value=value):
            located_edits = (
                _edit_list(subject, path, value)
                if isinstance(value, list)
                else _edit_value(subject, path, value)
            )
            yield from located_edits
        case SettingEdit(fields=fields):
            yield from _edit_setting(subject, path, fields)
        case EntriesEdit():
            yield from _edit_entries(subject, path, field_edit)


def validate_not_secret(
    resource: ResourceId, field: FieldChange, name: str, place: SourcePosition | None = None
) -> None:
    """Raise KdeclareError (``secret-not-written``) if the value of the field is secret."""
    if field.after != SENSITIVE_MASK and not is_secret(field.value):
        return
    raise KdeclareError(
        error(
            "secret-not-written",
            "Secret not written to manifest",
            f"'{name}' of {resource} is sensitive: everyone who can read the manifest could read its value.",
            hint="Write ${env.NAME} or ${file.PATH} into the manifest yourself, then apply it.",
            place=place,
            resource=str(resource),
            subject=name,
        )
    )


def _edit_value(subject: EditSubject, path: NodePath, value: Plain) -> Iterator[LocatedEdit]:
    node = subject.source.at(path)
    if value is None and (node is None or is_null(node)):
        return
    if node is None or subject.reader.peek(node) != format_scalar(value):
        documents = subject.source.find_documents(path) or [subject.source.base]
        yield subject.edited(documents[-1], PutEdit(path, value))


def _edit_list(subject: EditSubject, path: NodePath, elements: list[Plain]) -> Iterator[LocatedEdit]:
    """Yield the edits that make a list contain exactly these elements. Unchanged elements are not edited."""
    node = subject.source.at(path)
    if not isinstance(node, SequenceNode):
        documents = (
            subject.source.find_documents(path)
            or subject.source.find_documents(path[:-1])
            or [subject.source.base]
        )
        yield subject.edited(documents[-1], PutEdit(path, list(elements)))
        return
    document, old_texts = subject.source.find_documents(path)[-1], _collect_element_texts(subject, node)
    for index, element in enumerate(elements[: len(old_texts)]):
        if old_texts[index] != str(element):
            yield subject.edited(document, PutEdit((*path, index), element))
    for element in elements[len(old_texts) :]:
        yield subject.edited(document, AppendEdit(path, element))
    for index in reversed(range(len(elements), len(old_texts))):
        yield subject.edited(document, DropEdit((*path, index)))


def _edit_entries(subject: EditSubject, path: NodePath, edit: EntriesEdit) -> Iterator[LocatedEdit]:
    documents = subject.source.find_documents(path) or [subject.source.base]
    added: list[EditValue] = [_build_entry(entry) for entry in edit.added]
    if not isinstance(subject.source.at(path), SequenceNode):
        if added:
            yield subject.edited(documents[-1], PutEdit(path, added))
        return
    for entry in added:
        yield subject.edited(documents[-1], AppendEdit(path, entry))
    for index in sorted(edit.removed, reverse=True):
        yield subject.edited(documents[-1], DropEdit((*path, index)))


def _build_entry(entry: ListEntry) -> EditValue:
    return {field: [*value] if isinstance(value, list) else value for field, value in entry.items()}


def _collect_element_texts(subject: EditSubject, node: Node) -> list[str]:
    elements = subject.reader.peek(node)
    return list(elements) if isinstance(elements, list) else []


def _edit_setting(
    subject: EditSubject, path: NodePath, fields: Sequence[FieldChange]
) -> Iterator[LocatedEdit]:
    node, last_change = subject.source.at(path), fields[-1]
    if last_change.op is FieldOp.DELETE:
        yield from _unset_setting(subject, path)
        return
    validate_not_secret(subject.id, last_change, str(path[-1]), subject.source.place(path))
    if last_change.op in _BY_PART and (node is None or is_null(node) or isinstance(node, MappingNode)):
        yield from _edit_parts(subject, path, fields)
    else:
        yield from _edit_whole_value(subject, path, last_change.after)


def _unset_setting(subject: EditSubject, path: NodePath) -> Iterator[LocatedEdit]:
    """Yield the edit that removes a config key.

    If a document of lower precedence also sets the key, the edit sets it to null ("no override") instead.
    """
    node = subject.source.at(path)
    if node is None or is_null(node):
        return
    *lower_documents, top_document = subject.source.find_documents(path)
    lower_nodes = [
        lower_node
        for document in lower_documents
        if (lower_node := find_node(document.root, path)) is not None
    ]
    yield subject.edited(
        top_document, DropEdit(path) if all(map(is_null, lower_nodes)) else PutEdit(path, None)
    )


def _edit_whole_value(subject: EditSubject, path: NodePath, new_value: JsonValue) -> Iterator[LocatedEdit]:
    node = subject.source.at(path)
    if node is None:
        yield subject.edited(subject.source.base, PutEdit(path, _build_value(new_value)))
        return
    document = subject.source.find_documents(path)[-1]
    if isinstance(new_value, list) and not is_null(node) and not isinstance(node, MappingNode):
        yield from subject.replace_elements(
            document, path, node, [element.strip() for element in as_texts(new_value)]
        )
    elif not (
        isinstance(node, ScalarNode) and not is_null(node) and _is_same_value(subject, path, node, new_value)
    ):
        yield subject.edited(document, PutEdit(path, _build_value(new_value)))


def _build_value(new_value: JsonValue) -> EditValue:
    if isinstance(new_value, list):
        return list(as_texts(new_value))
    return new_value if new_value is None or isinstance(new_value, int) else as_text(new_value)


def _is_same_value(subject: EditSubject, path: NodePath, node: ScalarNode, new_value: JsonValue) -> bool:
    text = subject.reader.peek(node)
    return isinstance(text, str) and subject.kind.is_same_value(path[1:], text, new_value)


def _edit_parts(subject: EditSubject, path: NodePath, fields: Sequence[FieldChange]) -> Iterator[LocatedEdit]:
    """Yield the edits that add elements to ``append`` or ``subtract`` and remove them from the other list."""
    source = subject.source
    nodes_by_part = {part: source.at((*path, part)) for part in _PARTS}
    elements_by_part = {
        part: subject.split_elements(leaf) if leaf is not None else [] for part, leaf in nodes_by_part.items()
    }
    for field in fields:
        elements = [element.strip() for element in as_texts(field.value)]
        target_part, opposite_part = _PARTS if field.op is FieldOp.APPEND else reversed(_PARTS)
        elements_by_part[target_part] += [
            element for element in elements if element not in elements_by_part[target_part]
        ]
        elements_by_part[opposite_part] = [
            element for element in elements_by_part[opposite_part] if element not in elements
        ]
    if not isinstance(source.at(path), MappingNode):
        documents = source.find_documents(path) or [source.base]
        part_lists: EditValue = {part: [*elements] for part, elements in elements_by_part.items() if elements}
        yield subject.edited(documents[-1], PutEdit(path, part_lists))
        return
    for part in _PARTS:
        yield from _edit_part(subject, (*path, part), elements_by_part[part])


def _edit_part(subject: EditSubject, path: NodePath, elements: list[str]) -> Iterator[LocatedEdit]:
    node = subject.source.at(path)
    if node is None or is_null(node):
        if elements:
            documents = subject.source.find_documents(path) or subject.source.find_documents(path[:-1])
            yield subject.edited(documents[-1], PutEdit(path, list(elements)))
        return
    documents = subject.source.find_documents(path)
    holder = find_node(documents[-1].root, path[:-1])
    is_only_part = isinstance(holder, MappingNode) and len(holder.value) == 1
    if (
        not elements
        and len(documents) == 1
        and not is_only_part
        and isinstance(node, SequenceNode)
        and node.value
    ):
        yield subject.edited(documents[-1], DropEdit(path))
    else:
        yield from subject.replace_elements(documents[-1], path, node, elements)
