"""The types of the arguments of operations on topics and configs in a plan file."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.operation_arguments import CLOSED, SecretArgument

Count = Annotated[int, Field(ge=1)]
BrokerId = Annotated[int, Field(ge=0)]
Replicas = Annotated[list[BrokerId], Field(min_length=1)]
ConfigValueArgument = str | list[str] | SecretArgument | None


@with_config(CLOSED)
class CreateTopicArgs(TypedDict):
    topic: str
    partitions: Count | None
    replication_factor: Count | None
    assignments: dict[Annotated[str, Field(pattern=r"^[0-9]+$")], Replicas] | None
    configs: dict[str, str | list[str]]


@with_config(CLOSED)
class DeleteTopicArgs(TypedDict):
    topic: str
    topic_id: NotRequired[str | None]
    require_empty: NotRequired[bool]
    recreate: NotRequired[CreateTopicArgs | None]


@with_config(CLOSED)
class IncreasePartitionsArgs(TypedDict):
    topic: str
    total: Count
    assignments: list[Replicas] | None


@with_config(CLOSED)
class ConfigOpArgs(TypedDict):
    key: str
    op: Literal["SET", "DELETE", "APPEND", "SUBTRACT"]
    value: ConfigValueArgument
    was: NotRequired[SecretArgument]


@with_config(CLOSED)
class AlterConfigsArgs(TypedDict):
    entity_type: Literal["TOPIC", "BROKER"]
    entity_name: str
    ops: Annotated[list[ConfigOpArgs], Field(min_length=1)]
