"""The kind `Policy`: policies that are declared in manifests, as CEL expressions."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import RE2_HINT, is_pattern
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.policies.policy_request import PolicyAction
from kdeclare.core.policies.policy_subjects import format_kind
from kdeclare.core.resources.kind import NAME, DesiredResource, SpecProblem, narrow
from kdeclare.manifests.policies import TOPIC, PolicySpecBase, check_policy_name
from kdeclare.policy.configured_policy import (
    EVERY_ACTION,
    ConfiguredPolicy,
    build_selector,
    check_selector_kind,
    find_bad_patterns,
)

if TYPE_CHECKING:
    from kdeclare.policy.cel.errors import RuleProblem
    from kdeclare.policy.cel.rule import Bindings, RuleGroup, RuleInputs

_MAX_SHOWN = 200


class PolicySpec(PolicySpecBase):
    """The ``spec`` of a Policy manifest.

    rule: a CEL expression that is true if a request is allowed, and false if the request violates the policy.
    message: the message that is shown for a violation (default: the rule).
    """

    rule: Annotated[str, Field(min_length=1)]
    message: Annotated[str, Field(min_length=1)] | None = None


@dataclass(frozen=True, slots=True)
class PolicyBody:
    """A declared policy as plain data. The rule is not compiled yet."""

    rule: str
    message: str
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[PolicyAction] = EVERY_ACTION
    topics: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: str = TOPIC
    names: tuple[str, ...] = ()


class PolicyKind:
    """Reads Policy manifests, and creates policies from them.

    All policies that one instance creates share a cache of the values read from a request.
    """

    name = "Policy"
    spec: type[BaseModel] = PolicySpec

    def __init__(self) -> None:
        self._shared: tuple[Bindings, RuleGroup] | None = None

    def parse(self, name: str, spec: BaseModel) -> tuple[PolicyBody, tuple[SpecProblem, ...]]:
        """Return the body of a spec, and the problems in the spec. No connection is needed."""
        spec = narrow(spec, PolicySpec)
        body = PolicyBody(
            rule=str(spec.rule),
            message=spec.message or f"The rule is violated: {_shorten_rule(spec.rule)}",
            outcome=VerdictOutcome(spec.severity),
            actions=frozenset(map(PolicyAction, spec.actions)),
            topics=tuple(spec.selector.topics or ()),
            labels=spec.selector.labels,
            kind=spec.selector.kind,
            names=tuple(spec.selector.names or ()),
        )
        return body, tuple(_check_policy(name, body))

    def configured(self, desired: DesiredResource) -> ConfiguredPolicy:
        """Return the policy that a manifest declares.

        Raises RuleError, ValueError or LookupError for a manifest with errors (see `parse`).
        """
        from kdeclare.policy.cel.rule import (  # slow, see `_check_policy`
            Bindings,
            CelPolicy,
            RuleGroup,
            compile_rule,
        )

        body = desired.get_body(PolicyBody)
        if self._shared is None:
            bindings = Bindings()
            self._shared = (bindings, RuleGroup(bindings))
        bindings, group = self._shared
        return ConfiguredPolicy(
            desired.id.name,
            CelPolicy(compile_rule(body.rule, body.kind), body.message, bindings, desired.source),
            body.outcome,
            body.actions,
            build_selector((*body.topics, *body.names), body.labels, body.kind),
            desired.source,
            bounded=True,
            group=group,
        )


def _check_policy(name: str, body: PolicyBody) -> Iterator[SpecProblem]:
    wrong_name = check_policy_name(name)
    if wrong_name is not None:
        yield SpecProblem(NAME, wrong_name)
    wrong_kind = check_selector_kind(body.kind, body.topics)
    if wrong_kind is not None:
        yield wrong_kind
        return
    for field_name, names in (("topics", body.topics), ("names", body.names)):
        for index, reason in find_bad_patterns(names, body.kind):
            detail = f"'{names[index]}' is not valid: {reason}."
            hint = RE2_HINT if is_pattern(names[index]) else f"Write /{names[index] or '.*'}/."
            diagnostic = error("bad-pattern", "Invalid name or regular expression", detail, hint=hint)
            yield SpecProblem(("selector", field_name, index), diagnostic)
    from kdeclare.policy.cel.rule import RuleError, compile_rule  # slow: import CEL only for rules

    try:
        inputs = compile_rule(body.rule, body.kind).inputs
    except RuleError as rule_error:
        yield from map(_build_rule_problem, rule_error.problems)
    except KdeclareError as problem:  # without the CEL library, no rule can be checked
        yield from (SpecProblem(("rule",), diagnostic) for diagnostic in problem.diagnostics)
    else:
        yield from _check_null_states(inputs, body.actions)


def _build_rule_problem(problem: "RuleProblem") -> SpecProblem:
    diagnostic = error("invalid-rule", "Invalid rule", problem.detail, hint=problem.hint)
    return SpecProblem(("rule",), diagnostic, problem.offset)


def _check_null_states(inputs: "RuleInputs", actions: frozenset[PolicyAction]) -> Iterator[SpecProblem]:
    """Yield an error if the rule uses a state that can be null, but does not compare the state with null."""
    if "action" in inputs.names:
        return
    vocabulary = inputs.vocabulary
    states = vocabulary.sides.items()
    null_action_by_side = {
        side: PolicyAction.CREATE if before else PolicyAction.DELETE for side, before in states
    }
    sides_read = {name.partition(".")[0] for name in inputs.names if "." in name}
    open_sides = [
        side
        for side, action in null_action_by_side.items()
        if action in actions and side in sides_read and side not in inputs.names
    ]
    if not open_sides:
        return
    missing = " and ".join(f"'{side}' is null on {null_action_by_side[side]}" for side in open_sides)
    other_actions = actions - {null_action_by_side[side] for side in open_sides}
    remaining_actions = [action for action in PolicyAction if action in other_actions]
    if not remaining_actions and len(actions) == 1:  # if the rule checked for null, it would always be true
        is_before_state = vocabulary.is_before(open_sides[0])
        other_side = vocabulary.words.after if is_before_state else vocabulary.words.before
        noun = format_kind(vocabulary.kind)
        time = "after" if is_before_state else "before"
        hint = f"Write '{other_side}', which is the {noun} {time} the change."
    else:
        guard = " || ".join(f"{side} == null" for side in open_sides)
        limit = (
            f"Limit the policy with actions: [{', '.join(remaining_actions)}], or write"
            if remaining_actions
            else "Write"
        )
        hint = f"{limit} {guard} || …."
    yield SpecProblem(
        ("rule",),
        error(
            "invalid-rule",
            "Invalid rule",
            f"The rule does not handle null: {missing}.",
            hint=hint,
        ),
    )


def _shorten_rule(rule: str) -> str:
    text = " ".join(rule.split())
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
