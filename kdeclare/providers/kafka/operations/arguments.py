"""The arguments of operations on topics and configs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_text_or_none, as_texts
from kdeclare.core.operations.argument_binding import OMIT_FALSE, OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.changes import FieldOp
from kdeclare.core.secrets.secret_refs import SecretRef, bind_secret_ref, is_secret
from kdeclare.providers.kafka.request_values import NewTopic, Replicas, TopicArgs

PartitionName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)$")]
OpName = Literal["SET", "DELETE", "APPEND", "SUBTRACT"]
OP_NAMES: Mapping[FieldOp, OpName] = {
    FieldOp.SET: "SET",
    FieldOp.DELETE: "DELETE",
    FieldOp.APPEND: "APPEND",
    FieldOp.SUBTRACT: "SUBTRACT",
}
ConfigArgument = str | tuple[str, ...] | SecretRef | None
"""The value of a config: a string, the elements of a list, a secret, or None for no value."""


@dataclass(frozen=True, slots=True)
class DeleteTopicArgs(TopicArgs):
    """A topic to delete.

    topic_id: the id of the topic, or None to delete the topic by name. With an id, a topic that was
        re-created with the same name is not deleted.
    require_empty: whether to keep the topic if it holds records.
    recreate: the creation that this deletion undoes, or None.
    before: the topic when the deletion was planned, with its replicas and configs, so that a rollback can
        re-create it. None if the configs could not be read.

    In journals of kdeclare 0.1, the arguments contain only the topic name.
    """

    topic_id: str | None = None
    require_empty: bool = False
    recreate: NewTopic | None = None
    before: Annotated[NewTopic | None, OMIT_NONE] = None


@dataclass(frozen=True, slots=True)
class ConfigOpArgs(Arguments):
    """The change to one config key (KIP-339).

    value: the new value, or None for DELETE.
    was: the secret that the change overwrites, or None.
    """

    key: str
    op: OpName
    value: ConfigArgument
    was: Annotated[SecretRef | None, OMIT_NONE] = None

    @property
    def elements(self) -> tuple[str, ...]:
        """The elements of a list value, or an empty tuple if the value is not a list."""
        return self.value if isinstance(self.value, tuple) else ()


@dataclass(frozen=True, slots=True)
class AlterConfigsArgs(Arguments):
    """The changes to the configs of one resource. Kafka applies these changes atomically.

    whole: whether the changes create or delete the whole resource. Only resources that consist of their
        configs, such as client metrics subscriptions, are created and deleted in this way.
    """

    entity_type: Literal["TOPIC", "BROKER", "GROUP", "CLIENT_METRICS"]
    entity_name: str
    ops: Annotated[tuple[ConfigOpArgs, ...], Field(min_length=1)]
    whole: Annotated[bool, OMIT_FALSE] = False


@dataclass(frozen=True, slots=True)
class PartitionsArgs(Arguments):
    """The common arguments of operations on partitions.

    partitions: the replicas of each partition (``<topic>-<n>``), in order.
    """

    partitions: Mapping[PartitionName, Replicas]


def make_config_argument(value: JsonValue) -> ConfigArgument:
    """Convert the value of a config in a field change to an argument of an operation."""
    if is_secret(value):
        return bind_secret_ref(value)
    return as_texts(value) if isinstance(value, list | tuple) else as_text_or_none(value)


def show_config_argument(value: ConfigArgument) -> JsonValue:
    """Convert the value of a config in the arguments of an operation to the format of views and changes."""
    if isinstance(value, SecretRef):
        return value.as_json()
    return list(value) if isinstance(value, tuple) else value
