"""Track the tables that a command writes, and publish them when they are complete.

A command writes its tables to a temporary folder, and moves them to their final paths when they are complete.
In object stores, a move would copy every file. There, the command writes the tables that it will publish to
their final paths right away. Readers ignore a table until its record exists.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.units import format_names
from kdeclare.fleet.tables.rows import build_incomplete_error
from kdeclare.fleet.tables.storage import Storage, build_write_error

_log = logging.getLogger(__name__)

_UNFINISHED_FOLDER = "_unfinished"  # readers of tables ignore names that start with an underscore


@dataclass(frozen=True, slots=True)
class UnfinishedTables:
    """The tables of one command.

    folder: the temporary folder.
    final_paths: the final path of each table that the command publishes, by table name.
    """

    storage: Storage
    folder: str
    final_paths: Mapping[str, str] = field(default_factory=dict)
    _sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    _unpublished_paths: set[str] = field(default_factory=set)

    def find_path(self, name: str) -> str:
        """Return the path to which a table is written before its publication."""
        final_path = self.final_paths.get(name)
        return f"{self.folder}/{name}" if final_path is None or self.storage.moves_folders else final_path

    def begin_table(self, name: str) -> str:
        """Return the path for a new table. Raises KdeclareError if another command already uses it."""
        path = self.find_path(name)
        if path == self.final_paths.get(name) and path not in self._unpublished_paths:
            if self.storage.exists(path):
                raise build_write_error(f"{self.storage.uri}/{path}", "File exists")
            self._unpublished_paths.add(path)
        return path

    def add_files(self, name: str, sizes: Mapping[str, int]) -> None:
        """Remember which files belong to a table. sizes: the size of each file in bytes, by path."""
        self._sizes.setdefault(name, {}).update(sizes)

    def require_all_files(self, name: str, path: str) -> None:
        """Raise KdeclareError unless a folder has exactly the files of a table."""
        expected, actual = self._sizes.get(name, {}), self.storage.list_files(path)
        differing_files = sorted(
            file for file in expected.keys() | actual.keys() if expected.get(file) != actual.get(file)
        )
        if differing_files:
            raise build_incomplete_error(
                f"Files of the table '{name}' in {self.storage.uri}/{path} are missing, unexpected or "
                f"truncated: {format_names(differing_files)}."
            )

    def publish(self, name: str, path: str) -> None:
        """Make sure that a complete table is at its final path. Raises KdeclareError."""
        if self.find_path(name) == path:
            self._unpublished_paths.discard(path)
        else:
            self.storage.rename(f"{self.folder}/{name}", path)
        self.require_all_files(name, path)

    def remove(self) -> None:
        """Delete all tables that were not published. Files that cannot be deleted are left in place."""
        for path in (self.folder, *sorted(self._unpublished_paths)):
            _remove(self.storage, path)
        with suppress(KdeclareError):
            self.storage.remove_empty(_UNFINISHED_FOLDER)


@contextmanager
def open_unfinished_tables(
    storage: Storage, command_id: str, final_paths: Mapping[str, str] | None = None
) -> Iterator[UnfinishedTables]:
    """Provide the tables of one command. Finally, delete those that the ``with`` block did not publish.

    final_paths: see `UnfinishedTables`.
    """
    tables = UnfinishedTables(storage, f"{_UNFINISHED_FOLDER}/{command_id}", final_paths or {})
    try:
        yield tables
    finally:
        tables.remove()


@contextmanager
def publish_tables(tables: UnfinishedTables, paths: Mapping[str, str], record: str) -> Iterator[None]:
    """Publish tables, and then run the ``with`` block, which must write the record of these tables.

    If the block raises an exception, delete the published tables and the record. Raises KdeclareError if a
    file of a table is missing, or if the block has not written the record.

    paths: the final path of each table, by table name.
    record: the path of the record.
    """
    published_paths: list[str] = []
    begins_record = False
    try:
        for name, path in paths.items():
            if tables.find_path(name) == path or not tables.storage.exists(path):
                published_paths.append(path)  # before the move, because it can fail halfway
            tables.publish(name, path)  # fails if another command has published a table with this path
        begins_record = True
        yield
        if not tables.storage.exists(record):
            raise build_write_error(
                f"{tables.storage.uri}/{record}", "the file does not exist after the write"
            )
    except BaseException:
        # A store can report an error although it has written the record, which must not outlive the tables.
        if not begins_record or _remove(tables.storage, record):
            for path in published_paths:
                _remove(tables.storage, path)
        raise


def _remove(storage: Storage, path: str) -> bool:
    """Delete a file or folder if possible. Return whether it no longer exists.

    Remaining files do no harm, because readers use neither temporary folders nor tables without a record.
    """
    try:
        storage.remove(path)
    except KdeclareError as problem:
        _log.debug("%s", problem)
        return False
    return True
