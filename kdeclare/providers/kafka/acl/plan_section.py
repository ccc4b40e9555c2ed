"""The section of a plan that shows reviewers which access each principal gains, loses and keeps.

The section covers only changed bindings. Bindings that the plan does not change can still allow or deny the
same operation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import product
from typing import Literal, NamedTuple

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.providers.kafka.acl.authorization import list_sufficient_operations
from kdeclare.providers.kafka.acl.binding import (
    ANY_HOST,
    ANY_NAME,
    ANY_PRINCIPAL,
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    LITERAL,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
    PatternIndex,
)
from kdeclare.providers.kafka.acl.operations import AclArgs, is_acl_creation, is_acl_operation, list_bindings

_MAX_NAMES = 10
"""The maximum number of names on one line. If there are more names, they are listed on several lines."""

_NOUNS = {
    TOPIC: ("topic", "topics"),
    GROUP: ("group", "groups"),
    TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
    DELEGATION_TOKEN: ("delegation token", "delegation tokens"),
    USER: ("tokens of", "tokens of users"),
}


class _Effect(StrEnum):
    """The effects of a plan on a right of a principal, each as the verb of a sentence, in display order."""

    GAINS = "gains"
    NOT_DENIED = "is no longer denied"
    LOSES = "loses"
    DENIED = "is denied"
    KEEPS = "keeps"

    @property
    def sign(self) -> Literal["+", "-", "="]:
        if self is _Effect.KEEPS:
            return "="
        return "+" if self in (_Effect.GAINS, _Effect.NOT_DENIED) else "-"


class _Group(NamedTuple):
    """The properties that bindings must share to be described in the same sentence."""

    principal: str
    effect: _Effect
    resource_type: str
    host: str
    role: str


def build_access_section(operations: Iterable[Operation]) -> PlanSection | None:
    """Describe the rights that each principal gains, loses and keeps; None if the plan changes no bindings.

    If the plan replaces a binding with a broader or narrower binding, the principal keeps the right that both
    bindings grant.
    """
    created: dict[Binding, str] = {}
    deleted: dict[Binding, str] = {}
    for op in operations:
        if is_acl_operation(op):
            changed = created if is_acl_creation(op) else deleted
            roles = get_arguments(op, AclArgs).roles
            changed |= {binding: roles.get(str(binding), "") for binding in list_bindings(op)}
    if not created and not deleted:
        return None
    groups: dict[_Group, dict[tuple[str, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for binding, role, effect in _find_effects(created, deleted):
        group = _Group(binding.principal, effect, binding.resource_type, binding.host, role)
        groups[group][binding.name, binding.pattern].append(binding.operation)
    order = list(_Effect)
    ordered = sorted(groups, key=lambda g: (g.principal, order.index(g.effect), g))
    lines = tuple(line for group in ordered for line in _describe(group, groups[group]))
    return PlanSection("Access", lines, is_for_reviews=True)


def _find_effects(
    created: dict[Binding, str], deleted: dict[Binding, str]
) -> Iterator[tuple[Binding, str, _Effect]]:
    before, after = _GrantIndex(deleted), _GrantIndex(created)
    for binding, role in created.items():
        effect = _Effect.GAINS if binding.is_allow else _Effect.DENIED
        yield binding, role, _Effect.KEEPS if before.allows(binding) else effect
    for binding, role in deleted.items():
        effect = _Effect.LOSES if binding.is_allow else _Effect.NOT_DENIED
        if after.allows(binding):
            yield binding, "", _Effect.KEEPS  # another binding, of any role, allows it
        else:
            yield binding, role, effect


class _GrantIndex:
    """ALLOW bindings, and an index that quickly finds whether one of them covers another binding."""

    def __init__(self, bindings: Iterable[Binding]) -> None:
        grants: dict[tuple[str, str, str], list[Binding]] = defaultdict(list)
        for binding in bindings:
            if binding.is_allow:
                grants[binding.principal, binding.operation, binding.host].append(binding)
        self._patterns = {key: PatternIndex(own) for key, own in grants.items()}

    def allows(self, binding: Binding) -> bool:
        keys = product(
            (binding.principal, ANY_PRINCIPAL),
            list_sufficient_operations(binding.operation),
            (binding.host, ANY_HOST),
        )
        return binding.is_allow and any(
            patterns.covers(binding) for key in keys if (patterns := self._patterns.get(key)) is not None
        )


def _describe(group: _Group, operations_by_name: dict[tuple[str, str], list[str]]) -> Iterator[SectionLine]:
    names_by_operations: dict[tuple[str, ...], list[tuple[str, str]]] = defaultdict(list)
    for name, changed in operations_by_name.items():
        names_by_operations[tuple(sorted(changed))].append(name)
    who = f"every principal ({ANY_PRINCIPAL})" if group.principal == ANY_PRINCIPAL else group.principal
    where = "" if group.host == ANY_HOST else f" from {group.host or '(an empty host)'}"
    role = f" ({group.role})" if group.role else ""
    for operations, names in sorted(names_by_operations.items()):
        for start in range(0, len(names), _MAX_NAMES):
            what = _format_resources(group.resource_type, sorted(names)[start : start + _MAX_NAMES])
            text = f"{who} {group.effect} {', '.join(operations)} on {what}{where}{role}"
            yield SectionLine(text, sign=group.effect.sign)


def format_resource(binding: Binding) -> str:
    """Return the resource of a binding as a phrase: ``topics payments.*``."""
    return _format_resources(binding.resource_type, [(binding.name, binding.pattern)])


def _format_resources(resource_type: str, names: Sequence[tuple[str, str]]) -> str:
    if resource_type == CLUSTER:
        return "the cluster"
    one, many = _NOUNS.get(resource_type, (resource_type, resource_type))
    if names == [(ANY_NAME, LITERAL)]:
        return f"all {many}"
    texts = [_format_name(name, pattern) for name, pattern in names]
    is_single = len(names) == 1 and names[0][1] == LITERAL and names[0][0] != ANY_NAME
    return f"{one if is_single else many} {', '.join(texts)}"


def _format_name(name: str, pattern: str) -> str:
    if pattern != LITERAL:
        return f"{name}*"
    return f"'{name}'" if name.endswith("*") and name != ANY_NAME else name
