"""The status of a finding in comparison with an earlier audit, the baseline.

All comparisons of audits use these rules. Only comparisons with Spark use their own implementation of the
same rules in SQL (`fleet.spark.diff`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kdeclare.fleet.audit_results import Identity

NEW = "new"
"""The status of a finding that the baseline does not contain."""
KNOWN = "known"
"""The status of a finding that the baseline also contains."""
FIXED = "fixed"
"""The status of a baseline finding that the audit checked again and no longer found."""
UNSEEN = "unseen"
"""The status of an earlier finding that the audit did not check again. Such a finding can still be open."""

_T = TypeVar("_T")


def choose_status(identity: Identity, baseline: Collection[Identity]) -> str:
    """Return the status of an open finding: ``known`` or ``new``.

    baseline: the findings of the earlier audit; empty if there is none.
    """
    return KNOWN if identity in baseline else NEW


def select_fixed(
    baseline: Mapping[Identity, _T], remaining: Collection[Identity], is_checked: Callable[[_T], bool]
) -> list[_T]:
    """Return the fixed findings of the baseline, in the order of the baseline.

    baseline: the findings of the earlier audit.
    remaining: the findings of the audit, including accepted findings and those that it did not check again.
    is_checked: whether the audit checked a finding of the baseline again.
    """
    return [row for identity, row in baseline.items() if identity not in remaining and is_checked(row)]
