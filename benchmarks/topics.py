"""The topics that are measured: one partition and three configs each, and three replicas by default."""

from pathlib import Path

BATCH = 500
"""Topics a request, for the bare calls as for kdeclare."""

HOUR_MS = 3_600_000


def names(prefix: str, count: int) -> list[str]:
    """``prefix-00000`` and so on."""
    return [f"{prefix}-{number:05}" for number in range(count)]


def configs(number: int, retention_ms: int = HOUR_MS, replicas: int = 3) -> dict[str, str]:
    """What is declared of one topic; not the same for all, as in life."""
    return {
        "retention.ms": str(retention_ms + number % 7 * HOUR_MS),
        "max.message.bytes": str(1_000_000 + number % 3),
        "min.insync.replicas": str(max(1, replicas - 1)),
    }


def write_project(folder: Path, prefix: str, count: int, bootstrap: str, replicas: int = 3) -> None:
    """A project file, and the manifests beside it."""
    folder.mkdir(parents=True)
    write_project_file(folder, bootstrap)
    (folder / "manifests").mkdir()
    write_manifests(folder, prefix, count, replicas=replicas)


def write_project_file(folder: Path, bootstrap: str) -> None:
    """The project file alone."""
    project = f"""\
apiVersion: kdeclare/v1
kind: Project
metadata: {{name: benchmark}}
spec:
  environments:
    default: {{bootstrapServers: '{bootstrap}'}}
"""
    (folder / "kdeclare.yaml").write_text(project)


def write_manifests(
    folder: Path, prefix: str, count: int, retention_ms: int = HOUR_MS, replicas: int = 3
) -> None:
    """One file a topic."""
    for number, name in enumerate(names(prefix, count)):
        lines = [f"    {key}: {value}" for key, value in configs(number, retention_ms, replicas).items()]
        text = f"""\
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name: {name}
  labels: {{team: benchmark}}
spec:
  partitions: 1
  replicationFactor: {replicas}
  configs:
"""
        (folder / "manifests" / f"{name}.yaml").write_text(text + "\n".join(lines) + "\n")
