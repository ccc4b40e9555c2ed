"""Operations, which are the steps that apply executes.

An operation has a type (``verb``), arguments, expectations and an inverse. The arguments are frozen
dataclasses that providers define. Plan files contain the arguments as JSON objects with the same field names.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId


@dataclass(frozen=True, slots=True)
class Arguments:
    """The base class of an operation's arguments, and of dataclasses that are nested in the arguments.

    Subclasses are frozen dataclasses. Their fields are plain values, tuples, mappings with strings or numbers
    as keys, and other subclasses of this class (such as `SecretRef`). A plan file contains the arguments as a
    JSON object with the same names.
    """

    __pydantic_config__: ClassVar[Mapping[str, str | bool]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class UnboundArguments(Arguments):
    """The arguments of an operation that this version of kdeclare cannot run, exactly as in the plan file.

    problem: the reason why kdeclare cannot run the operation.
    """

    json: Mapping[str, JsonValue]
    problem: str


@dataclass(frozen=True, slots=True)
class Inverse:
    """The inverse of an operation, as known before the operation runs.

    verb: the operation type of the inverse.
    """

    verb: str
    args: Arguments


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of the operation graph that a plan contains and apply executes.

    id: a readable id that is unique within the plan. The same inputs always result in the same id.
    needs: the ids of operations that must succeed before this operation begins, each with the reason.
    follows: the ids of operations that must end, successfully or not, before this operation begins, each with
        the reason. Used for cleanup and for batches that run one after another.
    args: the arguments of the operation. They never contain the value of a secret.
    expect: the live state that the operation touches, as it was when the operation was planned (see
        `OperationType.compute_view`).
    inverse: the operation that undoes this operation; None if the operation cannot be undone.
    irreversible: the reason why the operation cannot be undone, or cannot be undone completely.
    """

    id: str
    verb: str
    resource: ResourceId
    args: Arguments
    expect: Mapping[str, JsonValue]
    needs: Mapping[str, str] = field(default_factory=dict)
    inverse: Inverse | None = None
    irreversible: str | None = None
    follows: Mapping[str, str] = field(default_factory=dict)

    @property
    def after(self) -> Mapping[str, str]:
        """The ids of all operations that must end before this operation begins, each with the reason."""
        return {**self.follows, **self.needs}


DATA_LOSS = "deletes-records"
"""The code of diagnostics that tell users which data an operation would delete.

Users see these diagnostics before they confirm a plan.
"""

HAS_RECORDS = "has-records"
"""The diagnostic code for an object that is not deleted because it now contains data."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of computing the inverse of one operation.

    verb, args: the operation type and the arguments of the inverse; ``args`` is None if there is nothing to
        do.
    conflicts: view elements that another client changed after the operation ran. A rollback does not change
        these elements.
    lost: view elements that cannot be restored.
    """

    verb: str = ""
    args: Arguments | None = None
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recreation:
    """How a rollback can re-create a deleted object without its contents.

    inverse: the operation that creates the object; None if the object cannot be re-created.
    text: sentences for display: the settings that are restored and the contents that are lost, or the reason
        why the object cannot be re-created.
    """

    inverse: Inverse | None
    text: str


@dataclass(frozen=True, slots=True)
class UnprovenDeletion:
    """Why a rollback does not delete an object: it is not certain that the undone run created the object.

    code: the diagnostic code. title, reason, hint: strings for display; the reason is part of a sentence.
    """

    code: str
    title: str
    reason: str
    hint: str
