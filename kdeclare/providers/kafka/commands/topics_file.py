"""A file of instructions for ``kdeclare topic create`` and ``alter``: one entry a topic."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.manifests.document import document, validated
from kdeclare.manifests.nodes import find
from kdeclare.manifests.reading import Reader
from kdeclare.providers.kafka.topic.asked import Asked
from kdeclare.providers.kafka.topic.spec import INT32


class TopicEntry(BaseModel):
    """What is asked of one topic; the fields are those of a Topic manifest's ``spec``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    topic: Annotated[str, Field(min_length=1)]
    partitions: Annotated[int, Field(ge=1, le=INT32)] | None = None
    replicationFactor: Annotated[int, Field(ge=1, le=32767)] | None = None  # noqa: N815
    assignments: dict[Annotated[int, Field(ge=0)], list[Annotated[int, Field(ge=0, le=INT32)]]] = {}
    configs: dict[str, Any] = {}


class TopicsFile(BaseModel):
    """The whole file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    topics: list[TopicEntry]
    version: int = 1  # as in the files of Kafka's own tools


def read_requests(file: Path) -> tuple[Asked, ...]:
    """The instructions in the order of the file; references in their configs are still to be read.

    Raises KdeclareError with all that is wrong with the file.
    """
    root = document(file, "Topics", "Name a file with a list 'topics'.")
    manifest = validated(TopicsFile, root, Reader(None))
    if not manifest.topics:
        place = find(root, ("topics",))
        raise KdeclareError(error("no-topics", "No topics", "The list 'topics' is empty.", place=place))
    return tuple(
        Asked(
            topic=entry.topic,
            partitions=entry.partitions,
            replication_factor=entry.replicationFactor,
            assignments={n: tuple(replicas) for n, replicas in entry.assignments.items()},
            configs=entry.configs,
            place=find(root, ("topics", index, "topic")),
        )
        for index, entry in enumerate(manifest.topics)
    )
