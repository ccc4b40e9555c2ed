"""Bring manifests in line with the values that a rollback restored."""

from collections import defaultdict
from collections.abc import Collection

from kdeclare.app.authoring.write_back import prepare_edits
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, info
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.plans.run import ApplyResult
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.resources.changes import Change
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.manifest_capabilities import complete_change

MANIFESTS_WRITTEN = "manifests-written"
"""The code of the diagnostic that says that manifests now declare the values restored by a rollback."""


def list_restored_changes(plan: Plan, done: Collection[str] | None = None) -> list[Change]:
    """Return the changes of a rollback. Each change has all restored fields that a manifest can declare.

    done: the ids of the operations that succeeded; None for all. A change is left out if one of its
        operations did not succeed.
    """
    operations: dict[ResourceId, list[Operation]] = defaultdict(list)
    for op in plan.operations:
        if not get_operation_type(op).is_auxiliary:
            operations[op.resource].append(op)
    return [
        complete_change(change, operations[change.id])
        for change in plan.changes
        if change.id in operations and (done is None or all(op.id in done for op in operations[change.id]))
    ]


def write_restored_manifests(workspace: Workspace, result: ApplyResult) -> tuple[Diagnostic, ...]:
    """Write the restored values to the manifests. The rollback stays in effect even if this fails."""
    done = {id_ for id_, found in result.results.items() if found.is_good}
    try:
        prepared = prepare_edits(workspace, list_restored_changes(result.plan, done))
        prepared.write()
    except KdeclareError as problem:
        return problem.diagnostics
    files = ", ".join(edit.file for edit in prepared.files)
    detail = f"Written: {files}." if files else "The manifests already declare the restored values."
    return (info(MANIFESTS_WRITTEN, "Manifests declare the restored values", detail),)
