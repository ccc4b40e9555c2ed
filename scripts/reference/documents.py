"""Generate the reference of JSON documents from the schemas in docs/schemas."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.reference.json_schema import fields_table, referred
from scripts.reference.markdown import code, page, prose

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
_ENDING = ".schema.json"

PRINTED_BY = {
    "acl-explain": "`kdeclare acl explain`",
    "acl-list": "`kdeclare acl list`",
    "by-hand": "`kdeclare topic create|alter|delete`, `config alter`, `acl add|remove`, "
    "`connector restart|pause|resume|stop` and `group reset-offsets|delete-offsets|delete`",
    "catalog": "`kdeclare catalog`",
    "config-describe": "`kdeclare config describe`",
    "config-describe-clients": "`kdeclare config describe` for users, client ids and IP addresses",
    "connect-change": "`kdeclare connect worker-config patch|delete`",
    "connect-overrides": "`kdeclare connect worker-config get`",
    "connect-proposal": "`kdeclare connect worker-config validate`",
    "connect-status": "`kdeclare connect worker-config status`",
    "connector-describe": "`kdeclare connector describe`",
    "connector-list": "`kdeclare connector list`",
    "conversion": "`kdeclare convert`",
    "doctor": "`kdeclare doctor`",
    "drift": "`kdeclare plan --refresh-only`",
    "fleet-apply": "`kdeclare fleet apply`",
    "fleet-audit": "`kdeclare fleet audit`, and the file `summary.json`",
    "fleet-report": "`kdeclare fleet report`",
    "fleet-notify": "`kdeclare fleet notify`",
    "fleet-notification": "`kdeclare fleet notify`, in messages of the format `json`",
    "fleet-diff": "`kdeclare fleet diff`",
    "fleet-history": "`kdeclare fleet history`",
    "fleet-plan": "`kdeclare fleet plan`, and the file `overview.json`",
    "fleet-snapshot": "`kdeclare fleet snapshot`, and its record in `snapshots/`",
    "group-describe": "`kdeclare group describe`",
    "group-list": "`kdeclare group list`",
    "history": "`kdeclare history`",
    "history-diff": "`kdeclare history diff`",
    "history-run": "`kdeclare history RUN_ID`",
    "impact": "`kdeclare impact`",
    "lock": "`kdeclare lock show`",
    "plan": "`kdeclare plan` and `show`, and the file that `plan --out` writes",
    "policy-check": "`kdeclare policy check`",
    "policy-test": "`kdeclare policy test`",
    "problem": "any command that fails",
    "providers": "`kdeclare providers`",
    "run": "`kdeclare apply` and `rollback`",
    "sandbox-status": "`kdeclare sandbox status`",
    "schema-registry-check": "`kdeclare schema-registry check`",
    "schema-registry-describe": "`kdeclare schema-registry describe`",
    "schema-registry-diff": "`kdeclare schema-registry diff`",
    "schema-registry-list": "`kdeclare schema-registry list`",
    "show-manifest": "`kdeclare show-manifest`",
    "state-abandon": "`kdeclare state abandon`",
    "state-change": "`kdeclare state push`, `mv` and `rm`",
    "state-list": "`kdeclare state list`",
    "state-migrate": "`kdeclare state migrate`",
    "state-prune": "`kdeclare state prune`",
    "state-show": "`kdeclare state show`",
    "state-transfer": "`kdeclare state transfer`",
    "status": "`kdeclare status`",
    "topic-describe": "`kdeclare topic describe`",
    "topic-list": "`kdeclare topic list`",
    "usage": "`kdeclare usage`",
    "validation": "`kdeclare validate`",
}
"""The command that prints the document of each schema."""


def documents_page() -> str:
    """Render the schema of each JSON document, and name the commands that print the document."""
    names = sorted(file.name.removesuffix(_ENDING) for file in SCHEMAS.glob(f"*{_ENDING}"))
    return page(
        "JSON documents",
        "With `--format json`, a command prints one JSON document. Each type of document has a JSON Schema "
        "(2020-12), and tests validate documents against it. `format_version` changes if programs that read "
        "the document have to be adapted.",
        *(_document(name) for name in names),
    )


def _document(name: str) -> str:
    schema = json.loads((SCHEMAS / f"{name}{_ENDING}").read_text())
    file = f"[{name}{_ENDING}](../schemas/{name}{_ENDING})"
    by = PRINTED_BY.get(name, "unknown")
    parts = [f"## {name}", f"Printed by {by}. Schema: {file}.", prose(schema.get("description", ""))]
    parts += [fields_table(schema, {}), *_inner(schema)] if name == "plan" else [fields_table(schema, {})]
    return "\n\n".join(part for part in parts if part)


def _inner(schema: Mapping[str, Any]) -> list[str]:
    definitions = schema.get("$defs", {})
    found = [(name, definitions[name]) for name in referred(schema.get("properties", {}), definitions)]
    return [
        f"{code(name)}: {prose(inner.get('description', ''))}\n\n{fields_table(inner, {})}"
        for name, inner in found
    ]
