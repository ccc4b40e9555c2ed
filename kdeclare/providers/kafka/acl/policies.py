"""Ready-made policies for ACLs. A project file names the policies to use and configures them.

A policy evaluates only the bindings that a change adds. Existing bindings that violate the policy can stay.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from kdeclare.core.policies.policy_request import PolicyViolation, ResourceRequest
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.acl.binding import (
    ALL,
    ANY_HOST,
    ANY_PRINCIPAL,
    CLUSTER,
    LITERAL,
    Binding,
    join_binding,
    sort_bindings,
)
from kdeclare.providers.kafka.policies.settings_policy import NoSettings, PolicySettings, S, SettingsPolicy

_MAX_NAMED = 3


class AclPolicy(SettingsPolicy[S]):
    """The base class of the policies for ACLs."""

    @abstractmethod
    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """Return why a binding is not permitted, as the end of a sentence. Return None if it is permitted."""

    def validate(self, request: ResourceRequest) -> None:
        """See `ResourcePolicy`."""
        after = _read_bindings(request.post_request_state)
        added = sort_bindings(set(after).difference(_read_bindings(request.pre_request_state)))
        reasons: dict[str, list[Binding]] = {}
        for binding in added:
            reason = self.find_violation(binding, request.labels)
            if reason is not None:
                reasons.setdefault(reason, []).append(binding)
        if reasons:
            texts = (_format_violation(reason, bindings) for reason, bindings in reasons.items())
            raise PolicyViolation(" ".join(texts))


class NoWildcardPrincipal(AclPolicy[NoSettings]):
    """Deny bindings that grant rights to all principals (``User:*``)."""

    settings_model = NoSettings

    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """See `AclPolicy`."""
        if binding.is_allow and binding.principal == ANY_PRINCIPAL:
            return "allows every principal"
        return None


class NoAllOperations(AclPolicy[NoSettings]):
    """Deny bindings that allow ALL. Each allowed operation must be named."""

    settings_model = NoSettings

    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """See `AclPolicy`."""
        return "allows ALL operations" if binding.is_allow and binding.operation == ALL else None


class ClusterOperations(PolicySettings):
    """The settings of `NoClusterOperations`."""

    forbidden: Annotated[
        list[str], Field(description="The operations on the cluster that ACLs must not allow.")
    ] = [  # noqa: RUF012  frozen
        "ALTER",
        ALL,
        "CLUSTER_ACTION",
        "ALTER_CONFIGS",
    ]


class NoClusterOperations(AclPolicy[ClusterOperations]):
    """Deny grants of administrative rights on the cluster, such as the right to change ACLs."""

    settings_model = ClusterOperations

    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """See `AclPolicy`."""
        is_forbidden = binding.resource_type == CLUSTER and binding.operation in self.settings.forbidden
        return f"allows {binding.operation} on the cluster" if binding.is_allow and is_forbidden else None


class Hosts(PolicySettings):
    """The settings of `BoundedHosts`. If no hosts are set, any IP address is permitted, but not ``*``."""

    allowed: Annotated[list[str], Field(description="The hosts from which access may be allowed.")] = []  # noqa: RUF012  frozen


class BoundedHosts(AclPolicy[Hosts]):
    """Deny grants for hosts that `Hosts` does not permit: by default, only grants for all hosts (``*``)."""

    settings_model = Hosts

    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """See `AclPolicy`."""
        allowed = self.settings.allowed
        if not binding.is_allow or (binding.host in allowed if allowed else binding.host != ANY_HOST):
            return None
        hosts = format_alternatives(allowed) if allowed else "single addresses"
        return f"allows {'all hosts' if binding.host == ANY_HOST else binding.host} instead of {hosts}"


class Prefixes(PolicySettings):
    """The settings of `OwnPrefixes`.

    By default, a team may grant permissions on names that begin with the name of the team and a dot or
    hyphen.
    """

    label: Annotated[str, Field(description="The label that contains the name of the team.")] = "team"
    prefixes: Annotated[
        dict[str, list[str]],
        Field(description="The permitted prefixes of each team, by the name of the team."),
    ] = {}  # noqa: RUF012  frozen


class OwnPrefixes(AclPolicy[Prefixes]):
    """Deny grants on names that do not start with one of the team's prefixes.

    A label of the manifest names the team.
    """

    settings_model = Prefixes

    def find_violation(self, binding: Binding, labels: Mapping[str, str]) -> str | None:
        """See `AclPolicy`."""
        if not binding.is_allow or binding.resource_type == CLUSTER:
            return None
        owner = labels.get(self.settings.label)
        if not owner:
            return f"has no label '{self.settings.label}', which determines the permitted prefixes"
        prefixes = self.settings.prefixes.get(owner, [f"{owner}.", f"{owner}-"])
        is_everything = binding.pattern == LITERAL and binding.name == "*"
        if not is_everything and binding.name.startswith(tuple(prefixes)):
            return None
        return f"allows access outside the prefixes of {owner} ({', '.join(prefixes)})"


def _read_bindings(state: Mapping[str, object] | None) -> Iterator[Binding]:
    by_resource = state["bindings"] if state is not None else {}
    assert isinstance(by_resource, Mapping)
    for resource, elements in by_resource.items():
        yield from (join_binding(resource, element) for element in elements)


def _format_violation(reason: str, bindings: list[Binding]) -> str:
    names = ", ".join(map(str, bindings[:_MAX_NAMED]))
    more_count = len(bindings) - _MAX_NAMED
    more_text = f" and {more_count} more" if more_count > 0 else ""
    return f"The change {reason}: {names}{more_text}."
