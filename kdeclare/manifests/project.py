"""Read project files, and resolve the references of one environment."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path

from pydantic import BaseModel
from yaml.nodes import MappingNode, Node

from kdeclare.core.diagnostics import KdeclareError, SourcePosition, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.provider_queries import find_plan_settings
from kdeclare.core.provider.registry import find_connection_settings, find_environment_settings
from kdeclare.core.resources.name_scope import NameScope
from kdeclare.engine.state.port import is_folder_name
from kdeclare.manifests.checks import parse_name_scope
from kdeclare.manifests.document_models import (
    load_document,
    resolve_location,
    validate_document,
)
from kdeclare.manifests.environments.environment_choice import (
    DEFAULT,
    choose_environment,
    drop_connection_fields,
    select_environment,
)
from kdeclare.manifests.policies import PolicyEntry, build_policy_entries
from kdeclare.manifests.project_schema import (
    EnvironmentSpec,
    ProjectManifest,
    ProjectSpec,
    ReferencesSpec,
    build_project_model,
)
from kdeclare.manifests.schema_errors import Location
from kdeclare.manifests.signature_rules import SignatureRules, build_signature_rules
from kdeclare.manifests.syntax.node_reader import NodeReader
from kdeclare.manifests.syntax.nodes import find_node, find_position, list_keys
from kdeclare.manifests.syntax.reference_limits import (
    TRUSTED_PROJECT,
    Limits,
    ReferenceLimits,
    build_own_limits,
)
from kdeclare.manifests.syntax.substitution import ReferenceContext, Variable, has_reference
from kdeclare.manifests.variables import GivenVariables, resolve_variables

PROJECT_FILE = "kdeclare.yaml"
MANIFESTS_FOLDER = "manifests"

PROJECT_READ_HINT = "Pass the path of a readable project file with --project FILE."


@dataclass(frozen=True, slots=True)
class Environment:
    """The selected environment, with its references resolved. The repr omits values that can be secrets.

    plan_settings: the values of the fields that providers add to project files, by field name. For each
        field, the value in the environment comes first, then the value in the project.
    request_deadline_s: the time in seconds for which the system may work on a request that has no timeout, or
        None if not set.
    providers: the connection settings of systems other than Kafka, by provider name.
    cluster_id: the id that the cluster must have, or None if not set.
    place: the position of the environment in the project file.
    manifests: the paths of manifests that are loaded only in this environment.
    unset_variables: the variables that the project declares, but that have no value in this environment.
    """

    name: str = DEFAULT
    bootstrap_servers: str | None = None
    client_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    client_config_file: Path | None = None
    variables: Mapping[str, Variable] = field(default_factory=dict, repr=False)
    overlays: tuple[Path, ...] = ()
    plan_settings: Mapping[str, tuple[BaseModel, ...]] = field(default_factory=dict)
    request_deadline_s: float | None = None
    providers: Mapping[str, BaseModel] = field(default_factory=dict, repr=False)
    place: SourcePosition | None = None
    cluster_id: str | None = None
    manifests: tuple[Path, ...] = ()
    unset_variables: frozenset[str] = frozenset()

    @property
    def connection_fields(self) -> Mapping[str, object]:
        """The connection fields that the environment sets for Kafka, by field name. Paths are resolved."""
        fields = {
            "bootstrapServers": self.bootstrap_servers,
            "clientConfig": self.client_config,
            "clientConfigFile": self.client_config_file,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Project:
    """A project with the settings of one of its environments. All paths are resolved.

    file: the project file, or None if there is no project file.
    manifests: the paths of the manifests, or None if the project file does not list any. In this case, the
        folder ``manifests`` is used if it exists.
    state: the folder or URI of the state.
    all_overlays: the overlays of all environments. Overlays are not loaded as manifests, even if they are in
        a folder of manifests.
    stated: the position in the project file where each path is listed.
    limits: the references that the project is allowed to use.
    scope: the names that the project is allowed to declare, change or import.
    adopts: whether existing resources that differ from their manifests are adopted without --adopt.
    stops_on_denial: whether apply refuses the whole plan if a policy or a guard denies a change.
    signatures: whether plans must be signed, and the keys that may sign them.
    environments: the names of all environments, or an empty tuple if they are not known.
    foreign_manifests: the paths of manifests that are loaded only in other environments, even if they are in
        a folder of manifests.
    """

    name: str = DEFAULT
    file: Path | None = None
    folder: Path = Path()
    manifests: tuple[Path, ...] | None = None
    state: str = "state"
    environment: Environment = Environment()
    all_overlays: tuple[Path, ...] = ()
    stated: Mapping[Path, SourcePosition] = field(default_factory=dict, repr=False)
    policies: tuple[PolicyEntry, ...] = ()
    limits: Limits = ()
    adopts: bool = False
    scope: NameScope = field(default_factory=NameScope)
    signatures: SignatureRules = SignatureRules()
    stops_on_denial: bool = False
    environments: tuple[str, ...] = ()
    foreign_manifests: tuple[Path, ...] = ()


def open_project(
    file: Path | None,
    env: str | None,
    environ: Mapping[str, str],
    *,
    offline: bool = False,
    variables: GivenVariables | None = None,
) -> Project:
    """Read a project file, and return the project in one environment.

    file: the project file. Default: ``kdeclare.yaml`` in the working directory, if it exists.
    env: the name of the environment. Default: the default environment of the project.
    offline: whether to omit the settings for connecting to the cluster and the state, so that the secrets in
        these settings are not needed.
    variables: values of variables that take precedence over those in the project file.
    Raises KdeclareError with all problems in the file, or if the environment does not exist.
    """
    path = _find_project_file(file)
    if path is None:
        choose_environment(env, None, {}, None)
        limits = build_project_limits(None, environ)
        reader = NodeReader(ReferenceContext(Path(), environ, variables=None, limits=limits))
        resolved = resolve_variables(None, {}, {}, DEFAULT, reader, variables or GivenVariables())
        return Project(limits=limits, environment=Environment(variables=resolved.values))
    return read_project(path).within(env, environ, offline=offline, variables=variables)


def build_project_limits(declared: ReferencesSpec | None, environ: Mapping[str, str]) -> Limits:
    """Return the limits that the project file and the trusted project file, if any, set for references.

    declared: the ``spec.references`` of the project file, or None if it has no such field.
    """
    file_limits = build_own_limits(_build_limits(declared) if declared is not None else None, environ)
    file = environ.get(TRUSTED_PROJECT)
    if not file:
        return file_limits
    try:
        trusted = read_project(Path(file)).spec.references or ReferencesSpec()
    except KdeclareError:  # a broken trusted file must not block the plan for a change that repairs the file
        trusted = ReferencesSpec()
    return (*file_limits, replace(_build_limits(trusted), trusted=True))


def _read_base_rules(env: str, environ: Mapping[str, str]) -> SignatureRules | None:
    """Return the signature rules in the trusted project file, or None if there is no such file."""
    file = environ.get(TRUSTED_PROJECT)
    if not file:
        return None
    try:
        return build_signature_rules(read_project(Path(file)).spec, env, None)
    except KdeclareError:  # no key is trusted, and signatures are required
        return SignatureRules(required=True)


def read_signature_rules(file: Path, env: str, environ: Mapping[str, str]) -> SignatureRules:
    """Return the signature rules in a project file, without resolving references. Raises KdeclareError.

    env: the name of the environment, which need not exist.
    """
    rules = build_signature_rules(read_project(file).spec, env, file.parent)
    return replace(rules, base=_read_base_rules(env, environ))


def _build_limits(spec: ReferencesSpec) -> ReferenceLimits:
    return ReferenceLimits(tuple(spec.env), tuple(spec.files))


def read_project_names(file: Path | None, env: str | None) -> tuple[str, str]:
    """Return the names of a project and of the chosen environment, without resolving references.

    Raises KdeclareError for an invalid project file, or if the environment does not exist.
    """
    path = _find_project_file(file)
    if path is None:
        return DEFAULT, choose_environment(env, None, {}, None)
    project_document = read_project(path)
    return project_document.name, choose_environment(
        env,
        project_document.spec.defaultEnvironment,
        project_document.spec.environments,
        project_document.root,
    )


def find_manifest_roots(project: Project) -> Sequence[Path]:
    """Return the files and folders that contain a project's manifests for the selected environment.

    If the project file does not list any, return the default folder if it exists.
    """
    return (*_find_common_roots(project), *project.environment.manifests)


def _find_common_roots(project: Project) -> Sequence[Path]:
    if project.manifests is not None:
        return project.manifests
    folder = project.folder / MANIFESTS_FOLDER
    return (folder,) if os.path.lexists(folder) else ()


@dataclass(frozen=True, slots=True)
class ProjectDocument:
    """A valid project file with all its environments. References are not resolved yet."""

    file: Path
    name: str
    root: Node = field(repr=False)
    spec: ProjectSpec = field(repr=False)

    def within(
        self,
        env: str | None,
        environ: Mapping[str, str],
        *,
        offline: bool = False,
        variables: GivenVariables | None = None,
    ) -> Project:
        """Return the project in one environment, with references resolved.

        env, offline, variables: see `open_project`.
        Raises KdeclareError with all problems in the file, or if the environment does not exist.
        """
        name = choose_environment(env, self.spec.defaultEnvironment, self.spec.environments, self.root)
        # variables that only other environments need might not be set, so their references are not resolved
        limits = build_project_limits(self.spec.references, environ)
        reader = NodeReader(ReferenceContext(self.file.parent, environ, variables=None, limits=limits))
        needed = select_environment(self.root, name)
        model = _choose_model(self.root)
        manifest = validate_document(
            model, drop_connection_fields(needed, name) if offline else needed, reader
        )
        _validate_names(manifest, self.root)
        project = _build_project(
            self.file, self.root, reader, manifest.spec, manifest.metadata.name, name, self.spec
        )
        resolved = resolve_variables(
            self.root,
            self.spec.variables,
            self.spec.environments,
            name,
            reader,
            variables or GivenVariables(),
        )
        environment = replace(project.environment, variables=resolved.values, unset_variables=resolved.unset)
        signatures = build_signature_rules(manifest.spec, name, self.file.parent)
        signatures = replace(signatures, base=_read_base_rules(name, environ))
        return replace(project, environment=environment, limits=limits, signatures=signatures)


def read_project(file: Path) -> ProjectDocument:
    """Read a project file without choosing an environment.

    Raises KdeclareError with all problems in the file.
    """
    root = load_document(file, "Project", PROJECT_READ_HINT)
    manifest = validate_document(_choose_model(root), root, NodeReader(context=None))
    _validate_names(manifest, root)
    return ProjectDocument(file, manifest.metadata.name, root, manifest.spec)


def _choose_model(root: Node) -> type[ProjectManifest]:
    """Return the model for a project file. Import the providers only if the file uses their fields."""
    environments = find_node(root, ("spec", "environments"))
    pairs = environments.value if isinstance(environments, MappingNode) else ()
    builtin_fields = EnvironmentSpec.model_fields.keys() - {"providers"}
    in_environments = {key for _, environment in pairs for key in list_keys(environment)}
    in_project = set(list_keys(find_node(root, ("spec",))))
    if in_environments - builtin_fields or in_project - ProjectSpec.model_fields.keys():
        return build_project_model(
            find_connection_settings(), find_plan_settings(), find_environment_settings()
        )
    return ProjectManifest


def _collect_plan_settings(
    environment: EnvironmentSpec, project: ProjectSpec
) -> dict[str, tuple[BaseModel, ...]]:
    """Return the values of the fields that providers add to project files, by field name.

    If both the environment and the project set a field, the result has both values, the environment's first.
    """
    endpoint_fields = _find_endpoint_fields(environment)
    environment_values = {
        name: value
        for name, value in environment
        if name not in EnvironmentSpec.model_fields and name not in endpoint_fields
    }
    project_values = {name: value for name, value in project if name not in ProjectSpec.model_fields}
    names = {**environment_values, **project_values}
    values_by_name = {name: (environment_values.get(name), project_values.get(name)) for name in names}
    return {name: tuple(v for v in both if isinstance(v, BaseModel)) for name, both in values_by_name.items()}


def _find_endpoint_fields(environment: EnvironmentSpec) -> Mapping[str, str]:
    """Return the fields in which an environment lists endpoints, each with the name of its provider."""
    if type(environment) is EnvironmentSpec:
        return {}  # the project file has no fields of providers, so no provider has to be loaded
    return {name: provider for name, (provider, _) in find_environment_settings().items()}


def _collect_provider_settings(environment: EnvironmentSpec) -> dict[str, BaseModel]:
    """Return an environment's connection settings for systems other than Kafka, by provider name."""
    values = dict(environment)
    named = {provider: values[name] for name, provider in _find_endpoint_fields(environment).items()}
    settings = {**dict(environment.providers), **named}
    return {provider: value for provider, value in settings.items() if isinstance(value, BaseModel)}


