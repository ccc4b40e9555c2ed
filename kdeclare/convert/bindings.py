"""Collect ACL bindings of other tools, and write one Acl manifest for each principal."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

from kdeclare.convert.result import ConvertedResource, SpecPath
from kdeclare.convert.source import Findings
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue

ANY_HOST = "*"
LITERAL, PREFIXED = "literal", "prefixed"

_TYPES: Mapping[str, str] = {
    "topic": "topic",
    "group": "group",
    "consumergroup": "group",
    "cluster": "cluster",
    "kafkacluster": "cluster",
    "transactionalid": "transactionalId",
    "delegationtoken": "delegationToken",
    "user": "user",
}
_OPERATIONS = (
    "ALL",
    "ALTER",
    "ALTER_CONFIGS",
    "CLUSTER_ACTION",
    "CREATE",
    "CREATE_TOKENS",
    "DELETE",
    "DESCRIBE",
    "DESCRIBE_CONFIGS",
    "DESCRIBE_TOKENS",
    "IDEMPOTENT_WRITE",
    "READ",
    "TWO_PHASE_COMMIT",
    "WRITE",
)
_OPERATIONS_BY_LETTERS = {name.replace("_", ""): name for name in _OPERATIONS}
_PATTERNS = {"": LITERAL, "literal": LITERAL, "prefix": PREFIXED, "prefixed": PREFIXED}
_PERMISSIONS = {"": "allow", "allow": "allow", "deny": "deny"}


@dataclass(frozen=True, slots=True)
class Binding:
    """One ACL binding. resource_type: the field for the resource in an Acl manifest, such as ``topic``."""

    principal: str
    resource_type: str
    name: str
    pattern: str
    operation: str
    permission: str
    host: str


class AclCollector:
    """Collects the bindings of all files. A binding that occurs several times is written once."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._places: dict[Binding, SourcePosition] = {}
        self._labels: dict[str, dict[str, str]] = defaultdict(dict)

    def add_labels(self, principal: str, labels: Mapping[str, str]) -> None:
        """Add labels to the manifest of a principal."""
        self._labels[principal] |= labels

    def add(
        self,
        place: SourcePosition,
        subject: str,
        *,
        principal: str,
        resource_type: str,
        operation: str,
        name: str = "",
        pattern: str = "",
        permission: str = "",
        host: str = "",
    ) -> None:
        """Add a binding, given in the terms of the source tool, or report one that an Acl cannot declare."""
        type_ = _TYPES.get(_keep_letters(resource_type).lower())
        operation_ = _OPERATIONS_BY_LETTERS.get(_keep_letters(operation).upper())
        pattern_ = _PATTERNS.get(pattern.lower())
        permission_ = _PERMISSIONS.get(permission.lower())
        problem = ""
        if not principal:
            problem = "The binding has no principal."
        elif type_ is None:
            problem = f"Kafka has no ACLs for resources of type '{resource_type}'."
        elif operation_ is None:
            problem = f"'{operation}' is not an operation of Kafka's ACLs."
        elif pattern_ is None:
            problem = (
                f"Kafka does not store patterns of type '{pattern}'. The other tool expands such a pattern "
                "to the names that exist when it runs. Write a prefix, or one binding for each name."
            )
        elif permission_ is None:
            problem = f"'{permission}' is neither allow nor deny."
        elif type_ != "cluster" and not name:
            problem = "The binding has no resource name."
        if type_ is None or operation_ is None or pattern_ is None or permission_ is None or problem:
            self._findings.report(place, subject, problem)
            return
        is_cluster = type_ == "cluster"
        binding = Binding(
            principal if ":" in principal else f"User:{principal}",
            type_,
            "" if is_cluster else name,
            LITERAL if is_cluster else pattern_,
            operation_,
            permission_,
            host or ANY_HOST,
        )
        self._places.setdefault(binding, place)

    def build(self) -> Iterable[ConvertedResource]:
        """Yield one Acl resource for each principal."""
        by_principal: dict[str, list[Binding]] = defaultdict(list)
        for binding in self._places:
            by_principal[binding.principal].append(binding)
        names: set[str] = set()
        for principal, bindings in by_principal.items():
            spec, places = self._build_spec(principal, bindings)
            name = build_free_name(principal.removeprefix("User:"), names)
            place = self._places[bindings[0]]
            yield ConvertedResource("Acl", name, spec, place, self._labels[principal], places)

    def _build_spec(
        self, principal: str, bindings: list[Binding]
    ) -> tuple[dict[str, JsonValue], dict[SpecPath, SourcePosition]]:
        places: dict[SpecPath, SourcePosition] = {}
        operations: dict[tuple[str, str, str, str, str], list[str]] = defaultdict(list)
        starts: dict[tuple[str, str, str, str, str], SourcePosition] = {}
        for b in bindings:
            key = (b.resource_type, b.name, b.pattern, b.permission, b.host)
            operations[key].append(b.operation)
            starts.setdefault(key, self._places[b])
        roles: dict[SpecPath, list[str]] = {}
        entries: list[JsonValue] = []
        for key, names in operations.items():
            role = _find_role(key, names)
            if role is None:
                places["bindings", len(entries)] = starts[key]
                entries.append(_build_entry(key, names))
            else:
                shown = roles.setdefault(role, [])
                places[*role, len(shown)] = starts[key]
                shown.append(_write_name(key[1], key[2]))
        spec: dict[str, JsonValue] = {"principal": principal}
        if ("produce",) in roles:
            spec["produce"] = [*roles["produce",]]
        consume: dict[str, JsonValue] = {
            field: [*roles["consume", field]] for field in ("topics", "groups") if ("consume", field) in roles
        }
        return spec | ({"consume": consume} if consume else {}) | (
            {"bindings": entries} if entries else {}
        ), places


def build_free_name(text: str, taken: set[str]) -> str:
    """Return an unused name for a manifest, and mark it as used."""
    base = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "all"
    name, number = base, 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _find_role(key: tuple[str, str, str, str, str], operations: list[str]) -> SpecPath | None:
    """Return the Acl field for a role that grants exactly these operations; None if there is no such role."""
    resource_type, name, pattern, permission, host = key
    if permission != "allow" or host != ANY_HOST or (pattern == LITERAL and name != "*" and "*" in name):
        return None
    roles: Mapping[tuple[str, str], SpecPath] = {
        ("topic", "WRITE"): ("produce",),
        ("topic", "READ"): ("consume", "topics"),
        ("group", "READ"): ("consume", "groups"),
    }
    return roles.get((resource_type, operations[0])) if len(operations) == 1 else None


def _build_entry(key: tuple[str, str, str, str, str], operations: list[str]) -> dict[str, JsonValue]:
    resource_type, name, pattern, permission, host = key
    entry: dict[str, JsonValue] = {}
    if resource_type == "cluster":
        entry["cluster"] = True
    elif pattern == LITERAL and name != "*" and "*" in name:
        entry |= {resource_type: name, "pattern": LITERAL}
    else:
        entry[resource_type] = _write_name(name, pattern)
    entry[permission] = [*operations]
    return entry | ({} if host == ANY_HOST else {"hosts": [host]})


def _write_name(name: str, pattern: str) -> str:
    return f"{name}*" if pattern == PREFIXED else name


def _keep_letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalpha())
