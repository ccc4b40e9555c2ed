"""Two declared resources that cannot both be as they are declared."""

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.kind import Desired

CONTRADICTION = "contradiction"


def report_contradiction(item: Desired, other: Desired, what: str) -> Diagnostic:
    """Report that two declared resources cannot both be as they are declared."""
    place = f" ({other.source})" if other.source else ""
    return error(
        CONTRADICTION,
        "Two resources contradict each other",
        f"{item.id} and {other.id}{place} want different things: {what}.",
        hint="Let one of them say it.",
        place=item.source,
        resource=str(item.id),
    )
