"""The requests that policies evaluate: who changes which resource, and its state before and after."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NoReturn, Protocol

from kdeclare.core.jsontypes import JsonValue

LabelSet = Mapping[str, str]


class PolicyAction(StrEnum):
    """What a policy request does to its resource."""

    CREATE = "CREATE"
    MODIFY = "MODIFY"
    DELETE = "DELETE"


RULE_TOO_SLOW = "the rule took too long for other resources, so it is no longer evaluated"
"""The reason for a verdict if a rule was too slow. On a less busy machine, the rule might be fast enough."""


class PolicyViolation(Exception):
    """Raised by a policy to deny a change. The message is displayed to the user."""


class UnavailableError(BaseException):
    """Raised if a policy uses a value that is not available. Policies should not catch this exception."""


class UnavailableOffline(UnavailableError):
    """Raised if a policy uses a value that must be read from a system, and there is no connection."""


class UnavailableTracker:
    """Remembers the errors about unavailable values, even if a policy catches them."""

    def __init__(self) -> None:
        self._first: UnavailableError | None = None

    def withhold(self, what: UnavailableError) -> NoReturn:
        """Record and raise the error."""
        self._first = self._first or what
        raise what

    def forget(self) -> None:
        """Forget the recorded errors before the next policy is evaluated."""
        self._first = None

    def tell(self) -> None:
        """Raise the first recorded error, if there is one."""
        if self._first is not None:
            raise self._first


class OfflineRequest:
    """The base class of policy requests that are derived from manifests alone. Subclasses add fields.

    created: whether to assume that the resource does not exist yet. If false, it is unknown whether the
        resource exists.
    withholding: records the values that were unavailable to the current policy.
    """

    __slots__ = ()
    created: bool
    withholding: UnavailableTracker

    @property
    def action(self) -> PolicyAction:
        """The action CREATE if the resource is assumed not to exist.

        Otherwise, the property raises an error.
        """
        return PolicyAction.CREATE if self.created else self._raise_unavailable()

    @property
    def principal(self) -> str | None:
        """Raises an error, because the principal is unknown without a connection."""
        self._raise_unavailable()

    @property
    def labels_before(self) -> Mapping[str, str]:
        """An empty mapping if the resource is assumed not to exist.

        Otherwise, the property raises an error.
        """
        return {} if self.created else self._raise_unavailable()

    @property
    def pre_request_state(self) -> None:
        """The value None if the resource is assumed not to exist. Otherwise, the property raises an error."""
        return None if self.created else self._raise_unavailable()

    def _raise_unavailable(self) -> NoReturn:
        self.withholding.withhold(UnavailableOffline())


class PolicyRequest(Protocol):
    """A policy's view of a request to create, modify or delete one resource.

    Each property is read only when a policy uses it.
    """

    @property
    def action(self) -> PolicyAction:
        """The action that the request performs on the resource."""

    @property
    def name(self) -> str:
        """The name of the resource."""

    @property
    def principal(self) -> str | None:
        """The principal that sends the request; None if the system does not authenticate clients."""

    @property
    def labels(self) -> LabelSet:
        """The labels in the resource's manifest.

        If the request deletes the resource, these are the labels that were last applied.
        """

    @property
    def labels_before(self) -> LabelSet:
        """The last applied labels of the resource; empty if the resource was never applied."""

    @property
    def changed(self) -> frozenset[str]:
        """The names of the fields that the request changes.

        If it creates the resource, these are all declared fields.
        """

    @property
    def pre_request_state(self) -> object | None:
        """The current resource, in a form that `PolicyField` reads; None if the resource does not exist."""

    @property
    def post_request_state(self) -> object | None:
        """The resource after the request; None if the request deletes the resource."""


class ImpactRequest(PolicyRequest, Protocol):
    """A policy request with fields that describe its impact; see `PolicyWords.impact`."""

    @property
    def impact(self) -> object:
        """The impact, in a form that `PolicyField` reads. Reading an unknown value denies the request."""


class ResourceRequest(PolicyRequest, Protocol):
    """A policy request about a resource of a kind that is a `PolicySubject`."""

    @property
    def pre_request_state(self) -> Mapping[str, object] | None:
        """The current fields of the resource; None if the resource does not exist."""

    @property
    def post_request_state(self) -> Mapping[str, object] | None:
        """The fields of the resource after the request; None if the request deletes the resource."""


class ResourcePolicy(ABC):
    """A policy in Python about resources of one kind.

    The project file names the kind, which must be a `PolicySubject`. A policy is instantiated without
    arguments and configured once. ``validate`` is called for one resource at a time, but the calls can come
    from different threads.
    """

    def configure(self, configs: Mapping[str, JsonValue]) -> None:  # noqa: B027  most have no settings
        """Apply the settings from the project file. Any exception raised here is displayed to the user."""

    @abstractmethod
    def validate(self, request: ResourceRequest) -> None:
        """Return None if the request is allowed.

        Raise PolicyViolation to deny the request. Any other exception or return value also denies the
        request.
        """

    def close(self) -> None:  # noqa: B027
        """Release the resources that ``configure`` or ``validate`` acquired."""


class UncertainRequest(PolicyRequest, Protocol):
    """A policy request in which the values of some fields are unavailable."""

    @property
    def withholding(self) -> UnavailableTracker:
        """Records the values that were unavailable to the current policy."""


class PolicyEffect(Protocol):
    """The effect of an operation on one resource. Implementations can have more fields."""

    @property
    def created(self) -> bool:
        """Whether the operation creates the resource."""

    @property
    def deleted(self) -> bool:
        """Whether the operation deletes the resource."""


def find_policy_action(effects: Sequence[PolicyEffect]) -> PolicyAction:
    """Return the one action that these effects on a resource amount to."""
    if any(effect.created for effect in effects):
        return PolicyAction.CREATE
    return PolicyAction.DELETE if any(effect.deleted for effect in effects) else PolicyAction.MODIFY
