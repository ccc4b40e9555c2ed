"""The arguments of operations on topics and configs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.arguments import Arguments
from kdeclare.core.changes import FieldOp
from kdeclare.core.jsontypes import Json
from kdeclare.core.operation_arguments import UNSTATED
from kdeclare.core.secrets import SecretRef, is_secret, read_secret_ref
from kdeclare.providers.kafka.config.wishes import joined

Count = Annotated[int, Field(ge=1)]
BrokerId = Annotated[int, Field(ge=0)]
Replicas = Annotated[tuple[BrokerId, ...], Field(min_length=1)]
PartitionName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)$")]
PartitionNumber = Annotated[str, Field(pattern=r"^[0-9]+$")]
OpName = Literal["SET", "DELETE", "APPEND", "SUBTRACT"]
OP_NAMES: Mapping[FieldOp, OpName] = {
    FieldOp.SET: "SET",
    FieldOp.DELETE: "DELETE",
    FieldOp.APPEND: "APPEND",
    FieldOp.SUBTRACT: "SUBTRACT",
}
ConfigArgument = str | tuple[str, ...] | SecretRef | None
"""The value of a config: a text, the elements of a list, or a secret; None where there is none."""


@dataclass(frozen=True, slots=True)
class TopicArgs(Arguments):
    """What operations on a topic as a whole have in common: its name."""

    topic: str


@dataclass(frozen=True, slots=True)
class CreateTopicArgs(TopicArgs):
    """A topic to be created. Counts that are None are the brokers' defaults; assignments take their place.

    assignments: replicas by partition.
    """

    partitions: Count | None
    replication_factor: Count | None
    assignments: Mapping[PartitionNumber, Replicas] | None
    configs: Mapping[str, str | tuple[str, ...]]

    @property
    def count(self) -> int | None:
        """How many partitions are asked for; None is the brokers' default."""
        return len(self.assignments) if self.assignments else self.partitions

    @property
    def replicas(self) -> dict[int, tuple[int, ...]]:
        """The replicas that are asked for, by partition; empty where the brokers choose."""
        return {int(number): replicas for number, replicas in (self.assignments or {}).items()}

    @property
    def config_texts(self) -> dict[str, str]:
        """The configs as requests hold them."""
        return {key: joined(value) for key, value in self.configs.items()}


@dataclass(frozen=True, slots=True)
class DeleteTopicArgs(TopicArgs):
    """A topic to be deleted.

    topic_id: deletes the topic with this id, and no other one that has its name by now; None deletes by name.
    require_empty: whether it stays where it holds records. recreate: what made it, where it goes because
        that is undone. Journals of kdeclare 0.1 have only the name.
    """

    topic_id: str | None = None
    require_empty: bool = False
    recreate: CreateTopicArgs | None = None


@dataclass(frozen=True, slots=True)
class IncreasePartitionsArgs(TopicArgs):
    """The number that a topic is to have. assignments: replicas of the added partitions, in order."""

    total: Count
    assignments: tuple[Replicas, ...] | None


@dataclass(frozen=True, slots=True)
class ConfigOpArgs(Arguments):
    """One op on one key (KIP-339). value: None for DELETE. was: the record of a secret that it overwrites."""

    key: str
    op: OpName
    value: ConfigArgument
    was: Annotated[SecretRef | None, UNSTATED] = None

    @property
    def elements(self) -> tuple[str, ...]:
        """The elements of an APPEND or SUBTRACT."""
        return self.value if isinstance(self.value, tuple) else ()


@dataclass(frozen=True, slots=True)
class AlterConfigsArgs(Arguments):
    """Ops on one config resource, which Kafka makes all or none of."""

    entity_type: Literal["TOPIC", "BROKER"]
    entity_name: str
    ops: Annotated[tuple[ConfigOpArgs, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class PartitionsArgs(Arguments):
    """What operations on partitions have in common: replicas by partition (``<topic>-<n>``), in order."""

    partitions: Mapping[PartitionName, Replicas]


def make_config_argument(value: Json) -> ConfigArgument:
    """Return the value of a field of a change as an argument."""
    if is_secret(value):
        return read_secret_ref(value)
    return tuple(value) if isinstance(value, list | tuple) else value


def show_config_argument(value: ConfigArgument) -> Json:
    """Return an argument as views and fields of changes hold it; not for secrets."""
    return list(value) if isinstance(value, tuple) else value
