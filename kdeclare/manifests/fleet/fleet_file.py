"""Read and validate fleet files."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.suggestions import format_suggestion
from kdeclare.manifests.document_models import (
    Envelope,
    Metadata,
    TextMap,
    load_document,
    parse_variables,
    resolve_location,
)
from kdeclare.manifests.schema_errors import build_diagnostics
from kdeclare.manifests.syntax.node_reader import KAFKA, TEXT, NodeReader, build_modes_by_name
from kdeclare.manifests.syntax.nodes import find_node, find_position, get_position
from kdeclare.manifests.syntax.substitution import UNRESOLVED_CODES, ReferenceContext, Variable


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One cluster of a fleet. Paths are resolved. The repr omits values that can be secrets.

    project: the project file, or None if the cluster is defined inline.
    env: the environment of the project, or None for the default environment.
    bootstrap_servers, client_config, client_config_file: the connection settings, or None if not set. They
        override the settings of the project.
    state: the folder or URI of the state, or None if not set. It overrides the state of the project.
    selector: the labels that a declared resource must have to be used for this cluster.
    source: the position of the cluster's name in the fleet file.
    places: the position of each field. The key for an element of a list is ``field.index``.
    unresolved: the errors for references that cannot be resolved. They are reported only if the cluster is
        used.
    """

    name: str
    labels: Mapping[str, str]
    project: Path | None
    env: str | None
    bootstrap_servers: str | None
    client_config: Mapping[str, str] | None = field(repr=False)
    client_config_file: Path | None
    manifests: tuple[Path, ...]
    overlays: tuple[Path, ...]
    variables: Mapping[str, Variable] = field(repr=False)
    state: str | None
    selector: Mapping[str, str]
    source: SourcePosition
    places: Mapping[str, SourcePosition] = field(default_factory=dict, repr=False, compare=False)
    unresolved: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout:
    """The order in which the clusters of a fleet are changed.

    canary: the labels of the clusters that are changed first.
    batch_size: the number of clusters to change at a time after the canaries, or None for no limit.
    max_failures: the number of failed clusters that are tolerated. If more clusters fail, no further
        plans are applied.
    """

    canary: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    max_failures: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """The contents of a fleet file.

    clusters: the selected clusters.
    max_concurrent: the maximum number of clusters to process at the same time.
    all_overlays: the overlays of all inline clusters. Overlays are not loaded as manifests, even if they are
        in a folder of manifests.
    left_out: the names of the clusters that were not selected.
    """

    name: str
    file: Path
    folder: Path
    clusters: tuple[ClusterEntry, ...]
    max_concurrent: int = 16
    rollout: Rollout = Rollout()
    all_overlays: tuple[Path, ...] = ()
    left_out: tuple[str, ...] = ()


_BAD_IN_NAME = re.compile(r"[/\\\x00-\x1f\x7f]")
_LONGEST_NAME = 200
_INLINE_ONLY = ("manifests", "overlays", "variables")


class ClusterSpec(BaseModel):
    """An element of ``spec.clusters``: an environment of a project, or a cluster that is defined inline."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str
    labels: TextMap = {}
    project: str | None = None
    env: str | None = None
    bootstrapServers: str | None = None  # noqa: N815
    clientConfig: TextMap | None = None  # noqa: N815
    clientConfigFile: str | None = None  # noqa: N815
    manifests: list[str] | None = None
    overlays: list[str] | None = None
    variables: dict[str, Any] | None = None
    state: str | None = None
    selector: TextMap = {}


class RolloutSpec(BaseModel):
    """``spec.rollout``: the order in which the clusters are changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    canary: TextMap = {}
    batchSize: Annotated[int, Field(ge=1)] | None = None  # noqa: N815
    maxFailures: Annotated[int, Field(ge=0)] = 0  # noqa: N815


