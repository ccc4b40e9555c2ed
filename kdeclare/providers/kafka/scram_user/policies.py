"""Ready-made policies for SCRAM users. A project file names the policies to use and configures them.

A policy evaluates only the credentials that a change sets. Existing credentials that violate the policy can
stay.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.jsontypes import JsonValue, as_int
from kdeclare.core.policies.policy_request import PolicyViolation, ResourceRequest
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.policies.settings_policy import PolicySettings, S, SettingsPolicy
from kdeclare.providers.kafka.scram_user.credential import MAX_ITERATIONS, MIN_ITERATIONS, Mechanism


class CredentialPolicy(SettingsPolicy[S]):
    """The base class of the policies for credentials."""

    @abstractmethod
    def find_violation(self, mechanism: Mechanism, iterations: int) -> str | None:
        """Return why a new credential is not permitted, in full sentences. Return None if it is permitted."""

    def validate(self, request: ResourceRequest) -> None:
        """See `ResourcePolicy`."""
        credentials = _list_new_credentials(request)
        violations = (self.find_violation(mechanism, iterations) for mechanism, iterations in credentials)
        texts = [text for text in violations if text is not None]
        if texts:
            raise PolicyViolation(" ".join(texts))


class Mechanisms(PolicySettings):
    """The settings of `AllowedMechanisms`."""

    allowed: Annotated[
        list[Literal["SCRAM-SHA-256", "SCRAM-SHA-512"]],
        Field(description="The mechanisms that users may have.", min_length=1),
    ] = ["SCRAM-SHA-512"]  # noqa: RUF012  frozen


class AllowedMechanisms(CredentialPolicy[Mechanisms]):
    """Permit credentials only for some mechanisms: by default, only for SCRAM-SHA-512."""

    settings_model = Mechanisms

    def find_violation(self, mechanism: Mechanism, iterations: int) -> str | None:
        """See `CredentialPolicy`."""
        if mechanism.value in self.settings.allowed:
            return None
        alternatives = format_alternatives(self.settings.allowed)
        return f"The change sets a credential for {mechanism} instead of {alternatives}."


class Iterations(PolicySettings):
    """The settings of `MinimumIterations`."""

    minimum: Annotated[
        int, Field(description="The minimum number of iterations.", ge=MIN_ITERATIONS, le=MAX_ITERATIONS)
    ]


class MinimumIterations(CredentialPolicy[Iterations]):
    """Deny credentials with fewer PBKDF2 iterations than the configured minimum.

    Unless a manifest declares ``iterations``, kdeclare chooses a number between 4,097 and 8,191.
    """

    settings_model = Iterations

    def find_violation(self, mechanism: Mechanism, iterations: int) -> str | None:
        """See `CredentialPolicy`."""
        minimum = self.settings.minimum
        if iterations >= minimum:
            return None
        return (
            f"The credential for {mechanism} has {iterations:,} iterations, but at least {minimum:,} are "
            f"required. Declare 'iterations: {minimum}' or more."
        )


def _list_new_credentials(request: ResourceRequest) -> Iterator[tuple[Mechanism, int]]:
    """Yield the mechanism and the number of iterations of each credential that the change sets."""
    after, before = _read_mechanisms(request.post_request_state), _read_mechanisms(request.pre_request_state)
    for name, iterations in after.items():
        if before.get(name) != iterations or f"mechanisms.{name}" in request.changed:
            yield Mechanism(name), iterations


def _read_mechanisms(state: Mapping[str, object] | None) -> Mapping[str, int]:
    """Return the iterations of each credential of a user."""
    mechanisms = state["mechanisms"] if state is not None else {}
    assert isinstance(mechanisms, Mapping)
    return {name: _read_iterations(item) for name, item in mechanisms.items() if item is not None}


def _read_iterations(credential: Mapping[str, JsonValue]) -> int:
    return as_int(credential["iterations"])
