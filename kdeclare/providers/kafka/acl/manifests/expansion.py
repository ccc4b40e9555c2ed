"""Expand the roles and the entries of an Acl manifest into bindings, offline."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    ANY_NAME,
    CLUSTER,
    CLUSTER_NAME,
    DELEGATION_TOKEN,
    DENY,
    GROUP,
    LITERAL,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
    list_operations,
)
from kdeclare.providers.kafka.acl.names import (
    NameProblem,
    check_all_rights,
    check_cluster_rights,
    check_host,
    check_name,
    check_principal,
)
from kdeclare.providers.kafka.acl.spec import AclBody, AclSpec, BindingSpec

CONTRADICTION = "acl-contradiction"


class Right(NamedTuple):
    """An operation that a manifest allows or denies, on one resource or on all resources with a prefix."""

    resource_type: str
    name: str
    pattern: str
    operation: str
    permission: str = ALLOW


class _Place(NamedTuple):
    """The position of the manifest entry that declares a permission. hosts: the hosts of the entry."""

    path: SpecPath
    role: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NamePattern:
    """A name or a prefix in a role. ``pay*`` means the prefix ``pay``, and ``*`` means all names."""

    name: str
    pattern: str


def parse_pattern(text: str) -> NamePattern:
    """Parse a name in a manifest: a literal name, a prefix with a star at the end, or ``*``."""
    if text != ANY_NAME and text.endswith("*"):
        return NamePattern(text[:-1], PREFIXED)
    return NamePattern(text, LITERAL)


def parse_acl(name: str, spec: AclSpec) -> tuple[AclBody, tuple[SpecProblem, ...]]:
    """Return the bindings that a manifest declares, and the problems in the manifest.

    A name that never matches a principal, host or resource is also a problem.
    """
    return _Expansion(f"Acl/{name}", spec).expand()


class _Expansion:
    """Expands one manifest, and collects its problems."""

    def __init__(self, resource: str, spec: AclSpec) -> None:
        self._resource, self._spec = resource, spec
        self._problems: list[SpecProblem] = []
        self._rights: list[tuple[Right, _Place]] = []

    def expand(self) -> tuple[AclBody, tuple[SpecProblem, ...]]:
        spec = self._spec
        principals = tuple(dict.fromkeys(self._parse_principals()))
        hosts = self._parse_hosts(("hosts",), spec.hosts)
        self._add_roles(hosts)
        for number, entry in enumerate(spec.bindings):
            self._add_entry(("bindings", number), entry, hosts)
        bindings = self._build_bindings(principals)
        self._warn_broad_rights(principals)
        body = AclBody(
            principals,
            dict(sorted(bindings.items())),
            spec.unmanagedBindings == "remove",
            spec.lifecycle.preventDestroy,
            adopt=spec.lifecycle.adopt,
        )
        return body, tuple(self._problems)

    def _parse_principals(self) -> Iterator[str]:
        spec = self._spec
        if (spec.principal is None) is (spec.principals is None):
            fields = "neither 'principal' nor" if spec.principal is None else "both 'principal' and"
            self._report(
                ("principal",),
                error,
                "illegal-principal",
                "Principal not allowed",
                f"The manifest has {fields} 'principals'.",
                "Write principal: User:NAME, or principals: [User:A, User:B].",
            )
        if spec.principal is not None:
            self._check(("principal",), spec.principal, check_principal(spec.principal))
            yield spec.principal
        for number, principal in enumerate(spec.principals or ()):
            self._check(("principals", number), principal, check_principal(principal))
            yield principal

    def _parse_hosts(self, path: SpecPath, hosts: Sequence[str]) -> tuple[str, ...]:
        for number, host in enumerate(hosts):
            self._check((*path, number), host, check_host(host))
        if not hosts:
            self._report(
                path,
                error,
                "illegal-host",
                "Host not allowed",
                "'hosts' is empty, so the manifest allows nothing.",
                "Write the IP addresses of the hosts, or ['*'] for all hosts.",
            )
        return tuple(dict.fromkeys(hosts))

    def _add_roles(self, hosts: tuple[str, ...]) -> None:
        spec = self._spec
        for path, role, texts, resource_type, operations in (
            (("produce",), "produce", spec.produce, TOPIC, ("WRITE",)),
            (("consume", "topics"), "consume", spec.consume.topics, TOPIC, ("READ",)),
            (("consume", "groups"), "consume", spec.consume.groups, GROUP, ("READ",)),
            (("transactions",), "transactions", spec.transactions, TRANSACTIONAL_ID, ("WRITE",)),
            (("observe", "topics"), "observe", spec.observe.topics, TOPIC, ("DESCRIBE", "DESCRIBE_CONFIGS")),
            (("observe", "groups"), "observe", spec.observe.groups, GROUP, ("DESCRIBE",)),
        ):
            for number, text in enumerate(texts):
                place = _Place((*path, number), role, hosts)
                name = self._parse_name(place.path, resource_type, text)
                for operation in operations:
                    self._rights.append((Right(resource_type, name.name, name.pattern, operation), place))
        for number, application in enumerate(spec.streams):
            place = _Place(("streams", number), "streams", hosts)
            if "*" in application:
                self._check(place.path, application, _STREAMS_PROBLEM)
            self._check(place.path, application, check_name(TOPIC, application, PREFIXED))
            self._rights += [(right, place) for right in list_streams_rights(application)]

    def _parse_name(self, path: SpecPath, resource_type: str, text: str) -> NamePattern:
        name = parse_pattern(text)
        problem = check_name(resource_type, name.name, name.pattern)
        if problem is None and "*" in name.name and name != NamePattern(ANY_NAME, LITERAL):
            problem = _STAR_PROBLEM
        self._check(path, text, problem)
        return name

    def _add_entry(self, path: SpecPath, entry: BindingSpec, hosts: tuple[str, ...]) -> None:
        target = self._find_target(path, entry)
        if target is None:
            return
        resource_type, text = target
        own_hosts = hosts if entry.hosts is None else self._parse_hosts((*path, "hosts"), entry.hosts)
        if resource_type == CLUSTER:
            name = NamePattern(CLUSTER_NAME, LITERAL)
            if entry.pattern == PREFIXED:
                self._check((*path, "pattern"), PREFIXED, _CLUSTER_PATTERN_PROBLEM)
        elif entry.pattern is None:
            name = self._parse_name((*path, resource_type), resource_type, text)
        else:
            name = NamePattern(text, entry.pattern)
            self._check((*path, resource_type), text, check_name(resource_type, text, entry.pattern))
        if not entry.allow and not entry.deny:
            self._check(path, f"{resource_type}: {text}", _NO_OPERATION_PROBLEM)
        place = _Place(path, "", own_hosts)
        for permission, field, operations in ((ALLOW, "allow", entry.allow), (DENY, "deny", entry.deny)):
            for number, operation in enumerate(operations):
                self._check_operation((*path, field, number), resource_type, operation)
                right = Right(resource_type, name.name, name.pattern, operation, permission)
                self._rights.append((right, place))

    def _find_target(self, path: SpecPath, entry: BindingSpec) -> tuple[str, str] | None:
        """Return the type and the name of the resource of an entry.

        An entry must name exactly one resource.
        """
        named = {
            TOPIC: entry.topic,
            GROUP: entry.group,
            CLUSTER: CLUSTER_NAME if entry.cluster else None,
            TRANSACTIONAL_ID: entry.transactionalId,
            DELEGATION_TOKEN: entry.delegationToken,
            USER: entry.user,
        }
        targets = [(resource_type, text) for resource_type, text in named.items() if text is not None]
        if len(targets) == 1:
            return targets[0]
        count = f"{len(targets)} resources" if targets else "no resource"
        self._report(
            path,
            error,
            "illegal-binding",
            "Binding not allowed",
            f"The entry names {count}, but each entry must name exactly one resource.",
            f"Write one of {format_alternatives(named)} in each entry.",
        )
        return None

    def _check_operation(self, path: SpecPath, resource_type: str, operation: str) -> None:
        operations = list_operations(resource_type)
        if operation not in operations:
            self._report(
                path,
                error,
                "illegal-operation",
                "Operation not allowed",
                f"{operation} does not apply to a resource of type {resource_type}. Brokers accept such a "
                "binding, but it has no effect.",
                f"Use {format_alternatives(operations)}.",
                operation,
            )

    def _build_bindings(self, principals: Iterable[str]) -> dict[Binding, str]:
        bindings: dict[Binding, str] = {}
        for right, place in self._rights:
            for principal in principals:
                for host in place.hosts:
                    binding = Binding(*right[:3], principal, host, right.operation, right.permission)
                    if binding.opposite in bindings:
                        self._report(
                            place.path,
                            error,
                            CONTRADICTION,
                            "Operation both allowed and denied",
                            f"The manifest contains a binding and its opposite: {binding}.",
                            "Remove one of the two entries. A denial takes precedence.",
                        )
                    # The first entry that declares a binding determines its role. An entry of `bindings` has
                    # no role.
                    bindings.setdefault(binding, place.role)
        return bindings

    def _warn_broad_rights(self, principals: Sequence[str]) -> None:
        for principal in principals:
            for right, place in self._rights:
                problem = check_all_rights(principal, right.operation, right.permission)
                self._check(place.path, f"{principal} {right.operation}", problem)
        for right, place in self._rights:
            problem = check_cluster_rights(right.resource_type, right.operation, right.permission)
            self._check(place.path, "ALL on the cluster", problem)

    def _check(self, path: SpecPath, text: str, problem: NameProblem | None) -> None:
        if problem is None:
            return
        make_diagnostic = error if problem.is_certain else warning
        self._report(
            path,
            make_diagnostic,
            problem.code,
            problem.summary,
            f"'{text}' {problem.reason}.",
            problem.hint,
            text,
        )

    def _report(
        self,
        path: SpecPath,
        make_diagnostic: Callable[..., Diagnostic],
        code: str,
        summary: str,
        detail: str,
        hint: str,
        subject: str | None = None,
    ) -> None:
        diagnostic = make_diagnostic(code, summary, detail, hint, resource=self._resource, subject=subject)
        self._problems.append(SpecProblem(path, diagnostic))


def list_streams_rights(application: str) -> list[Right]:
    """Return the permissions that a Kafka Streams application with this application id needs."""
    internal_topics = f"{application}-"
    return [
        *(Right(TOPIC, internal_topics, PREFIXED, o) for o in ("READ", "WRITE", "CREATE", "DELETE")),
        Right(GROUP, application, LITERAL, "READ"),
        Right(TRANSACTIONAL_ID, internal_topics, PREFIXED, "WRITE"),
    ]


_STAR_PROBLEM = NameProblem(
    "illegal-resource-name",
    "Resource name not allowed",
    "has a star that is not at its end",
    "Write a prefix such as 'orders.*'. If the star is part of the name, add an entry with 'pattern: "
    "literal' to 'bindings'.",
)
_STREAMS_PROBLEM = NameProblem(
    "illegal-resource-name",
    "Resource name not allowed",
    "is not an application id",
    "Write the application.id without a star. The role adds the prefixes itself.",
)
_CLUSTER_PATTERN_PROBLEM = NameProblem(
    "illegal-binding",
    "Binding not allowed",
    "cannot be the pattern of the cluster, which has only one name",
    "Remove the pattern.",
)
_NO_OPERATION_PROBLEM = NameProblem(
    "illegal-binding",
    "Binding not allowed",
    "neither allows nor denies anything",
    "Write allow: [READ] or deny: [READ].",
)
