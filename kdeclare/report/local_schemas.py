"""The JSON Schemas of what is told of this machine: who holds a lock, and what the sandbox does."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field, with_config
from typing_extensions import TypedDict

from kdeclare.engine.planning.planfile_schema import CLOSED
from kdeclare.report.schemas import schemas_of
from kdeclare.report.view_schemas import LockDocument

Process = Annotated[int | None, Field(description="null where it does not run.")]
Alive = Annotated[bool, Field(description="Whether its process runs.")]
Ready = Annotated[bool, Field(description="Whether it answers.")]


@with_config(CLOSED)
class LockShownDocument(TypedDict):
    """Who holds the lock of a state."""

    format_version: Literal["1.0"]
    lock: Annotated[LockDocument | None, Field(description="null where nobody does.")]


@with_config(CLOSED)
class SandboxBrokerDocument(TypedDict):
    """One broker, at 127.0.0.1."""

    id: int
    pid: Process
    port: int
    rack: str
    alive: Alive
    ready: Ready
    log: Annotated[str, Field(description="The file of its log.")]


@with_config(CLOSED)
class SandboxWorkerDocument(TypedDict):
    """One Connect worker."""

    id: int
    pid: Process
    url: str
    alive: Alive
    ready: Ready
    log: Annotated[str, Field(description="The file of its log.")]


@with_config(CLOSED)
class SandboxClusterDocument(TypedDict):
    """One cluster of a sandbox."""

    folder: str
    exists: bool
    running: bool
    ready: Annotated[bool, Field(description="Whether all of it answers.")]
    bootstrap: Annotated[str, Field(description="Its address; empty for several clusters as a whole.")]
    cluster_id: str
    brokers: list[SandboxBrokerDocument]
    workers: list[SandboxWorkerDocument]
    ca_file: Annotated[str, Field(description="Whose certificates the workers show; empty without workers.")]
    client_files: Annotated[list[str], Field(description="Client properties, one file for each user.")]


@with_config(CLOSED)
class SandboxMemberDocument(SandboxClusterDocument):
    """One of several clusters."""

    name: str


@with_config(CLOSED)
class SandboxDocument(SandboxClusterDocument):
    """The whole sandbox."""

    format_version: Literal["1.0"]
    clusters: NotRequired[
        Annotated[list[SandboxMemberDocument], Field(description="Left out where it is one cluster.")]
    ]


def local_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `schemas_of`."""
    return schemas_of({"lock": LockShownDocument, "sandbox-status": SandboxDocument})
