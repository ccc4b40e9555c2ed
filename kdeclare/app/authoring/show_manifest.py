"""One resource as it is planned, and where each of its fields comes from."""

from collections.abc import Mapping
from pathlib import Path

from kdeclare.app.plan import CHECKS
from kdeclare.app.policies import RULES
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.capabilities import encode_body
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.secrets.secret_refs import is_secret
from kdeclare.core.suggest import nearest
from kdeclare.manifests.defaults import DEFAULTS, Layers
from kdeclare.manifests.load import Loaded, load
from kdeclare.manifests.model_fields import is_secret_at
from kdeclare.manifests.project import PROJECT_FILE, open_project
from kdeclare.manifests.provenance import EffectiveManifest, Steps, origins, reader_of, variable_places
from kdeclare.manifests.syntax.nodes import find

_CONFIGS = ("configs", "config")


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
    secrets = _secrets(desired)
    spec = KINDS[resource.kind].spec

    def is_hidden(path: Steps) -> bool:
        return path in secrets or (path[0] == "spec" and is_secret_at(spec, path[1:]))

    return EffectiveManifest(
        project.name,
        project.environment.name,
        resource,
        find(made_of.base, ("metadata", "name")),
        origins(made_of, reader_of(project, environ), variable_places(project), is_hidden),
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


def _secrets(desired: Desired) -> frozenset[Steps]:
    """The paths of configs whose values nobody may see."""
    stated = encode_body(desired).get("configs")
    configs = stated.items() if isinstance(stated, Mapping) else ()
    keys = [key for key, value in configs if is_secret(value)]
    return frozenset(("spec", name, key) for name in _CONFIGS for key in keys)


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
