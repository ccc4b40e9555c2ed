"""Report which deleted objects a rollback re-creates, without their contents, and which stay deleted."""

from kdeclare.core.diagnostics import Diagnostic, warning
from kdeclare.core.operations.operation import Operation, Recreation
from kdeclare.core.provider.registry import get_operation_type

IRREVERSIBLE = "irreversible"
RECREATED_EMPTY = "recreated-empty"


def report_recreated(op: Operation, recreation: Recreation) -> Diagnostic:
    """Return the warning about an object that the rollback re-creates. op: the deletion."""
    resource = str(op.resource)
    return warning(
        RECREATED_EMPTY,
        "Re-created without its contents",
        f"{resource}: {recreation.text}",
        resource=resource,
    )


def report_replacement_kept(op: Operation, element: str, *, recreates_deleted: bool) -> Diagnostic:
    """Return the warning that the run replaced an object, and that the rollback keeps the new object.

    op: the deletion of the earlier object. element: what is lost.
    """
    resource = str(op.resource)
    noun, contents = op.resource.kind.lower(), get_operation_type(op).contents
    detail = (
        f"The run replaced {resource}. {element[:1].upper()}{element[1:]} cannot be restored, and the new "
    )
    detail += f"{noun} is left unchanged."
    hint = (
        f"To replace the {noun} again with an empty {noun} that has the earlier settings, roll back with "
        "--recreate-deleted."
    )
    if recreates_deleted:
        hint = f"To replace the {noun} although it contains {contents}, also pass --allow-data-loss."
    return warning(IRREVERSIBLE, "Cannot be undone", detail, hint=hint, resource=resource, subject=element)


def report_not_recreated(
    op: Operation, recreation: Recreation, element: str, *, recreates_deleted: bool
) -> Diagnostic:
    """Return the warning about an object that the rollback does not re-create. op: the deletion.

    element: what is lost. recreates_deleted: whether the user asked to re-create deleted objects.
    """
    resource = str(op.resource)
    noun = op.resource.kind.lower()
    contents = get_operation_type(op).contents
    detail = f"{resource}: {element} cannot be restored."
    if recreation.inverse is not None:
        detail += f" The {noun} remains deleted, and kdeclare no longer owns it."
        hint = f"To re-create the {noun} without its {contents}, roll back with --recreate-deleted."
    else:
        detail += f" kdeclare no longer owns the {noun}."
        if recreates_deleted:
            detail += f" It is not re-created. {recreation.text}"
        hint = f"To create the {noun} without its {contents}, declare it and run kdeclare apply."
    return warning(IRREVERSIBLE, "Cannot be undone", detail, hint=hint, resource=resource, subject=element)
