"""Check the names of principals, hosts and resources. Brokers accept names that never match anything.

The functions return a `NameProblem`, or None if brokers can match the name.
"""

import ipaddress
import re

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.acl.binding import (
    ALL,
    ALLOW,
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    CLUSTER,
    LITERAL,
    PREFIXED,
    TOPIC,
    USER,
)

_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_USER_TYPE = "User"


@dataclass(frozen=True, slots=True)
class NameProblem:
    """The reason why a name never matches, or might never match.

    code, summary: as in `Diagnostic`. reason: the end of a sentence that begins with the quoted name.
    is_certain: whether the name certainly never matches.
    """

    code: str
    summary: str
    reason: str
    hint: str
    is_certain: bool = True


def check_principal(principal: str) -> NameProblem | None:
    """Check a principal: a type and a name with a colon between them."""
    type_, colon, name = principal.partition(":")
    if not colon:
        return _build_principal_problem(
            "has no type, so brokers reject it", f"Write {_USER_TYPE}:{principal or 'NAME'}."
        )
    if not name:
        return _build_principal_problem("has no name", f"Write a name after '{type_}:'.")
    if type_ == _USER_TYPE:
        return None
    if type_.casefold() == _USER_TYPE.casefold() or not type_:
        return _build_principal_problem(
            "never matches, because the type of a principal is case-sensitive"
            if type_
            else "has no type, so it never matches",
            f"Write {_USER_TYPE}:{name}.",
        )
    return NameProblem(
        "principal-type",
        "Unusual principal type",
        f"has the type '{type_}'. Brokers match it only if their principal builder uses this type",
        f"Write {_USER_TYPE}:{name}, unless the brokers use a custom principal builder.",
        is_certain=False,
    )


def check_host(host: str) -> NameProblem | None:
    """Check a host: ``*``, or an IP address in the format that brokers compare."""
    if host == ANY_HOST:
        return None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        is_range = "/" in host
        what = "is a range of addresses" if is_range else "is not an IP address"
        return _build_host_problem(
            f"{what}, but brokers compare hosts only with single IP addresses",
            "Write each address as a separate list element, or '*' for all hosts."
            if is_range
            else "Write the IP address, or '*' for all hosts.",
        )
    compared = format_as_java(address)
    if compared == host:
        return None
    return _build_host_problem(
        f"never matches, because brokers write this address as '{compared}'", f"Write '{compared}'."
    )


def format_as_java(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """Format an address as ``InetAddress.getHostAddress`` in Java does. Brokers compare this text."""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    zone = f"%{address.scope_id}" if address.scope_id else ""
    return ":".join(f"{int(part, 16):x}" for part in address.exploded.partition("%")[0].split(":")) + zone


def check_name(resource_type: str, name: str, pattern: str) -> NameProblem | None:
    """Check the name of a resource, or a prefix of resource names."""
    if not name:
        return _build_name_problem("is empty", "Write a name, a prefix such as 'orders.*', or '*'.")
    if pattern == LITERAL and name == ANY_NAME:
        return None
    if resource_type == TOPIC:
        return _check_topic(name, pattern)
    if resource_type == USER and pattern == LITERAL:
        return check_principal(name)
    if pattern == PREFIXED and name == ANY_NAME:
        return NameProblem(
            "prefixed-star",
            "Prefix is a star",
            "as a prefix matches only names that begin with a star",
            "Write '*' without a pattern for all names.",
            is_certain=False,
        )
    return None


def _check_topic(name: str, pattern: str) -> NameProblem | None:
    if _LEGAL_TOPIC.fullmatch(name) and (pattern == PREFIXED or name not in (".", "..")):
        return None
    if "*" in name:
        return _build_name_problem(
            "never matches, because a star is special only at the end of a name",
            "Write a prefix such as 'orders.*' without a pattern, or '*' for all topics.",
        )
    return _build_name_problem(
        "cannot be the name of a topic: Kafka accepts 1 to 249 letters, digits, '.', '_' and '-'",
        "Write the name or the prefix of an existing topic.",
    )


def check_all_rights(principal: str, operation: str, permission: str) -> NameProblem | None:
    """Check a binding that applies to all principals."""
    if principal != ANY_PRINCIPAL:
        return None
    if permission == "DENY":
        return NameProblem(
            "wildcard-principal",
            "Access denied to all principals",
            f"denies {operation} to every principal except super users. This includes kdeclare",
            "Name the principals to deny.",
            is_certain=False,
        )
    return NameProblem(
        "wildcard-principal",
        "Access for all principals",
        f"allows {operation} to every principal, including unauthenticated clients (User:ANONYMOUS)",
        "Name the principals to allow.",
        is_certain=False,
    )


def check_cluster_rights(resource_type: str, operation: str, permission: str) -> NameProblem | None:
    """Check a binding that allows all operations on the cluster."""
    if (resource_type, operation, permission) != (CLUSTER, ALL, ALLOW):
        return None
    return NameProblem(
        "all-on-cluster",
        "All operations allowed on the cluster",
        "includes changing all ACLs and broker configs, and acting as a broker",
        "List the operations that the principal needs.",
        is_certain=False,
    )


def _build_principal_problem(reason: str, hint: str) -> NameProblem:
    return NameProblem("illegal-principal", "Principal not allowed", reason, hint)


def _build_host_problem(reason: str, hint: str) -> NameProblem:
    return NameProblem("illegal-host", "Host not allowed", reason, hint)


def _build_name_problem(reason: str, hint: str) -> NameProblem:
    return NameProblem("illegal-resource-name", "Resource name not allowed", reason, hint)
