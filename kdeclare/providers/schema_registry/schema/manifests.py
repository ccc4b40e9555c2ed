"""Manifests for live subjects (`kdeclare import`), and edits that bring a manifest in line with a change."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.jsontypes import as_text
from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    FieldEdit,
    FileEdit,
    ManifestEdits,
    OmittedObjects,
    ValueEdit,
)
from kdeclare.core.resources.manifest_text import quote_scalar, render_manifest, scalar
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.schema.arguments import (
    ContentArgs,
    DeleteArgs,
    LevelArgs,
    RegisterArgs,
)
from kdeclare.providers.schema_registry.schema.content import normalize_text
from kdeclare.providers.schema_registry.schema.fields import (
    LEVEL,
    REFERENCES,
    REGISTRY,
    SUBJECT,
    TEXT,
    TYPE,
    list_location_fields,
)
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    LiveVersion,
    RegistrySnapshot,
    SchemaSelection,
    SchemaState,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA, DeclaredLevel, SchemaBody


def export_subjects(request: ExportRequest) -> Export:
    """Return a manifest for the latest version of each subject. Raises Fault."""
    state = request.read((SchemaSelection(has_all=True),)).get(SchemaState)
    registries = {snapshot.name: snapshot for snapshot in state.registries.values()}
    manifests: dict[str, str] = {}
    out_of_scope_count = 0
    for name, snapshot in sorted(registries.items()):
        if snapshot.problem is not None:
            raise snapshot.problem
        for subject, item in sorted(snapshot.subjects.items()):
            if item.latest is None or not request.matches(subject):
                continue
            manifest_name = subject if subject not in manifests else f"{name}-{subject}"
            permitted = (ResourceId(SCHEMA, manifest_name), ResourceId(SCHEMA, subject))
            if not all(map(request.permits, permitted)):
                out_of_scope_count += 1
                continue
            registry = snapshot if len(registries) > 1 else None
            manifests[manifest_name] = _render_manifest(manifest_name, subject, item, item.latest, registry)
    reason = "outside the scope of the project"
    return Export(manifests, (OmittedObjects(out_of_scope_count, "subject", "subjects", reason),))


def _render_manifest(
    name: str, subject: str, item: LiveSubject, latest: LiveVersion, registry: RegistrySnapshot | None
) -> str:
    lines = [
        *([f"registry: {scalar(registry.name, text=True)}"] if registry is not None else ()),
        *([f"subject: {scalar(subject, text=True)}"] if name != subject else ()),
        f"type: {latest.content.type.value}",
        *render_text(latest.content.type, latest.content.text),
        *_render_references(latest),
        *([f"compatibility: {item.level.own.value}"] if item.level.own is not None else ()),
    ]
    return render_manifest(SCHEMA, name, lines, [f"Version {latest.number} of the subject."])


def render_text(type_: SchemaType, text: str) -> Iterator[str]:
    """Yield the lines of the field ``schema``, with the schema as a YAML block. JSON is indented."""
    layout = text if type_ is SchemaType.PROTOBUF else format_json(text)
    escaped = layout.replace("${", "$${")
    lines = escaped.split("\n")
    is_plain = all(line.isprintable() for line in lines) and not lines[0].startswith((" ", "\t"))
    if not is_plain or not escaped.strip():
        yield f"schema: {quote_scalar(text.replace('${', '$${'))}"
        return
    yield "schema: |" if escaped.endswith("\n") else "schema: |-"
    yield from (f"  {line}" if line else "" for line in escaped.removesuffix("\n").split("\n"))


def format_json(text: str) -> str:
    """Return JSON with indentation and unchanged keys. Return any other text unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _render_references(latest: LiveVersion) -> Iterator[str]:
    """Yield the lines of the field ``references``, with version numbers, so that a plan shows no changes."""
    if latest.content.references:
        yield "references:"
    for item in latest.content.references:
        yield f"  - name: {scalar(item.name, text=True)}"
        yield f"    subject: {scalar(item.subject, text=True)}"
        yield f"    version: {item.version}"


def complete_schema_change(change: Change, operations: Sequence[Operation]) -> Change:
    """Replace the fields of a change with the content and the level that the operations set."""
    return replace(change, fields=tuple(field for op in operations for field in _list_fields(op)))


