"""Compile and evaluate CEL rules. Rules for the same request share a cache and are evaluated together."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from time import perf_counter
from typing import Any, get_args, get_origin

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import explain_invalid_pattern
from kdeclare.core.policies.policy_request import PolicyRequest, PolicyViolation
from kdeclare.manifests.policies import TOPIC
from kdeclare.policy.cel.cel_library import load_cel
from kdeclare.policy.cel.checks import check_impossible_texts, find_slow_match, find_unbounded_loop
from kdeclare.policy.cel.errors import (
    STATE,
    RuleProblem,
    build_result_type_problem,
    build_rule_problems,
    explain_failure,
)
from kdeclare.policy.cel.source import find_keys, find_matches, tokenize
from kdeclare.policy.cel.vocabulary import NO_STATE, Vocabulary, get_vocabulary


@dataclass(frozen=True, slots=True)
class RuleInputs:
    """The variables that a rule uses.

    names: the names of the variables. The name of a state's field contains a dot, such as
        ``post.partitions``.
    keys: the literal keys that the rule looks up in each mapping, by the name of the mapping. Mappings that
        the rule also uses in other ways are omitted.
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Bindings:
    """A cache of the values of variables, for all rules that are evaluated for the same request.

    Each value is read from the request only once, except a mapping from which a rule reads only some keys.
    """

    def __init__(self) -> None:
        self._last: tuple[PolicyRequest | None, dict[str, object]] = (None, {})

    def of(self, request: PolicyRequest, wants: RuleInputs) -> dict[str, object]:
        """Return the values of the variables in ``wants``, by name.

        If a state is null, its fields are omitted. Exceptions that occur while values are read are not
        caught.
        """
        last, known = self._last
        if last is not request:
            known = {}
            self._last = (request, known)
        values: dict[str, object] = {}
        readers, converters = wants.vocabulary.readers, wants.vocabulary.converters
        for name in wants.names:
            if name in known:
                value = known[name]
            else:
                value = readers[name](request)
                if name in wants.keys and isinstance(value, Mapping) and type(value) is not dict:
                    # read only the keys that the rule needs, because other keys can be unavailable
                    values[name] = {key: str(value[key]) for key in wants.keys[name] if key in value}
                    continue
                if name in converters and value is not NO_STATE and value is not None:
                    value = converters[name](value)
                known[name] = value
            if value is not NO_STATE:
                values[name] = value
        return values

    def forget(self) -> None:
        """Discard the values of the last request."""
        self._last = (None, {})


MAX_LENGTH = 4_096
"""The maximum length of a rule in characters."""
SLOW_S, MAX_SLOW_S = 0.5, 5.0
"""The limits on the evaluation time of a policy, in seconds.

An evaluation is slow if it takes longer than SLOW_S. If the slow evaluations of a policy together take longer
than MAX_SLOW_S, the policy is no longer evaluated, and its remaining requests are denied. The limits are
high, so that a busy machine does not cause denials.
"""


_WRAPPERS = {
    str: "google.protobuf.StringValue",
    bool: "google.protobuf.BoolValue",
    int: "google.protobuf.Int64Value",
    float: "google.protobuf.DoubleValue",
}
"""The CEL types of scalars that can be null, by Python type."""


class RuleError(Exception):
    """Raised if an expression is not a valid rule.

    problems: the problems in the expression.
    """

    def __init__(self, *problems: RuleProblem) -> None:
        self.problems = problems
        super().__init__(" ".join(p.detail for p in problems))


class RuleEvaluationError(PolicyViolation):
    """Raised if a rule cannot be evaluated for a request. The request is denied."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A compiled rule.

    source: the expression as written in the manifest.
    inputs: the variables that the rule uses.
    expression: the compiled expression.
    """

    source: str
    inputs: RuleInputs
    expression: Any = field(repr=False, compare=False)


