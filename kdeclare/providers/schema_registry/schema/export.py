"""Manifests for live subjects (`kdeclare import`)."""

import json
from collections.abc import Iterator

from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import Export, ExportRequest, OmittedObjects
from kdeclare.core.resources.manifest_text import quote_scalar, render_manifest, scalar
from kdeclare.providers.schema_registry.client.port import SchemaType
from kdeclare.providers.schema_registry.schema.live import (
    LiveSubject,
    LiveVersion,
    RegistrySnapshot,
    SchemaSelection,
    SchemaState,
)
from kdeclare.providers.schema_registry.schema.spec import SCHEMA


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
    """Yield the references with the numbers of their versions, so that a plan shows no changes."""
    if latest.content.references:
        yield "references:"
    for item in latest.content.references:
        yield f"  - name: {scalar(item.name, text=True)}"
        yield f"    subject: {scalar(item.subject, text=True)}"
        yield f"    version: {item.version}"
