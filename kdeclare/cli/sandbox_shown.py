"""What ``kdeclare sandbox`` prints of a sandbox: for people, and for scripts."""

from typing import TYPE_CHECKING

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


def document(now: "Sandbox") -> dict[str, object]:
    """The state of all clusters."""
    if isinstance(now, SandboxStatus):
        return {"format_version": "1.0", **_cluster(now)}
    # What only a cluster has is as of none, so that what reads a single one finds all keys.
    whole = {"exists": now.exists, "running": now.running, "ready": now.ready}
    none = {
        "bootstrap": "",
        "cluster_id": "",
        "brokers": [],
        "workers": [],
        "ca_file": "",
        "client_files": [],
    }
    members = [{"name": one.folder.name, **_cluster(one)} for one in now.clusters]
    return {"format_version": "1.0", "folder": str(now.folder), **whole, **none, "clusters": members}


def _cluster(now: SandboxStatus) -> dict[str, object]:
    return {
        "folder": str(now.folder),
        "exists": now.exists,
        "running": now.running,
        "ready": now.ready,
        "bootstrap": now.bootstrap,
        "cluster_id": now.cluster_id,
        "brokers": [
            {
                "id": broker.id,
                "pid": broker.pid,
                "port": broker.port,
                "rack": broker.rack,
                "alive": broker.alive,
                "ready": broker.ready,
                "log": str(broker.log),
            }
            for broker in now.brokers
        ],
        "workers": [
            {
                "id": worker.id,
                "pid": worker.pid,
                "url": worker.url,
                "alive": worker.alive,
                "ready": worker.ready,
                "log": str(worker.log),
            }
            for worker in now.workers
        ],
        "ca_file": "" if now.ca_file is None else str(now.ca_file),
        "client_files": [str(file) for file in now.client_files],
    }
