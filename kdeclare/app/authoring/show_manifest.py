"""Show one resource as planned, with the source of each field."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_capabilities import convert_value, locate_secret
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import Secret, find_secrets
from kdeclare.core.suggestions import find_nearest
from kdeclare.manifests.defaults import DEFAULTS, Layers
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.model_fields import is_secret_at
from kdeclare.manifests.project import PROJECT_FILE, open_project
from kdeclare.manifests.provenance import (
    EffectiveManifest,
    FieldOrigins,
    NodePath,
    build_reader,
    collect_field_origins,
    find_variable_positions,
)
from kdeclare.manifests.reading_modes import build_document_modes, build_spec_modes
from kdeclare.manifests.syntax.nodes import find_position
from kdeclare.manifests.variables import GivenVariables

_MIN_PARTIAL_LENGTH = 4
"""Minimum length of a secret to search for inside values.

A shorter secret occurs in too many strings, so it is compared only with whole values.
"""


def show_manifest(
    project_file: Path | None,
    env: str | None,
    resource: ResourceId,
    environ: Mapping[str, str],
    variables: GivenVariables | None = None,
) -> EffectiveManifest:
    """Return a resource with overlays, defaults and variables applied, without connecting to a cluster.

    variables: values of variables that take precedence over those in the project file.

    Raises KdeclareError if the resource is not declared or has errors, or if there is no project.
    """
    project = open_project(project_file, env, environ, offline=True, variables=variables)
    if project.file is None:
        raise KdeclareError(_build_no_project_error())
    manifests = load_project_manifests(project, (), KINDS, environ, CHECKS, RULES, traced_resource=resource)
    desired, layers = _require_declared(manifests, resource, project.environment.name)
    modes = build_document_modes(build_spec_modes(KINDS[resource.kind].spec))
    reader = build_reader(project, environ)
    spec = reader.read(layers.effective, modes).get("spec")
    hidden_paths = {("spec", *path) for path in _find_hidden_fields(desired, dict(_list_leaves(spec)))}
    fields = collect_field_origins(
        layers, reader, modes, find_variable_positions(project), hidden_paths.__contains__
    )
    return EffectiveManifest(
        project.name,
        project.environment.name,
        resource,
        find_position(layers.base, ("metadata", "name")),
        tuple(_add_sent_value(resource.kind, field) for field in fields),
    )


def _add_sent_value(kind: str, field: FieldOrigins) -> FieldOrigins:
    """Add to a field the value that kdeclare sends to the system, unless the field contains a reference."""
    root, *path = field.path
    if root != "spec" or field.by_reference or not isinstance(field.value, str):
        return field
    return replace(field, sent=convert_value(kind, tuple(path), field.value))


def _require_declared(
    manifests: LoadedManifests, resource: ResourceId, environment: str
) -> tuple[DesiredResource, Layers]:
    """Return the resource and the documents that it was merged from: base manifest, overlays and defaults.

    Raises KdeclareError if the resource is missing or has errors.
    """
    errors = [d for d in manifests.diagnostics if d.is_error and _is_about(d, resource)]
    all_declared = (*manifests.desired, *manifests.absent)
    declared = next((item for item in all_declared if item.id == resource), None)
    if declared is not None and manifests.layers is not None and not errors:
        return declared, manifests.layers
    if not errors:
        errors = [
            _build_not_declared_error(resource, manifests, environment),
            *(d for d in manifests.diagnostics if d.is_error),
        ]
    raise KdeclareError(*errors)


def _is_about(problem: Diagnostic, resource: ResourceId) -> bool:
    """Return whether a problem may affect this resource.

    Problems in defaults can affect every resource. So can problems that name no resource. For example, an
    unreadable document may be an overlay for this resource.
    """
    resource_name = problem.resource
    return resource_name is None or resource_name == str(resource) or resource_name.startswith(f"{DEFAULTS}/")


def _find_hidden_fields(desired: DesiredResource, leaves: Mapping[NodePath, Any]) -> set[NodePath]:
    """Return the paths of the spec fields that must be hidden, because they contain secrets.

    The model of the spec marks some of these fields. To find the other fields, the function compares the
    fields with the secrets in the body. If the body has a secret that no field contains, all fields of the
    spec are hidden.
    """
    model = KINDS[desired.id.kind].spec
    hidden = {
        leaf
        for leaf, value in leaves.items()
        if any(is_secret_at(model, path) for path, _ in _list_scalars(value, leaf))
    }
    for secret_path, secret in find_secrets(desired.body):
        if secret.value and not (secret.doubtful and _is_beside_value(desired.body, secret_path)):
            SCRUBBER.register(secret.value)  # also hides the secret in keys and inside other strings
            hidden.update(_find_fields(desired, secret_path, secret, leaves) or leaves)
    return hidden


def _is_beside_value(body: object, secret_path: NodePath) -> bool:
    """Return whether the body contains a plain value at the path of a secret.

    If only the system knows whether a config is sensitive, the body contains its value twice: as a plain
    value and as a secret. Such a value is not hidden.
    """
    value: Any = body
    for step in secret_path:
        value = value[step] if isinstance(step, int) or isinstance(value, Mapping) else getattr(value, step)
    return not isinstance(value, Secret)


def _find_fields(
    desired: DesiredResource, secret_path: NodePath, secret: Secret, leaves: Mapping[NodePath, Any]
) -> list[NodePath]:
    path, is_certain = locate_secret(desired.id.kind, secret_path)
    if path is not None:
        matching_fields = [leaf for leaf in leaves if leaf[: len(path)] == path or path[: len(leaf)] == leaf]
        if matching_fields and (
            is_certain or any(_has_secret_text(leaves[leaf], secret.value) for leaf in matching_fields)
        ):
            return matching_fields
    return [leaf for leaf, value in leaves.items() if _has_secret_text(value, secret.value)]


def _has_secret_text(value: Any, secret: str) -> bool:
    """Return whether a value contains the secret. The list ``[a, b]`` also matches the secret ``a,b``."""
    texts = [str(scalar) for _, scalar in _list_scalars(value, ())]
    if any(text == secret or (len(secret) >= _MIN_PARTIAL_LENGTH and secret in text) for text in texts):
        return True
    return isinstance(value, list) and "".join(texts) == "".join(map(str.strip, secret.split(",")))


def _list_leaves(value: Any, path: NodePath = ()) -> Iterator[tuple[NodePath, Any]]:
    """Yield each field with its path. Non-empty mappings are split into their fields; lists are not."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _list_leaves(inner, (*path, key))
    else:
        yield path, value


def _list_scalars(value: Any, path: NodePath) -> Iterator[tuple[NodePath, Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_scalars(inner, (*path, key))
    elif value is not None:
        yield path, value


def _build_not_declared_error(
    resource: ResourceId, manifests: LoadedManifests, environment: str
) -> Diagnostic:
    exclusion = manifests.exclusions.get(resource)
    if exclusion is not None:
        return error(
            "excluded-manifest",
            "Manifest is not present in this environment",
            f"{exclusion.field} excludes the manifest of {resource} from the environment '{environment}'.",
            hint=exclusion.hint,
            place=exclusion.place,
            resource=str(resource),
        )
    suggestions = find_nearest(str(resource), (str(item.id) for item in manifests.desired))
    hint = (
        f"Did you mean {' or '.join(suggestions)}?"
        if suggestions
        else "Run kdeclare validate to check which manifests can be read."
    )
    return error(
        "not-declared",
        "Resource is not declared",
        f"No manifest of the project declares {resource}.",
        hint=hint,
        resource=str(resource),
    )


def _build_no_project_error() -> Diagnostic:
    return error(
        "no-project",
        "No project file",
        f"There is no '{PROJECT_FILE}' in this folder.",
        hint="Pass the project file with --project.",
    )
