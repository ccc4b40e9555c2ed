"""States, journals and the other objects of a state, in a folder and in a storage that a team shares."""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from kdeclare.app.connections import PendingConnections
from kdeclare.app.history import iterate_runs, show_run
from kdeclare.app.state.abandon import review_run
from kdeclare.app.state.ownership import list_owned, read_state
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.plans.state import State
from kdeclare.engine.executor.entries import (
    read_abandonment,
    read_lock_losses,
    read_reasons,
    read_run,
    read_run_plan,
    read_written_kinds,
)
from kdeclare.engine.executor.recovery import find_unfinished_runs, is_state_lost, replay_missed_runs
from kdeclare.engine.state.document import decode_state, encode_state
from kdeclare.engine.state.journal_file import format_journal_line
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.journal import encode_batch, list_journal_parts
from kdeclare.engine.state.shared.lease import LeaseRecord, LeaseStatus
from kdeclare.engine.state.shared.memory_objects import MemoryObjects
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.manifests.project import Project
from kdeclare.report.plan.plan_page import render_run_page
from kdeclare.report.run.history_text import render_history_text, render_run_detail_text
from tests.fuzzing.mutations import mutate_json, mutate_json_lines
from tests.fuzzing.target import Target
from tests.fuzzing.targets.plans import ROOT, forge_id

_FORMATS = ROOT / "tests/formats/0.1"
_LINE = re.compile(rb'^\{"sum":"[^"]*",("seq":.*)$', re.DOTALL)
_BATCH = re.compile(r'^\{"sum":"[^"]*","batch":(.*)\}\n?$', re.DOTALL)
_CHECKSUM_LINE = re.compile(rb'"checksum": ?"[^"]*", ?\n?')
_PART = re.compile(r"parts/([0-9a-f]{64})-")


def read_store(store: StateStore) -> None:
    """Read all that a store contains, as the commands status, history, show and state do."""
    workspace = Workspace(Project(), store, "memory", _connect, {})
    steps: list[Callable[[], object]] = [
        lambda: read_state(workspace),
        lambda: list_owned(workspace),
        lambda: render_history_text(list(iterate_runs(workspace))),
        lambda: find_unfinished_runs(store),
        lambda: is_state_lost(store),
        lambda: replay_missed_runs(store),
        store.read_holder,
    ]
    run_ids: Sequence[str] = ()
    with suppress(KdeclareError):
        run_ids = store.runs()[:3]
    for run_id in run_ids:
        steps += [
            lambda i=run_id: read_run(store, i),  # type: ignore[misc]
            lambda i=run_id: read_run_plan(store, i),  # type: ignore[misc]
            lambda i=run_id: read_reasons(store, i),  # type: ignore[misc]
            lambda i=run_id: read_written_kinds(store, i),  # type: ignore[misc]
            lambda i=run_id: read_lock_losses(store, i),  # type: ignore[misc]
            lambda i=run_id: read_abandonment(store, i),  # type: ignore[misc]
            lambda i=run_id: store.salvage_entries(i),  # type: ignore[misc]
            lambda i=run_id: review_run(store, i),  # type: ignore[misc]
            lambda i=run_id: _show_run(workspace, i),  # type: ignore[misc]
        ]
    for step in steps:
        with suppress(KdeclareError):
            step()


def _connect() -> PendingConnections:
    raise AssertionError("reading a store connects to no system")


def _show_run(workspace: Workspace, run_id: str) -> None:
    detail = show_run(workspace, run_id)
    render_run_detail_text(detail, with_steps=True)
    render_run_page(detail)


def read_state_document(data: bytes) -> None:
    """Decode a state with its checksum and without it, and encode it again."""
    with suppress(KdeclareError):
        decode_state(data, "state.json")
    state = decode_state(_CHECKSUM_LINE.sub(b"", data), "state.json")
    assert decode_state(encode_state(state), "again") == state or "NaN" in encode_state(state)


@cache
def _find_folder() -> tuple[Path, str]:
    """Return a folder with a state, whose journal is replaced by each input, and the id of its run."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-state-"))
    runs = sorted(path for path in (_FORMATS / "runs").iterdir())
    target = folder / "runs" / runs[-1].name
    target.mkdir(parents=True)
    (folder / "state.json").write_bytes((_FORMATS / "state.json").read_bytes())
    (target / "plan.json").write_bytes((runs[-1] / "plan.json").read_bytes())
    return folder, runs[-1].name


def read_journal(data: bytes) -> None:
    """Read a journal as it is, and then with matching checksums."""
    folder, run_id = _find_folder()
    journal = folder / "runs" / run_id / "journal.jsonl"
    for text in dict.fromkeys((data, repair_journal(data))):
        journal.write_bytes(text)
        read_store(LocalStore(folder))


def repair_journal(data: bytes) -> bytes:
    """Return a journal whose lines have matching checksums."""
    lines: list[bytes] = []
    for line in data.split(b"\n"):
        parts = _LINE.match(line)
        if parts is None:
            lines.append(line)
        else:
            digest = hashlib.sha256(parts[1]).hexdigest()[:16].encode()
            lines.append(b'{"sum":"%s",%s' % (digest, parts[1]))
    return b"\n".join(lines)


def _compact(data: bytes, seed: int) -> bytes:
    """Change a journal, and keep the layout of its lines."""
    lines = []
    for line in mutate_json_lines(data, seed).split(b"\n"):
        with suppress(ValueError, RecursionError):
            line = json.dumps(json.loads(line), separators=(",", ":")).encode()
        lines.append(line)
    return b"\n".join(lines)


def read_shared_state(data: bytes) -> None:
    """Read a shared state. The input is a JSON object with the content of each object by its key."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(document, dict):
        return
    contents = {key: text for key, text in document.items() if isinstance(text, str)}
    for variant in (contents, _repair_objects(contents)):
        objects = MemoryObjects()
        for key, text in variant.items():
            objects.create(key, text.encode("utf-8", "surrogatepass"))
        store = SharedStore(lambda objects=objects: objects)  # type: ignore[misc]
        read_store(store)
        for run_id in store.runs()[:3]:
            list_journal_parts(objects, run_id)
        store.close()


