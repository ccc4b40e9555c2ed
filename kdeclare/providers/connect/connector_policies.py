"""Ready-made policies for connectors. A project file names the policies to use and configures them."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from kdeclare.core.policies.policy_request import PolicyViolation, ResourceRequest
from kdeclare.core.suggestions import format_alternatives
from kdeclare.providers.kafka.policies.settings_policy import NoSettings, PolicySettings, S, SettingsPolicy

_TOLERANCE = "errors.tolerance"
_DEAD_LETTER_QUEUE = "errors.deadletterqueue.topic.name"


class ConnectorPolicy(SettingsPolicy[S]):
    """The base class of the policies for connectors. Deletions are always allowed."""

    @abstractmethod
    def find_violations(self, connector: Mapping[str, object]) -> Iterator[str]:
        """Yield a sentence for each reason why a connector is not permitted."""

    def validate(self, request: ResourceRequest) -> None:
        """See `ResourcePolicy`."""
        connector = request.post_request_state
        violations = [] if connector is None else list(self.find_violations(connector))
        if violations:
            raise PolicyViolation(" ".join(violations))


class Classes(PolicySettings):
    """The settings of `AllowedClasses`."""

    allowed: Annotated[
        list[str],
        Field(description="The connector classes, by full name or alias as in the manifests.", min_length=1),
    ]


class AllowedClasses(ConnectorPolicy[Classes]):
    """Permits only connectors of certain classes."""

    settings_model = Classes

    def find_violations(self, connector: Mapping[str, object]) -> Iterator[str]:
        """See `ConnectorPolicy`."""
        class_name = connector["class"]
        if class_name not in self.settings.allowed:
            allowed = format_alternatives(self.settings.allowed)
            yield f"The connector class is {class_name} instead of {allowed}."


class TaskLimit(PolicySettings):
    """The settings of `MaximumTasks`."""

    maximum: Annotated[int, Field(description="The maximum value of tasksMax.", ge=1)]


class MaximumTasks(ConnectorPolicy[TaskLimit]):
    """Limits the number of tasks of each connector. Without ``tasksMax``, a connector has one task."""

    settings_model = TaskLimit

    def find_violations(self, connector: Mapping[str, object]) -> Iterator[str]:
        """See `ConnectorPolicy`."""
        tasks_max, maximum = connector["tasksMax"], self.settings.maximum
        if isinstance(tasks_max, int) and tasks_max > maximum:
            yield f"'tasksMax' is {tasks_max:,}, but at most {maximum:,} is allowed."


class DeadLetterQueueRequired(ConnectorPolicy[NoSettings]):
    """Requires a dead letter queue for sinks that tolerate errors (``errors.tolerance: all``).

    Without a dead letter queue, Connect drops records that it cannot process.
    """

    settings_model = NoSettings

    def find_violations(self, connector: Mapping[str, object]) -> Iterator[str]:
        """See `ConnectorPolicy`."""
        config = connector["config"]
        assert isinstance(config, Mapping)
        is_sink = "topics" in config or "topics.regex" in config
        if is_sink and config.get(_TOLERANCE) == "all" and not config.get(_DEAD_LETTER_QUEUE):
            yield f"With '{_TOLERANCE}: all', the sink needs '{_DEAD_LETTER_QUEUE}'."
