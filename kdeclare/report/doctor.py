"""The results of ``kdeclare doctor`` as text, and as JSON with a schema."""

import textwrap
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from kdeclare.core.documents import OneOf, build_document, publish_schemas
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.provider import Check, CheckSection, CheckStatus
from kdeclare.report.elements.terminal import PLAIN, Style
from kdeclare.report.elements.values import format_count, sanitize_for_terminal


@dataclass(frozen=True, slots=True)
class DoctorView:
    """The results of all checks of ``kdeclare doctor``. A section can depend on earlier sections."""

    sections: tuple[CheckSection, ...]

    def count(self, standing: CheckStatus) -> int:
        """Return the number of checks with this status."""
        return sum(check.standing is standing for section in self.sections for check in section.checks)

    @property
    def skipped_titles(self) -> tuple[str, ...]:
        """The titles of the sections in which the user can enable at least one skipped check.

        Such a check has a hint. A skipped check without a hint does not apply, or is not possible.
        """
        return tuple(
            section.title
            for section in self.sections
            if any(check.standing is CheckStatus.SKIPPED and check.hint for check in section.checks)
        )

    @property
    def worst_status(self) -> CheckStatus:
        """The worst status of all checks: FAILED, WARNING or OK."""
        return next((s for s in (CheckStatus.FAILED, CheckStatus.WARNING) if self.count(s)), CheckStatus.OK)

    @property
    def exit_code(self) -> ExitCode:
        """ERROR if a check failed; otherwise OK."""
        return ExitCode.ERROR if self.worst_status is CheckStatus.FAILED else ExitCode.OK


@dataclass(frozen=True, slots=True)
class CheckDocument:
    """The result of one check."""

    section: str
    name: str
    standing: Annotated[CheckStatus, Field(description="skipped: not checked, or not applicable here.")]
    what: Annotated[str, Field(description="The result of the check, in words.")]
    why: Annotated[str, Field(description="What the checked item is needed for; may be empty.")]
    hint: Annotated[str, Field(description="What to do; may be empty.")]


@dataclass(frozen=True, slots=True)
class DoctorDocument:
    """The results of all checks. A section can depend on the sections before it."""

    outcome: Annotated[
        str, OneOf("ok", "warning", "failed"), Field(description="The worst result of all checks.")
    ]
    exit_code: int
    checks: tuple[CheckDocument, ...]
    manifests: Annotated[
        tuple[str, ...],
        Field(description="Manifests with the ACLs that kdeclare lacks for this project, as YAML."),
    ] = ()


def build_doctor_document(view: DoctorView) -> DoctorDocument:
    """Build the JSON document of ``kdeclare doctor``."""
    checks = (
        build_document(CheckDocument, check, section=section.title)
        for section in view.sections
        for check in section.checks
    )
    manifests = tuple(section.manifest for section in view.sections if section.manifest)
    return DoctorDocument(view.worst_status.value, int(view.exit_code), tuple(checks), manifests)


def build_doctor_schemas() -> Mapping[str, dict[str, Any]]:
    """Return the JSON Schema of ``kdeclare doctor``, by document name; see `publish_schemas`."""
    return publish_schemas({"doctor": DoctorDocument})


_STATUS_LABELS = {
    CheckStatus.OK: "ok",
    CheckStatus.SKIPPED: "-",
    CheckStatus.WARNING: "warning",
    CheckStatus.FAILED: "failed",
}
_LABEL_WIDTH = max(map(len, _STATUS_LABELS.values()))


def render_doctor_text(view: DoctorView, style: Style = PLAIN, width: int | None = None) -> str:
    """Render the results as text that ends in a newline.

    width: the maximum width of lines; None to disable wrapping.
    """
    names = [sanitize_for_terminal(check.name) for section in view.sections for check in section.checks]
    name_width = max(map(len, names), default=0)
    blocks = [
        _render_headline(view, style),
        *(_render_section(one, name_width, style, width) for one in view.sections),
    ]
    return "\n".join(blocks)


def _render_headline(view: DoctorView, style: Style) -> str:
    failed, warnings = view.count(CheckStatus.FAILED), view.count(CheckStatus.WARNING)
    warning_note = f", {format_count(warnings, 'warning')}" if warnings else ""
    skipped_sections = ", ".join(view.skipped_titles).lower()
    skipped_note = f" Skipped: {skipped_sections}." if skipped_sections else ""
    if failed:
        return (
            style.red(style.bold(f"{format_count(failed, 'check')} failed{warning_note}.{skipped_note}"))
            + "\n"
        )
    if warnings or skipped_note:
        return style.yellow(style.bold(f"No check failed{warning_note}.{skipped_note}")) + "\n"
    return style.green(style.bold("All checks passed.")) + "\n"


def _render_section(section: CheckSection, name_width: int, style: Style, width: int | None) -> str:
    lines = [style.bold(section.title)]
    for check in section.checks:
        lines += _render_check(check, name_width, style, width)
    # A manifest is not indented, so that it can be copied to a file.
    manifest = "".join(f"{sanitize_for_terminal(line)}\n" for line in section.manifest.splitlines())
    return "".join(f"{line}\n" for line in lines) + (f"\n{manifest}" if manifest else "")


def _render_check(check: Check, name_width: int, style: Style, width: int | None) -> list[str]:
    paint = {
        CheckStatus.OK: style.green,
        CheckStatus.SKIPPED: style.dim,
        CheckStatus.WARNING: style.yellow,
        CheckStatus.FAILED: style.red,
    }[check.standing]
    prefix = (
        f"  {paint(f'{_STATUS_LABELS[check.standing]:<{_LABEL_WIDTH}}')}  "
        f"{sanitize_for_terminal(check.name):<{name_width}}  "
    )
    indent = " " * (_LABEL_WIDTH + name_width + 6)
    is_ok = check.standing in (CheckStatus.OK, CheckStatus.SKIPPED)
    description = f"{check.what}; for {check.why}" if is_ok and check.why else check.what
    lines = _wrap_text(sanitize_for_terminal(description), indent, width)
    if check.why and not is_ok:
        lines += [
            style.dim(line)
            for line in _wrap_text(f"needed for: {sanitize_for_terminal(check.why)}", indent, width)
        ]
    if check.hint:
        lines += [
            style.cyan(line)
            for line in _wrap_text(f"hint: {sanitize_for_terminal(check.hint)}", indent, width)
        ]
    return [prefix + lines[0], *(indent + line for line in lines[1:])]


def _wrap_text(text: str, indent: str, width: int | None) -> list[str]:
    """Wrap text. The result has at least one line. Long words, such as paths, are not broken."""
    if width is None:
        return [text]
    available_width = max(30, width - len(indent))
    return textwrap.wrap(text, available_width, break_long_words=False, break_on_hyphens=False) or [""]
