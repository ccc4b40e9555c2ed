"""A rule in CEL: what its variables stand for in a request, compiling it, and asking many at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from time import perf_counter
from typing import Any, get_args, get_origin

from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.patterns import explain_invalid_pattern
from kdeclare.core.resources.policy_subjects import PolicyRequest, PolicyViolation
from kdeclare.manifests.policies import TOPIC
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
    """What a rule reads: variables by name, a state's fields as ``after.size``.

    keys: of configs that it only looks up by names that stand in it, those names.
    """

    vocabulary: Vocabulary
    names: tuple[str, ...]
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Bindings:
    """The variables of one request after another, for rules that are asked about the same requests in turn:
    what one of them has read, the others need not read again."""

    def __init__(self) -> None:
        self._last: tuple[PolicyRequest | None, dict[str, object]] = (None, {})

    def of(self, request: PolicyRequest, wants: RuleInputs) -> dict[str, object]:
        """What is wanted, by name; fields of a state that is null are left out.

        Raises what reading the request raises.
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
                    # not all of it may be known, and the rule looks at no more than this
                    values[name] = {key: str(value[key]) for key in wants.keys[name] if key in value}
                    continue
                if name in converters and value is not NO_STATE and value is not None:
                    value = converters[name](value)
                known[name] = value
            if value is not NO_STATE:
                values[name] = value
        return values

    def forget(self) -> None:
        """Let go of the last request."""
        self._last = (None, {})


MAX_LENGTH = 4_096
"""Characters of a rule."""
SLOW_S, MAX_SLOW_S = 0.5, 5.0
"""Seconds from which on an evaluation is a slow one, and what all slow ones of a policy may take together;
so much that a machine that is busy with something else is not the rule's fault."""


_WRAPPERS = {
    str: "google.protobuf.StringValue",
    bool: "google.protobuf.BoolValue",
    int: "google.protobuf.Int64Value",
    float: "google.protobuf.DoubleValue",
}
"""What CEL calls the types of scalars that can be null."""


class RuleError(Exception):
    """An expression that is no rule; ``problems`` say why."""

    def __init__(self, *problems: RuleProblem) -> None:
        self.problems = problems
        super().__init__(" ".join(p.detail for p in problems))


class RuleEvaluationError(PolicyViolation):
    """A rule that could not be evaluated for a request: what cannot be judged is denied."""


@dataclass(frozen=True, slots=True)
class CelRule:
    """A compiled rule.

    source: its text. inputs: what it reads of a request.
    """

    source: str
    inputs: RuleInputs
    expression: Any = field(repr=False, compare=False)


