"""Format the fields of objects for manifests, and report fields that cannot be written."""

import json
import re

from kdeclare.core.diagnostics import LITERAL_SECRET, error, warning
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    SpecProblem,
)


def warn_literal_secret(resource: str, field: str) -> SpecProblem:
    """Return the warning for a secret whose value is in a manifest."""
    problem = warning(
        LITERAL_SECRET,
        "Secret in a manifest",
        f"'{field}' is sensitive, but its value is in the manifest.",
        hint="Write ${env.NAME} or ${file.PATH} instead.",
        resource=resource,
        subject=field,
    )
    return SpecProblem((field,), problem)


def report_unwritable_field(resource: ResourceId, field: str) -> SpecProblem:
    problem = error(
        "field-not-written",
        "Field cannot be written",
        f"'{field}' of {resource} is not a string, an integer, a boolean, or a list of these.",
        hint="Edit the manifest yourself.",
        resource=str(resource),
        subject=field,
    )
    return SpecProblem((field,), problem)


def format_variable(name: str, field: str) -> str:
    variable = re.sub(r"[^A-Z0-9]+", "_", f"{name}_{field}".upper())
    return f"${{env.{variable}}}"


def format_yaml(value: JsonValue) -> str:
    """Format a value as JSON, which is valid YAML. ``${`` is escaped, because it starts a reference."""
    return json.dumps(value, ensure_ascii=not _is_printable(value)).replace("${", "$${")


def _is_printable(value: JsonValue) -> bool:
    return json.dumps(value, ensure_ascii=False).isprintable()
