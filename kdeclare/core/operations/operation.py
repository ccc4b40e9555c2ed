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
    dataclasses of this base (including `SecretRef`). Plan files hold it as a JSON object with the same names.
    """

    __pydantic_config__: ClassVar[Mapping[str, str | bool]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class UnboundArguments(Arguments):
    """The arguments of an operation that this version of kdeclare cannot run, as the file holds them.

    problem: why it cannot run the operation.
    """

    json: Mapping[str, JsonValue]
    problem: str


@dataclass(frozen=True, slots=True)
class Inverse:
    """The operation that undoes another one, as far as it is known before the other one has run.

    verb: its operation type.
    """

    verb: str
    args: Arguments


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of the operation graph that a plan contains and apply executes.

    id: unique within the plan, readable, and the same for the same inputs.
    needs: the ids of operations that must succeed before this one begins, each with the reason.
    follows: the ids of operations that must have ended, successfully or not, each with the reason; used for
        cleanup and for batches that run one after another.
    args: the arguments of the verb; never the value of a secret.
    expect: the live state that the operation touches, as it was when planned (see
        `OperationType.compute_view`).
    inverse: the operation that undoes it; None if there is none, for the reason ``irreversible``.
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
        """All operations that this one runs after, each with the reason."""
        return {**self.follows, **self.needs}


DATA_LOSS = "deletes-records"
"""The code of the diagnostics from `OperationType.announce_losses`, shown right before confirmation."""

HAS_RECORDS = "has-records"
"""The code of the diagnostic that an object is not deleted because it now contains data."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of inverting one operation.

    verb, args: the inverse; args is None if there is nothing to do.
    conflicts: elements that another client has changed since; they are left unchanged.
    lost: elements that cannot be restored.
    """

    verb: str = ""
    args: Arguments | None = None
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnprovenDeletion:
    """Why nothing is deleted: the existing object may not be the one that the run created.

    code: identifies the kind of doubt. title, reason, hint: for display; the reason is part of a sentence.
    """

    code: str
    title: str
    reason: str
    hint: str
