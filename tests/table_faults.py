"""A file system for the tables of fleets that fails at a chosen step, and a fleet that uses it.

A step is a call of the storage, or the read or write of a table. `Disturbance` counts the steps of a command,
and disturbs one of them. The files are real: Spark and pyarrow see the same folder.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import pyarrow as pa
import pytest

from kdeclare.app.fleet.audit import AuditOptions, audit_fleet
from kdeclare.app.fleet.audit_records import read_audit_summary, read_audit_table
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.job import Engine, FleetOptions
from kdeclare.app.fleet.snapshot import parse_live_key, read_object_history, take_snapshot
from kdeclare.app.fleet.snapshot_diff import PREVIOUS, diff_snapshots
from kdeclare.app.fleet.stored_findings import read_stored_findings
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.documents import dump_document
from kdeclare.core.progress import ignore_progress
from kdeclare.fleet.audit_results import AUDIT_TABLES
from kdeclare.fleet.history.object_history import list_turns
from kdeclare.fleet.local.tables import LocalWorkbench, read_rows
from kdeclare.fleet.tables.records import AUDITS, SNAPSHOTS, list_record_ids
from kdeclare.fleet.tables.row_builder import Row, batch_rows
from kdeclare.fleet.tables.rows import FINDINGS, LIVE, SUMMARY
from kdeclare.fleet.tables.storage import LocalStorage, build_read_error, build_write_error
from tests.spark.real_fleet import SECRETS, RealFleet, make_real_fleet
from tests.thoroughness import is_thorough, pick

KNOWN_CODES = frozenset(
    {"bad-audit", "bad-snapshot", "cannot-read", "cannot-write", "damaged-file", "incomplete-table"}
)
"""The errors with which a command may end when the file system fails."""


class Fault(StrEnum):
    """What happens at the disturbed step.

    FAIL, FAIL_LATE: the step reports an error, instead of or after its work. CRASH: the process is killed.
    HALF: a move or a write of several files does half of its work, and reports success. HALF_FAIL: the same,
    and reports an error. Only moves and such writes are steps of these two. LOSE: a file of the command's
    tables vanishes before the step. LATE: from this step on, listings of records lack the newest record. Only
    these listings are its steps.
    """

    FAIL = "fail"
    FAIL_LATE = "fail-late"
    CRASH = "crash"
    HALF = "half"
    HALF_FAIL = "half-fail"
    LOSE = "lose"
    LATE = "late"


LISTINGS = (f"names {AUDITS}", f"names {SNAPSHOTS}")
"""The steps that list the records of audits and snapshots."""

FEW_STEPS = {
    Fault.HALF: ("rename ", "write_all "),
    Fault.HALF_FAIL: ("rename ", "write_all "),
    Fault.LATE: LISTINGS,
}
"""The beginnings of the steps that a fault can disturb, if it cannot disturb all steps."""


class KilledError(BaseException):
    """The process was killed. Nothing that it does later has an effect."""


@dataclass
class Disturbance:
    """Counts the steps of a command, and disturbs one of them.

    at: the number of the step. which: for LOSE, the number of the lost file among the files of the command.
        files: how many files the command had written before the step.
    """

    out: Path
    fault: Fault
    at: int
    which: int = 0
    files: int = 0
    steps: int = 0
    is_active: bool = True
    is_late: bool = False
    fired: str = ""
    kept: frozenset[Path] = field(default_factory=frozenset)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept = frozenset(self.out.rglob("*.parquet"))

    def begin(self, step: str) -> bool:
        """Count a step. Return whether it is the disturbed one."""
        if self.fired == "killed":
            raise KilledError
        if not self.is_active or not step.startswith(FEW_STEPS.get(self.fault, "")):
            return False
        self.steps += 1
        self.names.append(step)
        if self.steps != self.at:
            return False
        if self.fault is Fault.CRASH:
            self.fired = "killed"
            raise KilledError
        if self.fault is Fault.LOSE:
            files = sorted({*self.out.rglob("*.parquet")} - self.kept)
            self.files = len(files)
            if files:
                lost = files[self.which % len(files)]
                lost.unlink()
                self.fired = f"lost {lost.relative_to(self.out)} before {step}"
            return False
        if self.fault is Fault.LATE:
            self.is_late = True
            self.fired = step
            return False
        return True


_current: list[Disturbance] = []


def _begin(step: str) -> tuple[Disturbance | None, bool]:
    disturbance = _current[-1] if _current else None
    return disturbance, disturbance is not None and disturbance.begin(step)


class FaultyStorage(LocalStorage):
    """A local folder that is disturbed by the current `Disturbance`."""

    def _do(
        self, step: str, path: str, action: Callable[[], Any], half: Callable[[], None] | None = None
    ) -> Any:
        disturbance, is_disturbed = _begin(f"{step} {path}")
        if disturbance is None or not is_disturbed:
            return action()
        build_error = build_read_error if step in ("exists", "names", "read", "list") else build_write_error
        problem = build_error(path, "Input/output error")
        if disturbance.fault in (Fault.HALF, Fault.HALF_FAIL):
            if half is None:
                return action()
            disturbance.fired = step
            half()
            if disturbance.fault is Fault.HALF_FAIL:
                raise problem
            return None
        disturbance.fired = step
        if disturbance.fault is Fault.FAIL_LATE:
            action()
        raise problem

    def exists(self, path: str) -> bool:
        return bool(self._do("exists", path, lambda: LocalStorage.exists(self, path)))

    def list_files(self, path: str) -> Mapping[str, int]:
        return dict(self._do("list", path, lambda: LocalStorage.list_files(self, path)))

    def names(self, path: str) -> tuple[str, ...]:
        names = tuple(self._do("names", path, lambda: LocalStorage.names(self, path)))
        is_late = bool(_current) and _current[-1].is_late and self.folder == _current[-1].out
        return names[:-1] if is_late and path in (AUDITS, SNAPSHOTS) else names

    def read(self, path: str) -> str:
        return str(self._do("read", path, lambda: LocalStorage.read(self, path)))

    def write(self, path: str, text: str) -> None:
        self._do("write", path, lambda: LocalStorage.write(self, path, text))

    def write_all(self, texts: Mapping[str, str]) -> None:
        half = dict(list(texts.items())[: len(texts) // 2])
        self._do(
            "write_all",
            ", ".join(texts),
            lambda: LocalStorage.write_all(self, texts),
            lambda: LocalStorage.write_all(self, half),
        )

    def rename(self, path: str, to: str) -> None:
        self._do("rename", to, lambda: LocalStorage.rename(self, path, to), lambda: self._move_half(path, to))

    def remove(self, path: str) -> None:
        self._do("remove", path, lambda: LocalStorage.remove(self, path))

    def remove_empty(self, path: str) -> None:
        self._do("remove_empty", path, lambda: LocalStorage.remove_empty(self, path))

    def _move_half(self, path: str, to: str) -> None:
        """Move all files but the last one."""
        files = sorted(file for file in (self.folder / path).rglob("*") if file.is_file())
        for file in files[:-1]:
            target = self.folder / to / file.relative_to(self.folder / path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(file, target)


class CopyingStorage(FaultyStorage):
    """The same, like an object store: tables are written to their final paths."""

    @property
    def moves_folders(self) -> bool:
        """Return False."""
        return False


@contextmanager
def disturb(disturbance: Disturbance) -> Iterator[None]:
    """Disturb what runs inside the block."""
    _current.append(disturbance)
    try:
        yield
    finally:
        _current.remove(disturbance)


@contextmanager
def use_faulty_storage(storage: type[LocalStorage] = FaultyStorage) -> Iterator[None]:
    """Make commands of this process use a faulty storage, and count reads and writes of tables as steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kdeclare.fleet.tables.storage.LocalStorage", storage)
        _count_calls(patch, LocalWorkbench, "_write_file")
        for module, name in (
            ("kdeclare.fleet.local.tables", "_read_file"),
            ("kdeclare.fleet.spark.tables", "_read_files"),
            ("kdeclare.fleet.spark.tables", "count_rows"),
        ):
            _count_calls(patch, __import__(module, fromlist=["x"]), name)
        yield