def _list_fields(op: Operation) -> Iterator[FieldChange]:
    args = op.args
    if isinstance(args, LevelArgs) and not args.whole:
        level = None if args.level is None else args.level.value
        yield FieldChange(LEVEL, FieldOp.CHANGE, None, level)
    elif isinstance(args, RegisterArgs):
        if args.before is None:
            yield from list_location_fields(args.endpoint, args.subject)
        yield from _list_content_fields(args.before, args.content)
    elif isinstance(args, DeleteArgs) and args.remaining is not None:
        yield from _list_content_fields(args.versions[-1].content, args.remaining)


def _list_content_fields(before: ContentArgs | None, after: ContentArgs) -> Iterator[FieldChange]:
    old_type = before.type.value if before is not None else None
    old_text = before.text if before is not None else None
    old_references = list(before.listed) if before is not None else []
    yield FieldChange(TYPE, FieldOp.CHANGE, old_type, after.type.value)
    yield FieldChange(TEXT, FieldOp.CHANGE, old_text, after.text)
    yield FieldChange(REFERENCES, FieldOp.CHANGE, list(old_references), list(after.listed))


def find_schema_edits(change: Change, declared: DeclaredFields) -> ManifestEdits:
    """Return the edits that bring a manifest in line with a change.

    change: the result of `complete_schema_change`.
    """
    fields = {field.path: field for field in change.fields}
    edits: list[FieldEdit] = []
    problems: list[SpecProblem] = []
    for path in (TYPE, REFERENCES):
        if path in fields and fields[path].before != fields[path].after:
            problems.append(SpecProblem((path,), _refuse_field(change, path)))
    if TEXT in fields:
        type_, text = SchemaType(as_text(fields[TYPE].after)), as_text(fields[TEXT].after)
        layout = text if type_ is SchemaType.PROTOBUF else format_json(text)
        if declared.is_declared(("file",)):
            edits.append(FileEdit(("file",), layout if layout.endswith("\n") else f"{layout}\n"))
        else:
            edits.append(ValueEdit(("schema",), text if type_ is SchemaType.PROTOBUF else _shorten(text)))
    if LEVEL in fields:
        level = fields[LEVEL].after
        edits.append(ValueEdit((LEVEL,), None if level is None else as_text(level)))
    return ManifestEdits(tuple(edits), tuple(problems))


def _shorten(text: str) -> str:
    """Return JSON text on one line."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def _refuse_field(change: Change, path: str) -> Diagnostic:
    what = "the type of the schema changes" if path == TYPE else "the references of the schema change"
    return error(
        "field-not-written",
        "Field cannot be written to the manifest",
        f"In {change.id}, {what}. kdeclare writes only the schema itself and its compatibility level to "
        "manifests.",
        hint=f"Edit '{path}' in the manifest yourself.",
        resource=str(change.id),
        subject=path,
    )


def render_schema_spec(change: Change) -> Iterator[str]:
    """Yield the lines of the spec of a subject that a rollback restores. Raises KdeclareError."""
    values = {field.path: field.after for field in change.fields}
    if values.get(REFERENCES):
        raise KdeclareError(_refuse_field(change, REFERENCES))
    for path in (REGISTRY, SUBJECT, TYPE):
        yield f"{path}: {scalar(as_text(values[path]), text=True)}"
    yield from render_text(SchemaType(as_text(values[TYPE])), as_text(values[TEXT]))
    if values.get(LEVEL) is not None:
        yield f"{LEVEL}: {as_text(values[LEVEL])}"


def is_same_schema(path: SpecPath, text: str, value: object) -> bool:
    """Whether two values of a spec field are equal. Schemas are equal if their normalized texts are."""
    if text == value:
        return True
    return path in (("file",), ("schema",)) and any(
        normalize_text(type_, text) == normalize_text(type_, str(value)) for type_ in SchemaType
    )


def is_schema_as_changed(before: SchemaBody | None, after: SchemaBody, change: Change) -> bool:
    """Whether ``after`` has the content and level that the change sets, and otherwise equals ``before``."""
    fields = {field.path: field.after for field in change.fields}
    if TEXT in fields:
        texts = [normalize_text(after.type, text) for text in (after.text, as_text(fields[TEXT]))]
        if texts[0] != texts[1] or after.type.value != fields[TYPE]:
            return False
    expected = after if before is None else replace(before, text=after.text)
    if LEVEL in fields:
        level = fields[LEVEL]
        declared = DeclaredLevel(None if level is None else CompatibilityLevel(as_text(level)))
        is_removed = level is None and after.compatibility is None
        expected = replace(expected, compatibility=None if is_removed else declared)
    return after == expected
