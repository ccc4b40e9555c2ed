"""The options of Kafka's kafka-acls, and the bindings that they describe."""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Annotated, Literal, NamedTuple

import typer

from kdeclare.cli.options.single_options import ChosenOptions
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_alternatives, format_suggestion
from kdeclare.providers.kafka.acl.authorization import is_about
from kdeclare.providers.kafka.acl.binding import (
    ALL,
    ALLOW,
    ANY_HOST,
    CLUSTER,
    CLUSTER_NAME,
    DELEGATION_TOKEN,
    DENY,
    GROUP,
    LITERAL,
    PREFIXED,
    RESOURCE_TYPES,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
    list_operations,
    sort_bindings,
)
from kdeclare.providers.kafka.acl.names import NameProblem, check_host, check_name, check_principal
from kdeclare.providers.kafka.commands.options import GuardOptions

Texts = list[str] | None
PatternType = Literal["literal", "prefixed", "match", "any"]
_ALL_OPERATIONS = tuple(dict.fromkeys(o for type_ in RESOURCE_TYPES for o in list_operations(type_)))


class Resource(NamedTuple):
    """A resource that an option names."""

    resource_type: str
    name: str


@dataclass(frozen=True, slots=True)
class AclResourceOptions:
    """The options of kafka-acls that name resources."""

    topic: Annotated[Texts, typer.Option(metavar="NAME", help="A topic, or '*'. Repeatable.")] = None
    group: Annotated[Texts, typer.Option(metavar="ID", help="A group, or '*'. Repeatable.")] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="The cluster itself.")] = False
    transactional_id: Annotated[
        Texts, typer.Option(metavar="ID", help="A transactional id, or '*'. Repeatable.")
    ] = None
    delegation_token: Annotated[
        Texts, typer.Option(metavar="ID", help="A delegation token, or '*'. Repeatable.")
    ] = None
    user_principal: Annotated[
        Texts,
        typer.Option(
            metavar="PRINCIPAL", help="A user whose delegation tokens the ACL applies to. Repeatable."
        ),
    ] = None

    def list_resources(self) -> list[Resource]:
        """Return the resources in the order of their types."""
        named = {
            TOPIC: self.topic,
            GROUP: self.group,
            CLUSTER: [CLUSTER_NAME] if self.cluster else [],
            TRANSACTIONAL_ID: self.transactional_id,
            DELEGATION_TOKEN: self.delegation_token,
            USER: self.user_principal,
        }
        return [Resource(type_, name) for type_, names in named.items() for name in names or ()]


@dataclass(frozen=True, slots=True)
class AclPatternOptions:
    """The option of kafka-acls for the pattern type."""

    resource_pattern_type: Annotated[
        PatternType,
        typer.Option(
            metavar="TYPE",
            help="Pattern type of resource names: literal (default) or prefixed. To select existing ACLs, "
            "you can also use 'match' (every pattern that matches the name) or 'any'.",
        ),
    ] = "literal"


