"""The base classes of ready-made policies with typed settings, for kinds other than `Topic`."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.policies.policy_request import ResourcePolicy


class PolicySettings(BaseModel):
    """The settings of a policy in the project file. Unknown settings are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NoSettings(PolicySettings):
    """The settings of a policy without settings."""


S = TypeVar("S", bound=PolicySettings)


class SettingsPolicy(ResourcePolicy, Generic[S]):
    """The base class of policies with typed settings. settings_model: the Pydantic model of the settings."""

    settings_model: type[S]
    settings: S

    def configure(self, configs: Mapping[str, JsonValue]) -> None:
        """Validate and apply the settings. Raises Pydantic's ValidationError."""
        self.settings = self.settings_model.model_validate(dict(configs))