def _validate_names(manifest: ProjectManifest, root: Node) -> None:
    """Raise KdeclareError if the name of the project or an environment cannot be used as a folder name.

    A project name that contains a reference is not checked until the reference is resolved.
    """
    name, environments = manifest.metadata.name, manifest.spec.environments
    names = [] if has_reference(name) else [("project", name, find_position(root, ("metadata", "name")))]
    for env in environments:
        names.append(("environment", env, find_position(root, ("spec", "environments", env), key=True)))
    problems = [
        error(
            "illegal-name",
            "Illegal name",
            f"The {what} name '{name}' cannot be used, because the state is kept in a folder with that name.",
            hint="Choose another name, without slashes and without a leading dot.",
            place=place,
            subject=name,
        )
        for what, name, place in names
        if not is_folder_name(name)
    ]
    if problems:
        raise KdeclareError(*problems)


def _find_project_file(file: Path | None) -> Path | None:
    default_file = Path(PROJECT_FILE)
    if file is None and not (default_file.exists() or default_file.is_symlink()):
        return None
    return file if file is not None else default_file


def _build_project(
    file: Path, root: Node, reader: NodeReader, spec: ProjectSpec, name: str, env: str, full_spec: ProjectSpec
) -> Project:
    folder = file.parent
    environment_spec = spec.environments.get(env, EnvironmentSpec())
    client_file = environment_spec.clientConfigFile
    environment = Environment(
        env,
        environment_spec.bootstrapServers,
        environment_spec.clientConfig,
        folder / client_file if client_file is not None else None,
        {},
        tuple(folder / path for path in environment_spec.overlays),
        _collect_plan_settings(environment_spec, spec),
        environment_spec.requestDeadline,
        _collect_provider_settings(environment_spec),
        find_position(root, ("spec", "environments", env), key=True),
        environment_spec.clusterId,
        tuple(folder / path for path in environment_spec.manifests),
    )
    overlays = {path: None for e in full_spec.environments.values() for path in e.overlays}
    own = set(environment_spec.manifests)
    foreign = {path: None for e in full_spec.environments.values() for path in e.manifests if path not in own}
    overlays_path: Location = ("spec", "environments", env, "overlays")
    path_positions = {
        folder / path: find_position(root, (*overlays_path, n))
        for n, path in enumerate(environment_spec.overlays)
    }
    manifests_path: Location = ("spec", "environments", env, "manifests")
    path_positions |= {
        folder / path: find_position(root, (*manifests_path, n))
        for n, path in enumerate(environment_spec.manifests)
    }
    path_positions |= {
        folder / p: find_position(root, ("spec", "manifests", n)) for n, p in enumerate(spec.manifests or ())
    }
    return Project(
        name,
        file,
        folder,
        None if spec.manifests is None else tuple(folder / path for path in spec.manifests),
        resolve_location(folder, spec.state),
        environment,
        tuple(folder / path for path in overlays),
        path_positions,
        build_policy_entries(spec.policies, root, reader),
        adopts=spec.adoption == "automatic",
        stops_on_denial=spec.onDenied == "stop",
        scope=parse_name_scope(spec.scope, root),
        environments=tuple(full_spec.environments),
        foreign_manifests=tuple(folder / path for path in foreign),
    )
