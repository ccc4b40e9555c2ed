"""The cluster of the tests of states in topics, and a new topic for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.sandbox import SandboxStatus
from tests.beds import KafkaBed
from tests.kafka.state.topics import StateTopics


@pytest.fixture
def topic(kafka_bed: KafkaBed) -> str:
    """The name of a topic that does not exist yet."""
    return kafka_bed.name("-state")


@pytest.fixture
def open_objects(sandbox: SandboxStatus, topic: str) -> Iterator[Callable[[], ConditionalObjects]]:
    """Open the topic as another process would."""
    opened: list[ConditionalObjects] = []

    def open_topic() -> ConditionalObjects:
        opened.append(StateTopics(sandbox.bootstrap).open(topic))
        return opened[-1]

    yield open_topic
    for objects in opened:
        objects.close()


@pytest.fixture
def topics_folder(sandbox: SandboxStatus, tmp_path: Path) -> StateTopics:
    """The topics of the cluster, with an empty project folder."""
    return StateTopics(sandbox.bootstrap, tmp_path)
