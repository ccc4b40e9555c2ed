"""What an audit can find, as values."""

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """The kinds of drift, worst first as people read them."""

    UNREACHABLE = "unreachable"  # it could not be read, so nothing is known
    MISSING = "missing"  # owned, and gone
    CHANGED = "changed"  # live differs from what was last applied, and from what is declared
    POLICY = "policy"  # live is against a policy
    PENDING = "pending"  # declared and not applied yet
    ORPHANED = "orphaned"  # owned, and declared no longer
    UNMANAGED = "unmanaged"  # live, and neither declared nor owned


TO_BE_APPLIED = frozenset({FindingKind.CHANGED, FindingKind.PENDING, FindingKind.MISSING})
"""What an apply would do something about: with these, an audit has changes."""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding of one resource.

    path: of the field (``configs.retention.ms``); None for the resource as a whole.
    op: what would mend it: SET, DELETE, APPEND, SUBTRACT, change, create, delete, forget; None if nothing.
    before, after: JSON texts of the field as it is and as it would be; None is "not set".
    """

    finding: FindingKind
    path: str | None
    op: str | None
    before: str | None
    after: str | None
    message: str

    @property
    def is_unmanaged_key(self) -> bool:
        """Whether it is a key of a resource that is declared, which nobody declared."""
        return self.finding is FindingKind.UNMANAGED and self.path is not None