@dataclass(frozen=True, slots=True)
class AclGrantOptions:
    """The options of kafka-acls for principals, hosts and operations."""

    allow_principal: Annotated[
        Texts, typer.Option(metavar="TYPE:NAME", help="A principal to allow. Repeatable.")
    ] = None
    deny_principal: Annotated[
        Texts, typer.Option(metavar="TYPE:NAME", help="A principal to deny. Repeatable.")
    ] = None
    allow_host: Annotated[
        Texts,
        typer.Option(
            metavar="IP", help="A host from which the principals are allowed access (default: all)."
        ),
    ] = None
    deny_host: Annotated[
        Texts,
        typer.Option(metavar="IP", help="A host from which the principals are denied access (default: all)."),
    ] = None
    operation: Annotated[
        Texts, typer.Option(metavar="NAME", help="An operation, such as Read (default: All). Repeatable.")
    ] = None
    producer: Annotated[
        bool,
        typer.Option("--producer", help="The ACLs of a producer: Write, Describe and Create on the topics."),
    ] = False
    consumer: Annotated[
        bool,
        typer.Option(
            "--consumer",
            help="The ACLs of a consumer: Read and Describe on the topics, and Read on the groups.",
        ),
    ] = False
    idempotent: Annotated[
        bool, typer.Option("--idempotent", help="With --producer: also IdempotentWrite on the cluster.")
    ] = False

    @property
    def has_principals(self) -> bool:
        """Whether the options name a principal."""
        return bool(self.allow_principal or self.deny_principal)

    def build_bindings(self, resources: Sequence[Resource], pattern: PatternType) -> tuple[Binding, ...]:
        """Return all bindings that the options describe. Raises BadParameter."""
        self.check_hosts()
        rights = list(self._list_rights(resources))
        grants = [
            (permission, principal, host)
            for permission, principals, hosts in (
                (ALLOW, self.allow_principal, self.allow_host),
                (DENY, self.deny_principal, self.deny_host),
            )
            for principal in principals or ()
            for host in hosts or [ANY_HOST]
        ]
        return sort_bindings(
            Binding(
                resource.resource_type,
                resource.name,
                LITERAL if resource.resource_type == CLUSTER else pattern,
                principal,
                host,
                operation,
                permission,
            )
            for resource, operation in rights
            for permission, principal, host in grants
        )

    def check_hosts(self) -> None:
        """Raise BadParameter if the options name a host but no principal.

        kafka-acls ignores such a host (AclCommand.getAcl).
        """
        for permission, principals, hosts in (
            ("allow", self.allow_principal, self.allow_host),
            ("deny", self.deny_principal, self.deny_host),
        ):
            if hosts and not principals:
                raise typer.BadParameter(
                    f"--{permission}-host has no effect without --{permission}-principal.",
                    param_hint=f"--{permission}-host",
                )

    def _list_rights(self, resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
        if self.idempotent and not self.producer:
            raise typer.BadParameter(
                "--idempotent is only available with --producer.", param_hint="--idempotent"
            )
        if self.producer or self.consumer:
            if self.deny_principal or self.operation:
                raise typer.BadParameter(
                    "--producer and --consumer cannot be combined with --deny-principal or --operation.",
                    param_hint="--producer",
                )
            self._check_role_resources({resource.resource_type for resource in resources})
            yield from self._list_role_rights(resources)
            return
        operations = [parse_operation(text) for text in self.operation or [ALL]]
        for resource in resources:
            for operation in operations:
                _check_applies(resource, operation)
                yield resource, operation

    def _check_role_resources(self, resource_types: Set[str]) -> None:
        """Raise BadParameter for a role without the resources that the role requires, as kafka-acls does."""
        if self.producer and TOPIC not in resource_types:
            raise typer.BadParameter("--producer needs at least one --topic.", param_hint="--producer")
        if self.consumer and not {TOPIC, GROUP} <= resource_types:
            raise typer.BadParameter(
                "--consumer needs at least one --topic and one --group.", param_hint="--consumer"
            )

    def _list_role_rights(self, resources: Sequence[Resource]) -> Iterator[tuple[Resource, str]]:
        operations_by_type: dict[str, list[str]] = {}
        if self.producer:
            operations_by_type[TOPIC] = ["WRITE", "DESCRIBE", "CREATE"]
            operations_by_type[TRANSACTIONAL_ID] = ["WRITE", "DESCRIBE"]
        if self.consumer:
            operations_by_type[TOPIC] = [*operations_by_type.get(TOPIC, ()), "READ", "DESCRIBE"]
            operations_by_type[GROUP] = ["READ"]
        for resource in resources:
            if resource.resource_type not in operations_by_type:
                raise typer.BadParameter(
                    f"--producer and --consumer do not apply to a {resource.resource_type}.",
                    param_hint="--producer",
                )
            yield from ((resource, operation) for operation in operations_by_type[resource.resource_type])
        if self.idempotent:
            yield Resource(CLUSTER, CLUSTER_NAME), "IDEMPOTENT_WRITE"


@dataclass(frozen=True, slots=True)
class AclGuardOptions(GuardOptions):
    """The guard options of all ad hoc commands, and the option that disables the lock-out guard."""

    allow_acl_lockout: Annotated[
        bool,
        typer.Option(
            "--allow-acl-lockout",
            help="Change ACLs even if kdeclare loses, or may lose, its own permissions to change or read "
            "ACLs.",
        ),
    ] = False

    def chosen(self) -> ChosenOptions:
        """Return the provider options that the user passed, by name."""
        return {**self.choices, **({"allow_acl_lockout": True} if self.allow_acl_lockout else {})}


def parse_operation(text: str) -> str:
    """Parse the name of an operation, as in Kafka's tools (``DescribeConfigs``) or in manifests."""
    by_folded = {operation.replace("_", "").lower(): operation for operation in _ALL_OPERATIONS}
    operation = by_folded.get(text.replace("_", "").lower())
    if operation is None:
        suggestion = format_suggestion(text, [o.replace("_", "").title() for o in _ALL_OPERATIONS])
        raise typer.BadParameter(f"'{text}' is not an operation. {suggestion}", param_hint="--operation")
    return operation


def check_principals(option: str, principals: Iterable[str] | None) -> None:
    """Raise BadParameter for principals that no ACL can have."""
    for principal in principals or ():
        _refuse(option, principal, check_principal(principal))


def check_access_request(principal: str, host: str | None, resource: Resource, operation: str) -> None:
    """Raise BadParameter for an access request that no client can send."""
    check_principals("--principal", [principal])
    if host is not None:
        _refuse("--host", host, check_host(host))
    _check_applies(resource, operation)


def _check_applies(resource: Resource, operation: str) -> None:
    allowed = list_operations(resource.resource_type)
    if operation not in allowed:
        raise typer.BadParameter(
            f"{operation} does not apply to a {resource.resource_type}; use {format_alternatives(allowed)}.",
            param_hint="--operation",
        )


def check_bindings(bindings: Iterable[Binding]) -> None:
    """Raise BadParameter for bindings that brokers accept but that never match anything."""
    for binding in bindings:
        _refuse("--allow-principal", binding.principal, check_principal(binding.principal))
        _refuse("--allow-host", binding.host, check_host(binding.host))
        problem = check_name(binding.resource_type, binding.name, binding.pattern)
        _refuse(f"--{binding.resource_type}", binding.name, problem)


def _refuse(option: str, text: str, problem: NameProblem | None) -> None:
    if problem is not None and problem.is_certain:
        raise typer.BadParameter(f"'{text}' {problem.reason}. {problem.hint}", param_hint=option)


def select_bindings(
    live: Iterable[Binding],
    resources: Sequence[Resource],
    pattern: PatternType,
    principals: Sequence[str] = (),
) -> tuple[Binding, ...]:
    """Return the live bindings on these resources or, if no resource is named, on all resources."""
    return sort_bindings(
        binding
        for binding in live
        if (not principals or binding.principal in principals)
        and (not resources or any(_is_selected(binding, resource, pattern) for resource in resources))
    )


def _is_selected(binding: Binding, resource: Resource, pattern: PatternType) -> bool:
    if pattern == "match":
        return is_about(binding, *resource)
    is_named = (binding.resource_type, binding.name) == resource
    if resource.resource_type == CLUSTER or pattern == "any":
        return is_named
    return is_named and binding.pattern == (PREFIXED if pattern == PREFIXED else LITERAL)
