"""Compare two schemas line by line, for reports that show them side by side."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from kdeclare.core.line_diff import DiffLine, DiffRow, LineChange, LineDiff
from kdeclare.providers.schema_registry.client.port import SchemaContent
from kdeclare.providers.schema_registry.schemas.comparison import parse_schema
from kdeclare.providers.schema_registry.schemas.layout import format_layout
from kdeclare.providers.schema_registry.schemas.line_matching import match_lines
from kdeclare.providers.schema_registry.schemas.problems import SchemaError

_MIN_SIMILARITY = 0.7
_NAME = re.compile(r'"name": "[^"]*"|^ *"[^"]*":|\w+(?= = -?[0-9]+\b)')
"""Matches the name of a field, property or Protobuf enum value in a line of a formatted schema."""
_MAX_PAIRS = 2_500
"""The maximum number of pairs of an old and a new line whose similarity is computed.

If two blocks have more pairs, their lines are matched only by the names that they contain.
"""
_MAX_COMPARED = 400
"""The number of characters of each line that are compared. The rest of a longer line is ignored."""


def diff_schema_texts(before: SchemaContent | None, after: SchemaContent | None) -> LineDiff:
    """Format two schemas in a common layout, and compare them line by line. None means no schema.

    A text that is not a valid schema is compared as written.
    """
    return diff_lines(_list_lines(before), _list_lines(after))


def diff_lines(first: Sequence[str], second: Sequence[str]) -> LineDiff:
    """Compare the lines of two schemas that are formatted in a common layout."""
    old_lines = [DiffLine(number, text) for number, text in enumerate(first, 1)]
    new_lines = [DiffLine(number, text) for number, text in enumerate(second, 1)]
    rows: list[DiffRow] = []
    old_start = new_start = 0
    for old_index, new_index in (*match_lines(first, second), (len(first), len(second))):
        rows += _pair_lines(old_lines[old_start:old_index], new_lines[new_start:new_index])
        if old_index < len(first):
            rows.append(DiffRow(LineChange.EQUAL, old_lines[old_index], new_lines[new_index]))
        old_start, new_start = old_index + 1, new_index + 1
    return LineDiff(tuple(rows))


def _list_lines(content: SchemaContent | None) -> tuple[str, ...]:
    if content is None:
        return ()
    try:
        return format_layout(parse_schema(content))
    except SchemaError:
        return tuple(content.text.splitlines())


def _pair_lines(before: Sequence[DiffLine], after: Sequence[DiffLine]) -> Iterator[DiffRow]:
    """Yield rows that show two differing blocks of lines side by side. Similar lines share a row."""
    is_small = len(before) * len(after) <= _MAX_PAIRS
    pairs = _align_similar_lines(before, after) if is_small else _align_names(before, after)
    old_start = new_start = 0
    for old_index, new_index in (*pairs, (len(before), len(after))):
        yield from (DiffRow(LineChange.REMOVED, old) for old in before[old_start:old_index])
        yield from (DiffRow(LineChange.ADDED, None, new) for new in after[new_start:new_index])
        if old_index < len(before):
            old, new = before[old_index], after[new_index]
            yield DiffRow(LineChange.EQUAL if old.text == new.text else LineChange.CHANGED, old, new)
        old_start, new_start = old_index + 1, new_index + 1


def _align_names(before: Sequence[DiffLine], after: Sequence[DiffLine]) -> list[tuple[int, int]]:
    """Match lines that contain the same name, and return the pairs of their indexes.

    This is much faster than computing the similarity of all pairs of lines.
    """
    first, second = ([_find_name(line.text) or line.text for line in lines] for lines in (before, after))
    return match_lines(first, second)


def _find_name(line: str) -> str | None:
    match = _NAME.search(line)
    return match[0] if match else None


def _align_similar_lines(before: Sequence[DiffLine], after: Sequence[DiffLine]) -> list[tuple[int, int]]:
    """Match similar lines so that the sum of their similarities is as high as possible.

    Return the pairs of line indexes in ascending order.
    """
    # of the lines from these indexes to the end
    sums = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            similarity = _measure_similarity(before[i].text, after[j].text)
            paired = sums[i + 1][j + 1] + similarity if similarity else 0.0
            sums[i][j] = max(paired, sums[i + 1][j], sums[i][j + 1])
    pairs: list[tuple[int, int]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        if sums[i][j] == sums[i + 1][j]:
            i += 1
        elif sums[i][j] == sums[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


@lru_cache(maxsize=_MAX_PAIRS)
def _measure_similarity(first: str, second: str) -> float:
    """Return the similarity of two lines; 0 if the lines are not similar enough to share a row.

    Lines about the same field, property or value are more similar than any other lines.
    """
    name = _find_name(first)
    if name is not None and name == _find_name(second):
        return 2.0
    first, second = first.strip()[:_MAX_COMPARED], second.strip()[:_MAX_COMPARED]
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.real_quick_ratio() < _MIN_SIMILARITY or matcher.quick_ratio() < _MIN_SIMILARITY:
        return 0.0
    ratio = matcher.ratio()
    return ratio if ratio >= _MIN_SIMILARITY else 0.0
