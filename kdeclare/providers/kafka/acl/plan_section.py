"""The section of a plan that shows which principals gain and lose which rights."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.provider.provider import PlanSection, SectionLine
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.acl.binding import (
    ANY_HOST,
    ANY_NAME,
    CLUSTER,
    DELEGATION_TOKEN,
    GROUP,
    LITERAL,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
)
from kdeclare.providers.kafka.acl.operations import AclArgs, CreateAcls, DeleteAcls, list_bindings

_MAX_LINES = 50
_NOUNS = {
    TOPIC: ("topic", "topics"),
    GROUP: ("group", "groups"),
    TRANSACTIONAL_ID: ("transactional id", "transactional ids"),
    DELEGATION_TOKEN: ("delegation token", "delegation tokens"),
    USER: ("tokens of", "tokens of users"),
}


class _Effect(NamedTuple):
    """Bindings that differ only in their operation and are changed in the same way."""

    principal: str
    verb: str
    resource: str
    host: str
    role: str


def build_access_section(operations: Iterable[Operation]) -> PlanSection | None:
    """Describe the rights that each principal gains or loses. Return None if no operation changes ACLs.

    The section describes the changed bindings. Other bindings can still allow or deny the same operations.
    """
    effects: dict[_Effect, list[str]] = {}
    for op in operations:
        for binding, effect in _list_effects(op):
            effects.setdefault(effect, []).append(binding.operation)
    if not effects:
        return None
    texts = [_format_effect(effect, effects[effect]) for effect in sorted(effects)]
    lines = [SectionLine(text) for text in texts[:_MAX_LINES]]
    if len(texts) > _MAX_LINES:
        more_text = f"… and {format_count(len(texts) - _MAX_LINES, 'more line')}"
        lines.append(SectionLine(more_text, is_secondary=True))
    return PlanSection("Access", tuple(lines), is_for_reviews=True)


def _list_effects(op: Operation) -> Iterator[tuple[Binding, _Effect]]:
    if not isinstance(get_operation_type(op), CreateAcls | DeleteAcls):
        return
    creates, roles = isinstance(get_operation_type(op), CreateAcls), get_arguments(op, AclArgs).roles
    for binding in list_bindings(op):
        if binding.is_allow:
            verb = "gains" if creates else "loses"
        else:
            verb = "is denied" if creates else "is no longer denied"
        role = roles.get(str(binding), "")
        yield binding, _Effect(binding.principal, verb, format_resource(binding), binding.host, role)


def format_resource(binding: Binding) -> str:
    """Describe the resource of a binding, for example as ``topics payments.*``."""
    if binding.resource_type == CLUSTER:
        return "the cluster"
    one, many = _NOUNS[binding.resource_type]
    if binding.pattern != LITERAL:
        return f"{many} {binding.name}*"
    return f"all {many}" if binding.name == ANY_NAME else f"{one} {binding.name}"


def _format_effect(effect: _Effect, operations: Iterable[str]) -> str:
    host = "" if effect.host == ANY_HOST else f" from {effect.host}"
    role = f" ({effect.role})" if effect.role else ""
    names = ", ".join(sorted(operations))
    return f"{effect.principal} {effect.verb} {names} on {effect.resource}{host}{role}"
