"""What can be done to a document."""

from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and indexes from the document's root down."""

Plain = str | int | None
"""A text (for fields in which text is read as it stands, see `reading.KAFKA`), a whole number, a truth value,
or null."""

Value = Plain | list[Plain] | dict[str, list[Plain]]


@dataclass(frozen=True, slots=True)
class Put:
    """Set what is at a path, or add it after its siblings; mappings that are missing above it are made."""

    path: Path
    value: Value


@dataclass(frozen=True, slots=True)
class Append:
    """Add an element to the list at a path."""

    path: Path
    value: Plain


@dataclass(frozen=True, slots=True)
class Drop:
    """Take a key with its value, or an element of a list, away, with the comment in its own line.

    Comments above it stay: nobody can tell whether they speak of it alone. What holds it stays, too,
    empty if need be: ``{}`` or ``[]``.
    """

    path: Path


Edit = Put | Append | Drop
