"""Generate the reference of manifests from the JSON Schema that editors use."""

from collections.abc import Mapping

from kdeclare.app.authoring.schema import DOCUMENT_MODELS, build_manifest_schema, list_schema_kinds
from scripts.reference.json_schema import Schema, fields_table, referred
from scripts.reference.markdown import page, prose


def manifests_page() -> str:
    """Render all kinds with the fields of their specs."""
    whole = build_manifest_schema(None)["$defs"]
    specs = {
        kind: whole[DOCUMENT_MODELS.get(kind, kind)]["properties"]["spec"] for kind in list_schema_kinds()
    }
    names = {kind: spec["$ref"].rpartition("/")[2] for kind, spec in specs.items()}
    shared = list(dict.fromkeys(n for s in names.values() for n in referred(whole[s], whole)))
    own = [name for name in shared if name not in names.values()]
    link = {name: f"#{name.lower()}" for name in own} | {n: f"#{k.lower()}" for k, n in names.items()}
    return page(
        "Manifests",
        "This page describes the fields in the JSON Schema that `kdeclare schema` prints. A manifest is a "
        "YAML document with `apiVersion: kdeclare/v1`, `kind`, `metadata` and `spec`. A file may contain "
        "several manifests. Unknown fields are errors. Instead of a number or a boolean, a manifest can "
        "contain a reference: `${var.NAME}`, `${env.NAME}` or `${file.PATH}`.",
        "## metadata",
        fields_table(whole["Metadata"], link),
        *(_section(f"## {kind}", whole[name], link) for kind, name in names.items()),
        "## Parts of specs",
        *(_section(f"### {name}", whole[name], link) for name in own),
    )


def _section(head: str, schema: Schema, link: Mapping[str, str]) -> str:
    return "\n\n".join([head, prose(str(schema.get("description", ""))), fields_table(schema, link)])
