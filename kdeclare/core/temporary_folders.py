"""Folders for temporary files of a command.

The command exits with ``os._exit``, so that no thread can delay it. Python then does not run its exit
handlers, including those that delete temporary folders. The command line calls `delete_temporary_folders`
instead.
"""

import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tempfile

_folders: "weakref.WeakSet[tempfile.TemporaryDirectory[str]]" = weakref.WeakSet()


def create_temporary_folder(prefix: str) -> "tempfile.TemporaryDirectory[str]":
    """Create a temporary folder that is deleted when the command exits, if not before. Raises OSError."""
    import tempfile  # imported here, because few commands need it

    folder = tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)
    _folders.add(folder)
    return folder


def delete_temporary_folders() -> None:
    """Delete all temporary folders that still exist. Files that cannot be deleted are left behind."""
    for folder in tuple(_folders):
        folder.cleanup()
