"""No registered secret value leaves the process, in whatever form other programs write it."""

import json
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.cli.terminal_text import sanitize_for_terminal
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.state import State
from kdeclare.core.secrets.scrubber import MIN_SECRET_LENGTH, SCRUBBED, SCRUBBER, Scrubber
from kdeclare.engine.state.local_store import LocalStore

NASTY = 'p@ss "word" \\ /?&=% ü'


@pytest.mark.parametrize(
    "form",
    [
        NASTY,
        json.dumps(NASTY),
        json.dumps(NASTY, ensure_ascii=False),
        quote(NASTY),
        quote(NASTY, safe=""),
        quote_plus(NASTY),
        repr(NASTY),
    ],
)
def test_every_form_of_secret_is_scrubbed(form: str) -> None:
    SCRUBBER.register(NASTY)
    text = sanitize_for_terminal(f"There is no file {form}, or so.")
    assert SCRUBBED in text
    assert "p@ss" not in text
    assert "p%40ss" not in text


def test_fault_message_contains_no_secret() -> None:
    SCRUBBER.register("correct horse battery")
    fault = Fault("INVALID_CONFIG", "Invalid value correct horse battery for sasl.jaas.config")
    assert fault.message == f"Invalid value {SCRUBBED} for sasl.jaas.config"
    assert "horse" not in str(fault)


def test_journal_contains_no_secret(tmp_path: Path) -> None:
    SCRUBBER.register("correct horse battery")
    store = LocalStore(tmp_path)
    with store.lock("test"), store.begin_run("20260101T000000Z-deadbeef", "{}") as journal:
        journal.append({"message": ["it says 'correct horse battery'"]})
    written = (tmp_path / "runs" / "20260101T000000Z-deadbeef" / "journal.jsonl").read_text()
    assert "horse" not in written
    assert store.entries("20260101T000000Z-deadbeef") == ({"message": [f"it says '{SCRUBBED}'"]},)


def test_short_values_are_scrubbed_only_as_words() -> None:
    scrubber = Scrubber()
    scrubber.register("hunter2")
    scrubber.register("5")
    assert scrubber.scrub("hunter2s ask hunter2, 5 times") == f"hunter2s ask {SCRUBBED}, 5 times"


def test_each_line_of_key_is_scrubbed() -> None:
    scrubber = Scrubber()
    scrubber.register("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----\n")
    assert "MIIE" not in scrubber.scrub("line 2: MIIEvQIBADANBgkq")


@given(st.lists(st.text(min_size=MIN_SECRET_LENGTH * 2, max_size=30), max_size=4), st.text(max_size=10))
def test_any_long_value_is_scrubbed(values: list[str], around: str) -> None:
    scrubber = Scrubber()
    for value in values:
        scrubber.register(value)
    text = scrubber.scrub(around + around.join(values) + around)
    assert not [value for value in values if value in text and value not in SCRUBBED]


def read_modes(folder: Path) -> dict[str, int]:
    return {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()}


def write_state_and_run(folder: Path) -> None:
    store = LocalStore(folder)
    with store.lock("test"):
        store.begin_run("20260101T000000Z-deadbeef", "{}").close()
        store.write(State("lineage", 1, "cluster", {}))


@pytest.fixture
def _usual_umask() -> Iterator[None]:
    import os

    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("_usual_umask")
def test_state_and_runs_are_readable_only_by_owner(tmp_path: Path) -> None:
    write_state_and_run(tmp_path / "state")
    found = read_modes(tmp_path / "state")
    assert {found[name] for name in ("state.json", "plan.json", "journal.jsonl")} == {0o600}


@pytest.mark.usefixtures("_usual_umask")
def test_files_in_group_folder_are_readable_by_group(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o2775 & ~0o005)
    write_state_and_run(shared / "state")
    found = read_modes(shared)
    assert {found[name] for name in ("state.json", "plan.json", "journal.jsonl")} == {0o640}


@pytest.mark.usefixtures("_usual_umask")
def test_write_keeps_mode_of_existing_state(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    write_state_and_run(tmp_path)
    (tmp_path / "state.json").chmod(0o664)
    with store.lock("test"):
        store.write(State("lineage", 2, "cluster", {}))
    assert read_modes(tmp_path)["state.json"] == 0o664


def test_scrub_with_thousands_of_secrets_is_fast() -> None:
    scrubber = Scrubber()
    for number in range(5_000):
        scrubber.register(f"secret-value-{number:05}")
    text = "nothing secret in here, or nearly so. " * 5_000
    begin = time.process_time()
    assert scrubber.scrub(text + "secret-value-00042") == text + SCRUBBED
    assert time.process_time() - begin < 2.0  # 0.04 s on an idle core; the limit allows for a busy one