class CelPolicy:
    """A policy that denies a request if its CEL rule is false or cannot be evaluated."""

    def __init__(
        self, rule: CelRule, message: str, bindings: Bindings, rule_position: SourcePosition | None = None
    ) -> None:
        """Create the policy.

        message: the message of a violation.
        bindings: the cache that all rules for the same requests share.
        rule_position: the position of the rule in its file.
        """
        self.rule = rule
        self._message = message
        self._bindings = bindings
        self._rule_position = rule_position
        self._slow_s = 0.0

    def validate(self, request: PolicyRequest) -> None:
        """See `TopicActionsPolicy.validate`."""
        if self._slow_s > MAX_SLOW_S:
            raise RuleEvaluationError(
                explain_failure(
                    "Too slow", self.rule.source, self.rule.inputs.vocabulary, self._rule_position
                )
            )
        values = self._bindings.of(request, self.rule.inputs)
        started = perf_counter()
        try:
            result = self.rule.expression.eval(data=values).value()
        except Exception as evaluation_error:  # noqa: BLE001  if the evaluation fails, the request is denied
            result = str(evaluation_error)
        elapsed_s = perf_counter() - started
        self._slow_s += elapsed_s if elapsed_s > SLOW_S else 0.0
        if result is True:
            return
        if result is False:
            raise PolicyViolation(self._message)
        raise RuleEvaluationError(
            explain_failure(str(result), self.rule.source, self.rule.inputs.vocabulary, self._rule_position)
        )

    def close(self) -> None:
        """See `TopicActionsPolicy.close`."""
        self._bindings.forget()


def compile_rule(source: str, kind: str = TOPIC) -> CelRule:
    """Compile a rule for resources of a kind.

    Raises RuleError if the rule is not valid, LookupError if policies do not support the kind, and
    KdeclareError ``extra-missing`` if the CEL library is not installed.
    """
    vocabulary = get_vocabulary(kind)
    if not source.strip():
        raise RuleError(RuleProblem("The rule is empty."))
    if len(source) > MAX_LENGTH:
        detail = f"The rule has {len(source):,} characters, but the maximum is {MAX_LENGTH:,}."
        raise RuleError(
            RuleProblem(
                detail, "Split the rule into several policies. A request must comply with all of them."
            )
        )
    try:
        checked = _make_checker(vocabulary).compile(source)
    except (RuntimeError, TypeError, ValueError) as compile_error:  # TypeError, ValueError: invalid Unicode
        raise RuleError(*build_rule_problems(str(compile_error), source, vocabulary)) from None
    result = checked.return_type().name()
    problems = (
        list(_check_beyond_types(source, vocabulary))
        if result == "BOOL"
        else [build_result_type_problem(result)]
    )
    if problems:
        raise RuleError(*problems)
    inputs = RuleInputs(
        vocabulary, tuple(_find_variables(source, vocabulary)), _find_literal_keys(source, vocabulary)
    )
    return CelRule(source, inputs, _make_runner(vocabulary).deserialize(checked.serialize()))


def join_rules(rules: Sequence[CelRule]) -> tuple[RuleInputs, Any] | None:
    """Join the rules into one expression, which is true if all rules are true.

    Return the variables that the joined expression uses, and the compiled expression. Return None if the
    expression cannot be compiled, for example because it is too long. The joined expression reads all keys of
    a mapping, even if the rules use only some of the keys.
    """
    source = " && ".join(f"({rule.source}\n)" for rule in rules)  # a rule may end in a comment
    vocabulary = rules[0].inputs.vocabulary  # all rules that are evaluated together are for the same kind
    try:
        checked = _make_checker(vocabulary).compile(source)
    except RuntimeError:  # too long, or nested too deeply
        return None
    names = dict.fromkeys(name for rule in rules for name in rule.inputs.names)
    return RuleInputs(vocabulary, tuple(names)), _make_runner(vocabulary).deserialize(checked.serialize())


