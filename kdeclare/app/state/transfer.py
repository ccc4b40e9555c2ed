"""Transfer the ownership of resources to another project of the same cluster."""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from kdeclare.app.state.contents import read_current_state
from kdeclare.app.state.ownership import build_no_state_error, require_owned
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.plans.state import State
from kdeclare.core.progress import Progress, ignore_progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.name_scope import report_out_of_scope
from kdeclare.core.resources.owned_record import OwnedRecord, UnboundRecord
from kdeclare.core.resources.record_binding import protect_record
from kdeclare.report.run.state_views import OwnershipTransfer, StateRevision


def transfer_ownership(
    source: Workspace,
    target: Workspace,
    resources: Sequence[ResourceId],
    confirm: Callable[[OwnershipTransfer], bool],
    command: str,
    progress: Progress = ignore_progress,
) -> OwnershipTransfer:
    """Move ownership records from the state of one project to the state of another. No system is contacted.

    Both states are locked. The records are written to the target first. After a crash between the two writes,
    both projects own the resources, and the same command completes the transfer. If the target has no state
    yet, it is created.

    confirm: asks whether to write the transfer.
    Raises KdeclareError if a resource is not owned, if the target owns it already or is not permitted to own
    it, or if the states belong to different clusters.
    """
    with source.store.lock(command, progress), target.store.lock(command, progress):
        source_state, source_notices = read_current_state(source)
        target_state, target_notices = read_current_state(target)
        if source_state is None:
            raise build_no_state_error()
        for resource in resources:
            require_owned(source_state, resource)
        problems = [
            *_check_cluster(source_state, target_state, target),
            *_check_resources(source_state, target_state, target, resources),
        ]
        if problems:
            raise KdeclareError(*problems)
        names = sorted(map(str, resources))
        records = {name: _protect(name, source_state.resources[name]) for name in names}
        kept = {name: record for name, record in source_state.resources.items() if name not in records}
        new_source = replace(source_state, serial=source_state.serial + 1, resources=kept)
        if target_state is None:
            new_target = State(str(uuid.uuid4()), 1, source_state.cluster_id, records)
        else:
            new_target = replace(
                target_state,
                serial=target_state.serial + 1,
                cluster_id=target_state.cluster_id or source_state.cluster_id,
                resources={**target_state.resources, **records},
            )
        transfer = OwnershipTransfer(
            source=_describe(source, new_source),
            target=_describe(target, new_target),
            resources=tuple(names),
            written=False,
            diagnostics=(*source_notices, *target_notices),
        )
        if not confirm(transfer):
            return transfer
        target.store.write(new_target)
        source.store.write(new_source)
        return replace(transfer, written=True)


def _protect(name: str, record: OwnedRecord) -> OwnedRecord:
    """Set ``preventDestroy`` in an ownership record, if the kind of the resource has this option.

    Without this protection, an apply with ``--allow-deletes`` would delete the resource if the new owner does
    not declare it yet. As soon as the new owner applies a manifest of the resource, the manifest determines
    whether it is protected.
    """
    protected = protect_record(ResourceId.parse(name).kind, record)
    return record if protected is None or isinstance(protected, UnboundRecord) else protected


def _describe(workspace: Workspace, state: State) -> StateRevision:
    project = workspace.project
    return StateRevision(project.name, project.environment.name, state.lineage, state.serial)


def _check_cluster(source: State, target: State | None, workspace: Workspace) -> list[Diagnostic]:
    """Return an error if the projects use different clusters, or different systems for the same endpoint."""
    environment = workspace.project.environment
    name = f"project '{workspace.project.name}' in environment '{environment.name}'"
    target_id = (target.cluster_id if target else "") or environment.cluster_id or ""
    if source.cluster_id and target_id and source.cluster_id != target_id:
        return [
            error(
                "other-cluster",
                "The projects manage different clusters",
                f"The state belongs to cluster {source.cluster_id}, but {name} belongs to cluster "
                f"{target_id}. Nothing was changed.",
                hint="Check --env and --to-env. Resources cannot be transferred between clusters.",
            )
        ]
    endpoints = target.endpoints if target else {}
    return [
        error(
            "other-endpoint",
            "Endpoint is a different system",
            f"In this state, {endpoint} has the id {id_}. In {name}, {endpoint} has the id "
            f"{endpoints[endpoint]}. Nothing was changed.",
            hint="Release the resources with 'kdeclare state rm', and adopt them in the other project.",
            subject=endpoint,
        )
        for endpoint, id_ in sorted(source.endpoints.items())
        if id_ and endpoints.get(endpoint) not in (None, "", id_)
    ]


def _check_resources(
    source: State, target: State | None, workspace: Workspace, resources: Sequence[ResourceId]
) -> list[Diagnostic]:
    """Return an error for each resource that the target must not own, or owns with a different record.

    If the target has the same ownership record, this is not an error, because an interrupted transfer can
    leave such a record.
    """
    scope = workspace.project.scope
    problems = [
        report_out_of_scope(resource, [resource], scope) for resource in scope.find_forbidden(resources)
    ]
    owned = target.resources if target else {}
    for name in sorted(map(str, resources)):
        record = source.resources[name]
        if name in owned and owned[name] not in (record, _protect(name, record)):
            problems.append(
                error(
                    "already-owned",
                    "The resource is already owned",
                    f"Project '{workspace.project.name}' also has an ownership record of {name}, and the "
                    "two records differ. Nothing was changed.",
                    hint=f"Run 'kdeclare state rm {name}' in one of the two projects.",
                    resource=name,
                )
            )
    return problems