def _repair_objects(contents: Mapping[str, str]) -> dict[str, str]:
    """Return objects with matching checksums: of journals, of parts, and of plans."""
    repaired = {
        key: forge_id(text) if key.startswith("plans/") else _repair_batch(text)
        for key, text in contents.items()
    }
    digests = {
        found[1]: hashlib.sha256(repaired[key].encode("utf-8", "surrogatepass")).hexdigest()
        for key in repaired
        if (found := _PART.match(key))
    }

    def put_digest(found: re.Match[str]) -> str:
        return f"parts/{digests.get(found[1], found[1])}-"

    return {_PART.sub(put_digest, key): _PART.sub(put_digest, text) for key, text in repaired.items()}


def _repair_batch(text: str) -> str:
    parts = _BATCH.match(text)
    if parts is None:
        return text
    digest = hashlib.sha256(parts[1].encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f'{{"sum":"{digest}","batch":{parts[1]}}}\n'


def _mutate_objects(data: bytes, seed: int) -> bytes:
    """Change the content of one object as a JSON document; every fourth time, the list of objects."""
    try:
        document = json.loads(data)
        keys = [key for key, text in document.items() if isinstance(text, str)]
    except (ValueError, AttributeError, RecursionError):
        return data
    if seed % 4 == 0 or not keys:
        return mutate_json(data, seed)
    key = keys[seed // 4 % len(keys)]
    text = document[key]
    parts = _BATCH.match(text)
    inner = (parts[1] if parts else text).encode("utf-8", "surrogatepass")
    changed = mutate_json(inner, seed).decode("utf-8", "replace")
    document[key] = f'{{"sum":"","batch":{changed}}}\n' if parts else changed
    return json.dumps(document).encode()


def make_states() -> Sequence[bytes]:
    """Return states of all formats."""
    old = (_FORMATS / "state.json").read_bytes()
    return [old, encode_state(decode_state(old, "x")).encode(), encode_state(State("l", 1, "c", {})).encode()]


def _read_entries() -> dict[str, list[object]]:
    return {
        run.name: [json.loads(line)["entry"] for line in (run / "journal.jsonl").read_bytes().splitlines()]
        for run in sorted((_FORMATS / "runs").iterdir())
    }


def make_journals() -> Sequence[bytes]:
    """Return journals that kdeclare wrote."""
    return [
        b"".join(format_journal_line(n, entry) for n, entry in enumerate(entries, start=1))  # type: ignore[arg-type]
        for entries in _read_entries().values()
    ]


def make_shared_states() -> Sequence[bytes]:
    """Return a small and a large shared state, each with all sorts of objects."""
    from kdeclare.core.plans.state import LockInfo

    holder = LockInfo("me@here", 1, "kdeclare apply", "2026-01-01T00:00:00Z")
    lease = LeaseRecord(LeaseStatus.HELD, "token", 3, holder, 30.0, "2026-01-01T00:00:00Z")
    shared: dict[str, str] = {"lease.json": lease.encode().decode()}
    shared["state.json"] = (_FORMATS / "state.json").read_text()
    entries_by_run = _read_entries()
    for run_id, entries in entries_by_run.items():
        shared[f"plans/{run_id}.json"] = (_FORMATS / "runs" / run_id / "plan.json").read_text()
        for number, entry in enumerate(entries, start=1):
            batch = encode_batch(run_id, number, "token", [entry])  # type: ignore[list-item]
            shared[f"journals/{run_id}/{number:06}.json"] = batch.decode()
    run_id = next(iter(entries_by_run))
    loss = {"at": "2026-01-01T00:00:00Z", "who": "me", "operations": ["x"]}
    shared[f"losses/{run_id}/00.json"] = json.dumps(loss)
    shared[f"abandoned/{run_id}.json"] = json.dumps(
        {"at": "2026-01-01T00:00:00Z", "who": "me", "reason": "x"}
    )
    parted = dict(shared)
    text = parted["state.json"]
    keys = []
    for piece in (text[:100], text[100:]):
        keys.append(f"parts/{hashlib.sha256(piece.encode()).hexdigest()}-00000000")
        parted[keys[-1]] = piece
    parted["state.json"] = json.dumps({"kdeclare-parts": keys}, separators=(",", ":")) + "\n"
    del parted[f"abandoned/{run_id}.json"]
    return [json.dumps(one).encode() for one in (shared, parted)]


TARGETS = (
    Target("journal", read_journal, make_journals, _compact),
    Target("state", read_state_document, make_states, mutate_json),
    Target("shared-state", read_shared_state, make_shared_states, _mutate_objects),
)
