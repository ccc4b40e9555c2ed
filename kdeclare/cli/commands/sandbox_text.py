"""What ``kdeclare sandbox`` prints of a sandbox: for people, and for scripts."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PlainSerializer, WithJsonSchema

from kdeclare.core.documents import PathText, describe_as, publish_schemas
from kdeclare.core.frozen import dataclass
from kdeclare.sandbox import BrokerStatus, SandboxStatus, WorkerStatus

if TYPE_CHECKING:
    from kdeclare.app.sandbox import Sandbox


def clusters_of(now: "Sandbox") -> tuple[SandboxStatus, ...]:
    """The clusters, of which there is one mostly."""
    return (now,) if isinstance(now, SandboxStatus) else now.clusters


def addresses(now: SandboxStatus) -> str:
    """What clients need to know, a line each.

    The brokers; the workers' URLs and the file of their authority; the files of client properties.
    """
    lines = [now.bootstrap, *(worker.url for worker in now.workers)]
    if now.ca_file is not None:
        lines.append(str(now.ca_file))
    lines += map(str, now.client_files)
    return "".join(f"{line}\n" for line in lines)


def text(now: SandboxStatus) -> str:
    """The state of one cluster, broker by broker and worker by worker."""
    if not now.exists:
        return f"There is no sandbox in {now.folder}.\n"
    word = "ready" if now.ready else "not ready" if now.running else "stopped"
    lines = [f"Sandbox in {now.folder}: {word}."]
    for broker in now.brokers:
        what = f"broker {broker.id}  127.0.0.1:{broker.port}  {broker.rack}"
        lines.append(f"  {what}  {_state(broker)}  {broker.log}")
    for worker in now.workers:
        lines.append(f"  worker {worker.id}  {worker.url}  {_state(worker)}  {worker.log}")
    lines.append(f"Address: {now.bootstrap}")
    if now.ca_file is not None:
        lines.append(f"The workers' certificates are signed by: {now.ca_file}")
    for file in now.client_files:
        lines.append(f"Client properties of {file.stem}: {file}")
    return "".join(f"{line}\n" for line in lines)


def _state(one: BrokerStatus | WorkerStatus) -> str:
    word = "ready" if one.ready else "not ready" if one.alive else "stopped"
    process = f"process {one.pid}" if one.pid else ""
    return f"{word:<9}  {process}".rstrip()


@dataclass(frozen=True, slots=True)
class SandboxCluster:
    """One cluster of a sandbox."""

    folder: PathText
    exists: bool
    running: bool
    ready: Annotated[bool, Field(description="Whether all of it answers.")]
    bootstrap: Annotated[str, Field(description="Its address; empty for several clusters as a whole.")] = ""
    cluster_id: str = ""
    brokers: tuple[BrokerStatus, ...] = ()
    workers: tuple[WorkerStatus, ...] = ()
    ca_file: Annotated[
        Path | None,
        PlainSerializer(lambda file: str(file or "")),
        WithJsonSchema({"type": "string"}),
        Field(description="Whose certificates the workers show; empty without workers."),
    ] = None
    client_files: Annotated[
        tuple[PathText, ...], Field(description="Client properties, one file for each user.")
    ] = ()


@dataclass(frozen=True, slots=True)
class SandboxMember(SandboxCluster):
    """One of several clusters."""

    name: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SandboxDocument(SandboxCluster):
    """The whole sandbox.

    What only a cluster has is as of none where there are several, so that what reads a single one finds all
    keys.
    """

    clusters: Annotated[
        tuple[SandboxMember, ...],
        Field(description="Left out where it is one cluster.", exclude_if=lambda members: not members),
    ] = ()


def describe(now: "Sandbox") -> SandboxDocument:
    """The state of all clusters."""
    if isinstance(now, SandboxStatus):
        return describe_as(SandboxDocument, now)
    members = tuple(describe_as(SandboxMember, one, name=one.folder.name) for one in now.clusters)
    return describe_as(SandboxDocument, now, brokers=(), clusters=members)


def sandbox_schemas() -> Mapping[str, dict[str, Any]]:
    """By name; see `publish_schemas`."""
    return publish_schemas({"sandbox-status": SandboxDocument})
