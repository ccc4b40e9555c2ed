"""Text and JSON output of ``kdeclare sandbox``."""

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, PlainSerializer, WithJsonSchema

from kdeclare.core.documents import PathText, build_document, publish_schemas
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.units import format_count
from kdeclare.sandbox import BrokerStatus, RegistryStatus, SandboxStatus, WorkerStatus

if TYPE_CHECKING:
    from kdeclare.app.sandbox import Sandbox


def list_clusters(sandbox: "Sandbox") -> tuple[SandboxStatus, ...]:
    """Return the status of each cluster of a sandbox."""
    return (sandbox,) if isinstance(sandbox, SandboxStatus) else sandbox.clusters


def format_addresses(status: SandboxStatus) -> str:
    """Return the addresses and file paths that clients need, one per line.

    The lines are the brokers' address, the URL of each worker, the PEM file of the workers' certificate
    authority, the files of client properties, and the URL of the schema registry.
    """
    lines = [status.bootstrap, *(worker.url for worker in status.workers)]
    if status.ca_file is not None:
        lines.append(str(status.ca_file))
    lines += map(str, status.client_files)
    if status.registry is not None:
        lines.append(status.registry.url)
    return "".join(f"{line}\n" for line in lines)


def describe_start(status: SandboxStatus) -> tuple[str, str]:
    """Describe a started cluster: its processes, and the lines of `format_addresses`."""
    members = [format_count(len(status.brokers), "broker")]
    addresses = "Address for clients"
    if status.workers:
        members.append(format_count(len(status.workers), "Connect worker"))
        addresses = "Address, worker URLs and certificate authority"
        if status.client_files:
            addresses += ", and client properties"
    elif status.client_files:
        addresses = "Address, and client properties of 'admin' and 'reader'"
    if status.registry is not None:
        members.append("schema registry")
        addresses += ", and URL of the schema registry"
    *others, last = members
    return f"{', '.join(others)} and {last}" if others else last, addresses


def render_cluster(status: SandboxStatus) -> str:
    """Render the status of one cluster, with one line for each process."""
    if not status.exists:
        return f"There is no sandbox in {status.folder}.\n"
    state = "ready" if status.ready else "not ready" if status.running else "stopped"
    lines = [f"Sandbox in {status.folder}: {state}."]
    for broker in status.brokers:
        broker_words = f"broker {broker.id}  127.0.0.1:{broker.port}  {broker.rack}"
        lines.append(f"  {broker_words}  {_format_state(broker)}  {broker.log}")
    for worker in status.workers:
        lines.append(f"  worker {worker.id}  {worker.url}  {_format_state(worker)}  {worker.log}")
    if status.registry is not None:
        registry_words = f"schema registry  {status.registry.url}"
        lines.append(f"  {registry_words}  {_format_state(status.registry)}  {status.registry.log}")
    lines.append(f"Address: {status.bootstrap}")
    if status.ca_file is not None:
        lines.append(f"The workers' certificates are signed by: {status.ca_file}")
    for file in status.client_files:
        lines.append(f"Client properties of {file.stem}: {file}")
    return "".join(f"{line}\n" for line in lines)


def _format_state(member: BrokerStatus | WorkerStatus | RegistryStatus) -> str:
    state = "ready" if member.ready else "not ready" if member.alive else "stopped"
    process = f"process {member.pid}" if member.pid else ""
    return f"{state:<9}  {process}".rstrip()


@dataclass(frozen=True, slots=True)
class SandboxCluster:
    """The status of one cluster of a sandbox."""

    folder: PathText
    exists: bool
    running: bool
    ready: Annotated[bool, Field(description="Whether all processes respond.")]
    bootstrap: Annotated[
        str, Field(description="Bootstrap servers of the cluster; empty if there are several clusters.")
    ] = ""
    cluster_id: str = ""
    brokers: tuple[BrokerStatus, ...] = ()
    workers: tuple[WorkerStatus, ...] = ()
    ca_file: Annotated[
        Path | None,
        PlainSerializer(lambda file: str(file or "")),
        WithJsonSchema({"type": "string"}),
        Field(
            description="PEM file of the authority that signed the workers' certificates; empty if there are "
            "no workers."
        ),
    ] = None
    client_files: Annotated[
        tuple[PathText, ...], Field(description="Client properties files, one per user.")
    ] = ()
    registry: Annotated[
        RegistryStatus | None,
        Field(
            description="The schema registry; absent if there is none.", exclude_if=lambda one: one is None
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class SandboxMember(SandboxCluster):
    """The status of one cluster of a sandbox that has several clusters."""

    name: str = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class SandboxDocument(SandboxCluster):
    """The status of a whole sandbox.

    With several clusters, the fields that describe a single cluster are present but empty, so that a script
    written for a single cluster finds all keys.
    """

    clusters: Annotated[
        tuple[SandboxMember, ...],
        Field(
            description="The clusters; absent if there is only one.", exclude_if=lambda members: not members
        ),
    ] = ()


def describe_sandbox(sandbox: "Sandbox") -> SandboxDocument:
    """Build the JSON document with the status of all clusters."""
    if isinstance(sandbox, SandboxStatus):
        return build_document(SandboxDocument, sandbox)
    members = tuple(build_document(SandboxMember, one, name=one.folder.name) for one in sandbox.clusters)
    return build_document(SandboxDocument, sandbox, brokers=(), clusters=members)


def sandbox_schemas() -> Mapping[str, dict[str, Any]]:
    """Return the JSON Schemas of the sandbox documents, by document name; see `publish_schemas`."""
    return publish_schemas({"sandbox-status": SandboxDocument})
