"""Diagnostics, which describe problems: severity, code, summary, detail, hint and position."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

LITERAL_SECRET = "literal-secret"
"""The warning code for a plain-text secret in a manifest. Such a secret cannot be saved in a plan file."""

UNKNOWN_SETTING = "unknown-config"
"""The error code for a setting that this version of kdeclare does not support, even if the live system does.
"""


DENIED_CHANGES = "denied-changes"
"""The error code of a plan that is refused as a whole because a policy or a guard denies a change."""
STOPS_ON_DENIAL = "stops-on-denial"
"""The code of the warning that apply would refuse the plan, because of denials and ``onDenied: stop``."""
ENDPOINT_UNREACHABLE = "endpoint-unreachable"
"""The error code for a resource whose endpoint did not respond.

Unlike any other error, this error blocks only its resource and the resources that depend on it.
"""


FIELD_SUBJECT_PREFIX = "spec."
"""The prefix of `Diagnostic.subject` if the diagnostic is about a field of a manifest.

The path of the field follows the prefix, in the form that changes use, such as ``spec.config.file``. Plans
show the position of the field.
"""


class Severity(StrEnum):
    """The severity of a diagnostic.

    An error blocks the whole plan, except `ENDPOINT_UNREACHABLE`. A denial by a policy or a guard blocks one
    resource.
    """

    ERROR = "error"
    DENIED = "denied"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, order=True)
class SourcePosition:
    """A position in a file. Line and column start at 1.

    file: the path of the file, or ``--var NAME`` for a value on the command line. Messages show the option
    without line and column.
    """

    schema_name = "PlaceDocument"

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        is_option = self.file.startswith("--var ")
        return self.file if is_option else f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: what is wrong, where, why, and how to fix it.

    code: stable and short, for scripts (``unknown-field``).
    summary: a few constant words, without names where possible.
    detail: full sentences with the names and values.
    hint: what the user can do about it.
    resource: the id of the affected resource, if any.
    subject: the key, field or resource that the problem is about, for code that processes the diagnostic.
    """

    severity: Severity
    code: str
    summary: str
    detail: str = ""
    hint: str = ""
    place: SourcePosition | None = None
    resource: str | None = None
    subject: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether this diagnostic is an error. A command that reports an error fails."""
        return self.severity is Severity.ERROR

    @property
    def blocks_plan(self) -> bool:
        """Whether this diagnostic blocks the whole plan."""
        return self.is_error and self.code != ENDPOINT_UNREACHABLE

    @property
    def is_blocking(self) -> bool:
        """Whether this diagnostic blocks its resource or the whole plan."""
        return self.severity in (Severity.ERROR, Severity.DENIED)


error = partial(Diagnostic, Severity.ERROR)
"""Create a diagnostic with severity ``ERROR``."""

denied = partial(Diagnostic, Severity.DENIED)
"""Create a diagnostic with severity ``DENIED``."""

warning = partial(Diagnostic, Severity.WARNING)
"""Create a diagnostic with severity ``WARNING``."""

info = partial(Diagnostic, Severity.INFO)
"""Create a diagnostic with severity ``INFO``."""


def summarize_diagnostics(diagnostics: Sequence[Diagnostic]) -> str:
    """Summarize diagnostics on one line: the first error, and the number of other errors.

    If there is no error, the line contains the first diagnostic and the number of other diagnostics.
    """
    errors = [d for d in diagnostics if d.is_error] or list(diagnostics)
    first_error, more_count = errors[0], len(errors) - 1
    position_prefix = f"{first_error.place}: " if first_error.place is not None else ""
    return f"{position_prefix}{first_error.detail or first_error.summary}" + (
        f" ({more_count} more)" if more_count else ""
    )


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort diagnostics for display: errors first, then by position, resource and code."""
    severity_ranks = {severity: number for number, severity in enumerate(Severity)}

    def build_sort_key(item: Diagnostic) -> tuple[int, SourcePosition, str, str, str]:
        position = item.place or SourcePosition("", 0, 0)
        return severity_ranks[item.severity], position, item.resource or "", item.code, item.detail

    return tuple(sorted(diagnostics, key=build_sort_key))


class KdeclareError(Exception):
    """A failure that the user can act on, with its diagnostics and exit code.

    The command line prints the diagnostics, never a traceback.
    """

    def __init__(self, *diagnostics: Diagnostic, exit_code: ExitCode = ExitCode.ERROR) -> None:
        self.diagnostics = diagnostics
        self.exit_code = exit_code
        super().__init__("; ".join(d.detail or d.summary for d in diagnostics))
