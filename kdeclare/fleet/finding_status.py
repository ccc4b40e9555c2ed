"""The status of a finding in comparison with an earlier audit, the baseline.

All comparisons of audits use these rules, except those of Spark, which has the same rules in SQL
(`fleet.spark.diff`).
"""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from kdeclare.fleet.audit_results import Identity

NEW = "new"
"""The baseline does not contain the finding."""
KNOWN = "known"
"""The baseline also contains the finding."""
FIXED = "fixed"
"""The baseline contains the finding. The audit checked it again and no longer found it."""
UNSEEN = "unseen"
"""An earlier audit contains the finding, and this audit did not check it again. It may still be open."""

_T = TypeVar("_T")


def choose_status(identity: Identity, baseline: Collection[Identity]) -> str:
    """Return the status of an open finding: ``known`` or ``new``.

    baseline: the findings of the earlier audit; empty if there is none.
    """
    return KNOWN if identity in baseline else NEW


def select_fixed(
    baseline: Mapping[Identity, _T], remaining: Collection[Identity], is_checked: Callable[[_T], bool]
) -> list[_T]:
    """Return the fixed findings of the baseline, in its order.

    baseline: the findings of the earlier audit.
    remaining: the findings of the audit, including accepted findings and those that it did not check again.
    is_checked: whether the audit checked a finding of the baseline again.
    """
    return [row for identity, row in baseline.items() if identity not in remaining and is_checked(row)]