class FleetSpec(BaseModel):
    """``spec`` of a fleet file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    maxConcurrentClusters: Annotated[int, Field(ge=1)] = 16  # noqa: N815
    rollout: RolloutSpec = RolloutSpec()
    clusters: Annotated[list[ClusterSpec], Field(json_schema_extra={"minItems": 1})]


class FleetManifest(Envelope):
    """A complete fleet file."""

    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec


def check_fleet(spec: FleetSpec, root: Node) -> Iterator[Diagnostic]:
    """Yield the problems of a fleet file that its model does not detect."""
    if not spec.clusters:
        yield error(
            "no-clusters",
            "Fleet without clusters",
            "'spec.clusters' is empty; a fleet needs at least one cluster.",
            hint="Add a cluster to 'spec.clusters'.",
            place=find_position(root, ("spec", "clusters")),
        )
        return
    yield from _check_names(spec.clusters, root)
    for n, cluster in enumerate(spec.clusters):
        yield from _check_field_combinations(cluster, ("spec", "clusters", n), root)
    label_error = find_unknown_label(spec.rollout.canary, [cluster.labels for cluster in spec.clusters])
    if label_error is not None:
        path = ("spec", "rollout", "canary", *([label_error.subject] if label_error.subject else []))
        yield replace(label_error, place=find_position(root, path, key=label_error.subject is not None))


def find_unknown_label(
    selector: Mapping[str, str], clusters: Sequence[Mapping[str, str]]
) -> Diagnostic | None:
    """Return an error without a position if no cluster has all labels of a selector; otherwise None.

    If one of the labels does not occur in any cluster, its key is the subject of the error.

    clusters: the labels of each cluster.
    """
    if not selector or any(selector.items() <= labels.items() for labels in clusters):
        return None
    for key, value in selector.items():
        values = {labels[key]: None for labels in clusters if key in labels}
        if not values:
            known_keys = dict.fromkeys(key for labels in clusters for key in labels)
            return _build_unknown_label_error(
                f"No cluster of the fleet has a label '{key}'.", key, key, known_keys
            )
        if value not in values:
            return _build_unknown_label_error(
                f"No cluster of the fleet has the label {key}={value}.", key, value, values
            )
    label_texts = ", ".join(f"{key}={value}" for key, value in selector.items())
    detail = f"No cluster of the fleet has all of the labels {label_texts}."
    hint = "Check the labels of the clusters in 'spec.clusters'."
    return error("unknown-label", "No such cluster", detail, hint=hint)


def _build_unknown_label_error(detail: str, key: str, word: str, known_words: Iterable[str]) -> Diagnostic:
    words = sorted(known_words)
    hint = format_suggestion(word, words) or (f"Use one of {', '.join(words[:10])}." if words else "")
    return error("unknown-label", "No such label", detail, hint=hint, subject=key)


def _check_names(clusters: Sequence[ClusterSpec], root: Node) -> Iterator[Diagnostic]:
    first_positions: dict[str, SourcePosition] = {}
    for n, cluster in enumerate(clusters):
        name_position = find_position(root, ("spec", "clusters", n, "name"))
        reason = _explain_bad_name(cluster.name)
        if reason:
            yield error(
                "illegal-name",
                "Illegal name",
                f"The cluster name {cluster.name!r} cannot be used as a file name: {reason}. "
                "Plans are written to <cluster>.plan.json.",
                hint="Choose another name.",
                place=name_position,
                subject=cluster.name,
            )
        if first_positions.setdefault(cluster.name, name_position) is not name_position:
            yield error(
                "duplicate-cluster",
                "Duplicate cluster name",
                f"The cluster at {first_positions[cluster.name]} is also named '{cluster.name}'.",
                hint="Give each cluster a unique name.",
                place=name_position,
                subject=cluster.name,
            )


def _explain_bad_name(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if _BAD_IN_NAME.search(name):
        return "it contains a slash or a control character"
    if name.startswith("."):
        return "it begins with a dot"
    if len(name.encode()) > _LONGEST_NAME:
        return f"it is longer than {_LONGEST_NAME} bytes"
    return ""


def _check_field_combinations(
    cluster: ClusterSpec, path: tuple[str | int, ...], root: Node
) -> Iterator[Diagnostic]:
    def build_conflict_error(field: str, detail: str, hint: str) -> Diagnostic:
        return error(
            "conflicting-fields",
            "Conflicting fields",
            detail,
            hint=hint,
            place=find_position(root, (*path, field), key=True),
            subject=field,
        )

    if cluster.project is not None:
        for field in _INLINE_ONLY:
            if getattr(cluster, field) is not None:
                detail = (
                    f"'{cluster.name}' has a project, which defines '{field}', so this field is not allowed "
                    "here."
                )
                yield build_conflict_error(
                    field, detail, f"Move '{field}' to the project file, or remove 'project'."
                )
    elif cluster.env is not None:
        detail = f"'{cluster.name}' has 'env' but no 'project' that could define the environment."
        yield build_conflict_error("env", detail, "Add 'project', or remove 'env'.")
    if cluster.clientConfig is not None and cluster.clientConfigFile is not None:
        detail = f"'{cluster.name}' has both 'clientConfig' and 'clientConfigFile', but only one is allowed."
        yield build_conflict_error(
            "clientConfigFile", detail, "Put all properties into one of the two fields."
        )
    if not (cluster.project is not None or cluster.bootstrapServers or _has_servers(cluster)):
        yield error(
            "missing-field",
            "Missing field",
            f"'{cluster.name}' needs 'project' or 'bootstrapServers'.",
            hint="Add 'project' with the path of a project file, or 'bootstrapServers' with the brokers.",
            place=find_position(root, path),
            subject="bootstrapServers",
        )


def _has_servers(cluster: ClusterSpec) -> bool:
    return cluster.clientConfigFile is not None or "bootstrap.servers" in (cluster.clientConfig or {})


_MODES = build_modes_by_name(
    {
        "metadata": TEXT,
        "labels": TEXT,
        "selector": TEXT,
        "canary": TEXT,
        "configs": KAFKA,
        "clientConfig": KAFKA,
    }
)
"""The modes for reading a fleet file. The scalars in the listed fields are read as strings."""


def open_fleet(file: Path, environ: Mapping[str, str]) -> Fleet:
    """Read a fleet file without opening the projects of its clusters.

    Raises KdeclareError with all problems of the file. A missing environment variable or file is not an error
    yet, because the cluster that refers to it might not be selected. See ``ClusterEntry.unresolved``.
    """
    root = load_document(file, "Fleet", "Pass the path of a readable fleet file.")
    context = ReferenceContext(file.parent, environ, variables=None)
    data, problems, unresolved = _parse_fleet(root, context)
    manifest = None
    try:
        manifest = FleetManifest.model_validate(data, strict=True)
    except ValidationError as e:
        problems += build_diagnostics(e, FleetManifest, data, root)
    else:
        problems += check_fleet(manifest.spec, root)
    if problems or manifest is None:
        raise KdeclareError(*sort_diagnostics(problems))
    spec, folder = manifest.spec, file.parent
    entries = tuple(
        _build_entry(
            cluster, n, root, folder, NodeReader(None if n in unresolved else context), unresolved.get(n, ())
        )
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


def _parse_fleet(
    root: Node, scope: ReferenceContext
) -> tuple[Any, list[Diagnostic], dict[int, tuple[Diagnostic, ...]]]:
    """Return the data of a fleet file, its problems, and the errors for unresolved references.

    The errors are grouped by the index of the cluster. If a cluster has unresolved references, its data
    contains all references as written.
    """
    clusters = find_node(root, ("spec", "clusters"))
    if not isinstance(clusters, SequenceNode):
        reader = NodeReader(scope, _MODES)
        return reader.read(root), reader.problems, {}
    reader = NodeReader(scope, _MODES)
    data = reader.read(_drop_clusters(root))
    items, unresolved = [], {}
    for n, node in enumerate(clusters.value):
        problems = len(reader.problems)
        item = reader.read(node)
        item_unresolved = tuple(filter(_is_unresolved, reader.problems[problems:]))
        if item_unresolved:
            unresolved[n] = item_unresolved
            item = NodeReader(None, _MODES).read(node)
        items.append(item)
    data["spec"]["clusters"] = items
    return (
        data,
        [p for p in reader.problems if not _is_unresolved(p) or _is_outside_clusters(p, unresolved)],
        unresolved,
    )


def _is_unresolved(problem: Diagnostic) -> bool:
    """Return whether a problem is a missing environment variable or an unreadable file in a reference.

    Return False for ``${var.NAME}``, which fleet files cannot use. Such an error has no subject.
    """
    return problem.code in UNRESOLVED_CODES and problem.subject is not None


def _is_outside_clusters(problem: Diagnostic, unresolved: Mapping[int, tuple[Diagnostic, ...]]) -> bool:
    return not any(problem in found for found in unresolved.values())


def _drop_clusters(root: Node) -> Node:
    def empty_clusters(node: Node, path: tuple[str, ...]) -> Node:
        if not path:
            return SequenceNode(node.tag, [], node.start_mark, node.end_mark)
        pairs = [(k, empty_clusters(v, path[1:]) if k.value == path[0] else v) for k, v in node.value]
        return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)

    return empty_clusters(root, ("spec", "clusters"))


def _build_entry(
    spec: ClusterSpec,
    n: int,
    root: Node,
    folder: Path,
    reader: NodeReader,
    unresolved: tuple[Diagnostic, ...],
) -> ClusterEntry:
    cluster_path = ("spec", "clusters", n)
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
        parse_variables(find_node(root, (*cluster_path, "variables")), reader),
        resolve_location(folder, spec.state) if spec.state is not None else None,
        spec.selector,
        find_position(root, (*cluster_path, "name")),
        dict(_collect_positions(find_node(root, cluster_path))),
        unresolved,
    )


def _collect_positions(cluster: Node | None) -> Iterator[tuple[str, SourcePosition]]:
    for key, value in cluster.value if cluster is not None else ():
        yield key.value, get_position(value)
        for n, item in enumerate(value.value if isinstance(value, SequenceNode) else ()):
            yield f"{key.value}.{n}", get_position(item)


def select_clusters(fleet: Fleet, names: Sequence[str], selector: Mapping[str, str]) -> Fleet:
    """Return the fleet with only the clusters that have one of these names and all of these labels.

    names: the names of clusters. If empty, clusters with any name are selected.
    selector: the required labels. If empty, clusters with any labels are selected.
    Raises KdeclareError for a name or label that no cluster has, and if no cluster is selected.
    """
    cluster_names = [entry.name for entry in fleet.clusters]
    problems = [
        error(
            "unknown-cluster",
            "No such cluster",
            f"The fleet '{fleet.name}' has no cluster '{name}'.",
            hint=format_suggestion(name, cluster_names)
            or f"Use one of {', '.join(cluster_names[:10])}{', …' * (len(cluster_names) > 10)}.",
            subject=name,
        )
        for name in dict.fromkeys(names)
        if name not in cluster_names
    ]
    label_error = find_unknown_label(selector, [entry.labels for entry in fleet.clusters])
    problems += [label_error] if label_error is not None else []
    clusters = tuple(
        entry
        for entry in fleet.clusters
        if (not names or entry.name in names) and selector.items() <= entry.labels.items()
    )
    if not clusters and not problems:
        detail = f"None of the clusters {', '.join(names)} has all of the labels {_format_labels(selector)}."
        problems.append(error("unknown-cluster", "No such cluster", detail))
    if problems:
        raise KdeclareError(*problems)
    left_out = tuple(name for name in cluster_names if name not in {entry.name for entry in clusters})
    return replace(fleet, clusters=clusters, left_out=left_out)


def _format_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
