"""Shell completion for ``kdeclare acl``: principals, hosts, operations and names of resources."""

from collections.abc import Callable, Iterable, Mapping

from kdeclare.cli.interactive.candidates import CompletionRule, CompletionValue, make_plain_rule
from kdeclare.cli.interactive.grammar import CursorContext
from kdeclare.cli.interactive.names import Names
from kdeclare.core.parts import Connections
from kdeclare.providers.kafka.acl.binding import (
    ANY_HOST,
    ANY_PRINCIPAL,
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    RESOURCE_TYPES,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
    list_operations,
)
from kdeclare.providers.kafka.acl.collector import read_acls
from kdeclare.providers.kafka.client_quota.entity import EntityType
from kdeclare.providers.kafka.commands.clients.client_completion import list_clients

_RESOURCE_OPTIONS = {
    "topic": TOPIC,
    "group": GROUP,
    "cluster": CLUSTER,
    "transactional_id": TRANSACTIONAL_ID,
    "delegation_token": DELEGATION_TOKEN,
    "user_principal": USER,
}
"""For each option that names resources, the type of these resources."""

_Lister = Callable[[CursorContext, Names], Iterable[CompletionValue]]


def _read_bindings(names: Names) -> frozenset[Binding]:
    def read(connections: Connections) -> frozenset[Binding]:
        return frozenset(read_acls(connections).bindings)

    nothing: frozenset[Binding] = frozenset()
    return names.ask("acls", read, nothing)


def _skip_used(place: CursorContext, values: Mapping[str, str]) -> Iterable[CompletionValue]:
    used = place.given.get(place.wanted.name, ()) if place.wanted else ()
    return (CompletionValue(text, about) for text, about in values.items() if text not in used)


def _list_principals(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    """Return the principals that have ACLs, and the users that have quotas or SCRAM credentials."""
    values = dict.fromkeys(sorted({b.principal for b in _read_bindings(names)}), "")
    for user in list_clients(EntityType.USER, names):
        values.setdefault(f"User:{user}", "no ACL")
    values.setdefault(ANY_PRINCIPAL, "all principals")
    return _skip_used(place, values)


def _list_hosts(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    hosts = sorted({b.host for b in _read_bindings(names)} - {ANY_HOST})
    return _skip_used(place, dict.fromkeys(hosts, ""))


def _list_operations(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
    """Return the operations that the types of the named resources support.

    Without resources, return all operations.
    """
    types = [type_ for option, type_ in _RESOURCE_OPTIONS.items() if option in place.given]
    operations = dict.fromkeys(o for type_ in types or RESOURCE_TYPES for o in list_operations(type_))
    common = [o for o in operations if all(o in list_operations(type_) for type_ in types)]
    return _skip_used(place, {_format_operation(o): "" for o in common})


def _format_operation(operation: str) -> str:
    """Return the name of an operation in Kafka's tools, such as ``DescribeConfigs``."""
    return operation.title().replace("_", "")


def _make_lister(resource_type: str, list_live: Callable[[Names], Iterable[str]]) -> _Lister:
    """Return a function that suggests the names of live resources, and the names that occur in ACLs."""

    def list_names(place: CursorContext, names: Names) -> Iterable[CompletionValue]:
        values = dict.fromkeys(sorted(list_live(names)), "")
        for name in sorted({b.name for b in _read_bindings(names) if b.resource_type == resource_type}):
            values.setdefault(name, "in an ACL")
        return _skip_used(place, values)

    return list_names


def _list_nothing(names: Names) -> Iterable[str]:
    return ()


def make_acl_rules(list_groups: Callable[[Names], Iterable[str]]) -> Mapping[str, CompletionRule]:
    """Return the completion rules by option. list_groups: returns the ids of the live groups."""
    principals, hosts = make_plain_rule(_list_principals), make_plain_rule(_list_hosts)
    return {
        "--principal": principals,
        "--allow-principal": principals,
        "--deny-principal": principals,
        "--user-principal": principals,
        "--host": hosts,
        "--allow-host": hosts,
        "--deny-host": hosts,
        "--operation": make_plain_rule(_list_operations),
        "--topic": make_plain_rule(_make_lister(TOPIC, lambda names: names.live("Topic"))),
        "--group": make_plain_rule(_make_lister(GROUP, list_groups)),
        "--transactional-id": make_plain_rule(_make_lister(TRANSACTIONAL_ID, _list_nothing)),
        "--delegation-token": make_plain_rule(_make_lister(DELEGATION_TOKEN, _list_nothing)),
    }
