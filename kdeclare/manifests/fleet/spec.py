"""What a fleet file looks like, and what can be wrong with it beyond that."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from yaml.nodes import Node

from kdeclare.core.diagnostics import Diagnostic, Place, error
from kdeclare.core.suggest import did_you_mean
from kdeclare.manifests.nodes import find
from kdeclare.manifests.shapes import Envelope, Metadata, TextMap

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
