"""Kind `Policy`: rules without code, in manifests."""

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen import dataclass
from kdeclare.core.patterns import RE2_HINT, is_pattern
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.resources.kind import NAME, Desired, Problem, narrow
from kdeclare.core.resources.policy_subjects import PolicyAction, noun_of
from kdeclare.manifests.policies import TOPIC, AppliesTo, reserved
from kdeclare.policy.cel.rule import Bindings, Wants
from kdeclare.policy.configured import EVERY_ACTION, ConfiguredPolicy, find_wrong_kind, select, wrong_patterns

if TYPE_CHECKING:
    from kdeclare.policy.cel.errors import RuleProblem
    from kdeclare.policy.cel.rule import Together

_SHOWN = 200


class PolicySpec(AppliesTo):
    """``spec`` of a Policy manifest.

    rule: in CEL; false is a violation. message: what is said then, by default the rule itself.
    """

    rule: Annotated[str, Field(min_length=1)]
    message: Annotated[str, Field(min_length=1)] | None = None


@dataclass(frozen=True, slots=True)
class PolicyBody:
    """A declared policy; its rule is not compiled, so that it stays plain data."""

    rule: str
    message: str
    outcome: VerdictOutcome = VerdictOutcome.DENY
    actions: frozenset[PolicyAction] = EVERY_ACTION
    topics: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    kind: str = TOPIC
    names: tuple[str, ...] = ()


class PolicyKind:
    """Reads Policy manifests, and makes policies of them.

    The policies of one instance share what they read of a request.
    """

    name = "Policy"
    spec: type[BaseModel] = PolicySpec

    def __init__(self) -> None:
        self._bindings = Bindings()
        self._together: Together | None = None

    def parse(self, name: str, spec: BaseModel) -> tuple[PolicyBody, tuple[Problem, ...]]:
        """The body of a spec, and what is wrong with it; offline."""
        spec = narrow(spec, PolicySpec)
        body = PolicyBody(
            rule=str(spec.rule),
            message=spec.message or f"The rule is not met: {_shown(spec.rule)}",
            outcome=VerdictOutcome(spec.severity),
            actions=frozenset(map(PolicyAction, spec.actions)),
            topics=tuple(spec.selector.topics or ()),
            labels=spec.selector.labels,
            kind=spec.selector.kind,
            names=tuple(spec.selector.names or ()),
        )
        return body, tuple(_problems(name, body))

    def configured(self, desired: Desired) -> ConfiguredPolicy:
        """The policy of a manifest. Raises RuleError, ValueError or LookupError where `parse` has errors."""
        from kdeclare.policy.cel.rule import CelPolicy, Together, compile_rule  # as `_problems` does

        body = desired.get_body(PolicyBody)
        if self._together is None:
            self._together = Together(self._bindings)
        return ConfiguredPolicy(
            desired.id.name,
            CelPolicy(compile_rule(body.rule, body.kind), body.message, self._bindings, desired.source),
            body.outcome,
            body.actions,
            select((*body.topics, *body.names), body.labels, body.kind),
            desired.source,
            bounded=True,
            group=self._together,
        )


def _problems(name: str, body: PolicyBody) -> Iterator[Problem]:
    wrong_name = reserved(name)
    if wrong_name is not None:
        yield Problem(NAME, wrong_name)
    wrong_kind = find_wrong_kind(body.kind, body.topics)
    if wrong_kind is not None:
        yield wrong_kind
        return
    for field_name, names in (("topics", body.topics), ("names", body.names)):
        for index, reason in wrong_patterns(names, body.kind):
            detail = f"'{names[index]}' is no regular expression: {reason}."
            hint = RE2_HINT if is_pattern(names[index]) else f"Write /{names[index] or '.*'}/."
            said = error("bad-pattern", "No regular expression", detail, hint=hint)
            yield Problem(("selector", field_name, index), said)
    from kdeclare.policy.cel.rule import RuleError, compile_rule  # only who has rules waits for it

    try:
        wants = compile_rule(body.rule, body.kind).wants
    except RuleError as wrong:
        yield from map(_in_rule, wrong.problems)
    else:
        yield from _never_there(wants, body.actions)


def _in_rule(problem: "RuleProblem") -> Problem:
    said = error("invalid-rule", "Rule cannot be used", problem.detail, hint=problem.hint)
    return Problem(("rule",), said, problem.offset)


def _never_there(wants: Wants, actions: frozenset[PolicyAction]) -> Iterator[Problem]:
    """What is asked of a state that is null for some of the actions, where nothing looks whether it is."""
    if "action" in wants.names:
        return
    vocabulary = wants.vocabulary
    states = vocabulary.sides.items()
    not_there = {side: PolicyAction.CREATE if before else PolicyAction.DELETE for side, before in states}
    looked_into = {name.partition(".")[0] for name in wants.names if "." in name}
    open_sides = [
        side
        for side, action in not_there.items()
        if action in actions and side in looked_into and side not in wants.names
    ]
    if not open_sides:
        return
    missing = " and ".join(f"'{side}' is null on {not_there[side]}" for side in open_sides)
    always = actions - {not_there[side] for side in open_sides}
    left = [action for action in PolicyAction if action in always]
    if not left and len(actions) == 1:  # the guard would always be true
        after = vocabulary.is_before(open_sides[0])
        other = vocabulary.words.after if after else vocabulary.words.before
        noun = noun_of(vocabulary.kind)
        hint = f"Write '{other}', which is the {noun} as it {'will be' if after else 'is'}."
    else:
        guard = " || ".join(f"{side} == null" for side in open_sides)
        limit = f"Limit it with actions: [{', '.join(left)}], or write" if left else "Write"
        hint = f"{limit} {guard} || …."
    yield Problem(
        ("rule",),
        error(
            "invalid-rule",
            "Rule cannot be used",
            f"The rule looks into a state that is not always there: {missing}.",
            hint=hint,
        ),
    )


def _shown(rule: str) -> str:
    text = " ".join(rule.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
