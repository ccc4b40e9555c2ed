"""What is checked of a rule before it is used: how long it may take, and texts that it looks for in vain."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

from kdeclare.core.resources.policy_subjects import PolicyAction, is_text_map
from kdeclare.core.suggest import closest, did_you_mean
from kdeclare.policy.cel.errors import RuleProblem
from kdeclare.policy.cel.source import Loop, Token, brackets, closed, is_text, loops, matches, tokens
from kdeclare.policy.cel.vocabulary import Vocabulary

MAX_GROWTH = 50_000
"""How many times over an expression may hold what it looks at."""

_MANY = 1_000  # stands for the elements of a list that nobody has counted
_STEPS = 10_000  # after so many, evaluation ends
_NAME = 100  # characters
_EACH_LOOP = 5  # in a loop, values are made again and again, which takes its time
_CLOSING = (")", "]", "}")


class _Held(NamedTuple):
    """A variable's values over all rounds of its loop, and how many rounds that are."""

    size: float
    rounds: int


class _Grows(Exception):
    def __init__(self, loop: Token) -> None:
        self.loop = loop


def growing(source: str) -> Token | None:
    """A loop of an expression whose values could grow beyond all bounds; None if it has none.

    In a loop that uses its variable twice, ``.map(x, x + x)``, what comes out is twice as large as what
    went in: of thirty such loops one after another no memory is large enough.
    """
    pieces = tokens(source)
    try:
        _Measure(pieces).size(0, len(pieces), {}, 1, 0)
    except _Grows as grows:
        return grows.loop
    return None


class _Measure:
    """Measures the pieces of one expression."""

    def __init__(self, pieces: Sequence[Token]) -> None:
        self._pieces = pieces
        self._loops = {loop.at: loop for loop in loops(pieces)}
        self._closes = dict(brackets(pieces))
        self._opens = {end: begin for begin, end in self._closes.items()}

    def size(self, begin: int, end: int, held: Mapping[str, _Held], rounds: int, depth: int) -> float:
        """The size of all that stands between two pieces, evaluated so many times. Raises _Grows."""
        sizes: list[float] = [0.0] * (end - begin)
        at = begin
        while at < end:
            loop = self._loops.get(at)
            if loop is None or loop.end > end:
                sizes[at - begin] = self._alone(at, held, rounds)
                at += 1
                continue
            first = max(self._receiver(at), begin)
            receiver = sum(sizes[first - begin : at - begin])
            made = self._of_loop(loop, first, receiver, held, rounds, depth)
            sizes[first - begin : at - begin] = [0.0] * (at - first)
            sizes[at - begin] = made
            at = loop.end + 1
        return sum(sizes)

    def _alone(self, at: int, held: Mapping[str, _Held], rounds: int) -> float:
        token = self._pieces[at]
        if is_text(token):
            return rounds * len(token.text) / _NAME
        if not (token.text[0].isalpha() or token.text[0] == "_") or self._after_a_dot(at):
            return 0
        known = held.get(token.text)
        return known.size * rounds / known.rounds if known else rounds

    def _of_loop(
        self, loop: Loop, first: int, receiver: float, held: Mapping[str, _Held], rounds: int, depth: int
    ) -> float:
        """The size of what a loop comes to: of map and filter a list, of the others true or false."""
        makes = loop.token.text == "map"
        inner = min(rounds * self._count(first, loop.at), max(_STEPS, rounds)) if makes else rounds
        variable = {loop.variable: _Held(receiver, inner)}
        size = self.size(loop.begin, loop.end, {**held, **variable}, inner, depth if makes else depth + 1)
        size = max(size, receiver)
        if size > MAX_GROWTH / _EACH_LOOP ** min(depth, 2):
            raise _Grows(loop.token)
        return size if makes else receiver if loop.token.text == "filter" else 0

    def _receiver(self, at: int) -> int:
        """Where that begins whose elements the loop named at ``at`` looks at."""
        first = at
        while first > 0 and self._pieces[first - 1].text == ".":
            first -= 2
            while first > 0 and self._pieces[first].text in _CLOSING:
                first = self._opens[first]
                before = self._pieces[first - 1].text
                if first > 0 and (before in _CLOSING or (before[-1].isalnum() and before != "in")):
                    first -= 1
        return max(first, 0)

    def _count(self, first: int, at: int) -> int:
        """How many elements the receiver has: a list that stands there, or what loops make of one."""
        if self._pieces[first].text != "[":
            return _MANY
        end = self._closes[first]
        after, chain = end + 1, True
        while after < at - 1 and chain:
            chain = self._pieces[after].text == "." and after + 1 in self._loops
            after = self._loops[after + 1].end + 1 if chain else after
        if not chain:
            return _MANY
        commas, place = 0, first + 1
        while place < end:
            commas += self._pieces[place].text == ","
            place = self._closes.get(place, place) + 1
        return commas + 1

    def _after_a_dot(self, at: int) -> bool:
        return at > 0 and self._pieces[at - 1].text == "."


