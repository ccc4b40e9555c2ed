"""A live cluster as manifests, so that the next plan says "No changes."."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kdeclare.app.workspace import Workspace
from kdeclare.cluster.port import ConfigQuery
from kdeclare.kinds.query import Query
from kdeclare.kinds.registry import KINDS
from kdeclare.manifests.files import file_name
from kdeclare.model.diagnostics import KdeclareError, error
from kdeclare.model.ids import ConfigResource, ConfigScope, ResourceId
from kdeclare.model.live import Snapshot
from kdeclare.planning.observe import observe


@dataclass(frozen=True, slots=True)
class Imported:
    """One resource as the text of its manifest, and the file that it belongs in."""

    id: ResourceId
    file: Path
    text: str


def import_cluster(workspace: Workspace, match: str | None = None) -> tuple[Imported, ...]:
    """Manifests of all that the cluster has, or of the topics whose whole name ``match`` matches.

    match: a regular expression. Internal topics are left out. Raises KdeclareError for one that is none, and
    where the cluster cannot be read.
    """
    wanted = _pattern(match)
    with workspace.cluster() as cluster:
        info = cluster.describe()
        names = [t.name for t in cluster.topics().values() if not t.internal and wanted.fullmatch(t.name)]
        brokers = [] if match else ["", *(str(broker.id) for broker in info.brokers)]
        queries = [
            *(ConfigQuery(ConfigResource(ConfigScope.TOPIC, n), overrides=True) for n in names),
            *(ConfigQuery(ConfigResource(ConfigScope.BROKER, n), overrides=True) for n in brokers),
        ]
        live = observe(cluster, Query(frozenset(names), {q.resource: q for q in queries}))
    return tuple(_manifests(live))


def write_manifests(imported: Iterable[Imported], folder: Path) -> None:
    """Write them below ``folder``, overwriting nothing. Raises KdeclareError."""
    items = list(imported)
    there = [folder / item.file for item in items if (folder / item.file).exists()]
    if there:
        raise KdeclareError(
            error(
                "file-exists",
                "Manifests are there already",
                f"{len(there)} files would be overwritten, {there[0]} among them.",
                hint="Choose an empty folder with --out, or take them away first.",
            )
        )
    try:
        for item in items:
            target = folder / item.file
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(item.text, encoding="utf-8")
    except OSError as problem:
        raise KdeclareError(
            error("not-written", "Manifests cannot be written", f"{folder}: {problem.strerror}.")
        ) from None


def _manifests(live: Snapshot) -> Iterable[Imported]:
    for kind in KINDS.values():
        for name, text in sorted(kind.export(live).items()):
            resource = ResourceId(kind.name, name)
            yield Imported(resource, Path(f"{kind.name.lower()}s", file_name(resource)), text)


def _pattern(match: str | None) -> re.Pattern[str]:
    try:
        return re.compile(match or ".*")
    except re.error as wrong:
        raise KdeclareError(
            error(
                "bad-pattern",
                "Not a regular expression",
                f"--match '{match}': {wrong}.",
                hint="For one topic, give its name; for a prefix, give it with '.*' behind it.",
            )
        ) from None
