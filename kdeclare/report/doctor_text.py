"""What ``kdeclare doctor`` found, for people."""

import textwrap

from kdeclare.core.examining import Check, Section, Standing
from kdeclare.report.doctor_views import DoctorView
from kdeclare.report.style import PLAIN, Style
from kdeclare.report.values import clean, plural

_MARKS = {Standing.OK: "ok", Standing.SKIPPED: "-", Standing.WARNING: "warning", Standing.FAILED: "failed"}
_MARK_WIDTH = max(map(len, _MARKS.values()))


def doctor_text(view: DoctorView, style: Style = PLAIN, width: int | None = None) -> str:
    """The whole text, ending in a new line. width: where lines are broken, in columns; None: nowhere."""
    names = [clean(check.name) for section in view.sections for check in section.checks]
    at = max(map(len, names), default=0)
    blocks = [_headline(view, style), *(_section(one, at, style, width) for one in view.sections)]
    return "\n".join(blocks)


def _headline(view: DoctorView, style: Style) -> str:
    failed, warnings = view.count(Standing.FAILED), view.count(Standing.WARNING)
    more = f", {plural(warnings, 'warning')}" if warnings else ""
    left_out = ", ".join(view.not_looked_at).lower()
    rest = f" Not looked at: {left_out}." if left_out else ""
    if failed:
        return style.red(style.bold(f"{plural(failed, 'check')} failed{more}.{rest}")) + "\n"
    if warnings or rest:
        return style.yellow(style.bold(f"Nothing failed{more}.{rest}")) + "\n"
    return style.green(style.bold("All is well.")) + "\n"


def _section(section: Section, at: int, style: Style, width: int | None) -> str:
    lines = [style.bold(section.title)]
    for check in section.checks:
        lines += _check(check, at, style, width)
    return "".join(f"{line}\n" for line in lines)


def _check(check: Check, at: int, style: Style, width: int | None) -> list[str]:
    paint = {
        Standing.OK: style.green,
        Standing.SKIPPED: style.dim,
        Standing.WARNING: style.yellow,
        Standing.FAILED: style.red,
    }[check.standing]
    head = f"  {paint(f'{_MARKS[check.standing]:<{_MARK_WIDTH}}')}  {clean(check.name):<{at}}  "
    margin = " " * (_MARK_WIDTH + at + 6)
    well = check.standing in (Standing.OK, Standing.SKIPPED)
    what = f"{check.what}; for {check.why}" if well and check.why else check.what
    lines = _broken(clean(what), margin, width)
    if check.why and not well:
        lines += [style.dim(line) for line in _broken(f"needed for: {clean(check.why)}", margin, width)]
    if check.hint:
        lines += [style.cyan(line) for line in _broken(f"hint: {clean(check.hint)}", margin, width)]
    return [head + lines[0], *(margin + line for line in lines[1:])]


def _broken(text: str, margin: str, width: int | None) -> list[str]:
    """The lines of a text, none empty. A word that is too long, such as a path, stays whole."""
    if width is None:
        return [text]
    room = max(30, width - len(margin))
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