class CelPolicy:
    """Denies what its rule is false for, and what the rule cannot be evaluated for."""

    def __init__(
        self, rule: CelRule, message: str, bindings: Bindings, rule_position: SourcePosition | None = None
    ) -> None:
        """bindings: shared by the rules that are asked about the same requests.

        rule_position: where the rule is in its file.
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
        except Exception as evaluation_error:  # noqa: BLE001  whatever an evaluator raises, it has not said yes
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
    """Compile a rule about a kind. Raises RuleError; LookupError where policies cannot judge the kind."""
    vocabulary = get_vocabulary(kind)
    if not source.strip():
        raise RuleError(RuleProblem("The rule is empty."))
    if len(source) > MAX_LENGTH:
        detail = f"The rule has {len(source):,} characters; it may have at most {MAX_LENGTH:,}."
        raise RuleError(RuleProblem(detail, "Write several policies; all of them hold."))
    try:
        checked = _make_checker(vocabulary).compile(source)
    except (RuntimeError, TypeError, ValueError) as compile_error:  # the latter two: no Unicode
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
    """One expression that is true if all of the rules are, and what it reads; None if there is none.

    What only some of them look up by names may be read whole.
    """
    source = " && ".join(f"({rule.source}\n)" for rule in rules)  # a rule may end in a comment
    vocabulary = rules[0].inputs.vocabulary  # a request is about one kind, and so are those who are asked
    try:
        checked = _make_checker(vocabulary).compile(source)
    except RuntimeError:  # too long, or too deep
        return None
    names = dict.fromkeys(name for rule in rules for name in rule.inputs.names)
    return RuleInputs(vocabulary, tuple(names)), _make_runner(vocabulary).deserialize(checked.serialize())


def _check_beyond_types(source: str, vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    loop = find_unbounded_loop(source)
    if loop is not None:
        detail = "The loops of this rule could make values larger than any memory."
        yield RuleProblem(detail, "Use the variable of a loop once in it.", loop.offset)
    has_bad_pattern = False
    for _, literal in find_matches(tokenize(source)):
        reason = explain_invalid_pattern(_evaluate_literal(literal.text)) if literal is not None else None
        if literal is not None and reason is not None:
            has_bad_pattern = True
            detail = f"This is no regular expression: {reason}."
            hint = "CEL takes RE2's, which have no look-around and no back-references."
            yield RuleProblem(detail, hint, literal.offset)
    slow_token = None if has_bad_pattern else find_slow_match(source, _evaluate_literal)
    if slow_token is not None:
        detail = "The regular expressions of this rule could take too long."
        hint = "Write shorter ones, repeat fewer times {n}, or match them outside of loops."
        yield RuleProblem(detail, hint, slow_token.offset)
    yield from check_impossible_texts(source, _evaluate_literal, vocabulary)


def _find_variables(source: str, vocabulary: Vocabulary) -> Iterator[str]:
    """The variables that an expression speaks of: those without which it does not compile."""
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
    """What a literal text of CEL stands for."""
    value: str = _make_plain_runner().compile(literal).eval(data={}).value()
    return value


@cache
def _make_checker(vocabulary: Vocabulary, excluded_name: str = "") -> Any:
    """Knows the types by which expressions are checked, of all variables or of all but one."""
    from cel_expr_python import cel  # only who needs it waits for it

    types = {name: _get_cel_type(known, cel.Type) for name, known in vocabulary.types.items()}
    types["principal"] = cel.Type("google.protobuf.StringValue")  # a text or null
    types |= {n: cel.Type(w) for n in vocabulary.nullable if (w := _WRAPPERS.get(vocabulary.types[n]))}
    types |= {side: cel.Type.AbstractType(f"{STATE}{side}") for side in vocabulary.sides}
    types.pop(excluded_name, None)
    return cel.NewEnv(variables=types)


@cache
def _make_runner(vocabulary: Vocabulary) -> Any:
    """Takes values; of what can be null, it does not take the types that the checker knows."""
    from cel_expr_python import cel

    types = {name: _get_cel_type(known, cel.Type) for name, known in vocabulary.types.items()}
    nullable = ("principal", *vocabulary.sides, *vocabulary.nullable)
    return cel.NewEnv(variables=types | dict.fromkeys(nullable, cel.Type.DYN))


@cache
def _make_plain_runner() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(variables={})


def _get_cel_type(python_type: type, cel_type: Any) -> Any:
    """The type that CEL has for a Python type."""
    arguments = [_get_cel_type(argument, cel_type) for argument in get_args(python_type)]
    if get_origin(python_type) is dict:
        return cel_type.Map(*arguments)
    if get_origin(python_type) is list:
        return cel_type.List(*arguments)
    scalar_types = {int: cel_type.INT, float: cel_type.DOUBLE, str: cel_type.STRING, bool: cel_type.BOOL}
    return scalar_types.get(python_type, cel_type.DYN)


class RuleGroup:
    """The rules that one `PolicyKind` has made."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._joined_rules: dict[tuple[CelPolicy, ...], tuple[RuleInputs, Any] | None] = {}

    def passes(self, policies: Sequence[CelPolicy], request: PolicyRequest) -> bool:
        """Whether none of them has anything against a request; False means that they have to be asked.

        Reads what they would read, each of them being asked. Raises what reading the request raises.
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
        except Exception:  # noqa: BLE001  whoever is asked alone tells what is wrong
            passed = False
        if perf_counter() - started > SLOW_S:
            self._joined_rules[key] = None  # whose fault it is shows when they are asked one by one
        return passed
