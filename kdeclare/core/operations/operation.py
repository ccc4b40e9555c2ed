"""What apply executes: one verb on one resource, what it takes and expects, and what undoes it.

Arguments are frozen dataclasses of their provider, in whose names and types files keep them.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.ids import ResourceId


@dataclass(frozen=True, slots=True)
class Arguments:
    """The base of the arguments of an operation type, and of dataclasses within them.

    A frozen dataclass whose fields are plain values, tuples, mappings with texts or numbers as keys, and
    dataclasses of this base, `SecretRef` among them. Plan files hold it as a JSON object with the same names.
    """

    __pydantic_config__: ClassVar[Mapping[str, str | bool]] = {"extra": "forbid", "strict": True}


@dataclass(frozen=True, slots=True)
class UnboundArguments(Arguments):
    """The arguments of an operation that this kdeclare cannot run, as its file holds them.

    problem: why not, in words.
    """

    json: Mapping[str, JsonValue]
    problem: str


@dataclass(frozen=True, slots=True)
class Inverse:
    """The operation that undoes another one, as far as that can be said before it has run.

    verb: its operation type.
    """

    verb: str
    args: Arguments


@dataclass(frozen=True, slots=True)
class Operation:
    """One node of the graph that a plan emits and apply steps through.

    id: unique within its plan, readable, equal for equal inputs.
    needs: the operation ids that must have ended well before this one begins, each with the reason.
    follows: those that must be over, however they ended, each with the reason: what tidies up, and
        batches that take turns.
    args: what the verb takes; never a secret's value.
    expect: the live state it touches, as it was when planned (the verb's ``view``).
    inverse: what undoes it, or None where ``irreversible`` says why there is none.
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
        """All that this one comes after, each with the reason."""
        return {**self.follows, **self.needs}


DATA_LOSS = "deletes-records"
"""The code of what `OperationType.announce_losses` says; people read it right before they confirm."""

HAS_RECORDS = "has-records"
"""The code of a diagnostic that says that something is not deleted because it holds data by now."""


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What undoing one operation comes to.

    verb, args: the inverse; args is None when there is nothing to do.
    conflicts: elements that someone else has changed since; they are left alone.
    lost: elements that nothing brings back.
    """

    verb: str = ""
    args: Arguments | None = None
    conflicts: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UnprovenDeletion:
    """Why nothing is deleted: what is there may be another object than the one that the run created.

    code: which doubt it is. title, reason, hint: for people; the reason is part of a sentence.
    """

    code: str
    title: str
    reason: str
    hint: str
