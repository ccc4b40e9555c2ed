"""Named endpoints: the systems that an environment configures by name, such as several Connect clusters.

A plan and a state record the id of each endpoint. kdeclare refuses to continue if an endpoint now has a
different id, because the name then refers to a different system.
"""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.parts import LiveState


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """The result of reading one endpoint.

    id: the id of the system; empty if the system has no id or did not respond.
    problem: a clause that explains why the endpoint did not respond; empty if the endpoint responded.
    """

    id: str = ""
    problem: str = ""


@runtime_checkable
class ListsEndpoints(Protocol):
    """A collector of systems that an environment configures as named endpoints."""

    def list_endpoints(self, live: LiveState) -> Mapping[str, EndpointStatus]:
        """Return the named endpoints that were read, by full name (``connect/eu``).

        The result includes the endpoints that did not respond.
        """


Endpoints = Mapping[str, str]
"""The ids of endpoints by name, such as ``connect/eu``. The id is empty if the system has no id."""


def merge_endpoints(recorded: Endpoints, current: Endpoints) -> Endpoints:
    """Add the current endpoints to the recorded ones. An empty id does not replace a recorded id."""
    return {**recorded, **{name: id_ for name, id_ in current.items() if id_ or name not in recorded}}


def validate_endpoints(recorded: Endpoints, live: Mapping[str, EndpointStatus]) -> None:
    """Raise KdeclareError if an endpoint has a different id than the recorded one.

    recorded: the endpoints of a plan or a state. Endpoints without an id are not compared.
    """
    problems = [
        error(
            "other-endpoint",
            "Endpoint is a different system",
            f"The plan or state was made for {name} with the id {recorded[name]}, but {name} now has the id "
            f"{status.id}.",
            hint="Check the endpoint's URLs in the environment. If you replaced the system, give the "
            "endpoint a new name in the environment, give its resources new names in the manifests, and "
            "release the earlier resources with kdeclare apply --forget KIND/NAME.",
            subject=name,
        )
        for name, status in sorted(live.items())
        if status.id and recorded.get(name) not in (None, "", status.id)
    ]
    if problems:
        raise KdeclareError(*problems)
