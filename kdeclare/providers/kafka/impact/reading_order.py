"""Decide, before anything is read, in which order the impact of a plan is read.

This module is separate from `ImpactReader`, so that plans that read no impact do not import the reader.
"""

from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ReadingOrder:
    """Whether the groups are read before the logs.

    groups_first: True if the groups will be needed for each change that can delete records. Policies must
        then read the groups first, too.
    """

    groups_first: bool = False
