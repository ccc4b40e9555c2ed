"""The views of `kdeclare acl list` and `kdeclare acl explain`. The JSON output has their structure."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.providers.kafka.acl.authorization import (
    AccessDecision,
    AccessReason,
    AccessRequest,
    decide_on_resource,
    is_about,
)
from kdeclare.providers.kafka.acl.binding import ANY_HOST, Binding
from kdeclare.report.elements.values import format_count, sanitize_for_terminal

_OTHER_HOST = "(another host)"
_SOURCE_NOTES = {
    "plan": "This is the result after the plan has been applied.",
    "manifests": "Only the ACLs that the manifests declare were evaluated.",
}
"""The notes that are shown if the evaluated bindings are not the bindings of the live cluster."""


@dataclass(frozen=True, slots=True)
class BindingView:
    """One binding."""

    schema_name = "BindingDocument"

    resource_type: str
    name: str
    pattern: str
    principal: str
    host: str
    operation: str
    permission: str
    text: Annotated[str, Field(description="The binding as text, as in plan files and in the state.")]


@dataclass(frozen=True, slots=True)
class AclListView:
    """The bindings of a cluster, sorted by resource."""

    schema_name = "AclListDocument"

    bindings: tuple[BindingView, ...]


@dataclass(frozen=True, slots=True)
class HostDecision:
    """The decision for one host. host: an address, or null for all hosts that no binding names."""

    schema_name = "HostDecisionDocument"

    host: str | None
    allowed: bool
    reason: AccessReason
    binding: Annotated[
        BindingView | None,
        Field(description="The binding that determines the result; null if there is none."),
    ]


@dataclass(frozen=True, slots=True)
class AccessView:
    """Whether a principal is allowed to perform an operation, and the reason.

    decisions: the decision for the requested host. Without a host, the first decision is for all hosts that
        no binding names, and one decision follows for each named host whose result differs from the first.
    """

    schema_name = "AccessDocument"

    principal: str
    operation: str
    resource_type: str
    name: str
    source: Annotated[str, Field(description="What was evaluated: cluster, plan or manifests.")]
    decisions: tuple[HostDecision, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether the operation is allowed from the requested host or, without one, from all hosts."""
        return all(decision.allowed for decision in self.decisions)


def build_binding_view(binding: Binding) -> BindingView:
    """Return the view of a binding, including its text format."""
    return BindingView(*binding, str(binding))


def explain_access(
    bindings: Iterable[Binding],
    request: AccessRequest,
    host: str | None,
    source: str,
    *,
    allow_if_no_acl: bool,
) -> AccessView:
    """Return the decisions about a request. host: None for all hosts."""
    on_resource = sorted(b for b in bindings if is_about(b, request.resource_type, request.name))

    def decide(at: str) -> AccessDecision:
        asked = AccessRequest(request.principal, request.operation, request.resource_type, request.name, at)
        return decide_on_resource(on_resource, asked, allow_if_no_acl=allow_if_no_acl)

    if host is not None:
        decisions = [_build_decision(host, decide(host))]
    else:
        general = decide(_OTHER_HOST)
        named = sorted({b.host for b in on_resource} - {ANY_HOST})
        different = [(at, d) for at in named if (d := decide(at)).is_allowed is not general.is_allowed]
        decisions = [_build_decision(None, general), *(_build_decision(at, d) for at, d in different)]
    return AccessView(
        request.principal,
        request.operation,
        request.resource_type,
        request.name,
        source,
        tuple(decisions),
    )


def _build_decision(host: str | None, decision: AccessDecision) -> HostDecision:
    binding = None if decision.binding is None else build_binding_view(decision.binding)
    return HostDecision(host, decision.is_allowed, decision.reason, binding)


def render_access(view: AccessView) -> str:
    """Render the decisions as text."""
    lines = []
    for decision in view.decisions:
        verb = "may" if decision.allowed else "may not"
        where = f" from {decision.host}" if decision.host is not None else ""
        reason = (
            f"{decision.reason.value}: {decision.binding.text}" if decision.binding else decision.reason.value
        )
        if decision.reason is AccessReason.NO_ACL:
            reason += ", so allow.everyone.if.no.acl.found decides"
        lines.append(
            f"{view.principal} {verb} {view.operation} {view.resource_type} {view.name}{where}: {reason}."
        )
    if view.source in _SOURCE_NOTES:
        lines.append(_SOURCE_NOTES[view.source])
    lines.append("Super users are allowed to do everything, regardless of the ACLs.")
    return "".join(f"{sanitize_for_terminal(line)}\n" for line in lines)


def render_bindings(view: AclListView) -> str:
    """Render bindings as text, with a heading for each resource."""
    lines: list[str] = []
    shown = ""
    for binding in view.bindings:
        head, _, text = _split(binding)
        if head != shown:
            lines.append(head)
            shown = head
        lines.append(f"  {text}")
    lines.append(format_count(len(view.bindings), "ACL"))
    return "".join(f"{sanitize_for_terminal(line)}\n" for line in lines)


def _split(binding: BindingView) -> tuple[str, str, str]:
    full = Binding(
        binding.resource_type,
        binding.name,
        binding.pattern,
        binding.principal,
        binding.host,
        binding.operation,
        binding.permission,
    )
    return full.resource, ":", full.element


def build_acl_list(bindings: Sequence[Binding]) -> AclListView:
    """Return the view of bindings."""
    return AclListView(tuple(map(build_binding_view, bindings)))
