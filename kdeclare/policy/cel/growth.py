"""How large the values of a CEL expression can get: its evaluator counts steps, and not bytes.

Sizes are counted in texts as long as a topic's name. They are estimates from above, by its text alone.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kdeclare.policy.cel.source import Loop, Token, brackets, is_text, loops, tokens

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
