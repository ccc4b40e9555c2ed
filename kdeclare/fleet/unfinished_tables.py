"""The temporary folder in which a command writes its tables until they are complete."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kdeclare.fleet.storage import Storage

_UNFINISHED_FOLDER = "_unfinished"  # readers of tables ignore names that start with an underscore


@contextmanager
def open_unfinished_folder(storage: Storage, command_id: str) -> Iterator[str]:
    """Provide the path of a temporary folder for one command, and delete the folder after the block."""
    folder = f"{_UNFINISHED_FOLDER}/{command_id}"
    try:
        yield folder
    finally:
        storage.remove(folder)
        storage.remove_empty(_UNFINISHED_FOLDER)


@contextmanager
def publish_tables(storage: Storage, folder: str, tables: Mapping[str, str]) -> Iterator[None]:
    """Move tables to their final paths. If the block raises an exception, remove the moved tables.

    folder: the temporary folder.
    tables: the final path of each table, by table name.
    """
    published_paths: list[str] = []
    try:
        for name, path in tables.items():
            if not storage.exists(path):  # do not remove an existing table of another command
                published_paths.append(path)  # before the rename, because it can fail halfway
            storage.rename(f"{folder}/{name}", path)
        yield
    except BaseException:
        for path in published_paths:
            storage.remove(path)
        raise