def _check_beyond_types(source: str, vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    loop = find_unbounded_loop(source)
    if loop is not None:
        detail = "The loops of this rule could create values that do not fit into memory."
        yield RuleProblem(detail, "Use each loop variable only once.", loop.offset)
    has_bad_pattern = False
    for _, literal in find_matches(tokenize(source)):
        reason = explain_invalid_pattern(_evaluate_literal(literal.text)) if literal is not None else None
        if literal is not None and reason is not None:
            has_bad_pattern = True
            detail = f"This is not a valid regular expression: {reason}."
            hint = "Use RE2 syntax, which has no look-around and no back-references."
            yield RuleProblem(detail, hint, literal.offset)
    slow_token = None if has_bad_pattern else find_slow_match(source, _evaluate_literal)
    if slow_token is not None:
        detail = "The regular expressions of this rule could take too long to evaluate."
        hint = (
            "Shorten the expressions, use smaller repetition counts {n}, or call matches() outside of loops."
        )
        yield RuleProblem(detail, hint, slow_token.offset)
    yield from check_impossible_texts(source, _evaluate_literal, vocabulary)


def _find_variables(source: str, vocabulary: Vocabulary) -> Iterator[str]:
    """Yield the names of the variables that an expression uses.

    The function detects a variable by compiling the expression without the variable.
    """
    for name in vocabulary.readers:
        is_present = all(part in source for part in name.split("."))
        if is_present and not _can_compile_without(name, source, vocabulary):
            yield name


def _can_compile_without(name: str, source: str, vocabulary: Vocabulary) -> bool:
    try:
        _make_checker(vocabulary, name).compile(source)
    except RuntimeError:
        return False
    return True


def _find_literal_keys(source: str, vocabulary: Vocabulary) -> dict[str, frozenset[str]]:
    keys_by_map = {name: find_keys(source, name, vocabulary.sides) for name in vocabulary.text_maps}
    return {
        name: frozenset(
            _evaluate_literal(token.text) if token.text[-1] in "'\"" else token.text for token in keys
        )
        for name, keys in keys_by_map.items()
        if keys
    }


def _evaluate_literal(literal: str) -> str:
    """Return the value of a CEL string literal."""
    value: str = _make_plain_runner().compile(literal).eval(data={}).value()
    return value


@cache
def _make_checker(vocabulary: Vocabulary, excluded_name: str = "") -> Any:
    """Return a CEL environment for checking the types of expressions.

    excluded_name: a variable to leave undefined in the environment.
    """
    cel = load_cel()
    types = {name: _get_cel_type(known, cel.Type) for name, known in vocabulary.types.items()}
    types["principal"] = cel.Type("google.protobuf.StringValue")  # a string or null
    types |= {n: cel.Type(w) for n in vocabulary.nullable if (w := _WRAPPERS.get(vocabulary.types[n]))}
    types |= {side: cel.Type.AbstractType(f"{STATE}{side}") for side in vocabulary.sides}
    types.pop(excluded_name, None)
    return cel.NewEnv(variables=types)


@cache
def _make_runner(vocabulary: Vocabulary) -> Any:
    """Return a CEL environment for evaluating expressions.

    Variables that can be null have the type ``dyn``, because CEL accepts null only for this type.
    """
    cel = load_cel()
    types = {name: _get_cel_type(known, cel.Type) for name, known in vocabulary.types.items()}
    nullable = ("principal", *vocabulary.sides, *vocabulary.nullable)
    return cel.NewEnv(variables=types | dict.fromkeys(nullable, cel.Type.DYN))


@cache
def _make_plain_runner() -> Any:
    return load_cel().NewEnv(variables={})


def _get_cel_type(python_type: type, cel_type: Any) -> Any:
    """Return the CEL type for a Python type."""
    arguments = [_get_cel_type(argument, cel_type) for argument in get_args(python_type)]
    if get_origin(python_type) is dict:
        return cel_type.Map(*arguments)
    if get_origin(python_type) is list:
        return cel_type.List(*arguments)
    scalar_types = {int: cel_type.INT, float: cel_type.DOUBLE, str: cel_type.STRING, bool: cel_type.BOOL}
    return scalar_types.get(python_type, cel_type.DYN)


class RuleGroup:
    """The rules that one `PolicyKind` instance has created. They are evaluated together."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._joined_rules: dict[tuple[CelPolicy, ...], tuple[RuleInputs, Any] | None] = {}

    def passes(self, policies: Sequence[CelPolicy], request: PolicyRequest) -> bool:
        """Return whether all these policies allow the request.

        To find the policies that deny the request, evaluate each policy separately. Exceptions that occur
        while values are read are not caught.
        """
        key = tuple(policies)
        if key not in self._joined_rules:
            self._joined_rules[key] = join_rules([policy.rule for policy in key])
        joined = self._joined_rules[key]
        if joined is None:
            return False
        wants, expression = joined
        values = self._bindings.of(request, wants)
        started = perf_counter()
        try:
            passed = expression.eval(data=values).value() is True
        except Exception:  # noqa: BLE001  reported when each rule is evaluated separately
            passed = False
        if perf_counter() - started > SLOW_S:
            self._joined_rules[key] = None  # evaluate the rules separately from now on, to find the slow rule
        return passed
