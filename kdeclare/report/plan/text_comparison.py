"""Render the old and the new version of a text: side by side for an HTML page, as a diff for Markdown.

The HTML needs no scripts. Long stretches of equal lines are collapsed, and long texts are truncated.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import takewhile

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.line_diff import DiffLine, DiffRow, LineChange
from kdeclare.core.provider.provider import TextComparison
from kdeclare.report.elements.markdown_escape import escape_prose
from kdeclare.report.elements.values import format_count, join_nonempty, sanitize_for_terminal

MAX_PAGE_LENGTH = 400_000
"""The maximum number of characters of all text comparisons on one page.

For rows that do not fit, only their number is shown.
"""
MAX_LINE_LENGTH = 1_000
"""The maximum length of a line on a page. A longer line is truncated to the text around the difference."""

_MIN_LENGTH = 4_000
"""The minimum number of characters that must be left on a page to show another comparison."""
_MAX_COLLAPSED = 300
"""The maximum number of equal lines in one collapsed block. If there are more, only their number is shown."""
_MIN_COLLAPSED = 4
_MAX_OPEN = 3
"""The number of comparisons that are expanded when the page is opened."""
_MAX_MARKDOWN_LINE = 300
_MAX_WORD = 40
_ROW_LENGTH = 60
"""The approximate number of characters of the HTML of a row, not counting its text."""
_TABLE = (
    '<table class="pair"><colgroup><col class="c-n"><col><col class="c-n"><col></colgroup><tbody>\n'
    "{rows}</tbody></table>"
)
_HEAD = '<p class="pair-head"><span>Before</span><span>After</span></p>\n'
_LEFT_OUT = "The JSON output of the plan contains all texts in full."


class ComparisonWriter:
    """Renders the text comparisons on one page, until the page reaches its maximum length."""

    def __init__(self, max_length: int = MAX_PAGE_LENGTH) -> None:
        """Create a writer for a page that contains no comparisons yet."""
        self._page_remaining = max_length
        self._remaining = 0
        self._written = 0

    def render_all(self, comparisons: Sequence[TextComparison]) -> str:
        """Render the comparisons that fit on the page, and the number of omitted comparisons."""
        parts: list[str] = []
        for number, comparison in enumerate(comparisons):
            if self._page_remaining < _MIN_LENGTH:
                left = format_count(len(comparisons) - number, "more comparison")
                note = f"{left} not shown, to limit the size of the page. {_LEFT_OUT}"
                parts.append(f'<p class="dim">{note}</p>\n')
                break
            parts.append(self._render(comparison))
        return "".join(parts)

    def _render(self, comparison: TextComparison) -> str:
        """Render a comparison in at most half of the remaining space, to keep space for other comparisons."""
        length = self._remaining = self._page_remaining // 2
        title = escape(sanitize_for_terminal(comparison.title))
        diff = comparison.compare()
        blocks: list[str] = []
        left_out: list[DiffRow] = []
        for is_far, rows in diff.split():
            if self._remaining <= 0:
                left_out += rows
            elif is_far and len(rows) >= _MIN_COLLAPSED:
                blocks.append(self._render_collapsed(rows))
            else:
                shown = self._take_fitting(rows)
                blocks.append(_render_table(shown))
                left_out += rows[len(shown) :]
        if left_out:
            blocks.append(f'<p class="dim">{_count_left_out(left_out)}. {_LEFT_OUT}</p>')
        text = "".join(f"{block}\n" for block in blocks)
        state = " open" if self._written < _MAX_OPEN else ""
        self._written += 1
        self._page_remaining -= length - self._remaining
        return (
            f'<details class="texts"{state}><summary>{title}: {_count_changes(diff.rows)}</summary>\n'
            f'<div class="texts-box" tabindex="0" role="region" aria-label="{title}, before and after">\n'
            f"{_HEAD}{text}</div></details>\n"
        )

    def _take_fitting(self, rows: Sequence[DiffRow]) -> Sequence[DiffRow]:
        for number, row in enumerate(rows):
            if self._remaining <= 0:
                return rows[:number]
            self._remaining -= _measure_row(row)
        return rows

    def _render_collapsed(self, rows: Sequence[DiffRow]) -> str:
        title = f"{len(rows):,} equal lines"
        length = sum(map(_measure_row, rows))
        if len(rows) > _MAX_COLLAPSED or length > self._remaining:
            return f'<p class="far">{title}</p>'
        self._remaining -= length
        return f'<details class="far"><summary>{title}</summary>{_render_table(rows)}</details>'


def _measure_row(row: DiffRow) -> int:
    texts = (line.text for line in (row.before, row.after) if line is not None)
    return _ROW_LENGTH + sum(min(len(text), MAX_LINE_LENGTH) for text in texts)


def _count_changes(rows: Sequence[DiffRow]) -> str:
    """Return the numbers of lines that are changed, added and removed, as a phrase."""
    counts = Counter(row.change for row in rows)
    parts = [
        f"{counts[change]:,} {change.value}"
        for change in (LineChange.CHANGED, LineChange.ADDED, LineChange.REMOVED)
        if counts[change]
    ]
    total = sum(counts[change] for change in (LineChange.CHANGED, LineChange.ADDED, LineChange.REMOVED))
    return f"{format_count(total, 'line')} ({join_nonempty(parts)})" if parts else "no line differs"


def _count_left_out(rows: Sequence[DiffRow]) -> str:
    different = sum(row.change is not LineChange.EQUAL for row in rows)
    return f"{format_count(len(rows), 'more line')} ({different:,} of them different) not shown"


def _render_table(rows: Sequence[DiffRow]) -> str:
    return _TABLE.format(rows="".join(map(_render_row, rows)))


def _render_row(row: DiffRow) -> str:
    before, after = row.before, row.after
    if row.change is LineChange.CHANGED and before is not None and after is not None:
        start, end = _find_difference(before.text, after.text)
        cells = [
            _render_cell(before, "-", "del", start, end),
            _render_cell(after, "+", "ins", start, end),
        ]
    else:
        signs = ("", "") if row.change is LineChange.EQUAL else ("-", "+")
        cells = [_render_cell(before, signs[0]), _render_cell(after, signs[1])]
    return f'<tr class="{row.change.value}">{"".join(cells)}</tr>\n'


def _find_difference(before: str, after: str) -> tuple[int, int]:
    """Return the lengths of the common prefix and the common suffix of two lines.

    If a word differs only in part, neither the prefix nor the suffix contains a part of the word.
    """
    start = _count_common(before, after)
    end = _count_common(reversed(before[start:]), reversed(after[start:]))
    middles = [text[start : len(text) - end] for text in (before, after)]
    if any(middle[:1].isalnum() for middle in middles):
        start -= _count_word_characters(reversed(before[max(0, start - _MAX_WORD) : start]))
    if any(middle[-1:].isalnum() for middle in middles):
        end -= _count_word_characters(before[len(before) - end :][:_MAX_WORD])
    return start, end


def _count_word_characters(text: Iterable[str]) -> int:
    """Return the number of characters of a word at the start of the text; 0 if the word is very long."""
    count = sum(1 for _ in takewhile(str.isalnum, text))
    return count if count < _MAX_WORD else 0


def _count_common(first: Iterable[str], second: Iterable[str]) -> int:
    """Return the length of the common prefix of two strings."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _render_cell(line: DiffLine | None, sign: str, mark: str = "", start: int = 0, end: int = 0) -> str:
    """Render the number and the text of a line.

    mark: the HTML element that marks the difference. start, end: the lengths of the text before and after the
        difference.
    """
    if line is None:
        return '<td class="n"></td><td class="none"></td>'
    text = line.text
    first, last = _find_window(len(text), start)
    middle = text[max(first, start) : max(first, min(last, len(text) - end))]
    parts = [
        _render_omission(first),
        _escape(text[first:start]),
        f"<{mark}>{_escape(middle)}</{mark}>" if mark and middle else _escape(middle),
        _escape(text[max(start + len(middle), first) : last]),
        _render_omission(len(text) - last),
    ]
    kind = {"-": ' class="old"', "+": ' class="new"'}.get(sign, "")
    shown_sign = f"<i>{sign}</i>" if sign else ""
    return f'<td class="n">{line.number}</td><td{kind}>{shown_sign}{"".join(parts)}</td>'


