"""The steps of a rollback, and the diagnostics about changes that a rollback does not undo."""

from collections.abc import Iterable

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.operations.operation import (
    HAS_RECORDS,
    Operation,
    Recreation,
    UndoResult,
    UnprovenDeletion,
)
from kdeclare.core.provider.registry import get_operation_type
from kdeclare.core.secrets.secret_hashes import OTHER_KEY
from kdeclare.engine.executor.recreation import (
    IRREVERSIBLE,
    report_not_recreated,
)

CONFLICT = "conflict"
PENDING = "pending"

UNRESTORED_CODES = frozenset({CONFLICT, IRREVERSIBLE, HAS_RECORDS, PENDING})
"""The codes of diagnostics about changes that a rollback does not undo (exit code 5)."""

RETRIABLE_CODES = frozenset({HAS_RECORDS, PENDING})
"""The codes in `UNRESTORED_CODES` for changes that a later rollback of the same run can still undo."""


@dataclass(frozen=True, slots=True)
class UndoStep:
    """One operation of the run, and its inverse.

    inverse: None if there is nothing to undo or the operation cannot be undone.
    is_pending: whether the created object might exist although the system does not show it.
    recreation: how the deleted object can be re-created without its contents. If it is re-created,
        ``inverse`` is the creation.
    unproven: the reason why the created object is not deleted.
    lost: what was lost when the object was deleted, whether or not the object is re-created.
    """

    original: Operation
    inverse: Operation | None
    undo: UndoResult
    is_pending: bool = False
    recreation: Recreation | None = None
    unproven: UnprovenDeletion | None = None
    lost: tuple[str, ...] = ()


def list_unrestored(undo_result: UndoResult) -> Iterable[tuple[str, str]]:
    """Yield each element that keeps its current value, with the code of the reason."""
    yield from ((what, CONFLICT) for what in undo_result.conflicts)
    yield from ((what, IRREVERSIBLE) for what in undo_result.lost)


def report_unrestored(step: UndoStep, element: str, code: str, *, recreates_deleted: bool) -> Diagnostic:
    """Build the warning about an element from `list_unrestored`.

    recreates_deleted: whether the rollback re-creates objects that the run deleted.
    """
    resource = str(step.original.resource)
    if step.unproven is not None:
        return warning(
            CONFLICT,
            step.unproven.title,
            f"{resource}: {step.unproven.reason}, so it is not deleted.",
            hint=step.unproven.hint,
            resource=resource,
            subject=element,
        )
    if code == CONFLICT:
        return warning(
            CONFLICT,
            "Changed by another client after the run",
            f"{resource}: {element} was changed after the run, so the rollback leaves it unchanged.",
            hint="Change the value manually, or declare the value that you want and run kdeclare apply.",
            resource=resource,
            subject=element,
        )
    if step.recreation is not None:
        return report_not_recreated(
            step.original, step.recreation, element, recreates_deleted=recreates_deleted
        )
    is_deletion = get_operation_type(step.original).deletes
    contents = get_operation_type(step.original).contents
    noun = step.original.resource.kind.lower()
    stays_text = f" The {noun} remains deleted, and kdeclare no longer owns it." if is_deletion else ""
    return warning(
        IRREVERSIBLE,
        "Cannot be undone",
        f"{resource}: {element} cannot be restored.{stays_text}",
        hint=f"To create the {noun} again without its {contents}, declare it and run kdeclare apply."
        if is_deletion
        else "",
        resource=resource,
        subject=element,
    )


def report_pending(op: Operation) -> Diagnostic:
    """Build the warning about an object that the run created and the system does not show yet."""
    return warning(
        PENDING,
        "Not visible yet",
        f"The run created {op.resource}, but the system does not show it yet. The rollback does not "
        "delete it now.",
        hint="Roll back again once the system shows it, or wait longer with --visibility-timeout.",
        resource=str(op.resource),
    )


def report_missing_secret(op: Operation, key: str, problem: KdeclareError) -> Diagnostic:
    """Build the warning about a secret whose value before the run is not available anymore."""
    detail = f"{op.resource}: the reference no longer resolves to the earlier secret of {key}."
    hint = f"Declare {key} with a new secret, and run kdeclare apply."
    for diagnostic in problem.diagnostics:
        if diagnostic.code == OTHER_KEY:
            detail = f"{op.resource}: the earlier secret of {key} cannot be compared. {diagnostic.detail}"
            hint = diagnostic.hint
    return warning(
        IRREVERSIBLE,
        "The earlier secret is not available",
        detail,
        hint=hint,
        resource=str(op.resource),
        subject=key,
    )
