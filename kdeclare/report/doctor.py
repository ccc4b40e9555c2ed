"""What ``kdeclare doctor`` found: for people, and as JSON with its schema."""

import textwrap
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import OneOf, describe_as, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen import dataclass
from kdeclare.core.provider.provider import Check, Section, Standing
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import clean, plural


@dataclass(frozen=True, slots=True)
class DoctorView:
    """All of it, in the order in which one thing rests on the other."""

    sections: tuple[Section, ...]

    def count(self, standing: Standing) -> int:
        """How many checks stand like that."""
        return sum(check.standing is standing for section in self.sections for check in section.checks)

    @property
    def not_looked_at(self) -> tuple[str, ...]:
        """The titles of sections of which something was left out that one can have looked at.

        What is not in use, or nobody can tell, is skipped without a hint.
        """
        return tuple(
            section.title
            for section in self.sections
            if any(check.standing is Standing.SKIPPED and check.hint for check in section.checks)
        )

    @property
    def worst(self) -> Standing:
        """FAILED, WARNING or OK."""
        return next((s for s in (Standing.FAILED, Standing.WARNING) if self.count(s)), Standing.OK)

    @property
    def exit_code(self) -> ExitCode:
        """An error only where something failed."""
        return ExitCode.ERROR if self.worst is Standing.FAILED else ExitCode.OK


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """One thing that was looked at."""

    section: str
    name: str
    standing: Annotated[Standing, Field(description="skipped: not looked at, or not in use here.")]
    what: Annotated[str, Field(description="How it was found.")]
    why: Annotated[str, Field(description="What it is needed for; may be empty.")]
    hint: Annotated[str, Field(description="What to do; may be empty.")]


@dataclass(frozen=True, slots=True)
class DoctorDocument:
    """All that was looked at, in the order in which one thing rests on the other."""

    outcome: Annotated[str, OneOf("ok", "warning", "failed"), Field(description="The worst of all checks.")]
    exit_code: int
    checks: tuple[CheckDocument, ...]


def describe_examination(view: DoctorView) -> DoctorDocument:
    """Return the document."""
    checks = (
        describe_as(CheckDocument, check, section=section.title)
        for section in view.sections
        for check in section.checks
    )
    return DoctorDocument(view.worst.value, int(view.exit_code), tuple(checks))


def doctor_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas({"doctor": DoctorDocument})


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
