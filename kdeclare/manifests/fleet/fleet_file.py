"""Fleet files: what one looks like, what can be wrong with it, the fleet that it makes as values."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import MappingNode, Node, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, Place, error, in_order
from kdeclare.core.frozen import dataclass
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.schema_errors import explain
from kdeclare.manifests.shapes import Envelope, Metadata, TextMap, document, location, variables_of
from kdeclare.manifests.syntax.nodes import find, node_at, place
from kdeclare.manifests.syntax.reading import KAFKA, TEXT, Reader, modes_by_name
from kdeclare.manifests.syntax.substitution import Scope, Variable


@dataclass(frozen=True, slots=True)
class ClusterEntry:
    """One cluster of a fleet. Paths are ready to be opened, values stay out of its repr.

    project: its file; None where the entry says all itself. env: which environment of it; None is the
        project's default.
    bootstrap_servers, client_config, client_config_file, state: with a project, instead of what it says;
        None where nothing is said. state is a folder or a URI.
    selector: labels; only declared resources with all of them are looked at.
    source: where its name stands; places: where its fields do, and those of lists by ``field.index``.
    unresolved: references in it that lead nowhere. Whoever uses the entry has to do with them.
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
    source: Place
    places: Mapping[str, Place] = field(default_factory=dict, repr=False, compare=False)
    unresolved: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout:
    """In which order clusters are changed.

    canary: labels of those that come first. batch_size: how many clusters are begun together; None is as
        many as can be. max_failures: how many may fail before no more are begun.
    """

    canary: Mapping[str, str] = field(default_factory=dict)
    batch_size: int | None = None
    max_failures: int = 0


