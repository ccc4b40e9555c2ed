"""Find the lines that two texts have in common, quickly enough for long texts.

Short texts are compared as `difflib` does. In long texts, lines that occur once in both texts are matched
first, as in a patience diff. The blocks of lines between these lines are then compared like separate texts.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

_MAX_LINES = 300
"""The maximum number of lines of texts that are compared with `difflib`.

The run time of `difflib` is at least proportional to the square of the number of lines.
"""


def match_lines(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Match equal lines of two texts, and return the pairs of their indexes in ascending order.

    If no line of a long text is unique, only lines at the same distance from the start or the end match.
    """
    pairs: list[tuple[int, int]] = []
    pending = [(0, len(first), 0, len(second))]
    while pending:
        start, end, other_start, other_end = pending.pop()
        while start < end and other_start < other_end and first[start] == second[other_start]:
            pairs.append((start, other_start))
            start, other_start = start + 1, other_start + 1
        while start < end and other_start < other_end and first[end - 1] == second[other_end - 1]:
            end, other_end = end - 1, other_end - 1
            pairs.append((end, other_end))
        block, other = first[start:end], second[other_start:other_end]
        if not block or not other:
            continue
        if len(block) + len(other) <= 2 * _MAX_LINES:
            pairs += ((start + i, other_start + j) for i, j in _match_short(block, other))
            continue
        anchors = [(start + i, other_start + j) for i, j in _match_unique(block, other)]
        if not anchors:
            pairs += (
                (start + i, other_start + i)
                for i, (line, counterpart) in enumerate(zip(block, other, strict=False))
                if line == counterpart
            )
            continue
        for index, other_index in [*anchors, (end, other_end)]:
            pending.append((start, index, other_start, other_index))
            start, other_start = index, other_index
        # Each block after the first starts with its anchor, which is equal in both texts.
    return sorted(pairs)


def _match_short(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[int, int]]:
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        yield from ((block.a + offset, block.b + offset) for offset in range(block.size))


def _match_unique(first: Sequence[str], second: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest ascending sequence of index pairs of lines that occur once in each text."""
    counts, other_counts = Counter(first), Counter(second)
    places = {line: index for index, line in enumerate(second) if other_counts[line] == 1}
    candidates = [
        (index, places[line]) for index, line in enumerate(first) if counts[line] == 1 and line in places
    ]
    lowest_ends: list[int] = []  # for each length, the lowest end of a sequence of this length
    chosen: list[int] = []
    previous: list[int | None] = []
    for number, (_, place) in enumerate(candidates):
        length = bisect_left(lowest_ends, place)
        lowest_ends[length : length + 1] = [place]
        chosen[length : length + 1] = [number]
        previous.append(chosen[length - 1] if length else None)
    sequence: list[tuple[int, int]] = []
    last = chosen[-1] if chosen else None
    while last is not None:
        sequence.append(candidates[last])
        last = previous[last]
    return sequence[::-1]
