"""Operations: the steps that apply executes. Each has a verb, arguments, expectations and an inverse.

Arguments are frozen dataclasses of the provider. Files use the same names and types.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId


@dataclass(frozen=True, slots=True)
class Arguments:
    """The base class of an operation's arguments, and of dataclasses within them.

    A frozen dataclass whose fields are plain values, tuples, mappings with strings or numbers as keys, and
    dataclasses of this base (including `SecretRef`). A plan file contains the arguments as a JSON object with
    the same names.
    """

    __pydantic_config__: ClassVar[Mapping[str, str | bool]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class UnboundArguments(Arguments):
    """The arguments of an operation that this version of kdeclare cannot run, exactly as the file contains
    them.

    problem: the reason why kdeclare cannot run the operation.
    """

    json: Mapping[str, JsonValue]
    problem: str


@dataclass(frozen=True, slots=True)
class Inverse:
    """The inverse of an operation, as far as it is known before that operation runs.

    verb: the operation type of the inverse.
    """

    verb: str
    args: Arguments


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of the operation graph that a plan contains and apply executes.

    id: a readable id that is unique within the plan. The same inputs always result in the same id.
    needs: the ids of operations that must succeed before this one begins, each with the reason.
    follows: the ids of operations that must have ended, successfully or not, each with the reason; used for
        cleanup and for batches that run one after another.
    args: the arguments of the verb; they never contain the value of a secret.
    expect: the live state that the operation touches, as it was when the operation was planned (see
        `OperationType.compute_view`).
    inverse: the operation that undoes this one; None if there is none, and ``irreversible`` is the reason.
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
        """The ids of all operations that this one runs after, each with the reason."""
        return {**self.follows, **self.needs}


DATA_LOSS = "deletes-records"
"""The code of the diagnostics from `OperationType.announce_losses`, which are shown before confirmation."""

HAS_RECORDS = "has-records"
"""The diagnostic code for an object that is not deleted because it now contains data."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of inverting one operation.

    verb, args: the inverse; args is None if there is nothing to do.
    conflicts: elements that another client changed after the operation ran; they are left unchanged.
    lost: elements that cannot be restored.
    """

    verb: str = ""
    args: Arguments | None = None
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnprovenDeletion:
    """The reason not to delete an object: kdeclare cannot prove that the run created it.

    code: the diagnostic code. title, reason, hint: strings for display; the reason is part of a sentence.
    """

    code: str
    title: str
    reason: str
    hint: str
