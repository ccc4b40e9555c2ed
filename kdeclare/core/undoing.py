"""What undoing one operation comes to, and why it may be left out."""

from dataclasses import dataclass

from kdeclare.core.arguments import Arguments

LOSES_DATA = "deletes-records"
"""The code of what `OperationType.announce_losses` says; people read it right before they confirm."""

HAS_RECORDS = "has-records"
"""The code of a diagnostic that says that something is not deleted because it holds data by now."""


@dataclass(frozen=True, slots=True)
class Undo:
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
class Unproven:
    """Why nothing is deleted: what is there may be another object than the one that the run created.

    code: which doubt it is. title, reason, hint: for people; the reason is part of a sentence.
    """

    code: str
    title: str
    reason: str
    hint: str
