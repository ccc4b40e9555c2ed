"""Where tables and reports are put: a folder here, or wherever Spark can write."""

from collections.abc import Mapping
from typing import Protocol

from kdeclare.core.diagnostics import KdeclareError, error


class Storage(Protocol):
    """One folder; paths are relative to it, with slashes.

    Raises KdeclareError ``cannot-read`` or ``cannot-write`` with the path and the reason (full, denied,
    not there).
    """

    @property
    def uri(self) -> str:
        """The folder, as Spark takes it."""

    def exists(self, path: str) -> bool:
        """Whether there is a file or folder."""

    def names(self, path: str) -> tuple[str, ...]:
        """What is in a folder, sorted; nothing if it is not there."""

    def read(self, path: str) -> str:
        """The text of a file."""

    def write(self, path: str, text: str) -> None:
        """Write a file whole or not at all, and the folders that lead to it; replaces what is there."""

    def write_all(self, texts: Mapping[str, str]) -> None:
        """Write several files, by path; nothing is replaced before all of it has been written beside.

        Where files appear when they are closed, as in object stores, they are written one after the other.
        """

    def rename(self, path: str, to: str) -> None:
        """Move a folder to where nothing is yet."""

    def remove(self, path: str) -> None:
        """Delete a file, or a folder with all in it; nothing if it is not there."""

    def remove_empty(self, path: str) -> None:
        """Delete a folder if nothing is in it; nothing happens if there is something, or no folder."""


def cannot_read(path: str, reason: str) -> KdeclareError:
    """A file or folder that is not there, or that nobody may or can read."""
    return KdeclareError(
        error(
            "cannot-read",
            "A file cannot be read",
            f"Cannot read {path}: {reason.rstrip('.')}.",
            hint="Check the location, and that whoever runs kdeclare may read there.",
        )
    )


def cannot_write(path: str, reason: str) -> KdeclareError:
    """A file or folder that cannot be written, moved or deleted; what was there before is whole."""
    return KdeclareError(
        error(
            "cannot-write",
            "A file cannot be written",
            f"Cannot write {path}: {reason.rstrip('.')}.",
            hint="Check the location, that there is space, and that whoever runs kdeclare may write there.",
        )
    )
