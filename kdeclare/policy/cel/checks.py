"""Static checks of a CEL rule: its evaluation cost, and comparisons that are never true."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from kdeclare.core.policies.policy_fields import is_text_mapping
from kdeclare.core.policies.policy_request import PolicyAction
from kdeclare.core.suggestions import find_closest, format_suggestion
from kdeclare.policy.cel.errors import RuleProblem
from kdeclare.policy.cel.source import (
    Loop,
    Token,
    find_brackets,
    find_closing,
    find_loops,
    find_matches,
    is_text,
    tokenize,
)
from kdeclare.policy.cel.vocabulary import Vocabulary

MAX_GROWTH = 50_000
"""The maximum size of the values that an expression creates, as a multiple of the size of its input."""

_ASSUMED_ELEMENTS = 1_000  # the assumed length of a list whose length is unknown
_MAX_STEPS = 10_000  # evaluation stops after this many steps
_ASSUMED_NAME_LENGTH = 100  # characters
_LOOP_FACTOR = 5  # makes the limit stricter inside a loop, because values are created in every iteration
_CLOSING = (")", "]", "}")


class _LoopVariable(NamedTuple):
    """The variable of a loop in a CEL expression.

    size: the total size of the variable's values in all iterations of the loop.
    rounds: the number of iterations.
    """

    size: float
    rounds: int


class _UnboundedLoop(Exception):
    def __init__(self, loop: Token) -> None:
        self.loop = loop


def find_unbounded_loop(source: str) -> Token | None:
    """Return a loop whose values could grow without bound, or None if the expression has no such loop.

    For example, ``.map(x, x + x)`` doubles the size of its input. A chain of thirty such loops would need
    more memory than any machine has.
    """
    pieces = tokenize(source)
    try:
        _SizeEstimator(pieces).size(0, len(pieces), {}, 1, 0)
    except _UnboundedLoop as unbounded:
        return unbounded.loop
    return None


class _SizeEstimator:
    """Estimates the sizes of the values that a CEL expression creates."""

    def __init__(self, pieces: Sequence[Token]) -> None:
        self._pieces = pieces
        self._loops = {loop.at: loop for loop in find_loops(pieces)}
        self._closes = dict(find_brackets(pieces))
        self._opens = {end: begin for begin, end in self._closes.items()}

    def size(self, begin: int, end: int, held: Mapping[str, _LoopVariable], rounds: int, depth: int) -> float:
        """Return the total size of the values that a part of the expression creates.

        begin, end: the range of token indexes of this part.
        held: the variables of the enclosing loops, by name.
        rounds: the number of times that this part is evaluated.
        depth: the number of enclosing loops other than ``map``.
        Raises _UnboundedLoop.
        """
        sizes: list[float] = [0.0] * (end - begin)
        at = begin
        while at < end:
            loop = self._loops.get(at)
            if loop is None or loop.end > end:
                sizes[at - begin] = self._compute_token_size(at, held, rounds)
                at += 1
                continue
            first = max(self._find_receiver_start(at), begin)
            receiver = sum(sizes[first - begin : at - begin])
            made = self._compute_loop_size(loop, first, receiver, held, rounds, depth)
            sizes[first - begin : at - begin] = [0.0] * (at - first)
            sizes[at - begin] = made
            at = loop.end + 1
        return sum(sizes)

    def _compute_token_size(self, index: int, variables: Mapping[str, _LoopVariable], rounds: int) -> float:
        token = self._pieces[index]
        if is_text(token):
            return rounds * len(token.text) / _ASSUMED_NAME_LENGTH
        if not (token.text[0].isalpha() or token.text[0] == "_") or self._is_after_dot(index):
            return 0
        loop_variable = variables.get(token.text)
        return loop_variable.size * rounds / loop_variable.rounds if loop_variable else rounds

    def _compute_loop_size(
        self,
        loop: Loop,
        first: int,
        receiver: float,
        outer_variables: Mapping[str, _LoopVariable],
        rounds: int,
        depth: int,
    ) -> float:
        """Return the size of a loop's result.

        The result of ``map`` and ``filter`` is a list. The result of every other loop is a boolean, whose
        size counts as 0.
        """
        is_map = loop.token.text == "map"
        inner_rounds = (
            min(rounds * self._count_elements(first, loop.at), max(_MAX_STEPS, rounds)) if is_map else rounds
        )
        variable = {loop.variable: _LoopVariable(receiver, inner_rounds)}
        size = self.size(
            loop.begin,
            loop.end,
            {**outer_variables, **variable},
            inner_rounds,
            depth if is_map else depth + 1,
        )
        size = max(size, receiver)
        if size > MAX_GROWTH / _LOOP_FACTOR ** min(depth, 2):
            raise _UnboundedLoop(loop.token)
        return size if is_map else receiver if loop.token.text == "filter" else 0

    def _find_receiver_start(self, index: int) -> int:
        """Return the index of the first token of the expression over which a loop iterates.

        index: the index of the loop's name.
        """
        first = index
        while first > 0 and self._pieces[first - 1].text == ".":
            first -= 2
            while first > 0 and self._pieces[first].text in _CLOSING:
                first = self._opens[first]
                previous_text = self._pieces[first - 1].text
                if first > 0 and (
                    previous_text in _CLOSING or (previous_text[-1].isalnum() and previous_text != "in")
                ):
                    first -= 1
        return max(first, 0)

    def _count_elements(self, first: int, index: int) -> int:
        """Return the number of elements over which a loop iterates.

        If the elements do not come from a list literal, return an assumed number.
        """
        if self._pieces[first].text != "[":
            return _ASSUMED_ELEMENTS
        end = self._closes[first]
        next_index, is_chain = end + 1, True
        while next_index < index - 1 and is_chain:
            is_chain = self._pieces[next_index].text == "." and next_index + 1 in self._loops
            next_index = self._loops[next_index + 1].end + 1 if is_chain else next_index
        if not is_chain:
            return _ASSUMED_ELEMENTS
        commas, index_in_list = 0, first + 1
        while index_in_list < end:
            commas += self._pieces[index_in_list].text == ","
            index_in_list = self._closes.get(index_in_list, index_in_list) + 1
        return commas + 1

    def _is_after_dot(self, index: int) -> bool:
        return index > 0 and self._pieces[index - 1].text == "."


MAX_COST = 5_000_000
"""The maximum cost of all calls to ``matches`` in a rule. The unit is arbitrary.

