"""How objects are written into manifests, and what is said of fields that cannot be."""

import json
import re

from kdeclare.core.diagnostics import LITERAL_SECRET, error, warning
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    SpecProblem,
)


def warn_literal_secret(resource: str, field: str) -> SpecProblem:
    """Return what to say of a secret whose value stands in a manifest."""
    problem = warning(
        LITERAL_SECRET,
        "Secret written into a manifest",
        f"'{field}' is sensitive, and its value stands in the manifest.",
        hint="Write ${env.NAME} or ${file.PATH} in its place.",
        resource=resource,
        subject=field,
    )
    return SpecProblem((field,), problem)


def report_unwritable_field(resource: ResourceId, field: str) -> SpecProblem:
    problem = error(
        "field-not-written",
        "Field cannot be written",
        f"'{field}' of {resource} is neither a text, a whole number, a truth value nor a list of these.",
        hint="Change the manifest by hand.",
        resource=str(resource),
        subject=field,
    )
    return SpecProblem((field,), problem)


def format_variable(name: str, field: str) -> str:
    variable = re.sub(r"[^A-Z0-9]+", "_", f"{name}_{field}".upper())
    return f"${{env.{variable}}}"


def format_yaml(value: JsonValue) -> str:
    """A value in YAML's flow style, of which JSON is a part."""
    return json.dumps(value, ensure_ascii=not _is_printable(value)).replace("${", "$${")


def _is_printable(value: JsonValue) -> bool:
    return json.dumps(value, ensure_ascii=False).isprintable()
