"""What ``kdeclare doctor`` found, as data."""

from dataclasses import dataclass
from enum import StrEnum

from kdeclare.core.exits import ExitCode


class Standing(StrEnum):
    """How one thing stands, from good to bad."""

    OK = "ok"
    SKIPPED = "skipped"  # not looked at, or not in use here
    WARNING = "warning"  # something can not be done that one may want to do
    FAILED = "failed"  # nothing can be done until it is mended


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    name: what it is. what: how it was found. why: what it is needed for. hint: what a person can do.
    """

    name: str
    standing: Standing
    what: str
    why: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """Checks that belong together."""

    title: str
    checks: tuple[Check, ...]


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
