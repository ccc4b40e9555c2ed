"""What ``kdeclare doctor`` found, as data."""

from dataclasses import dataclass

from kdeclare.core.examining import Section, Standing
from kdeclare.core.exits import ExitCode


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
