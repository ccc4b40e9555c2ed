"""From a fleet file to a fleet."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, in_order
from kdeclare.manifests.document import document, location, variables_of
from kdeclare.manifests.fleet.spec import ClusterSpec, FleetManifest, fleet_problems
from kdeclare.manifests.fleet.values import ClusterEntry, Fleet, Rollout
from kdeclare.manifests.nodes import find, node_at, place
from kdeclare.manifests.reading import KAFKA, TEXT, Reader
from kdeclare.manifests.schema_errors import explain
from kdeclare.manifests.substitution import Scope

_MODES: Mapping[str | int, int] = {
    "metadata": TEXT,
    "labels": TEXT,
    "selector": TEXT,
    "canary": TEXT,
    "configs": KAFKA,
    "clientConfig": KAFKA,
}
"""Fields of a fleet that are not read as values."""
_NOT_RESOLVED = ("undefined-variable", "unreadable-reference")


def open_fleet(file: Path, environ: Mapping[str, str]) -> Fleet:
    """Read a fleet file; no project is opened. Raises KdeclareError with all that is wrong with it.

    What is not set in ``environ`` is no error yet, as another cluster's need not be: see
    ``ClusterEntry.unresolved``.
    """
    root = document(file, "Fleet", "Name the fleet file.")
    scope = Scope(file.parent, environ, variables=None)
    data, problems, unresolved = _read(root, scope)
    manifest = None
    try:
        manifest = FleetManifest.model_validate(data, strict=True)
    except ValidationError as e:
        problems += explain(e, FleetManifest, data, root)
    else:
        problems += fleet_problems(manifest.spec, root)
    if problems or manifest is None:
        raise KdeclareError(*in_order(problems))
    spec, folder = manifest.spec, file.parent
    entries = tuple(
        _entry(cluster, n, root, folder, Reader(None if n in unresolved else scope), unresolved.get(n, ()))
        for n, cluster in enumerate(spec.clusters)
    )
    return Fleet(
        manifest.metadata.name,
        file,
        folder,
        entries,
        spec.maxConcurrentClusters,
        Rollout(spec.rollout.canary, spec.rollout.batchSize, spec.rollout.maxFailures),
        tuple(dict.fromkeys(path for entry in entries for path in entry.overlays)),
    )


def _read(root: Node, scope: Scope) -> tuple[Any, list[Diagnostic], dict[int, tuple[Diagnostic, ...]]]:
    """The data, what is wrong, and by cluster the references that lead nowhere, left as written there."""
    clusters = node_at(root, ("spec", "clusters"))
    if not isinstance(clusters, SequenceNode):
        reader = Reader(scope, _MODES)
        return reader.read(root), reader.problems, {}
    reader = Reader(scope, _MODES)
    data = reader.read(_without_clusters(root))
    items, unresolved = [], {}
    for n, node in enumerate(clusters.value):
        problems = len(reader.problems)
        item = reader.read(node)
        found = tuple(filter(_is_unresolved, reader.problems[problems:]))
        if found:
            unresolved[n] = found
            item = Reader(None, _MODES).read(node)
        items.append(item)
    data["spec"]["clusters"] = items
    return (
        data,
        [p for p in reader.problems if not _is_unresolved(p) or _is_outside(p, unresolved)],
        unresolved,
    )


def _is_unresolved(problem: Diagnostic) -> bool:
    """Whether it is about what is not there; a variable of kdeclare's, which cannot be, has no name there."""
    return problem.code in _NOT_RESOLVED and problem.subject is not None


def _is_outside(problem: Diagnostic, unresolved: Mapping[int, tuple[Diagnostic, ...]]) -> bool:
    return not any(problem in found for found in unresolved.values())


def _without_clusters(root: Node) -> Node:
    def emptied(node: Node, path: tuple[str, ...]) -> Node:
        if not path:
            return SequenceNode(node.tag, [], node.start_mark, node.end_mark)
        pairs = [(k, emptied(v, path[1:]) if k.value == path[0] else v) for k, v in node.value]
        return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)

    return emptied(root, ("spec", "clusters"))


def _entry(
    spec: ClusterSpec, n: int, root: Node, folder: Path, reader: Reader, unresolved: tuple[Diagnostic, ...]
) -> ClusterEntry:
    at = ("spec", "clusters", n)
    client_file = spec.clientConfigFile
    return ClusterEntry(
        spec.name,
        spec.labels,
        Path(os.path.normpath(folder / spec.project)) if spec.project is not None else None,
        spec.env,
        spec.bootstrapServers,
        spec.clientConfig,
        folder / client_file if client_file is not None else None,
        tuple(folder / path for path in spec.manifests or ()),
        tuple(folder / path for path in spec.overlays or ()),
        variables_of(node_at(root, (*at, "variables")), reader),
        location(folder, spec.state) if spec.state is not None else None,
        spec.selector,
        find(root, (*at, "name")),
        dict(_places(node_at(root, at))),
        unresolved,
    )


def _places(cluster: Node | None) -> Iterator[tuple[str, Place]]:
    for key, value in cluster.value if cluster is not None else ():
        yield key.value, place(value)
        for n, item in enumerate(value.value if isinstance(value, SequenceNode) else ()):
            yield f"{key.value}.{n}", place(item)
