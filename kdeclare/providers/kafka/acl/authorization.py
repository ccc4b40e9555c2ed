"""Decide, as brokers do, whether bindings allow a principal to perform an operation on a resource.

Modeled on org.apache.kafka.metadata.authorizer.StandardAuthorizerData of Kafka 4.3. A DENY takes precedence
over every ALLOW. An ALLOW for some operations also allows Describe or DescribeConfigs, but a DENY denies only
its own operation. ACLs do not restrict super users, so the functions ignore super users.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.acl.binding import ALL, ANY_HOST, ANY_NAME, ANY_PRINCIPAL, LITERAL, Binding

_IMPLYING = {
    "DESCRIBE": frozenset({"DESCRIBE", "READ", "WRITE", "DELETE", "ALTER"}),
    "DESCRIBE_CONFIGS": frozenset({"DESCRIBE_CONFIGS", "ALTER_CONFIGS"}),
}
"""Maps an operation to the operations that imply it. For example, ALLOW READ also allows DESCRIBE."""


@dataclass(frozen=True, slots=True)
class AccessRequest:
    """An access request: a principal performs an operation on one resource, from the IP address ``host``."""

    principal: str
    operation: str
    resource_type: str
    name: str
    host: str


class AccessReason(StrEnum):
    """The reason why a request is allowed or denied."""

    DENIED_BY_BINDING = "denied by a binding"
    ALLOWED_BY_BINDING = "allowed by a binding"
    NO_MATCH = "no binding allows it"  # other bindings exist for the resource
    NO_ACL = "no ACL exists for the resource"  # allow.everyone.if.no.acl.found decides


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """The decision about one request.

    binding: a binding that determines the decision, or None if no binding does.
    """

    is_allowed: bool
    reason: AccessReason
    binding: Binding | None = None


def decide_access(
    bindings: Iterable[Binding], request: AccessRequest, *, allow_if_no_acl: bool = False
) -> AccessDecision:
    """Return the decision about a request.

    allow_if_no_acl: the value of the broker config ``allow.everyone.if.no.acl.found``.
    """
    on_resource = [binding for binding in bindings if is_about(binding, request.resource_type, request.name)]
    return decide_on_resource(on_resource, request, allow_if_no_acl=allow_if_no_acl)


def decide_on_resource(
    on_resource: Sequence[Binding], request: AccessRequest, *, allow_if_no_acl: bool = False
) -> AccessDecision:
    """Return the decision about a request.

    on_resource: all bindings whose pattern matches the resource of the request.
    """
    if not on_resource:
        return AccessDecision(allow_if_no_acl, AccessReason.NO_ACL)
    allowing: Binding | None = None
    for binding in on_resource:
        if not is_concerned(binding, request):
            continue
        if not binding.is_allow:
            return AccessDecision(False, AccessReason.DENIED_BY_BINDING, binding)
        allowing = allowing or binding
    if allowing is not None:
        return AccessDecision(True, AccessReason.ALLOWED_BY_BINDING, allowing)
    return AccessDecision(False, AccessReason.NO_MATCH)


def is_about(binding: Binding, resource_type: str, name: str) -> bool:
    """Return whether the pattern of a binding matches a resource."""
    if binding.resource_type != resource_type:
        return False
    if binding.pattern == LITERAL:
        return binding.name in (name, ANY_NAME)
    return name.startswith(binding.name)


def list_sufficient_operations(operation: str) -> frozenset[str]:
    """Return this operation and the operations that imply it."""
    return _IMPLYING.get(operation, frozenset()) | {operation, ALL}


def list_granted(bindings: Iterable[Binding], principal: str) -> list[Binding]:
    """Return the bindings that apply to a principal: its own, and those for every principal (``User:*``)."""
    return [binding for binding in bindings if binding.principal in (principal, ANY_PRINCIPAL)]


def is_concerned(binding: Binding, request: AccessRequest) -> bool:
    """Return whether a binding on the resource matches the principal, host and operation of a request."""
    if binding.principal not in (request.principal, ANY_PRINCIPAL):
        return False
    if binding.host not in (request.host, ANY_HOST):
        return False
    if binding.operation in (ALL, request.operation):
        return True
    return binding.is_allow and binding.operation in _IMPLYING.get(request.operation, ())