MAX_COST = 5_000_000
"""Of all matches of a rule about one topic, loops being as long as their steps are counted."""

_MOST = 200_000  # RE2 takes none that are larger
_MATCH = 40
_ROUNDS = (50, 1_000, 10_000)  # outside of loops, in one, in several; many topics are asked about
_OTHER_CASE = 3  # (?i)
_PIECE = re.compile(
    r"""\\[pP](?:\{[^}]*\}|.) | \[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\] | \{(\d+)(?:,(\d*))?\} | \\. | .""",
    re.VERBOSE | re.DOTALL,
)
_UNICODE = re.compile(r"\\[pP]")
_FLAG = re.compile(r"\(\?[a-zA-Z]*i")


def slow_match(source: str, value: Callable[[str], str]) -> Token | None:
    """The dearest ``matches`` of a rule whose matches could take too long together; None if they cannot.

    value: what a literal text stands for.
    """
    pieces = tokens(source)
    bodies = [(loop.begin, loop.end) for loop in loops(pieces)]
    costs: list[tuple[int, Token]] = []
    unknown: int | None = None
    for at, pattern in matches(pieces):
        depth = sum(begin <= at < end for begin, end in bodies)
        if pattern is None and unknown is None:
            texts = [value(token.text) for token in pieces if is_text(token)]
            unknown = _of_any(texts, joined=any(token.text == "+" for token in pieces))
        size = (unknown or 0) if pattern is None else cost(value(pattern.text))
        costs.append(((_MATCH + size) * _ROUNDS[min(depth, 2)], pattern or pieces[at]))
    if sum(each for each, _ in costs) <= MAX_COST:
        return None
    return max(costs, key=lambda item: item[0])[1]


def cost(pattern: str) -> int:
    """Of compiling a regular expression."""
    sums, last = [0], [0]  # by group: what is done with, and the last piece, which may be repeated
    for match in _PIECE.finditer(pattern):
        text = match[0]
        if text == "(":
            sums.append(0)
            last.append(0)
        elif text == ")" and len(sums) > 1:
            inside = sums.pop() + last.pop()
            sums[-1] += last[-1]
            last[-1] = inside + 1
        elif match[1]:
            last[-1] *= _times(match)
        elif text not in "*+?|":
            sums[-1] += last[-1]
            last[-1] = _of_piece(text)
    found = sum(sums) + sum(last)
    return min(found * (_OTHER_CASE if _FLAG.search(pattern) else 1), _MOST)


def _of_any(texts: Iterable[str], *, joined: bool) -> int:
    """Of whatever can be put together of some texts."""
    texts = list(texts)
    repeats = (match for text in texts for match in _PIECE.finditer(text) if match[1] and joined)
    counts = map(_times, repeats)
    return min(sum(map(cost, texts)) * min(prod(counts), _MOST), _MOST)


def _of_piece(text: str) -> int:
    classes = 1_400 * len(_UNICODE.findall(text))
    return classes or (10 if len(text) > 1 else 6 if text == "." else 1)


def _times(match: re.Match[str]) -> int:
    return max(int(match[1][:9]), int((match[2] or "0")[:9]), 1)


