"""How much of a cluster a team may take."""

from typing import Annotated

from pydantic import Field, model_validator

from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata
from kdeclare.policy.rules.base import Rule, Settings
from kdeclare.policy.rules.wording import counted

_Count = Annotated[int, Field(ge=0)]


class PartitionBudgetSettings(Settings):
    """label: whose values are the teams. max: partitions a team. budgets: what differs for some teams."""

    label: Annotated[str, Field(min_length=1)] = "team"
    max: _Count | None = None
    budgets: dict[str, _Count] = {}  # noqa: RUF012  frozen

    @model_validator(mode="after")
    def _some(self) -> "PartitionBudgetSettings":
        if self.max is None and not self.budgets:
            raise ValueError("needs 'max', 'budgets' or both")
        return self


class PartitionBudget(Rule[PartitionBudgetSettings]):
    """All topics with the same value of a label have together no more partitions than that.

    Counted is what there will be once the whole plan is done, so a plan that takes too much is denied in
    all topics that it adds partitions to. Topics without the label are not judged.
    """

    settings_model = PartitionBudgetSettings

    def validate(self, request: RequestMetadata) -> None:
        """See `TopicActionsPolicy.validate`."""
        creates = request.action is Action.CREATE
        if not creates and (request.action is Action.DELETE or "partitions" not in request.changed):
            return
        label = self.settings.label
        team = request.labels.get(label)
        if team is None:
            return
        budget = self.settings.budgets.get(team, self.settings.max)
        total = 0 if budget is None else request.partitions_of({label: team})
        if budget is not None and total > budget:
            raise PolicyViolation(
                f"The topics labelled {label}={team} would have {counted(total, 'partition')} "
                f"with {request.topic}; their budget is {budget:,}."
            )
