"""The service: an SQLite file with feature flags and their clients. Other programs use the same file."""

import json
import sqlite3
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.object_system import OBJECT_EXISTS, OBJECT_MISSING, SystemObjects
from kdeclare.core.resources.objects import ObjectWrite
from kdeclare.core.secrets.secret_refs import hide

_SCHEMA = """
CREATE TABLE service(id TEXT, rollout_s REAL, grace_s REAL);
CREATE TABLE objects(kind TEXT, name TEXT, body TEXT, since REAL, PRIMARY KEY(kind, name));
CREATE TABLE old_tokens(client TEXT, token TEXT, until REAL);
"""


class Contents(SystemObjects):
    """The objects of the service. ``ongoing``: the flags whose last change has not reached all clients."""


@dataclass(frozen=True, slots=True)
class FlagService:
    """A connection to the service. Each call opens the file, so threads can share the connection."""

    path: Path
    timeout_s: float = 5.0

    def open(self, timeout_s: float) -> "FlagService":
        """See `Target`. The object is also the connection. Raises Fault if the file cannot be read."""
        self.read()
        return self

    def create(self, rollout_s: float = 0.0, grace_s: float = 0.0) -> None:
        """Create the file.

        rollout_s: the time in seconds until a changed flag reaches its clients.
        grace_s: the time in seconds for which a replaced token stays valid.
        """
        with closing(sqlite3.connect(self.path)) as file, file:
            file.executescript(f"BEGIN; {_SCHEMA}")
            file.execute("INSERT INTO service VALUES (?, ?, ?)", (str(uuid.uuid4()), rollout_s, grace_s))

    def read(self) -> Contents:
        """Read all objects, with tokens as secrets. Raises Fault."""
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
        rolling = {ResourceId(k, n) for k, n, _, since in rows if k == "Flag" and since + rollout_s > now}
        return Contents(objects, system_id, frozenset(rolling))

    def write(self, writes: Sequence[ObjectWrite], *, validate_only: bool) -> list[Fault | None]:
        """Execute or only validate the writes. Return a fault or None for each write. Raises Fault."""
        with self._open() as file:
            results = [self._write(file, write) for write in writes]
            if validate_only:
                file.rollback()
        return results

    def _write(self, file: sqlite3.Connection, write: ObjectWrite) -> Fault | None:
        key, now = (write.id.kind, write.id.name), time.time()
        row = file.execute("SELECT body, since FROM objects WHERE kind = ? AND name = ?", key).fetchone()
        before, since = (json.loads(row[0]), row[1]) if row else ({}, now)
        if write.is_new and row:
            return Fault(OBJECT_EXISTS, f"{write.id} exists")
        if not write.is_new and not row:
            return Fault(OBJECT_MISSING, f"{write.id} does not exist")
        if write.fields is None:
            clients = file.execute("SELECT body FROM objects WHERE kind = 'FlagClient'")
            if key[0] == "Flag" and any(key[1] in json.loads(body)["flags"] for (body,) in clients):
                return Fault("IN_USE", f"Clients read {write.id}")
            file.execute("DELETE FROM objects WHERE kind = ? AND name = ?", key)
            return None
        after = {name: value for name, value in {**before, **write.fields}.items() if value is not None}
        for flag in after.get("flags", ()):
            if not file.execute("SELECT 1 FROM objects WHERE kind = 'Flag' AND name = ?", [flag]).fetchone():
                return Fault("UNKNOWN_FLAG", f"Flag '{flag}' does not exist")
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
            opened = sqlite3.connect(f"file:{self.path}?mode=rw", self.timeout_s, uri=True)
            with closing(opened) as file, file:
                yield file
        except sqlite3.Error as problem:
            busy = problem.sqlite_errorcode == sqlite3.SQLITE_BUSY
            kind = FaultKind.RETRIABLE if busy else FaultKind.REFUSED
            raise Fault(problem.sqlite_errorname, f"{self.path}: {problem}", kind) from None
