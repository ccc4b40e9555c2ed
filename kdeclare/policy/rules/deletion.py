"""Topics that must not be deleted."""

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata
from kdeclare.policy.rules.base import NoSettings, Rule, Settings, Text
from kdeclare.policy.rules.labels import are_on, topics_with
from kdeclare.policy.rules.wording import counted


class NoDeleteSettings(Settings):
    """labels: which topics it is about; all of these must be there. None are all topics."""

    labels: dict[str, Text] = {}  # noqa: RUF012  frozen


class NoDelete(Rule[NoDeleteSettings]):
    """Topics with some labels are not deleted."""

    settings_model = NoDeleteSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is Action.DELETE and are_on(request, self.settings.labels):
            raise PolicyViolation(
                f"{request.topic} would be deleted; {topics_with(self.settings.labels)} must not be."
            )


class NoDeleteWithRecords(Rule[NoSettings]):
    """Topics that hold records are not deleted.

    The records are counted by their offsets: a compacted topic holds fewer than that.
    """

    settings_model = NoSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        if request.action is not Action.DELETE:
            return
        records = request.record_count
        if records > 0:
            raise PolicyViolation(
                f"{request.topic} would be deleted and holds up to {counted(records, 'record')}; "
                "only topics without records may be."
            )
