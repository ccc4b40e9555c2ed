"""The measured topics: one partition, three configs, and three replicas by default."""

from pathlib import Path

BATCH = 500
"""Topics per request, for the bare calls and for kdeclare."""

HOUR_MS = 3_600_000


def names(prefix: str, count: int) -> list[str]:
    """Return names like ``prefix-00000``."""
    return [f"{prefix}-{number:05}" for number in range(count)]


def configs(number: int, retention_ms: int = HOUR_MS, replicas: int = 3) -> dict[str, str]:
    """Return the declared configs of one topic; they differ between topics."""
    return {
        "retention.ms": str(retention_ms + number % 7 * HOUR_MS),
        "max.message.bytes": str(1_000_000 + number % 3),
        "min.insync.replicas": str(max(1, replicas - 1)),
    }


def write_project(folder: Path, prefix: str, count: int, bootstrap: str, replicas: int = 3) -> None:
    """Write a project file and its manifests."""
    folder.mkdir(parents=True)
    write_project_file(folder, bootstrap)
    (folder / "manifests").mkdir()
    write_manifests(folder, prefix, count, replicas=replicas)


def write_project_file(folder: Path, bootstrap: str) -> None:
    """Write only the project file."""
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
    """Write one file per topic."""
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
