"""Write one manifest for the live bindings of each principal.

If a principal has all permissions of a role, the manifest declares the role.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set

from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.resources.manifest_capabilities import Export, ExportRequest, OmittedObjects
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    ANY_HOST,
    ANY_NAME,
    CLUSTER,
    DENY,
    GROUP,
    LITERAL,
    PREFIXED,
    RESOURCE_TYPES,
    TOPIC,
    TRANSACTIONAL_ID,
    Binding,
    list_operations,
    sort_bindings,
)
from kdeclare.providers.kafka.acl.collector import AclState, Visibility
from kdeclare.providers.kafka.acl.diff import BINDINGS_FIELD_PREFIX
from kdeclare.providers.kafka.acl.manifests.expansion import Right, list_streams_rights
from kdeclare.providers.kafka.acl.names import check_host, check_name, check_principal

_PLAIN_NAME = re.compile(r"User:[A-Za-z0-9._-]{1,80}")

_REASONS = {
    Visibility.DISABLED: "the brokers have no authorizer",
    Visibility.HIDDEN: "the principal is not permitted to describe ACLs",
    Visibility.UNSUPPORTED: "the brokers do not support them",
}
"""The reasons why the ACLs of a cluster cannot be imported."""


def export_acls(live: AclState, request: ExportRequest) -> Export:
    """Return a manifest for each principal. The name of the manifest is derived from the principal.

    If the request contains names, select the principals whose name matches, with or without the type
    (``User:``).
    """
    if live.visibility is not Visibility.VISIBLE:
        reason = _REASONS[live.visibility]
        return Export({}, (OmittedObjects(1, "kind", "kinds", f"Acl: {reason}"),))
    requested = {
        principal: bindings
        for principal, bindings in live.by_principal.items()
        if not request.is_selective
        or request.matches(principal)
        or request.matches(principal.partition(":")[2])
    }
    names = {principal: make_manifest_name(principal) for principal in sorted(requested)}
    permitted = {p: name for p, name in names.items() if request.permits(ResourceId("Acl", name))}
    manifests = {name: _render(name, p, requested[p]) for p, name in permitted.items()}
    useless = sum(not is_declarable(b) for p in permitted for b in requested[p])
    return Export(
        {name: text for name, text in manifests.items() if text},
        (
            OmittedObjects(len(requested) - len(permitted), "principal", "principals", _OUT_OF_SCOPE),
            OmittedObjects(useless, "binding", "bindings", "which never match; see the comments"),
        ),
    )


_OUT_OF_SCOPE = "outside the scope of the project"


def is_declarable(binding: Binding) -> bool:
    """Return whether a manifest can declare a live binding.

    A manifest cannot declare bindings that never match, or that use features of a later Kafka release.
    """
    problems = (
        check_principal(binding.principal),
        check_host(binding.host),
        check_name(binding.resource_type, binding.name, binding.pattern),
    )
    return (
        binding.resource_type in RESOURCE_TYPES
        and binding.operation in list_operations(binding.resource_type)
        and binding.pattern in (LITERAL, PREFIXED)
        and not any(problem is not None and problem.is_certain for problem in problems)
    )


def _render(name: str, principal: str, bindings: Collection[Binding]) -> str:
    declared = [binding for binding in bindings if is_declarable(binding)]
    comments = [f"Rights of {_escape(principal)}."]
    comments += [f"Never matches: {b}" for b in sort_bindings(bindings) if not is_declarable(b)]
    if not declared:
        return ""
    spec = [f"principal: {scalar(principal)}", *render_rights(declared)]
    return render_manifest("Acl", name, spec, comments)


def render_rights(bindings: Iterable[Binding]) -> Iterator[str]:
    """Yield the lines of a spec, without the principal.

    Bindings for all hosts are written as roles if possible.
    """
    by_host: dict[str, set[Right]] = defaultdict(set)
    for binding in bindings:
        right = Right(
            binding.resource_type, binding.name, binding.pattern, binding.operation, binding.permission
        )
        by_host[binding.host].add(right)
    remaining = by_host.pop(ANY_HOST, set())
    applications = list(_find_applications(remaining))
    for application in applications:
        remaining.difference_update(list_streams_rights(application))
    roles = {
        "produce": _take(remaining, TOPIC, "WRITE"),
        "transactions": _take(remaining, TRANSACTIONAL_ID, "WRITE"),
        "streams": sorted(applications),
    }
    consumed = {"topics": _take(remaining, TOPIC, "READ"), "groups": _take(remaining, GROUP, "READ")}
    observed = {
        "topics": _take(remaining, TOPIC, "DESCRIBE", "DESCRIBE_CONFIGS"),
        "groups": _take(remaining, GROUP, "DESCRIBE"),
    }
    yield from _render_list("produce", roles["produce"])
    yield from _render_role("consume", consumed)
    yield from _render_list("transactions", roles["transactions"])
    yield from _render_list("streams", roles["streams"])
    yield from _render_role("observe", observed)
    entries = list(_render_entries(remaining, ANY_HOST))
    for host in sorted(by_host):
        entries += _render_entries(by_host[host], host)
    if entries:
        yield "bindings:"
        yield from entries


def _find_applications(rights: Set[Right]) -> Iterator[str]:
    """Yield the ids of the Kafka Streams applications that have all required permissions."""
    for right in sorted(rights):
        is_group = (right.resource_type, right.pattern, right.operation) == (GROUP, LITERAL, "READ")
        if not is_group or right.permission != ALLOW or "*" in right.name:
            continue
        if rights >= set(list_streams_rights(right.name)):
            yield right.name


def _take(rights: set[Right], resource_type: str, *operations: str) -> list[str]:
    """Return the resource names for which ``rights`` contains all operations of a role.

    Remove these permissions from ``rights``.
    """
    texts: list[str] = []
    for right in sorted(rights):
        if (right.resource_type, right.operation, right.permission) != (resource_type, operations[0], ALLOW):
            continue
        own = {right._replace(operation=operation) for operation in operations}
        text = format_pattern(right)
        if text is not None and own <= rights:
            rights -= own
            texts.append(text)
    return texts


def format_pattern(right: Right) -> str | None:
    """Return a resource name in the format of roles; None if the name requires an entry with a pattern."""
    if right.pattern == LITERAL:
        return right.name if right.name == ANY_NAME or "*" not in right.name else None
    return f"{right.name}*" if "*" not in right.name else None


def _render_list(field: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        yield f"{field}: [{', '.join(map(scalar, texts))}]"


def _render_role(role: str, names: Mapping[str, Sequence[str]]) -> Iterator[str]:
    parts = [f"{field}: [{', '.join(map(scalar, texts))}]" for field, texts in names.items() if texts]
    if parts:
        yield f"{role}: {{{', '.join(parts)}}}"


def _render_entries(rights: Collection[Right], host: str) -> Iterator[str]:
    by_resource: dict[tuple[str, str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for right in sorted(rights):
        by_resource[right[:3]][right.permission].append(right.operation)
    for (resource_type, name, pattern), operations in by_resource.items():
        text = format_pattern(Right(resource_type, name, pattern, ""))
        if resource_type == CLUSTER:
            target = "cluster: true"
        elif text is not None:
            target = f"{resource_type}: {scalar(text)}"
        else:
            target = f"{resource_type}: {scalar(name)}, pattern: {pattern}"
        parts = [target]
        parts += [
            f"{field}: [{', '.join(operations[permission])}]"
            for permission, field in ((ALLOW, "allow"), (DENY, "deny"))
            if operations[permission]
        ]
        parts += [f"hosts: [{scalar(host)}]"] if host != ANY_HOST else []
        yield f"  - {{{', '.join(parts)}}}"


def locate_binding(path: str) -> Sequence[SpecPath]:
    """Return the spec paths that can declare the bindings of a field change.

    path: the path of the field change.
    """
    resource = path.removeprefix(BINDINGS_FIELD_PREFIX)
    roles: Mapping[str, Sequence[SpecPath]] = {
        TOPIC: (("produce",), ("consume", "topics"), ("observe", "topics"), ("streams",)),
        GROUP: (("consume", "groups"), ("observe", "groups"), ("streams",)),
        TRANSACTIONAL_ID: (("transactions",), ("streams",)),
    }
    return (*roles.get(resource.partition(":")[0], ()), ("bindings",))


def make_manifest_name(principal: str) -> str:
    """Return a readable name for the manifest of a principal, with a hash if it could be ambiguous."""
    name = principal.removeprefix("User:")
    if _PLAIN_NAME.fullmatch(principal):
        return name
    sanitized = re.sub(r"[^A-Za-z0-9._-]+", "-", "everyone" if name == "*" else name).strip("-")[:60]
    return "-".join(filter(None, [sanitized, hashlib.sha256(principal.encode()).hexdigest()[:8]]))


def _escape(text: str) -> str:
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
