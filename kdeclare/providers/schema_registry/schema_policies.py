"""Ready-made policies for schemas, which a project file names and configures."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.policies.policy_request import PolicyViolation, ResourceRequest
from kdeclare.core.suggestions import format_alternatives
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.policies.settings_policy import NoSettings, PolicySettings, S, SettingsPolicy
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.schema.content import list_undocumented
from kdeclare.providers.schema_registry.schema.levels import is_implied


class SchemaPolicy(SettingsPolicy[S]):
    """The base class of the policies for schemas. Deletions are always allowed."""

    @abstractmethod
    def find_violations(self, schema: Mapping[str, object]) -> Iterator[str]:
        """Yield a sentence for each reason why a schema is not permitted."""

    def validate(self, request: ResourceRequest) -> None:
        """See `ResourcePolicy`."""
        schema = request.post_request_state
        violations = [] if schema is None else list(self.find_violations(schema))
        if violations:
            raise PolicyViolation(" ".join(violations))


class Types(PolicySettings):
    """The settings of `AllowedTypes`."""

    allowed: Annotated[
        list[Literal["AVRO", "JSON", "PROTOBUF"]],
        Field(description="The languages in which schemas may be written.", min_length=1),
    ]


class AllowedTypes(SchemaPolicy[Types]):
    """Permits only schemas in certain languages."""

    settings_model = Types

    def find_violations(self, schema: Mapping[str, object]) -> Iterator[str]:
        """See `SchemaPolicy`."""
        if schema["type"] not in self.settings.allowed:
            allowed = format_alternatives(self.settings.allowed)
            yield f"The schema type is {schema['type']} instead of {allowed}."


class Level(PolicySettings):
    """The settings of `RequiredCompatibility`."""

    minimum: Annotated[
        CompatibilityLevel, Field(strict=False, description="The loosest level that a subject may have.")
    ]


class RequiredCompatibility(SchemaPolicy[Level]):
    """Requires subjects to have a level of their own that is at least as strict as a minimum.

    A subject without a level of its own is not permitted, because the global level can change.
    """

    settings_model = Level

    def find_violations(self, schema: Mapping[str, object]) -> Iterator[str]:
        """See `SchemaPolicy`."""
        level, minimum = schema["compatibility"], self.settings.minimum
        if not isinstance(level, str):
            yield f"The subject has no level of its own. Declare 'compatibility: {minimum.value}'."
        elif not is_implied(minimum, CompatibilityLevel(level)):
            yield f"The compatibility level is {level}, but at least {minimum.value} is required."


class RequiredDocumentation(SchemaPolicy[NoSettings]):
    """Requires documentation for all types and fields of schemas."""

    settings_model = NoSettings

    def find_violations(self, schema: Mapping[str, object]) -> Iterator[str]:
        """See `SchemaPolicy`."""
        paths = list_undocumented(SchemaType(str(schema["type"])), str(schema["schema"]))
        if paths:
            names = [path or "the schema itself" for path in paths]
            yield f"The schema has no documentation for {format_names(names)}."
