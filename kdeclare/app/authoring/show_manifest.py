"""One resource as it is planned, and where each of its fields comes from."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.capabilities import locate_secret
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_refs import Secret, find_secrets
from kdeclare.core.suggest import nearest
from kdeclare.manifests.defaults import DEFAULTS, Layers
from kdeclare.manifests.load import Loaded, load
from kdeclare.manifests.model_fields import is_secret_at
from kdeclare.manifests.project import PROJECT_FILE, open_project
from kdeclare.manifests.provenance import EffectiveManifest, Steps, origins, reader_of, variable_places
from kdeclare.manifests.reading_modes import document_modes, spec_modes
from kdeclare.manifests.syntax.nodes import find

_SHORT = 4
"""A secret of fewer characters is looked for as a whole text only: it is a part of too many others."""


def show_manifest(
    project_file: Path | None, env: str | None, resource: ResourceId, environ: Mapping[str, str]
) -> EffectiveManifest:
    """Overlays, defaults and variables in it; no cluster is asked.

    Raises KdeclareError: for a resource that is not declared or has mistakes, and where there is no project.
    """
    project = open_project(project_file, env, environ, offline=True)
    if project.file is None:
        raise KdeclareError(_no_project())
    loaded = load(project, (), KINDS, environ, CHECKS, RULES, layers_of=resource)
    desired, made_of = _declared(loaded, resource)
    modes = document_modes(spec_modes(KINDS[resource.kind].spec))
    reader = reader_of(project, environ)
    spec = reader.read(made_of.effective, modes).get("spec")
    hidden = {("spec", *path) for path in _find_hidden(desired, dict(_list_leaves(spec)))}
    return EffectiveManifest(
        project.name,
        project.environment.name,
        resource,
        find(made_of.base, ("metadata", "name")),
        origins(made_of, reader, modes, variable_places(project), hidden.__contains__),
    )


def _declared(loaded: Loaded, resource: ResourceId) -> tuple[Desired, Layers]:
    """Raises KdeclareError, with what is wrong with it, unless it is there and well."""
    wrong = [d for d in loaded.diagnostics if d.is_error and _concerns(d, resource)]
    found = next((item for item in loaded.desired if item.id == resource), None)
    if found is not None and loaded.layers is not None and not wrong:
        return found, loaded.layers
    if not wrong:
        wrong = [_not_declared(resource, loaded), *(d for d in loaded.diagnostics if d.is_error)]
    raise KdeclareError(*wrong)


def _concerns(problem: Diagnostic, resource: ResourceId) -> bool:
    """Whether it is wrong with the resource, or with what it may have had something from.

    That is defaults, and what nobody could read far enough to tell what it is about: it can be an overlay.
    """
    about = problem.resource
    return about is None or about == str(resource) or about.startswith(f"{DEFAULTS}/")


def _find_hidden(desired: Desired, leaves: Mapping[Steps, Any]) -> set[Steps]:
    """Find those fields of a spec that hold a secret: by its model, and by what the kind made of it.

    A secret of the body whose place in the spec is not known hides each field that has its text. If no field
    has it, the kind made it of others, and nothing of the spec is shown.
    """
    model = KINDS[desired.id.kind].spec
    hidden = {
        leaf
        for leaf, value in leaves.items()
        if any(is_secret_at(model, path) for path, _ in _list_scalars(value, leaf))
    }
    for at, secret in find_secrets(desired.body):
        if secret.value and not (secret.doubtful and _is_beside(desired.body, at)):
            SCRUBBER.register(secret.value)  # for what is no field: keys, and parts of other texts
            hidden.update(_find_fields(desired, at, secret, leaves) or leaves)
    return hidden


def _is_beside(body: object, at: Steps) -> bool:
    """Whether a secret only stands beside a value, which is shown: the system may turn out to hide it."""
    value: Any = body
    for step in at:
        value = value[step] if isinstance(step, int) or isinstance(value, Mapping) else getattr(value, step)
    return not isinstance(value, Secret)


def _find_fields(desired: Desired, at: Steps, secret: Secret, leaves: Mapping[Steps, Any]) -> list[Steps]:
    path, is_certain = locate_secret(desired.id.kind, at)
    if path is not None:
        found = [leaf for leaf in leaves if leaf[: len(path)] == path or path[: len(leaf)] == leaf]
        if found and (is_certain or any(_states(leaves[leaf], secret.value) for leaf in found)):
            return found
    return [leaf for leaf, value in leaves.items() if _states(value, secret.value)]


def _states(value: Any, secret: str) -> bool:
    """Whether a field states a secret: as its text, as a part of it, or as elements that are parts of it."""
    texts = [str(scalar) for _, scalar in _list_scalars(value, ())]
    if any(text == secret or (len(secret) >= _SHORT and secret in text) for text in texts):
        return True
    return isinstance(value, list) and "".join(texts) == "".join(map(str.strip, secret.split(",")))


def _list_leaves(value: Any, path: Steps = ()) -> Iterator[tuple[Steps, Any]]:
    """The fields that are shown, each as one value: all that is no mapping of more."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _list_leaves(inner, (*path, key))
    else:
        yield path, value


def _list_scalars(value: Any, path: Steps) -> Iterator[tuple[Steps, Any]]:
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _list_scalars(inner, (*path, key))
    elif value is not None:
        yield path, value


def _not_declared(resource: ResourceId, loaded: Loaded) -> Diagnostic:
    near = nearest(str(resource), (str(item.id) for item in loaded.desired))
    named = f"Did you mean {' or '.join(near)}?" if near else "kdeclare validate says what can be read."
    return error(
        "not-declared",
        "No manifest declares it",
        f"{resource} is declared in no manifest of the project.",
        hint=named,
        resource=str(resource),
    )


def _no_project() -> Diagnostic:
    return error(
        "no-project",
        "Nothing to show",
        f"There is no '{PROJECT_FILE}' here.",
        hint="Name a project file with --project.",
    )
