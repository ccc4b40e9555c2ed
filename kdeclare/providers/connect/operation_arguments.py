"""The type of the arguments of `PatchWorkers` in a plan file."""

from typing import Annotated, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.core.operation_arguments import CLOSED, SecretArgument


@with_config(CLOSED)
class WorkerConfigOpArgs(TypedDict):
    key: str
    op: Literal["SET", "DELETE"]
    value: str | SecretArgument | None
    was: NotRequired[SecretArgument]


@with_config(CLOSED)
class WorkersArgs(TypedDict):
    urls: Annotated[list[str], Field(min_length=1)]
    ca_file: NotRequired[str]
    cert_file: NotRequired[str]
    key_file: NotRequired[str]
    headers: NotRequired[list[list[str]]]


@with_config(CLOSED)
class PatchWorkersArgs(TypedDict):
    workers: WorkersArgs
    ops: list[WorkerConfigOpArgs]
    again: NotRequired[list[str]]
