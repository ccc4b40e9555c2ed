"""Read and validate fleet files."""

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, error, sort_diagnostics
from kdeclare.core.provider.registry import find_connection_settings, find_environment_settings
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.units import Duration
from kdeclare.manifests.document_models import (
    Envelope,
    Metadata,
    TextMap,
    load_document,
    parse_variables,
    resolve_location,
)
from kdeclare.manifests.fleet.fleet_definition import ClusterEntry, Fleet
from kdeclare.manifests.fleet.manifest_links import ManifestLinks, explain_bad_template
from kdeclare.manifests.fleet.notification_spec import (
    NOTIFICATION_MODES,
    NotificationSpec,
    build_notification,
    check_notifications,
)
from kdeclare.manifests.fleet.rollout_spec import RolloutSpec, build_rollout, check_rollout
from kdeclare.manifests.project_schema import ProviderSettings, add_model_fields, build_endpoint_fields
from kdeclare.manifests.schema_errors import build_diagnostics
from kdeclare.manifests.syntax.node_reader import KAFKA, TEXT, UNIFORM, NodeReader, build_modes_by_name
from kdeclare.manifests.syntax.nodes import find_node, find_position, get_position, walk_distinct_nodes
from kdeclare.manifests.syntax.substitution import UNRESOLVED_CODES, ReferenceContext

_BAD_IN_NAME = re.compile(r"[/\\\x00-\x1f\x7f]")
_LONGEST_NAME = 200
_INLINE_ONLY = ("manifests", "overlays", "variables", "providers")


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
    providers: ProviderSettings | None = None


class UnusedSpec(BaseModel):
    """``spec.unused``: the time without use after which audits report an object as unused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    after: Duration


class FleetSpec(BaseModel):
    """``spec`` of a fleet file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    maxConcurrentClusters: Annotated[int, Field(ge=1)] = 16  # noqa: N815
    rollout: RolloutSpec = RolloutSpec()
    unused: UnusedSpec | None = None
    acceptedDrift: list[str] = []  # noqa: N815
    manifestUrl: Annotated[str, RawText()] | None = None  # noqa: N815
    reportUrl: Annotated[str, RawText()] | None = None  # noqa: N815
    notifications: list[NotificationSpec] = []
    clusters: Annotated[list[ClusterSpec], Field(json_schema_extra={"minItems": 1})]


class FleetManifest(Envelope):
    """A complete fleet file."""

    kind: Literal["Fleet"]
    metadata: Metadata
    spec: FleetSpec


def build_fleet_model(
    settings: Mapping[str, type[BaseModel]], environment_settings: Mapping[str, tuple[str, type[BaseModel]]]
) -> type[FleetManifest]:
    """Return the model of fleet files, in which each cluster can have connection settings of providers.

    settings, environment_settings: see `build_project_model`.
    """
    providers = add_model_fields(ProviderSettings, {name: (model, None) for name, model in settings.items()})
    cluster = add_model_fields(
        ClusterSpec,
        {"providers": (providers | None, None), **build_endpoint_fields(environment_settings)},
    )
    clusters: Any = Annotated[GenericAlias(list, (cluster,)), Field(json_schema_extra={"minItems": 1})]
    spec = add_model_fields(FleetSpec, {"clusters": (clusters, ...)})
    return add_model_fields(FleetManifest, {"spec": (spec, ...)})


def _choose_fleet_model(root: Node) -> type[FleetManifest]:
    """Return the model for a fleet file. Import the providers only if a cluster uses their fields."""
    clusters = find_node(root, ("spec", "clusters"))
    items = clusters.value if isinstance(clusters, SequenceNode) else ()
    keys = {key.value for item in items if isinstance(item, MappingNode) for key, _ in item.value}
    if keys <= ClusterSpec.model_fields.keys() - {"providers"}:
        return FleetManifest
    return build_fleet_model(find_connection_settings(), find_environment_settings())


def _collect_provider_settings(spec: ClusterSpec) -> dict[str, BaseModel]:
    """Return a cluster's connection settings for systems other than Kafka, by provider name."""
    if type(spec) is ClusterSpec:
        return {}  # the fleet file has no settings of providers, so no provider has to be loaded
    values = dict(spec)
    named = {provider: values[name] for name, (provider, _) in find_environment_settings().items()}
    settings = {**dict(spec.providers or ()), **named}
    return {provider: value for provider, value in settings.items() if isinstance(value, BaseModel)}


def check_fleet(spec: FleetSpec, root: Node) -> Iterator[Diagnostic]:
    """Yield the problems in a fleet file that the Pydantic model does not detect."""
    if not spec.clusters:
        yield error(
            "no-clusters",
            "Fleet without clusters",
            "'spec.clusters' is empty; a fleet needs at least one cluster.",
            hint="Add a cluster to 'spec.clusters'.",
            place=find_position(root, ("spec", "clusters")),
        )
        return
    reason = explain_bad_template(spec.manifestUrl) if spec.manifestUrl is not None else None
    if reason is not None:
        yield error(
            "bad-value",
            "Bad value",
            f"'spec.manifestUrl' is not the URL of a manifest: {reason}.",
            hint="Write a URL such as https://github.com/acme/kafka/blob/main/{path}#L{line}.",
            place=find_position(root, ("spec", "manifestUrl")),
            subject="manifestUrl",
        )
    yield from _check_names(spec.clusters, root)
    for n, cluster in enumerate(spec.clusters):
        yield from _check_field_combinations(cluster, ("spec", "clusters", n), root)
    yield from check_notifications(spec.notifications, root)
    yield from check_rollout(spec.rollout, [cluster.labels for cluster in spec.clusters], root)


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
        for field in (*_INLINE_ONLY, *(type(cluster).model_fields.keys() - ClusterSpec.model_fields.keys())):
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
        "manifestUrl": TEXT,
        "configs": KAFKA,
        "clientConfig": KAFKA,
    }
)
"""How the scalars of a fleet file are read. In some fields, such as ``labels``, they are read as strings."""