_EQUAL = ("==", "!=")


def impossible(source: str, value: Callable[[str], str], vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    """Texts that ``action`` or the elements of ``changed`` are held against and cannot be.

    value: what a literal text stands for.
    """
    pieces = [*_paired(tokens(source)), *[Token("", len(source))] * 2]
    variables = {loop.variable for loop in loops(pieces)}
    if "action" not in variables:
        for token in _held_against("action", pieces, 0, len(pieces)):
            yield from _no_action(value(token.text), token)
    if "changed" not in variables:
        for token in _looked_for(pieces):
            yield from _no_field(value(token.text), token, vocabulary)


def _paired(pieces: Sequence[Token]) -> Iterator[Token]:
    """With ``==`` and ``!=`` as one piece each."""
    skip = False
    for token, after in zip(pieces, [*pieces[1:], Token("", 0)], strict=True):
        if not skip:
            skip = token.text in "=!" and after.text == "="
            yield Token(token.text + "=", token.offset) if skip else token
        else:
            skip = False


def _held_against(name: str, pieces: Sequence[Token], begin: int, end: int) -> Iterator[Token]:
    """``name == 'a'``, ``'a' == name``, ``name in ['a', 'b']``, each as it stands alone."""
    for at in range(begin, end):
        before = pieces[at - 1].text if at else ""
        if pieces[at].text != name or before == ".":
            continue
        after = pieces[at + 1].text
        if after in _EQUAL and _alone(pieces, at + 2):
            yield pieces[at + 2]
        elif before in _EQUAL and after not in (".", "+", "[") and _alone(pieces, at - 2):
            yield pieces[at - 2]
        elif after == "in" and pieces[at + 2].text == "[":
            inside = range(at + 3, closed(pieces, at + 2))
            yield from (pieces[n] for n in inside if _alone(pieces, n))


def _looked_for(pieces: Sequence[Token]) -> Iterator[Token]:
    """``'a' in changed``, and what the elements are held against in a loop over it."""
    for at, token in enumerate(pieces):
        if token.text != "changed" or (at and pieces[at - 1].text == "."):
            continue
        follows = pieces[at + 1].text
        if at > 1 and pieces[at - 1].text == "in" and follows not in (".", "[") and _alone(pieces, at - 2):
            yield pieces[at - 2]
    for loop in loops(pieces):
        over = [token.text for token in pieces[max(loop.at - 3, 0) : loop.at]]
        if over[-2:] == ["changed", "."] and over[0] != ".":
            yield from _held_against(loop.variable, pieces, loop.begin, loop.end)


def _alone(pieces: Sequence[Token], at: int) -> bool:
    """Whether a text stands there and nothing is made of it."""
    if at < 0 or not pieces[at].text or not is_text(pieces[at]):
        return False
    return pieces[at + 1].text not in ("+", ".", "[") and (not at or pieces[at - 1].text != "+")


def _no_action(text: str, token: Token) -> Iterator[RuleProblem]:
    known = [str(action) for action in PolicyAction]
    if text not in known:
        hint = did_you_mean(text, known) or f"It is {', '.join(known[:-1])} or {known[-1]}."
        yield RuleProblem(f"'action' is never '{text}'.", hint, token.offset)


def _no_field(text: str, token: Token, vocabulary: Vocabulary) -> Iterator[RuleProblem]:
    words = vocabulary.words
    if words.has_field(text):
        return
    maps = [name for name, known in words.fields.items() if is_text_map(known)]
    whole = [name for name in words.fields if name not in maps]
    keyed = [name for name in maps if text in (words.fields[name].keys or dict)()]
    near = f"{keyed[0]}.{text}" if keyed else closest(text, whole)
    if near is None:
        hint = f"It has {', '.join(whole)} and {' and '.join(f'{name}.<key>' for name in maps)}."
        hint = hint if whole and maps else f"It has {', '.join(whole) or ' and '.join(maps)}."
    else:
        hint = f"Did you mean '{near}'?"
    yield RuleProblem(f"'{text}' is never in 'changed'.", hint, token.offset)
