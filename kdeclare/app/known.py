"""The names that there are, for whoever completes what a person types, or says what a failure is about."""

from collections.abc import Mapping
from pathlib import Path

from kdeclare.app.plan import load_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.manifests.project import PROJECT_FILE, project_names, read_project
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.port import ConfigQuery


def topic_names(workspace: Workspace) -> tuple[str, ...]:
    """All topics of the cluster but the internal ones, sorted. Raises KdeclareError."""
    with workspace.cluster() as cluster:
        return tuple(sorted(name for name, topic in cluster.topics().items() if not topic.internal))


def broker_ids(workspace: Workspace) -> tuple[int, ...]:
    """All brokers of the cluster, sorted. Raises KdeclareError."""
    with workspace.cluster() as cluster:
        return tuple(sorted(broker.id for broker in cluster.describe().brokers))


def overrides(workspace: Workspace, resource: ConfigResource) -> Mapping[str, str | None]:
    """What is set on a resource itself; None for what Kafka keeps secret. Raises KdeclareError."""
    with workspace.cluster() as cluster:
        found = cluster.configs([ConfigQuery(resource, overrides=True)])
        return {key: entry.value for key, entry in found.get(resource, {}).items()}


def declared(workspace: Workspace) -> tuple[str, ...]:
    """What the manifests declare, as ``Kind/name``, sorted. Raises KdeclareError."""
    return tuple(sorted(str(item.id) for item in load_manifests(workspace, ()).desired))


def run_ids(workspace: Workspace) -> tuple[str, ...]:
    """All runs of the project in its environment, the latest first. Raises KdeclareError."""
    return tuple(reversed(workspace.store.runs()))


def environment_names(project: Path | None) -> tuple[str, ...]:
    """The environments of a project file (default: the one that is here). Raises KdeclareError."""
    file = project or Path(PROJECT_FILE)
    return tuple(read_project(file).spec.environments) if file.is_file() else ()


def project_and_environment(project: Path | None, env: str | None) -> tuple[str, str] | None:
    """What they are called; None where the project file cannot be read, or has no such environment."""
    try:
        return project_names(project, env)
    except KdeclareError:
        return None
