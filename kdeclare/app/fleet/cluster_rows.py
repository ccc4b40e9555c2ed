"""Functions that Spark tasks run to read one cluster, or its project, into rows of a table.

Each table has one row for the cluster itself, and one row for each of its resources or live objects. If the
cluster cannot be read, the row for the cluster contains the error, so that other clusters are not affected.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa

from kdeclare.app.fleet.audit_policies import describe_policies
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.run_writes import find_created_objects
from kdeclare.app.plan import load_valid_manifests
from kdeclare.app.policies import RULES, open_active_policies
from kdeclare.app.secrets import make_secret_hasher
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.live.known_resources import KnownResource
from kdeclare.core.plans.state import State
from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.adoption import allow_adoption
from kdeclare.core.resources.fleet_capabilities import is_fleet_comparable
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import require_key
from kdeclare.engine.planning.operation_graph import check_exclusive_settings
from kdeclare.engine.planning.request import PlanScope
from kdeclare.engine.planning.secret_digests import has_secrets, hash_secrets, list_stored_hashes
from kdeclare.fleet.tables.fingerprints import hash_declared_row
from kdeclare.fleet.tables.row_builder import (
    Row,
    batch_rows,
    build_declared_cluster_row,
    build_declared_rows,
    build_excluded_rows,
    build_unreachable_row,
    read_live_rows,
)
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.fleet.unused import UnusedSearch
from kdeclare.manifests.fleet import ClusterEntry
from kdeclare.manifests.load_manifests import find_manifests_of, load_project_manifests


def read_live(locator: ClusterLocator, name: str) -> Iterator[pa.RecordBatch]:
    """Read the live state of one cluster, as record batches with the schema `rows.LIVE`.

    If the cluster cannot be read, one of the rows contains the error.
    """
    return batch_rows(_generate_live_rows(locator, name), LIVE)


def read_declared(locator: ClusterLocator, name: str) -> Iterator[pa.RecordBatch]:
    """Read the declared and owned resources of a cluster, as record batches with the schema `rows.DECLARED`.

    If the project or its state is invalid, the only row is the row for the cluster, with the error. If the
    project has policies, the column ``always`` is true in the row for the cluster, because policies must be
    evaluated for all resources.
    """
    return batch_rows(_generate_declared_rows(locator, name), DECLARED)


def _generate_live_rows(locator: ClusterLocator, name: str) -> Iterator[Row]:
    read_at = datetime.now(UTC)
    labels: Mapping[str, str] = {}
    locator.load_providers()  # a missing provider is not an error of the cluster: it ends the job
    try:
        with locator.files():
            labels = locator.entry(name).labels
            workspace = locator.workspace(name)
            with workspace.open_connections() as connections:
                find_known = partial(_find_known_resources, workspace)
                unused_search = _build_unused_search(workspace, locator.fleet().unused_for_s)
                yield from read_live_rows(connections, name, labels, read_at, find_known, unused_search)
    except KdeclareError as problem:
        yield build_unreachable_row(name, labels, read_at, summarize_diagnostics(problem.diagnostics))


def _build_unused_search(workspace: Workspace, unused_for_s: float | None) -> UnusedSearch | None:
    if unused_for_s is None:
        return None
    return UnusedSearch(unused_for_s, partial(find_created_objects, workspace.store))


def _find_known_resources(workspace: Workspace, kinds: Collection[str]) -> list[KnownResource]:
    """Return the declared and owned resources of some kinds. See `FindKnownResources`.

    Only the files that could declare such resources are loaded: snapshots need no other resources.
    """
    project = workspace.project
    paths = find_manifests_of(project, kinds)
    try:
        state = workspace.store.read()
    except KdeclareError:
        if paths:
            raise
        # If no manifest declares such resources, a snapshot needs no state. Audits report the error.
        return []
    owned = {id_: record for id_, record in _find_owned_records(state).items() if id_.kind in kinds}
    desired: Sequence[DesiredResource] = ()
    if paths:
        loaded = load_project_manifests(project, paths, KINDS, workspace.environ, rules=RULES)
        if loaded.has_errors:
            raise KdeclareError(*loaded.diagnostics)
        declared = [item for item in loaded.desired if item.id.kind in kinds]
        desired = _seal_desired(workspace, declared, state)
    bodies = {item.id: item.body for item in desired}
    return [KnownResource(id_, bodies.get(id_), owned.get(id_)) for id_ in sorted({*bodies, *owned})]


def _generate_declared_rows(locator: ClusterLocator, name: str) -> Iterator[Row]:
    labels: Mapping[str, str] = {}
    locator.load_providers()  # a missing provider is not an error of the cluster: it ends the job
    try:
        with locator.files():
            entry = locator.entry(name)
            labels = entry.labels
            workspace = locator.workspace(name)
            manifests, state = load_valid_manifests(workspace, ()), workspace.store.read()
            # raises the errors in policies
            with open_active_policies(workspace, manifests.rules) as active_policies:
                has_policies = bool(active_policies.policies)
                policies = describe_policies(
                    active_policies.policies,
                    workspace.project.policies,
                    manifests.rules,
                    workspace.project.folder,
                )
            desired = _seal_desired(workspace, manifests.desired, state)
            desired = list(_make_sources_relative(desired, locator.fleet().folder))
    except KdeclareError as problem:
        yield build_declared_cluster_row(name, labels, summarize_diagnostics(problem.diagnostics))
    else:
        cluster_row = build_declared_cluster_row(
            name,
            labels,
            cluster_id=(state.cluster_id or None) if state is not None else None,
            cleanup=state.pending_cleanup if state is not None else None,
            policies=has_policies,
        )
        yield cluster_row | {
            "row_hash": None if policies is None else hash_declared_row(cluster_row, policies)
        }
        adjust_adoption = allow_adoption if workspace.project.adopts else _return_unchanged
        for row in _encode_rows(
            entry, [adjust_adoption(item) for item in desired], _find_owned_records(state)
        ):
            yield row | {"row_hash": hash_declared_row(row)}


def _seal_desired(
    workspace: Workspace, desired: Sequence[DesiredResource], state: State | None
) -> Sequence[DesiredResource]:
    """Return the resources with their secrets replaced by hashes. Hashes in the state are reused."""
    owned_records = state.resources if state is not None else {}
    require_key(list_stored_hashes(owned_records))
    if not has_secrets(desired):
        return desired
    hasher = make_secret_hasher(workspace, state, workspace.cluster_name)
    return hash_secrets(desired, owned_records, hasher, ignore_progress, portable=True)


def _make_sources_relative(desired: Iterable[DesiredResource], folder: Path) -> Iterator[DesiredResource]:
    """Make the manifest paths of the resources relative to the folder of the fleet file.

    Absolute paths would be wrong for tasks on other machines, which read copies of the manifests in a
    temporary folder.
    """
    relative_paths: dict[str, str] = {}
    for item in desired:
        source = item.source
        if source is None:
            yield item
            continue
        path = relative_paths.get(source.file)
        if path is None:
            path = relative_paths[source.file] = Path(os.path.relpath(source.file, folder)).as_posix()
        yield replace(item, source=replace(source, file=path))


def _return_unchanged(desired: DesiredResource) -> DesiredResource:
    return desired


def _find_owned_records(state: State | None) -> Mapping[ResourceId, OwnedRecord]:
    record_items = state.resources.items() if state is not None else ()
    records_by_id = {ResourceId.parse(text): record for text, record in record_items}
    return {id_: record for id_, record in records_by_id.items() if is_fleet_comparable(id_.kind)}


def _encode_rows(
    entry: ClusterEntry, desired: Sequence[DesiredResource], owned: Mapping[ResourceId, OwnedRecord]
) -> Iterator[Row]:
    scope = PlanScope(selector=entry.selector)
    contradictions = {d.resource: d.detail for d in check_exclusive_settings(desired)}
    for item in (item for item in desired if is_fleet_comparable(item.id.kind)):
        owned_record = owned.get(item.id)
        if scope.covers(item):
            contradiction = contradictions.get(str(item.id))
            yield from build_declared_rows(entry.name, item, item.id, owned_record, contradiction)
        else:
            yield from build_excluded_rows(entry.name, item, item.id, owned_record)
    encode = build_declared_rows if scope.whole else build_excluded_rows
    for id_ in sorted(owned.keys() - {item.id for item in desired}):
        yield from encode(entry.name, None, id_, owned[id_])
