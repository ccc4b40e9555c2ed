"""Rules about the records and consumers that a change affects.

The messages contain names but no numbers, because numbers change with each new record. If the message of a
denial changes after the plan was saved, a policy override in the plan no longer applies.
"""

from collections.abc import Iterator, Sequence

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicImpact
from kdeclare.policy.rules.base import NoSettings, Rule, format_list


class NoDeleteWithReaders(Rule[NoSettings]):
    """Denies the deletion of topics that consumers read, or that a consumer group has not read completely.

    If kdeclare has no permission to see all consumer groups, every deletion is denied.
    """

    settings_model = NoSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.DELETE:
            return
        reasons = list(_find_readers(request.impact))
        if reasons:
            raise PolicyViolation(f"{request.topic} would be deleted, but {' and '.join(reasons)}.")


def _find_readers(impact: TopicImpact) -> Iterator[str]:
    active, unread = impact.active_groups, impact.unread_groups
    if active:
        yield f"{_format_groups(active)} {'reads' if len(active) == 1 else 'read'} it"
    if unread:
        yield f"{_format_groups(unread)} {'has' if len(unread) == 1 else 'have'} not read all of its records"


class NoLossOfUnreadRecords(Rule[NoSettings]):
    """Denies changes that delete records that a consumer group has not read.

    Such changes are deletions of topics, lower retention limits, and a cleanup policy that deletes or
    compacts more records. If kdeclare has no permission to see all consumer groups, each change that deletes
    records is denied.
    """

    settings_model = NoSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        groups = request.impact.unread_groups
        if groups:
            verb = "has" if len(groups) == 1 else "have"
            raise PolicyViolation(
                f"The change to {request.topic} would delete records that {_format_groups(groups)} {verb} "
                "not read."
            )


def _format_groups(groups: Sequence[str]) -> str:
    names = format_list(f"'{group}'" for group in groups)
    return f"group {names}" if len(groups) == 1 else f"groups {names}"
