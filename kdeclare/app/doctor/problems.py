"""A failure as a check."""

from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.report.doctor_views import Check, Standing


def of_error(name: str, standing: Standing, problem: KdeclareError, why: str = "") -> Check:
    """What was wrong, and what its own hint says."""
    hint = next((found.hint for found in problem.diagnostics if found.is_error and found.hint), "")
    return Check(name, standing, gist(problem.diagnostics), why, hint)