def _find_window(length: int, start: int) -> tuple[int, int]:
    """Return the range of characters to show: the whole line, or a range that includes the difference."""
    if length <= MAX_LINE_LENGTH:
        return 0, length
    first = max(0, min(start - MAX_LINE_LENGTH // 4, length - MAX_LINE_LENGTH))
    return first, first + MAX_LINE_LENGTH


def _render_omission(count: int) -> str:
    return f'<b class="dim">… {format_count(count, "character")} …</b>' if count else ""


def _escape(text: str) -> str:
    return escape(sanitize_for_terminal(text), quote=False)


@dataclass(frozen=True, slots=True)
class _DiffText:
    """The lines of a diff in Markdown, and the number of lines that do not fit."""

    lines: tuple[str, ...]
    left: int


def render_comparison_markdown(comparison: TextComparison, max_length: int) -> str:
    """Render a comparison as a collapsed diff. If hardly any lines fit, return an empty string."""
    title = escape_prose(comparison.title)
    lines = list(_list_diff_lines(comparison.compare().shorten().rows))
    fence = "`" * max(3, *(len(run) + 1 for line in lines for run in re.findall("`+", line)), 3)
    diff = _take_lines(lines, max_length - len(title) - 2 * len(fence) - 220)
    if not diff.lines and lines:
        return ""
    left = f"\n… and {format_count(diff.left, 'more line')} (omitted). {_LEFT_OUT}\n" if diff.left else ""
    body = "".join(f"{line}\n" for line in diff.lines)
    return (
        f"<details><summary>{title}: before and after</summary>\n\n"
        f"{fence}diff\n{body}{fence}\n{left}\n</details>\n"
    )


def _list_diff_lines(rows: Sequence[DiffRow]) -> Iterator[str]:
    """Yield the lines of a diff. The removed lines of a block come before the added lines."""
    added: list[str] = []
    for row in (*rows, DiffRow(LineChange.EQUAL)):
        if row.change in (LineChange.EQUAL, LineChange.SKIPPED):
            yield from added
            added = []
        if row.change is LineChange.SKIPPED:
            yield f"@@ {format_count(row.skipped_count, 'equal line')} @@"
        elif row.change is LineChange.EQUAL:
            yield from (f"  {_cut_line(line)}".rstrip() for line in (row.before,) if line is not None)
        else:
            yield from (f"- {_cut_line(line)}" for line in (row.before,) if line is not None)
            added += (f"+ {_cut_line(line)}" for line in (row.after,) if line is not None)


def _cut_line(line: DiffLine) -> str:
    left = len(line.text) - _MAX_MARKDOWN_LINE
    omission = f" … ({format_count(left, 'more character')})" if left > 0 else ""
    return sanitize_for_terminal(line.text[:_MAX_MARKDOWN_LINE]) + omission


def _take_lines(lines: Sequence[str], max_length: int) -> _DiffText:
    length = 0
    for number, line in enumerate(lines):
        length += len(line) + 1
        if length > max_length:
            return _DiffText(tuple(lines[:number]), len(lines) - number)
    return _DiffText(tuple(lines), 0)