def _count_calls(patch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    original = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        _begin(name)
        return original(*arguments, **options)

    patch.setattr(owner, name, call)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its result, or the code of its error."""

    result: Any = None
    code: str | None = None
    is_killed: bool = False


def run(command: Callable[[], Any]) -> Outcome:
    """Run a command."""
    try:
        return Outcome(command())
    except KilledError:
        return Outcome(is_killed=True)
    except KdeclareError as problem:
        return Outcome(code=problem.diagnostics[0].code)


@dataclass(frozen=True)
class FaultyFleet:
    """A fleet on disk, with a folder for audits and snapshots."""

    fleet: RealFleet
    out: Path
    engine: Engine = Engine.LOCAL

    @property
    def options(self) -> FleetOptions:
        """The options of all commands."""
        return FleetOptions(self.fleet.file, str(self.out), engine=self.engine)

    def audit(self) -> Any:
        """Audit the snapshot of the fleet. Return the findings and counts, without ids of the run."""
        options = AuditOptions(snapshot=(str(self.fleet.snapshots), "latest"))
        audit = audit_fleet(self.options, options, SECRETS)
        document = dump_document(audit.summary)
        for name in ("audit_id", "taken_at", "seconds", "trend"):
            document.pop(name)
        since = document.pop("since")
        if isinstance(since, dict):
            document["compared"] = [since[name] for name in ("new", "known", "mended")]
        return document, sorted(map(repr, audit.rows)), sorted(map(repr, audit.mended))

    def report(self) -> Any:
        """Return the findings of the latest audit, compared with the one before."""
        ids = list_record_ids(LocalStorage(self.out), AUDITS)
        since = ids[-2] if len(ids) > 1 else None
        stored = read_stored_findings(
            self.options, "latest", since, lambda *_: True, SECRETS, ignore_progress
        ).compared
        return sorted(map(repr, stored.rows)), sorted(map(repr, stored.fixed)), stored.unseen

    def snapshot(self) -> Any:
        """Take a snapshot. Return its clusters."""
        return dump_document(take_snapshot(self.options, SECRETS, ignore_progress))["clusters"]

    def diff(self) -> Any:
        """Return what differs between the latest two snapshots."""
        compared = diff_snapshots(self.options, PREVIOUS, "latest", SECRETS, ignore_progress)
        return [repr(change) for change in compared.diff.changes], len(compared.diff.unknown)

    def history(self) -> Any:
        """Return the changes of a topic, without the ids of snapshots."""
        versions = read_object_history(self.options, "eu-1", parse_live_key("t.1"), SECRETS, ignore_progress)
        return [(turn.turn, turn.error, turn.fields) for turn in list_turns(versions)]

    def copy(self, folder: Path) -> "FaultyFleet":
        """Return the same fleet with a copy of the folder of results."""
        shutil.copytree(self.out, folder, dirs_exist_ok=True)
        return replace(self, out=folder)

    def require_readable(self, ids: Sequence[str]) -> None:
        """Check that the tables of audits have all rows. Raises KdeclareError."""
        storage = LocalStorage(self.out)
        for audit_id in ids:
            summary = read_audit_summary(storage, audit_id)
            for table in AUDIT_TABLES:
                schema = SUMMARY if table == "summary" else FINDINGS
                rows = read_audit_table(
                    storage,
                    summary,
                    table,
                    lambda path, schema=schema: read_rows(storage, path, schema),  # type: ignore[misc]
                )
                assert len(rows) == summary.rows[table]


class HasResults(Protocol):
    """A fleet with a folder for its audits and snapshots."""

    @property
    def out(self) -> Path:
        """The folder."""

    def copy(self, folder: Path) -> Self:
        """Return the same fleet with a copy of the folder."""


_Fleet = TypeVar("_Fleet", bound=HasResults)


def disturb_everywhere(
    fleet: _Fleet, folder: Path, fault: Fault, command: Callable[[_Fleet], object], interval: int = 5
) -> Iterator[tuple[_Fleet, Outcome, str]]:
    """Run a command once for each step, with a fault at this step. Yield the fleet, the outcome and the step.

    interval: with the quick profile, only one of so many steps is disturbed. Faults that can disturb only few
        steps disturb each of them.

    With `Fault.LOSE`, one of the files that the command has written is lost at each step: another one at the
    next step. With the thorough profile, each of them is lost once at each step.
    """
    at, which = 1, 0
    while True:
        case = fleet.copy(folder / f"{at}-{which}")
        disturbance = Disturbance(case.out, fault, at, which if is_thorough() else at)
        with disturb(disturbance):
            outcome = run(lambda: command(case))  # noqa: B023
        if disturbance.steps < at:
            assert at > (1 if fault in FEW_STEPS else 10), "the command has too few steps"
            return
        step = f"{fault} at {at} ({disturbance.names[at - 1]}): {disturbance.fired}"
        if disturbance.fired:
            yield case, outcome, step
        if is_thorough() and which + 1 < disturbance.files:
            which += 1
        else:
            at, which = at + (1 if fault in FEW_STEPS else pick(interval, 1)), 0


def check_outcome(outcome: Outcome, expected: object, step: str) -> None:
    """Check that a disturbed command had the expected result, or failed with a known error."""
    if outcome.is_killed:
        return
    if outcome.code is not None:
        assert outcome.code in KNOWN_CODES, (outcome.code, step)
    else:
        assert outcome.result == expected, step


def make_faulty_fleet(folder: Path, patch: pytest.MonkeyPatch) -> FaultyFleet:
    """Make a fleet with one audit, and change it afterwards: some findings are fixed, others are new."""
    fleet = make_real_fleet(folder / "fleet", patch)
    (fleet.folder / "out").mkdir()
    faulty = FaultyFleet(fleet, fleet.folder / "out")
    serve_clusters(faulty, patch)
    faulty.audit()
    faulty.snapshot()
    manifests = fleet.folder / "lab" / "all.yaml"
    manifests.write_text(manifests.read_text().split("---", 6)[-1])
    text = (fleet.folder / "shop" / "manifests" / "all.yaml").read_text()
    (fleet.folder / "shop" / "manifests" / "all.yaml").write_text(
        text.replace("retention.ms: 1000", "retention.ms: 1001", 2)
    )
    return faulty


def serve_clusters(faulty: FaultyFleet, patch: pytest.MonkeyPatch) -> None:
    """Make snapshots read the rows of the stored snapshot of the fleet instead of brokers.

    The second snapshot of a folder lacks a topic that the first one has.
    """
    (path,) = (faulty.fleet.snapshots / "data").glob("*/*")
    location, folder = str(path.relative_to(faulty.fleet.snapshots)), str(faulty.fleet.snapshots)
    results = str(faulty.out)

    def read_stored(_: ClusterLocator, name: str) -> Iterator[pa.RecordBatch]:
        from kdeclare.fleet.tables.storage import LocalStorage  # in Spark tasks, the storage is not faulty

        rows: list[Row] = read_rows(LocalStorage(Path(folder)), location, LIVE, [name])
        is_first = not Path(results, "snapshots").exists()
        rows = [row for row in rows if is_first or row["name"] != "t.1"]
        yield from batch_rows([{**row, "labels": row["labels"] or {}} for row in rows])

    patch.setattr("kdeclare.app.fleet.snapshot.read_live", read_stored)