_READ_HINT = "Pass the path of a readable fleet file."
_UNRESOLVED_FIELDS = {"notifications": NOTIFICATION_MODES, "reportUrl": UNIFORM[TEXT]}
"""The fields with references that only ``fleet notify`` resolves, and the modes for reading these fields.

Other commands do not need the URLs of webhooks, and kdeclare does not send the URLs to other machines.
"""


def list_task_texts(file: Path) -> list[str]:
    """Return the scalars of a fleet file, in order to find the references that other machines must resolve.

    Comments and the fields that only ``fleet notify`` needs are omitted. However, a value of these fields is
    returned if another field contains an alias (``*NAME``) of the value. Raises KdeclareError if the file
    cannot be read, or does not contain exactly one document.
    """
    root = _drop_fields(load_document(file, "Fleet", _READ_HINT), _UNRESOLVED_FIELDS)
    return [node.value for node in walk_distinct_nodes(root) if isinstance(node, ScalarNode)]


def open_fleet(file: Path, environ: Mapping[str, str]) -> Fleet:
    """Read a fleet file without opening the projects of its clusters.

    Raises KdeclareError with all problems in the file. A missing environment variable or file is not an error
    yet, because the cluster that refers to it might not be selected. See ``ClusterEntry.unresolved``.
    """
    root = load_document(file, "Fleet", _READ_HINT)
    context = ReferenceContext(file.parent, environ, variables=None)
    data, problems, unresolved = _parse_fleet(root, context)
    manifest, model = None, _choose_fleet_model(root)
    try:
        manifest = model.model_validate(data, strict=True)
    except ValidationError as e:
        problems += build_diagnostics(e, model, data, root)
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
        build_rollout(spec.rollout),
        tuple(dict.fromkeys(path for entry in entries for path in entry.overlays)),
        accepted_drift={
            folder / path: find_position(root, ("spec", "acceptedDrift", n))
            for n, path in enumerate(spec.acceptedDrift)
        },
        manifest_links=ManifestLinks(spec.manifestUrl) if spec.manifestUrl is not None else None,
        notifications=tuple(
            build_notification(item, n, root, folder) for n, item in enumerate(spec.notifications)
        ),
        report_url=spec.reportUrl,
        unused_for_s=spec.unused.after if spec.unused is not None else None,
    )


def _parse_fleet(
    root: Node, scope: ReferenceContext
) -> tuple[Any, list[Diagnostic], dict[int, tuple[Diagnostic, ...]]]:
    """Return the data of a fleet file, its problems, and the errors for unresolved references.

    The errors are grouped by the index of the cluster that contains the references. If a cluster has
    unresolved references, the data of the cluster contains all references as written.
    """
    clusters = find_node(root, ("spec", "clusters"))
    if not isinstance(clusters, SequenceNode):
        reader = NodeReader(scope, _MODES)
        return reader.read(root), reader.problems, {}
    reader = NodeReader(scope, _MODES)
    data = reader.read(_drop_fields(root, ("clusters", *_UNRESOLVED_FIELDS)))
    if not isinstance(data, dict) or not isinstance(data.get("spec"), dict):
        return data, reader.problems, {}  # 'spec' occurs twice; the reader has reported it
    for field, modes in _UNRESOLVED_FIELDS.items():
        node = find_node(root, ("spec", field))
        if node is not None:
            unresolved_reader = NodeReader(None, modes)
            data["spec"][field] = unresolved_reader.read(node)
            reader.problems += unresolved_reader.problems
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
    """Return whether a problem is a reference to a missing environment variable or to an unreadable file.

    Return False for a reference to ``${var.NAME}``, because fleet files cannot use variables. The error for
    such a reference has no subject.
    """
    return problem.code in UNRESOLVED_CODES and problem.subject is not None


def _is_outside_clusters(problem: Diagnostic, unresolved: Mapping[int, tuple[Diagnostic, ...]]) -> bool:
    return not any(problem in found for found in unresolved.values())


def _drop_fields(root: Node, fields: Iterable[str]) -> Node:
    """Return a copy of a document in which the given fields of the spec are empty lists."""

    def empty_fields(node: Node, path: tuple[Collection[str], ...]) -> Node:
        if not path:
            return SequenceNode(node.tag, [], node.start_mark, node.end_mark)
        if not isinstance(node, MappingNode):
            return node  # reading the file reports the problem
        pairs = [(k, empty_fields(v, path[1:]) if k.value in path[0] else v) for k, v in node.value]
        return MappingNode(node.tag, pairs, node.start_mark, node.end_mark)

    return empty_fields(root, (("spec",), tuple(fields)))


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
        _collect_provider_settings(spec),
    )


def _collect_positions(cluster: Node | None) -> Iterator[tuple[str, SourcePosition]]:
    for key, value in cluster.value if cluster is not None else ():
        yield key.value, get_position(value)
        for n, item in enumerate(value.value if isinstance(value, SequenceNode) else ()):
            yield f"{key.value}.{n}", get_position(item)
