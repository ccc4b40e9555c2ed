"""Kind `Policy`: rules without code, in manifests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, Field

from kdeclare.core.diagnostics import error
from kdeclare.core.kind import NAME, Desired, Problem
from kdeclare.core.patterns import RE2_HINT, is_pattern
from kdeclare.core.plan import VerdictOutcome
from kdeclare.manifests.policies import AppliesTo, reserved
from kdeclare.policy.cel.bindings import Bindings, Wants
from kdeclare.policy.configured import EVERY_ACTION, ConfiguredPolicy
from kdeclare.policy.interface import Action
from kdeclare.policy.selector import EVERYTHING, Selector, wrong_patterns

if TYPE_CHECKING:
    from kdeclare.policy.cel.errors import RuleProblem
    from kdeclare.policy.cel.together import Together

_SHOWN = 200
_NOT_THERE = {"pre": Action.CREATE, "post": Action.DELETE}


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
    actions: frozenset[Action] = EVERY_ACTION
    topics: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class PolicyKind:
    """Reads Policy manifests, and makes policies of them.

    The policies of one instance share what they read of a request.
    """

    name = "Policy"
    spec: type[BaseModel] = PolicySpec

    def __init__(self) -> None:
        self._bindings = Bindings()
        self._together: Together | None = None

    def parse(self, name: str, spec: PolicySpec) -> tuple[PolicyBody, tuple[Problem, ...]]:
        """The body of a spec, and what is wrong with it; offline."""
        body = PolicyBody(
            rule=str(spec.rule),
            message=spec.message or f"The rule is not met: {_shown(spec.rule)}",
            outcome=VerdictOutcome(spec.severity),
            actions=frozenset(map(Action, spec.actions)),
            topics=tuple(spec.selector.topics or ()),
            labels=spec.selector.labels,
        )
        return body, tuple(_problems(name, body))

    def configured(self, desired: Desired) -> ConfiguredPolicy:
        """The policy of a manifest. Raises RuleError or ValueError where `parse` found errors in it."""
        from kdeclare.policy.cel.rule import CelPolicy, compile_rule  # as `_problems` does
        from kdeclare.policy.cel.together import Together

        body: PolicyBody = desired.body
        selector = Selector(body.topics, body.labels) if body.topics or body.labels else EVERYTHING
        if self._together is None:
            self._together = Together(self._bindings)
        return ConfiguredPolicy(
            desired.id.name,
            CelPolicy(compile_rule(body.rule), body.message, self._bindings, desired.source),
            body.outcome,
            body.actions,
            selector,
            desired.source,
            bounded=True,
            group=self._together,
        )


def _problems(name: str, body: PolicyBody) -> Iterator[Problem]:
    wrong_name = reserved(name)
    if wrong_name is not None:
        yield Problem(NAME, wrong_name)
    for index, reason in wrong_patterns(body.topics):
        detail = f"'{body.topics[index]}' is no regular expression: {reason}."
        hint = RE2_HINT if is_pattern(body.topics[index]) else f"Write /{body.topics[index] or '.*'}/."
        yield Problem(
            ("selector", "topics", index), error("bad-pattern", "No regular expression", detail, hint=hint)
        )
    from kdeclare.policy.cel.rule import RuleError, compile_rule  # only who has rules waits for it

    try:
        wants = compile_rule(body.rule).wants
    except RuleError as wrong:
        yield from map(_in_rule, wrong.problems)
    else:
        yield from _never_there(wants, body.actions)


def _in_rule(problem: "RuleProblem") -> Problem:
    said = error("invalid-rule", "Rule cannot be used", problem.detail, hint=problem.hint)
    return Problem(("rule",), said, problem.offset)


def _never_there(wants: Wants, actions: frozenset[Action]) -> Iterator[Problem]:
    """What is asked of a state that is null for some of the actions, where nothing looks whether it is."""
    if "action" in wants.names:
        return
    looked_into = {name.partition(".")[0] for name in wants.names if "." in name}
    open_sides = [
        side
        for side, action in _NOT_THERE.items()
        if action in actions and side in looked_into and side not in wants.names
    ]
    if not open_sides:
        return
    missing = " and ".join(f"'{side}' is null on {_NOT_THERE[side]}" for side in open_sides)
    left = [action for action in Action if action in actions - {_NOT_THERE[side] for side in open_sides}]
    if not left and len(actions) == 1:  # the guard would always be true
        other = "pre" if "post" in open_sides else "post"
        hint = f"Write '{other}', which is the topic as it {'is' if other == 'pre' else 'will be'}."
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
