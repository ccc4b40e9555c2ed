"""The schema of the `Project` kind, which lists the manifests and environments of a project."""

from collections.abc import Mapping, Sequence
from types import GenericAlias
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from kdeclare.core.plans.plan_hooks import PlanSettings
from kdeclare.core.units import Duration
from kdeclare.engine.signatures.trusted_keys import parse_trusted_keys
from kdeclare.manifests.document_models import Envelope, Metadata, TextMap
from kdeclare.manifests.policies import PolicyEntrySpec
from kdeclare.manifests.syntax.reference_limits import explain_bad_entry
from kdeclare.manifests.syntax.substitution import has_reference

VariableType = Literal["string", "integer", "number", "boolean", "list", "map", "duration", "size"]
_Model = TypeVar("_Model", bound=BaseModel)


class ProviderSettings(BaseModel):
    """The connection settings of systems other than Kafka.

    `build_project_model` adds one field for each provider.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class SignaturesSpec(BaseModel):
    """``signatures`` of a project or an environment: whether plans must be signed, and the trusted keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    required: bool | None = None
    keys: list[str] | None = None
    files: list[str] | None = None

    @field_validator("keys")
    @classmethod
    def _check_keys(cls, keys: list[str] | None) -> list[str] | None:
        for key in keys or ():
            if not has_reference(key):  # otherwise, the key is checked after the reference is resolved
                parse_trusted_keys(key)
        return keys


class EnvironmentSpec(BaseModel):
    """One environment: a cluster, and the settings that are specific to this environment."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    bootstrapServers: str | None = None  # noqa: N815
    clientConfig: TextMap = {}  # noqa: N815
    clientConfigFile: str | None = None  # noqa: N815
    variables: dict[str, Any] = {}
    manifests: list[str] = []
    overlays: list[str] = []
    requestDeadline: Duration | None = None  # noqa: N815
    clusterId: Annotated[str, Field(min_length=1)] | None = None  # noqa: N815
    signatures: SignaturesSpec = SignaturesSpec()
    providers: ProviderSettings = ProviderSettings()

    @model_validator(mode="after")
    def _check_client_config(self) -> "EnvironmentSpec":
        if self.clientConfig and self.clientConfigFile is not None:
            raise ValueError("set either 'clientConfig' or 'clientConfigFile', not both")
        return self


class VariableSpec(BaseModel):
    """One variable of ``spec.variables``.

    If it has no default, the environment or the command line sets its value.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    type: VariableType | None = None
    default: Any = None
    description: str | None = None


class ReferencesSpec(BaseModel):
    """``spec.references``: the references that the manifests and the project file are allowed to use."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    env: list[str] = []
    files: list[str] = []

    @field_validator("env")
    @classmethod
    def _check_entries(cls, entries: list[str]) -> list[str]:
        for entry in entries:
            if problem := explain_bad_entry(entry):
                raise ValueError(problem)
        return entries

    @field_validator("files")
    @classmethod
    def _check_paths(cls, entries: list[str]) -> list[str]:
        if any(not entry.strip() or "\0" in entry for entry in entries):
            raise ValueError("use the path of a file or a folder")
        return entries


class ProjectSpec(BaseModel):
    """``spec`` of a project file."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    manifests: list[str] | None = None
    state: str = "state"
    defaultEnvironment: str | None = None  # noqa: N815
    environments: dict[str, EnvironmentSpec] = {}
    policies: list[PolicyEntrySpec] = []
    variables: dict[str, VariableSpec] = {}
    references: ReferencesSpec | None = None
    adoption: Literal["explicit", "automatic"] = "explicit"
    onDenied: Literal["stop", "continue"] = "continue"  # noqa: N815
    scope: dict[str, list[str]] = {}
    signatures: SignaturesSpec = SignaturesSpec()


class ProjectManifest(Envelope):
    """A complete project file."""

    kind: Literal["Project"]
    metadata: Metadata
    spec: ProjectSpec = ProjectSpec()


def build_project_model(
    settings: Mapping[str, type[BaseModel]],
    plan_settings: Sequence[PlanSettings] = (),
    environment_settings: Mapping[str, tuple[str, type[BaseModel]]] | None = None,
) -> type[ProjectManifest]:
    """Return the model of project files, including the fields that providers add.

    settings: the model of each provider's connection settings, by provider name.
    plan_settings: the plan settings of providers, which become fields of the project and of each environment.
    environment_settings: the fields that providers add to each environment; see `find_environment_settings`.
    """
    environment_settings = environment_settings or {}
    if not settings and not plan_settings and not environment_settings:
        return ProjectManifest
    providers = add_model_fields(ProviderSettings, {name: (model, None) for name, model in settings.items()})
    plan_fields = {
        s.field: (s.model, Field(s.model(), description=s.environment_description)) for s in plan_settings
    }
    connection_fields = build_endpoint_fields(environment_settings)
    environment = add_model_fields(
        EnvironmentSpec, {"providers": (providers, providers()), **plan_fields, **connection_fields}
    )
    environments: Any = GenericAlias(dict, (str, environment))
    plan_fields = {s.field: (s.model, Field(s.model(), description=s.description)) for s in plan_settings}
    spec = add_model_fields(ProjectSpec, {"environments": (environments, {}), **plan_fields})
    return add_model_fields(ProjectManifest, {"spec": (spec, spec())})


def build_endpoint_fields(environment_settings: Mapping[str, tuple[str, type[BaseModel]]]) -> dict[str, Any]:
    """Return the fields in which an environment lists the endpoints of each provider, for `add_model_fields`.

    environment_settings: see `find_environment_settings`.
    """
    return {
        name: (model, Field(None, description=f"The named endpoints of the provider '{provider}'."))
        for name, (provider, model) in environment_settings.items()
    }


def add_model_fields(model: type[_Model], fields: dict[str, Any]) -> type[_Model]:
    """Return a subclass with the name and docstring of a model, and with these fields added or replaced."""
    return create_model(model.__name__, __base__=model, __doc__=model.__doc__, **fields)
