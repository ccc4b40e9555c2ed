"""The system: feature flags and their clients in one SQLite file, which other programs use as well."""

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.faults import Fault, FaultKind
from kdeclare.core.ids import ResourceId
from kdeclare.core.objects import Fields, ObjectWrite
from kdeclare.core.secrets import hide

_SCHEMA = """
CREATE TABLE service(id TEXT, rollout_s REAL, grace_s REAL);
CREATE TABLE objects(kind TEXT, name TEXT, body TEXT, since REAL, PRIMARY KEY(kind, name));
CREATE TABLE old_tokens(client TEXT, token TEXT, until REAL);
"""


@dataclass(frozen=True, slots=True)
class Contents:
    """What the service has. rolling: flags that have not reached all their clients yet."""

    id: str
    objects: Mapping[ResourceId, Fields]
    rolling: frozenset[str]


@dataclass(frozen=True, slots=True)
class FlagService:
    """Reads and writes the file. Each call opens it, so that threads can share the object."""

    path: Path
    timeout_s: float = 5.0

    def open(self, timeout_s: float) -> "FlagService":
        """See `core.connecting.Target`: what leads to the service is the connection itself."""
        return self

    def create(self, rollout_s: float = 0.0, grace_s: float = 0.0) -> None:
        """Make the file.

        rollout_s: how long a flag takes to reach its clients. grace_s: how long an old token stays valid.
        """
        with closing(sqlite3.connect(self.path)) as file, file:
            file.executescript(_SCHEMA)
            file.execute("INSERT INTO service VALUES (?, ?, ?)", (str(uuid.uuid4()), rollout_s, grace_s))

    def read(self) -> Contents:
        """Return everything; tokens are secrets from here on. Raises Fault."""
        now = time.time()
        with self._open() as file:
            [(system_id, rollout_s, _)] = file.execute("SELECT * FROM service")
            rows = file.execute("SELECT kind, name, body, since FROM objects").fetchall()
            old = file.execute("SELECT client, max(until) FROM old_tokens GROUP BY client").fetchall()
        objects = {ResourceId(kind, name): json.loads(body) for kind, name, body, _ in rows}
        for id_, fields in objects.items():
            if id_.kind == "FlagClient":
                fields["token"] = hide(fields["token"])
                until = dict(old).get(id_.name)
                fields |= {"oldToken": "valid" if until > now else "expired"} if until else {}
        rolling = frozenset(n for kind, n, _, since in rows if kind == "Flag" and since + rollout_s > now)
        return Contents(system_id, objects, rolling)

    def write(self, writes: Sequence[ObjectWrite], *, dry_run: bool) -> list[Fault | None]:
        """Return what is wrong with each; what is right is done, unless ``dry_run``. Raises Fault."""
        with self._open() as file:
            results = [self._write(file, write) for write in writes]
            if dry_run:
                file.rollback()
        return results

    def _write(self, file: sqlite3.Connection, write: ObjectWrite) -> Fault | None:
        key, now = (write.id.kind, write.id.name), time.time()
        rows = {(k, n): (json.loads(b), t) for k, n, b, t in file.execute("SELECT * FROM objects")}
        before, since = rows.get(key, ({}, now))
        if write.is_new and before:
            return Fault("EXISTS", f"{write.id} is there already.")
        if not write.is_new and not before:
            return Fault("MISSING", f"There is no {write.id}.")
        if write.fields is None:
            if any(write.id.name in body.get("flags", ()) for body, _ in rows.values()):
                return Fault("IN_USE", f"Clients read {write.id}.")
            file.execute("DELETE FROM objects WHERE kind = ? AND name = ?", key)
            return None
        after = {name: value for name, value in {**before, **write.fields}.items() if value is not None}
        unknown = [flag for flag in after.get("flags", ()) if ("Flag", flag) not in rows]
        if unknown:
            return Fault("UNKNOWN_FLAG", f"There is no flag '{unknown[0]}'.")
        if before and after.get("token") != before.get("token"):
            old = (key[1], before["token"], now)
            file.execute("INSERT INTO old_tokens SELECT ?, ?, ? + grace_s FROM service", old)
        if write.fields.get("oldToken", "") is None:
            file.execute("DELETE FROM old_tokens WHERE client = ?", key[1:])
        since = now if after.get("rollout") != before.get("rollout") else since
        file.execute("REPLACE INTO objects VALUES (?, ?, ?, ?)", (*key, json.dumps(after), since))
        return None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with (
                closing(sqlite3.connect(f"file:{self.path}?mode=rw", self.timeout_s, uri=True)) as file,
                file,
            ):
                yield file
        except sqlite3.Error as problem:
            busy = problem.sqlite_errorcode == sqlite3.SQLITE_BUSY
            kind = FaultKind.RETRIABLE if busy else FaultKind.REFUSED
            raise Fault(problem.sqlite_errorname, f"{self.path}: {problem}", kind) from None
