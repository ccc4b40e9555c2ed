"""Open states in topics as kdeclare does: with a URL, and with the cluster of an environment."""

import os
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.provider.connection import Target
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.core.storage.location import StorageContext, parse_state_location
from kdeclare.providers.kafka.connection import KafkaTarget
from kdeclare.providers.kafka.state_topic.storage import open_storage

PROJECT, ENVIRONMENT = "shop", "lab"


class NoReferences:
    """The client properties of these tests contain no references."""

    def resolve(self, reference: str) -> str:
        raise AssertionError(reference)

    def resolve_beside(self, file: Path, reference: str) -> str:
        raise AssertionError(reference)


@dataclass(frozen=True)
class StateTopics:
    """Opens topics of one cluster. config: client properties of the environment."""

    bootstrap: str
    folder: Path = Path("/")
    config: tuple[tuple[str, str], ...] = ()
    timeout_s: float = 10.0

    def open(
        self, topic: str, options: str = "", *, project: str = PROJECT, environment: str = ENVIRONMENT
    ) -> ConditionalObjects:
        """Open ``kafka://TOPIC?OPTIONS``."""
        location = parse_state_location(f"kafka://{topic}{options}", project, environment)
        context = StorageContext(self.folder, os.environ, NoReferences(), self.timeout_s, self.find_target)
        return open_storage(location, context)

    def find_target(self, provider: str) -> Target:
        """Return the cluster of the environment."""
        assert provider == "kafka"
        return KafkaTarget(self.bootstrap, self.config)