Each call is assumed to be evaluated a fixed number of times, which is larger for calls in loops.
"""

_MAX_PATTERN_COST = 200_000  # RE2 rejects larger patterns
_MATCH_COST = 40
# the assumed number of evaluations of a call: outside loops, in one loop, and in nested loops
_ROUNDS_BY_DEPTH = (50, 1_000, 10_000)
_IGNORE_CASE_FACTOR = 3  # (?i)
_PIECE = re.compile(
    r"""\\[pP](?:\{[^}]*\}|.) | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\] | \{(\d+)(?:,(\d*))?\} | \\. | .""",
    re.VERBOSE | re.DOTALL,
)
_UNICODE = re.compile(r"\\[pP]")
_FLAG = re.compile(r"\(\?[a-zA-Z]*i")


def find_slow_match(source: str, evaluate_literal: Callable[[str], str]) -> Token | None:
    """Return the most expensive call to ``matches`` if the calls in a rule could take too long, else None.

    evaluate_literal: a function that returns the value of a string literal.
    """
    pieces = tokenize(source)
    bodies = [(loop.begin, loop.end) for loop in find_loops(pieces)]
    costs: list[tuple[int, Token]] = []
    unknown_cost: int | None = None
    for index, pattern in find_matches(pieces):
        depth = sum(begin <= index < end for begin, end in bodies)
        if pattern is None and unknown_cost is None:
            texts = [evaluate_literal(token.text) for token in pieces if is_text(token)]
            unknown_cost = _compute_any_cost(texts, joined=any(token.text == "+" for token in pieces))
        size = (
            (unknown_cost or 0) if pattern is None else compute_pattern_cost(evaluate_literal(pattern.text))
        )
        costs.append(((_MATCH_COST + size) * _ROUNDS_BY_DEPTH[min(depth, 2)], pattern or pieces[index]))
    if sum(each for each, _ in costs) <= MAX_COST:
        return None
    return max(costs, key=lambda item: item[0])[1]


def compute_pattern_cost(pattern: str) -> int:
    sums, last_costs = (
        [0],
        [0],
    )  # for each group: the cost so far, and the cost of the last piece, which can be repeated
    for match in _PIECE.finditer(pattern):
        text = match[0]
        if text == "(":
            sums.append(0)
            last_costs.append(0)
        elif text == ")" and len(sums) > 1:
            group_cost = sums.pop() + last_costs.pop()
            sums[-1] += last_costs[-1]
            last_costs[-1] = group_cost + 1
        elif match[1]:
            last_costs[-1] *= _count_repetitions(match)
        elif text not in "*+?|":
            sums[-1] += last_costs[-1]
            last_costs[-1] = _compute_piece_cost(text)
    total = sum(sums) + sum(last_costs)
    return min(total * (_IGNORE_CASE_FACTOR if _FLAG.search(pattern) else 1), _MAX_PATTERN_COST)


def _compute_any_cost(texts: Iterable[str], *, joined: bool) -> int:
    """Return the maximum cost of a regular expression that can be built from these strings.

    joined: whether the rule concatenates strings.
    """
    texts = list(texts)
    repeats = (match for text in texts for match in _PIECE.finditer(text) if match[1] and joined)
    counts = map(_count_repetitions, repeats)
    return min(
        sum(map(compute_pattern_cost, texts)) * min(prod(counts), _MAX_PATTERN_COST), _MAX_PATTERN_COST
    )


def _compute_piece_cost(text: str) -> int:
    classes = 1_400 * len(_UNICODE.findall(text))
    return classes or (10 if len(text) > 1 else 6 if text == "." else 1)


def _count_repetitions(match: re.Match[str]) -> int:
    return max(int(match[1][:9]), int((match[2] or "0")[:9]), 1)


_EQUAL = ("==", "!=")


def check_impossible_texts(
    source: str, evaluate_literal: Callable[[str], str], vocabulary: Vocabulary
) -> Iterator[RuleProblem]:
    """Yield a problem for each string that a rule expects in ``action`` or ``changed`` but that never occurs.

    evaluate_literal: a function that returns the value of a string literal.
    """
    pieces = [*_pair_operators(tokenize(source)), *[Token("", len(source))] * 2]
    variables = {loop.variable for loop in find_loops(pieces)}
    if "action" not in variables:
        for token in _find_compared_texts("action", pieces, 0, len(pieces)):
            yield from _check_action(evaluate_literal(token.text), token)
    if "changed" not in variables:
        for token in _find_searched_texts(pieces):
            yield from _check_changed_field(evaluate_literal(token.text), token, vocabulary)


def _pair_operators(pieces: Sequence[Token]) -> Iterator[Token]:
    """Yield the tokens. Each of ``==`` and ``!=`` becomes one token instead of two."""
    is_paired = False
    for token, next_token in zip(pieces, [*pieces[1:], Token("", 0)], strict=True):
        if not is_paired:
            is_paired = token.text in "=!" and next_token.text == "="
            yield Token(token.text + "=", token.offset) if is_paired else token
        else:
            is_paired = False


def _find_compared_texts(name: str, pieces: Sequence[Token], begin: int, end: int) -> Iterator[Token]:
    """Yield the string literals that an expression compares with a variable.

    name: the name of the variable. Comparisons are ``name == 'a'``, ``'a' == name`` and ``name in ['a',
        'b']``.
    """
    for index in range(begin, end):
        previous_text = pieces[index - 1].text if index else ""
        if pieces[index].text != name or previous_text == ".":
            continue
        next_text = pieces[index + 1].text
        if next_text in _EQUAL and _is_lone_text(pieces, index + 2):
            yield pieces[index + 2]
        elif (
            previous_text in _EQUAL and next_text not in (".", "+", "[") and _is_lone_text(pieces, index - 2)
        ):
            yield pieces[index - 2]
        elif next_text == "in" and pieces[index + 2].text == "[":
            element_indexes = range(index + 3, find_closing(pieces, index + 2))
            yield from (pieces[n] for n in element_indexes if _is_lone_text(pieces, n))


def _find_searched_texts(pieces: Sequence[Token]) -> Iterator[Token]:
    """Yield the string literals that a rule searches for in the list ``changed``.

    A rule can search with ``'a' in changed``, or with a comparison in a loop over ``changed``.
    """
    for index, token in enumerate(pieces):
        if token.text != "changed" or (index and pieces[index - 1].text == "."):
            continue
        next_text = pieces[index + 1].text
        if (
            index > 1
            and pieces[index - 1].text == "in"
            and next_text not in (".", "[")
            and _is_lone_text(pieces, index - 2)
        ):
            yield pieces[index - 2]
    for loop in find_loops(pieces):
        receiver_texts = [token.text for token in pieces[max(loop.at - 3, 0) : loop.at]]
        if receiver_texts[-2:] == ["changed", "."] and receiver_texts[0] != ".":
            yield from _find_compared_texts(loop.variable, pieces, loop.begin, loop.end)


def _is_lone_text(pieces: Sequence[Token], index: int) -> bool:
    """Return whether the token is a string literal that is not part of a larger expression."""
    if index < 0 or not pieces[index].text or not is_text(pieces[index]):
        return False
    return pieces[index + 1].text not in ("+", ".", "[") and (not index or pieces[index - 1].text != "+")


def _check_action(text: str, token: Token) -> Iterator[RuleProblem]:
    known_actions = [str(action) for action in PolicyAction]
    if text not in known_actions:
        hint = (
            format_suggestion(text, known_actions)
            or f"Use {', '.join(known_actions[:-1])} or {known_actions[-1]}."
        )
        yield RuleProblem(f"'action' is never '{text}'.", hint, token.offset)


def _check_changed_field(text: str, token: Token, vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    words = vocabulary.words
    if words.has_field(text):
        return
    maps = [name for name, known in words.fields.items() if is_text_mapping(known)]
    plain_fields = [name for name in words.fields if name not in maps]
    maps_with_key = [name for name in maps if text in (words.fields[name].keys or dict)()]
    suggestion = f"{maps_with_key[0]}.{text}" if maps_with_key else find_closest(text, plain_fields)
    if suggestion is None:
        hint = f"Use {', '.join([*plain_fields, *(f'{name}.<key>' for name in maps)])}."
    else:
        hint = f"Did you mean '{suggestion}'?"
    yield RuleProblem(f"'{text}' is never in 'changed'.", hint, token.offset)
