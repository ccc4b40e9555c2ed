"""ACL bindings, their text format, and the operations that each type of resource supports.

A binding is one entry of Kafka's access control lists (org.apache.kafka.common.acl.AclBinding). In plans and
states, a binding is written as ``ALLOW User:alice READ topic:orders from *``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = RESOURCE_TYPES = (
    "topic",
    "group",
    "cluster",
    "transactionalId",
    "delegationToken",
    "user",
)
"""The resource types, with the names that manifests use."""

LITERAL, PREFIXED = "literal", "prefixed"
ALLOW, DENY = "ALLOW", "DENY"
ALL = "ALL"
ALTER = "ALTER"
ANY_HOST = "*"
ANY_NAME = "*"
"""The literal name that matches all resources of a type."""

ANY_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"
"""The name of the only resource of the type Cluster."""

_OPERATIONS: Mapping[str, tuple[str, ...]] = {
    TOPIC: (
        "READ",
        "WRITE",
        "CREATE",
        "DELETE",
        "ALTER",
        "DESCRIBE",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
    ),
    GROUP: ("READ", "DELETE", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
    CLUSTER: (
        "CREATE",
        "ALTER",
        "DESCRIBE",
        "CLUSTER_ACTION",
        "DESCRIBE_CONFIGS",
        "ALTER_CONFIGS",
        "IDEMPOTENT_WRITE",
    ),
    TRANSACTIONAL_ID: ("WRITE", "DESCRIBE", "TWO_PHASE_COMMIT"),
    DELEGATION_TOKEN: ("DESCRIBE",),
    USER: ("CREATE_TOKENS", "DESCRIBE_TOKENS"),
}
"""The operations that each type of resource supports (org.apache.kafka.security.authorizer.AclEntry)."""


def list_operations(resource_type: str) -> tuple[str, ...]:
    """Return the operations that a type of resource supports, and ALL."""
    return (*_OPERATIONS.get(resource_type, ()), ALL)


class Binding(NamedTuple):
    """One ACL binding. Two bindings are the same only if all fields are equal. Case matters.

    name: the literal name or, if ``pattern`` is ``prefixed``, the prefix. The literal name ``*`` matches all
        resources of the type.
    principal: the type and the name of the principal, such as ``User:alice``.
    host: an IP address, or ``*`` for all hosts.

    A live binding can have a type, a pattern or an operation that kdeclare does not know. The value of such a
    field consists of a word and Kafka's code, such as ``operation-16``.
    """

    resource_type: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str

    @property
    def resource(self) -> str:
        """The type and the name of the resource, such as ``topic:orders``, or ``topic:pay*`` for a prefix."""
        return f"{self.resource_type}:{_format_name(self.name, self.pattern)}"

    @property
    def element(self) -> str:
        """The binding without its resource, such as ``ALLOW User:alice READ from *``."""
        return (
            f"{self.permission} {_quote(self.principal)} {self.operation} from {_quote(self.host) or _EMPTY}"
        )

    @property
    def opposite(self) -> "Binding":
        """The same binding with the opposite permission (ALLOW or DENY)."""
        return self._replace(permission=DENY if self.permission == ALLOW else ALLOW)

    @property
    def is_allow(self) -> bool:
        """Whether the permission of the binding is ALLOW."""
        return self.permission == ALLOW

    def __str__(self) -> str:
        return (
            f"{self.permission} {_quote(self.principal)} {self.operation} {self.resource} "
            f"from {_quote(self.host) or _EMPTY}"
        )


_EMPTY = "%"
"""The notation for an empty host. Brokers accept bindings with an empty host."""
_ESCAPED_STAR = "%2A"
_TEXT = re.compile(r"(ALLOW|DENY) (\S+) (\S+) ([^\s:]+):(\S+) from (\S+)")
_ELEMENT = re.compile(r"(ALLOW|DENY) (\S+) (\S+) from (\S+)")


def parse_binding(text: str) -> Binding:
    """Parse the text format of a binding (`Binding.__str__`). Raises ValueError."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"'{text}' is not an ACL binding")
    permission, principal, operation, resource_type, name, host = match.groups()
    return _build_binding(text, resource_type, name, (permission, principal, operation, host))


def join_binding(resource: str, element: str) -> Binding:
    """Return the binding with this `Binding.resource` and `Binding.element`. Raises ValueError."""
    resource_type, _, name = resource.partition(":")
    match = _ELEMENT.fullmatch(element)
    if match is None or not name:
        raise ValueError(f"'{element}' on '{resource}' is not an ACL binding")
    permission, principal, operation, host = match.groups()
    return _build_binding(
        f"{element} on {resource}", resource_type, name, (permission, principal, operation, host)
    )


def _build_binding(text: str, resource_type: str, name: str, parts: tuple[str, str, str, str]) -> Binding:
    permission, principal, operation, host = parts
    written, pattern = name, LITERAL
    if name.endswith("*") and name != ANY_NAME:
        name, pattern = name[:-1], PREFIXED
    binding = Binding(
        resource_type,
        unquote(name),
        pattern,
        unquote(principal),
        "" if host == _EMPTY else unquote(host),
        operation,
        permission,
    )
    if str(binding) != f"{permission} {principal} {operation} {resource_type}:{written} from {host}":
        raise ValueError(f"'{text}' is not the text of an ACL binding")
    return binding


def _format_name(name: str, pattern: str) -> str:
    quoted = _quote(name)
    if pattern == PREFIXED:
        return f"{quoted}*"
    if quoted.endswith("*") and name != ANY_NAME:
        return quoted[:-1] + _ESCAPED_STAR
    return quoted


def _quote(text: str) -> str:
    """Replace spaces, percent signs and control characters with ``%XX``."""
    if text.isprintable() and " " not in text and "%" not in text:
        return text
    return "".join(
        c
        if c.isprintable() and c not in " %"
        else "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "surrogatepass"))
        for c in text
    )


def sort_bindings(bindings: Iterable[Binding]) -> tuple[Binding, ...]:
    """Return the distinct bindings, sorted by resource, principal, operation and host."""
    return tuple(sorted(set(bindings)))


class PatternIndex:
    """An index of resource patterns. It quickly finds a pattern that covers another pattern."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        self._patterns = {(b.resource_type, b.name, b.pattern) for b in bindings}

    def covers(self, binding: Binding) -> bool:
        """Return whether a pattern of the index matches every resource that the binding matches."""
        resource_type, name, pattern = binding[:3]
        if (resource_type, ANY_NAME, LITERAL) in self._patterns or binding[:3] in self._patterns:
            return True
        if (name, pattern) == (ANY_NAME, LITERAL):
            return False
        return self._has_prefix(resource_type, name)

    def matches(self, resource_type: str, name: str) -> bool:
        """Return whether a pattern of the index matches the resource with this name."""
        own_patterns = {(resource_type, ANY_NAME, LITERAL), (resource_type, name, LITERAL)}
        return not own_patterns.isdisjoint(self._patterns) or self._has_prefix(resource_type, name)

    def _has_prefix(self, resource_type: str, name: str) -> bool:
        return any((resource_type, name[:n], PREFIXED) in self._patterns for n in range(1, len(name) + 1))