@dataclass(frozen=True, slots=True)
class Fleet:
    """A fleet file, read.

    max_concurrent: how many clusters are worked on at the same time.
    all_overlays: of all clusters that are written out; folders of manifests may hold them.
    left_out: names of clusters that it has besides, and that were not chosen.
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
    """One of ``spec.clusters``: a project in one of its environments, or all that a project would say."""

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
    """``spec.rollout``: in which order the clusters are changed."""

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
    """A whole fleet file."""

    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec


def fleet_problems(spec: FleetSpec, root: Node) -> Iterator[Diagnostic]:
    """What is wrong with a fleet of the right shape."""
    if not spec.clusters:
        yield error(
            "no-clusters",
            "Fleet without clusters",
            "A fleet has at least one cluster.",
            place=find(root, ("spec", "clusters")),
        )
        return
    yield from _wrong_names(spec.clusters, root)
    for n, cluster in enumerate(spec.clusters):
        yield from _wrong_together(cluster, ("spec", "clusters", n), root)
    wrong = unknown_labels(spec.rollout.canary, [cluster.labels for cluster in spec.clusters])
    if wrong is not None:
        at = ("spec", "rollout", "canary", *([wrong.subject] if wrong.subject else []))
        yield replace(wrong, place=find(root, at, key=wrong.subject is not None))


def unknown_labels(wanted: Mapping[str, str], clusters: Sequence[Mapping[str, str]]) -> Diagnostic | None:
    """For labels that no cluster has, without a place; its subject is the label, if it is one alone."""
    if not wanted or any(wanted.items() <= labels.items() for labels in clusters):
        return None
    for key, value in wanted.items():
        values = {labels[key]: None for labels in clusters if key in labels}
        if not values:
            known = dict.fromkeys(key for labels in clusters for key in labels)
            return _no_label(f"No cluster of the fleet has a label '{key}'.", key, key, known)
        if value not in values:
            return _no_label(f"No cluster of the fleet has the label {key}={value}.", key, value, values)
    both = ", ".join(f"{key}={value}" for key, value in wanted.items())
    return error("unknown-label", "No such cluster", f"No cluster of the fleet has all of {both}.")


def _no_label(detail: str, key: str, word: str, known: Iterable[str]) -> Diagnostic:
    words = sorted(known)
    hint = did_you_mean(word, words) or (f"Known here: {', '.join(words[:10])}." if words else "")
    return error("unknown-label", "No such label", detail, hint=hint, subject=key)


def _wrong_names(clusters: Sequence[ClusterSpec], root: Node) -> Iterator[Diagnostic]:
    first: dict[str, Place] = {}
    for n, cluster in enumerate(clusters):
        where = find(root, ("spec", "clusters", n, "name"))
        why = _wrong_name(cluster.name)
        if why:
            yield error(
                "illegal-name",
                "Illegal name",
                f"The cluster's name {cluster.name!r} cannot be a file's: {why}.",
                hint="Plans are written to <cluster>.plan.json.",
                place=where,
                subject=cluster.name,
            )
        if first.setdefault(cluster.name, where) is not where:
            yield error(
                "duplicate-cluster",
                "Two clusters of one name",
                f"'{cluster.name}' is the name of the cluster at {first[cluster.name]}, too.",
                hint="Give each a name of its own.",
                place=where,
                subject=cluster.name,
            )


def _wrong_name(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if _BAD_IN_NAME.search(name):
        return "it holds a slash or a control character"
    if name.startswith("."):
        return "it begins with a dot"
    if len(name.encode()) > _LONGEST_NAME:
        return f"it has more than {_LONGEST_NAME} bytes"
    return ""


def _wrong_together(cluster: ClusterSpec, at: tuple[str | int, ...], root: Node) -> Iterator[Diagnostic]:
    """Fields that exclude or need each other."""

    def wrong(field: str, detail: str, hint: str) -> Diagnostic:
        return error(
            "conflicting-fields",
            "Fields do not go together",
            detail,
            hint=hint,
            place=find(root, (*at, field), key=True),
            subject=field,
        )

    if cluster.project is not None:
        for field in _INLINE_ONLY:
            if getattr(cluster, field) is not None:
                detail = (
                    f"'{cluster.name}' has a project, which says its {field}; '{field}' cannot stand here."
                )
                yield wrong(field, detail, "Say it in the project file, or leave 'project' out.")
    elif cluster.env is not None:
        detail = f"'{cluster.name}' has an environment and no project that could define it."
        yield wrong("env", detail, "Add 'project', or leave 'env' out.")
    if cluster.clientConfig is not None and cluster.clientConfigFile is not None:
        detail = f"'{cluster.name}' takes 'clientConfig' or 'clientConfigFile', not both."
        yield wrong("clientConfigFile", detail, "Put all of it into one of the two.")
    if not (cluster.project is not None or cluster.bootstrapServers or _names_servers(cluster)):
        yield error(
            "missing-field",
            "Missing field",
            f"'{cluster.name}' needs 'project' or 'bootstrapServers'.",
            place=find(root, at),
            subject="bootstrapServers",
        )


def _names_servers(cluster: ClusterSpec) -> bool:
    return cluster.clientConfigFile is not None or "bootstrap.servers" in (cluster.clientConfig or {})


_MODES = modes_by_name(
    {
        "metadata": TEXT,
        "labels": TEXT,
        "selector": TEXT,
        "canary": TEXT,
        "configs": KAFKA,
        "clientConfig": KAFKA,
    }
)
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


def chosen(fleet: Fleet, names: Sequence[str], selector: Mapping[str, str]) -> Fleet:
    """The fleet with only the clusters of these names and with these labels; of none: with all.

    Raises KdeclareError for names and labels that no cluster has, and where none has both.
    """
    known = [entry.name for entry in fleet.clusters]
    problems = [
        error(
            "unknown-cluster",
            "No such cluster",
            f"The fleet '{fleet.name}' has no cluster '{name}'.",
            hint=did_you_mean(name, known) or f"It has {', '.join(known[:10])}{', …' * (len(known) > 10)}.",
            subject=name,
        )
        for name in dict.fromkeys(names)
        if name not in known
    ]
    wrong = unknown_labels(selector, [entry.labels for entry in fleet.clusters])
    problems += [wrong] if wrong is not None else []
    clusters = tuple(
        entry
        for entry in fleet.clusters
        if (not names or entry.name in names) and selector.items() <= entry.labels.items()
    )
    if not clusters and not problems:
        detail = f"None of {', '.join(names)} has the labels {_labels(selector)}."
        problems.append(error("unknown-cluster", "No such cluster", detail))
    if problems:
        raise KdeclareError(*problems)
    left_out = tuple(name for name in known if name not in {entry.name for entry in clusters})
    return replace(fleet, clusters=clusters, left_out=left_out)


def _labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())
