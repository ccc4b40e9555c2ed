"""How long the regular expressions of a rule may take: its evaluator counts steps, and a match is one.

Costs are in microseconds of an ordinary machine, from above: the evaluator compiles an expression for every
match, so what counts is how large it is once its counted repetitions are written out.
"""

import re
from collections.abc import Callable, Iterable
from math import prod

from kdeclare.policy.cel.source import Token, is_text, loops, matches, tokens

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
