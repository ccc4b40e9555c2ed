"""Rules without code: CEL expressions over a request (github.com/google/cel-spec; Google's own evaluator).

An expression cannot change anything, ends by itself, and is checked against the types of what it speaks of
before it is ever evaluated: a misspelt field is found when the manifest is read.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kdeclare.policy.bindings import Bindings, Wants
from kdeclare.policy.cel_errors import FIELDS, NAMES, RuleProblem, explained, not_a_verdict
from kdeclare.policy.cel_failures import failed
from kdeclare.policy.cel_source import growing, keys_of, patterns
from kdeclare.policy.interface import PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.patterns import why_invalid

_SIDES = ("pre", "post")
_STATE_FIELDS = tuple(f"{side}.{name}" for side in _SIDES for name in FIELDS)


class RuleError(Exception):
    """An expression that is no rule; ``problems`` say why."""

    def __init__(self, *problems: RuleProblem) -> None:
        self.problems = problems
        super().__init__(" ".join(p.detail for p in problems))


class RuleFailed(PolicyViolation):
    """A rule that could not be evaluated for a request: what cannot be judged is denied."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A compiled rule.

    source: its text. wants: what it reads of a request.
    """

    source: str
    wants: Wants
    expression: Any = field(repr=False, compare=False)


class CelPolicy(TopicActionsPolicy):
    """Denies what its rule is false for, and what the rule cannot be evaluated for."""

    def __init__(self, rule: CelRule, message: str, bindings: Bindings) -> None:
        """bindings: shared by the rules that are asked about the same requests."""
        self._wants = rule.wants
        self._source = rule.source
        self._expression = rule.expression
        self._message = message
        self._bindings = bindings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        values = self._bindings.of(request, self._wants)
        try:
            found = self._expression.eval(data=values).value()
        except Exception as problem:  # noqa: BLE001  whatever an evaluator raises, it has not said yes
            found = str(problem)
        if found is True:
            return
        if found is False:
            raise PolicyViolation(self._message)
        raise RuleFailed(failed(str(found), self._source))

    def close(self) -> None:
        """See `TopicActionsPolicy.close`."""
        self._bindings.forget()


def compile_rule(source: str) -> CelRule:
    """Compile a rule. Raises RuleError."""
    if not source.strip():
        raise RuleError(RuleProblem("The rule is empty."))
    try:
        checked = _checker().compile(source)
    except (RuntimeError, TypeError, ValueError) as problem:  # the latter two: no Unicode
        raise RuleError(*explained(str(problem), source)) from None
    kind = checked.return_type().name()
    problems = list(_beyond_types(source)) if kind == "BOOL" else [not_a_verdict(kind)]
    if problems:
        raise RuleError(*problems)
    wants = Wants(tuple(_mentioned(source)), _literal_keys(source))
    return CelRule(source, wants, _runner().deserialize(checked.serialize()))


def _beyond_types(source: str) -> Iterator[RuleProblem]:
    loop = growing(source)
    if loop is not None:
        detail = "The loops of this rule could make values larger than any memory."
        yield RuleProblem(detail, "Use the variable of a loop once in it.", loop.offset)
    for literal in patterns(source):
        reason = why_invalid(_value(literal.text))
        if reason is not None:
            detail = f"This is no regular expression: {reason}."
            hint = "CEL takes RE2's, which have no look-around and no back-references."
            yield RuleProblem(detail, hint, literal.offset)


def _mentioned(source: str) -> Iterator[str]:
    """The variables that an expression speaks of: those without which it does not compile."""
    for name in (*NAMES, *_STATE_FIELDS):
        if name.rpartition(".")[2] in source and not _compiles_without(name, source):
            yield name


def _compiles_without(name: str, source: str) -> bool:
    try:
        _checker(name).compile(source)
    except RuntimeError:
        return False
    return True


def _literal_keys(source: str) -> dict[str, frozenset[str]]:
    found = {name: keys_of(source, name) for name in ("pre.configs", "post.configs")}
    return {
        name: frozenset(_value(token.text) if token.text[-1] in "'\"" else token.text for token in keys)
        for name, keys in found.items()
        if keys
    }


def _value(literal: str) -> str:
    """What a literal text of CEL stands for."""
    value: str = _runner().compile(literal).eval(data={}).value()
    return value


@cache
def _checker(without: str = "") -> Any:
    """Knows the types by which expressions are checked, of all variables or of all but one."""
    from cel_expr_python import cel  # only who needs it waits for it

    kinds = _kinds(cel.Type)
    kinds |= {
        "principal": cel.Type("google.protobuf.StringValue"),  # a text or null
        "pre": cel.Type.AbstractType("StateBefore"),
        "post": cel.Type.AbstractType("StateAfter"),
    }
    kinds.pop(without, None)
    return cel.NewEnv(variables=kinds)


@cache
def _runner() -> Any:
    """Takes values; of what can be null, it does not take the types that the checker knows."""
    from cel_expr_python import cel

    return cel.NewEnv(variables=_kinds(cel.Type) | dict.fromkeys(("principal", *_SIDES), cel.Type.DYN))


def _kinds(kind: Any) -> dict[str, Any]:
    """The types of what is never null. A field of a state is a variable with a dot in its name."""
    fields: Mapping[str, Any] = {
        "partitions": kind.INT,
        "replicationFactor": kind.INT,
        "assignments": kind.Map(kind.INT, kind.List(kind.INT)),
        "configs": kind.Map(kind.STRING, kind.STRING),
    }
    return {
        "action": kind.STRING,
        "topic": kind.STRING,
        "labels": kind.Map(kind.STRING, kind.STRING),
        "changed": kind.List(kind.STRING),
        **{f"{side}.{name}": fields[name] for side in _SIDES for name in FIELDS},
    }
