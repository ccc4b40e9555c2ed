"""The arguments of operations on topics and configs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue, as_text_or_none, as_texts
from kdeclare.core.operations.argument_binding import OMIT_NONE
from kdeclare.core.operations.operation import Arguments
from kdeclare.core.resources.changes import FieldOp
from kdeclare.core.secrets.secret_refs import SecretRef, bind_secret_ref, is_secret
from kdeclare.providers.kafka.port import NewTopic, Replicas, TopicArgs

PartitionName = Annotated[str, Field(pattern=r"^.+-(0|[1-9][0-9]*)$")]
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
class DeleteTopicArgs(TopicArgs):
    """A topic to be deleted.

    topic_id: deletes the topic with this id, and no other one that has its name by now; None deletes by name.
    require_empty: whether it stays where it holds records. recreate: what made it, where it goes because
        that is undone. Journals of kdeclare 0.1 have only the name.
    """

    topic_id: str | None = None
    require_empty: bool = False
    recreate: NewTopic | None = None


@dataclass(frozen=True, slots=True)
class ConfigOpArgs(Arguments):
    """One op on one key (KIP-339). value: None for DELETE. was: the record of a secret that it overwrites."""

    key: str
    op: OpName
    value: ConfigArgument
    was: Annotated[SecretRef | None, OMIT_NONE] = None

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


def make_config_argument(value: JsonValue) -> ConfigArgument:
    """Return the value of a field of a change as an argument."""
    if is_secret(value):
        return bind_secret_ref(value)
    return as_texts(value) if isinstance(value, list | tuple) else as_text_or_none(value)


def show_config_argument(value: ConfigArgument) -> JsonValue:
    """Return an argument as views and fields of changes hold it; not for secrets."""
    if isinstance(value, SecretRef):
        return value.as_json()
    return list(value) if isinstance(value, tuple) else value
