"""Problems as values: what is wrong, where, why, and what to do."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import partial

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.frozen_dataclass import dataclass

LITERAL_SECRET = "literal-secret"
"""The code of a warning about a secret whose value stands in a manifest; plan files cannot hold it."""

UNKNOWN_SETTING = "unknown-config"
"""The code of an error about a setting that kdeclare does not know, and that the live system may have."""


class Severity(StrEnum):
    """How bad a diagnostic is.

    An error stops the plan from being applied at all; a denial (policy, guard) stops one resource.
    """

    ERROR = "error"
    DENIED = "denied"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, order=True)
class SourcePosition:
    """A position in a file; line and column count from 1."""

    schema_name = "PlaceDocument"

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem: where, what, why and what to do.

    code: stable and short, for scripts (``unknown-field``).
    summary: constant words, no names in it where that can be had.
    detail: a full sentence with the names and values.
    hint: what the person can do about it.
    resource: the id of the resource concerned, if one is.
    subject: the key, field or other resource that it is about, for code that weighs it again later.
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
        """Whether this one stops a plan from being applied."""
        return self.severity is Severity.ERROR

    @property
    def is_blocking(self) -> bool:
        """Whether this one stops its resource from being applied."""
        return self.severity in (Severity.ERROR, Severity.DENIED)


error = partial(Diagnostic, Severity.ERROR)
"""A diagnostic of severity error."""

denied = partial(Diagnostic, Severity.DENIED)
"""A diagnostic of severity denied."""

warning = partial(Diagnostic, Severity.WARNING)
"""A diagnostic of severity warning."""

info = partial(Diagnostic, Severity.INFO)
"""A diagnostic of severity info."""


def summarize_diagnostics(diagnostics: Sequence[Diagnostic]) -> str:
    """In one line: the first error, or what else is first, with its place, and how much more there is."""
    errors = [d for d in diagnostics if d.is_error] or list(diagnostics)
    first_error, more_count = errors[0], len(errors) - 1
    position_prefix = f"{first_error.place}: " if first_error.place is not None else ""
    return f"{position_prefix}{first_error.detail or first_error.summary}" + (
        f" ({more_count} more)" if more_count else ""
    )


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Errors first, then by place, resource and code; the order in which people read them."""
    severity_ranks = {severity: number for number, severity in enumerate(Severity)}

    def build_sort_key(item: Diagnostic) -> tuple[int, SourcePosition, str, str, str]:
        position = item.place or SourcePosition("", 0, 0)
        return severity_ranks[item.severity], position, item.resource or "", item.code, item.detail

    return tuple(sorted(diagnostics, key=build_sort_key))


class KdeclareError(Exception):
    """A failure that a person can act on: its diagnostics and the exit code that goes with it.

    The command line prints the diagnostics and never a traceback for it.
    """

    def __init__(self, *diagnostics: Diagnostic, exit_code: ExitCode = ExitCode.ERROR) -> None:
        self.diagnostics = diagnostics
        self.exit_code = exit_code
        super().__init__("; ".join(d.detail or d.summary for d in diagnostics))
