"""When a plan was made, and from which commit."""

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PlanOrigin:
    """When a plan was made, and the git commit of its project. Unknown values are empty.

    created_at: the time in UTC as ISO 8601.
    author: the name of the commit's author, without an email address.
    commit: the full hash of the commit.
    has_local_changes: whether files of the project differed from the commit.
    """

    created_at: str = ""
    author: str = ""
    commit: str = ""
    has_local_changes: bool = False
