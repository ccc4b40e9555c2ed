"""The contract of all state stores: subclasses of `StateStoreContract` run it for one kind of store."""

from dataclasses import replace

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.state import LockInfo, State
from kdeclare.engine.state.port import StateStore
from kdeclare.providers.kafka.config.config_record import AppliedValue
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.jsontypes import untyped

FIRST = State(
    "lineage-1", 1, "cluster-1", {"Topic/orders": TopicRecord({"a": AppliedValue(None)}, partitions=3)}
)


class StateStoreContract:
    """Tests that every store has to pass. A subclass defines the fixture ``store``: a store without data."""

    def test_new_store_is_empty(self, store: StateStore) -> None:
        assert store.read() is None
        assert store.runs() == ()
        assert store.read_holder() is None

    def test_read_returns_last_written_state(self, store: StateStore) -> None:
        store.write(FIRST)
        assert store.read() == FIRST
        second = replace(FIRST, serial=2, resources={})
        store.write(second)
        assert store.read() == second

    @pytest.mark.parametrize(
        "overtaken",
        [
            replace(FIRST, serial=1),
            replace(FIRST, serial=3),
            replace(FIRST, serial=2, lineage="lineage-2"),
        ],
    )
    def test_write_of_overtaken_state_is_rejected(self, store: StateStore, overtaken: State) -> None:
        store.write(FIRST)
        with pytest.raises(KdeclareError) as caught:
            store.write(overtaken)
        assert caught.value.diagnostics[0].code == "state-overtaken"
        assert store.read() == FIRST

    def test_overwrite_accepts_any_state(self, store: StateStore) -> None:
        states = [
            replace(FIRST, serial=7),
            replace(FIRST, serial=3, resources={}),
            replace(FIRST, lineage="lineage-2", serial=1),
        ]
        with store.lock("kdeclare state push"):
            for state in states:
                store.overwrite(state)
                assert store.read() == state
            store.write(replace(states[-1], serial=2))
        assert store.read() == replace(states[-1], serial=2)

    def test_first_write_requires_serial_one(self, store: StateStore) -> None:
        with pytest.raises(KdeclareError, match="no state is stored"):
            store.write(replace(FIRST, serial=2))
        assert store.read() is None

    def test_run_stores_plan_and_journal_entries(self, store: StateStore) -> None:
        with store.begin_run("r1", '{"é": "\u2028"}') as journal:
            assert journal.run_id == "r1"
            journal.append({"begin": ["a", "b"]})
            journal.append({"end": "a", "error": "line\nbreak \ud800 \x00 é"})
        assert store.runs() == ("r1",)
        assert store.read_plan_text("r1") == '{"é": "\u2028"}'
        assert list(store.read_plan_lines("r1")) == [store.read_plan_text("r1")]
        assert store.entries("r1") == (
            {"begin": ["a", "b"]},
            {"end": "a", "error": "line\nbreak \ud800 \x00 é"},
        )

    def test_large_documents_are_stored(self, store: StateStore) -> None:
        text = "".join(f'{{"line": {number}, "é": "{number:050}"}}\n' for number in range(1000))
        with store.begin_run("r1", text) as journal:
            journal.append({"text": text})
            journal.append(2)
        assert store.read_plan_text("r1") == text
        assert "".join(store.read_plan_lines("r1")) == text
        assert len(list(store.read_plan_lines("r1"))) == 1000
        assert store.entries("r1") == ({"text": text}, 2)
        records = {f"Topic/t{number}": TopicRecord(partitions=number) for number in range(1, 1000)}
        for serial in (1, 2, 3):
            state = State("lineage-1", serial, "cluster-1", {**records, "Topic/last": TopicRecord()})
            store.write(state)
            records["Topic/t500"] = TopicRecord(partitions=serial)
        assert store.read() == state

    def test_several_entries_are_appended_at_once(self, store: StateStore) -> None:
        with store.begin_run("r1", "{}") as journal:
            journal.append_all(())
            journal.append_all((1, {"é": [2]}))
            journal.append(3)
            with pytest.raises(TypeError):
                journal.append_all((untyped(object()),))
            journal.append_all((4, 5))
        with store.open_run("r1") as journal:
            journal.append(6)
        assert store.entries("r1") == (1, {"é": [2]}, 3, 4, 5, 6)

    def test_open_run_appends_to_journal(self, store: StateStore) -> None:
        store.begin_run("r1", "{}").close()
        for number in range(3):
            with store.open_run("r1") as journal:
                journal.append(number)
        assert store.entries("r1") == (0, 1, 2)

    def test_closed_journal_rejects_entries(self, store: StateStore) -> None:
        journal = store.begin_run("r1", "{}")
        journal.close()
        journal.close()
        with pytest.raises(ValueError, match="closed"):
            journal.append(1)

    def test_journal_stores_copy_of_entry(self, store: StateStore) -> None:
        entry = {"ids": ["a"]}
        with store.begin_run("r1", "{}") as journal:
            journal.append(entry)
            entry["ids"].append("b")
        assert store.entries("r1") == ({"ids": ["a"]},)

    def test_journal_rejects_entry_that_is_not_json(self, store: StateStore) -> None:
        with store.begin_run("r1", "{}") as journal:
            with pytest.raises(TypeError):
                journal.append(untyped({"x": object()}))
            journal.append(1)
        assert store.entries("r1") == (1,)

    def test_reports_of_lost_locks_are_kept(self, store: StateStore) -> None:
        store.begin_run("r1", "{}").close()
        assert store.read_losses("r1") == ()
        reports = ({"operations": ["a"]}, {"operations": ["é"]})
        for report in reports:
            store.report_loss("r1", report)
        assert sorted(map(str, store.read_losses("r1"))) == sorted(map(str, reports))
        assert store.runs() == ("r1",)

    def test_begin_run_rejects_existing_run(self, store: StateStore) -> None:
        with store.begin_run("r1", "first") as journal:
            journal.append(1)
        with pytest.raises(KdeclareError) as caught:
            store.begin_run("r1", "second")
        assert caught.value.diagnostics[0].code == "run-exists"
        assert store.read_plan_text("r1") == "first"
        assert store.entries("r1") == (1,)

    @pytest.mark.parametrize("run_id", ["r2", "", ".", "..", "../r1", "r1/../r1"])
    def test_unknown_run_is_rejected(self, store: StateStore, run_id: str) -> None:
        store.begin_run("r1", "{}").close()
        for ask in (store.open_run, store.read_plan_text, store.entries):
            with pytest.raises(KdeclareError) as caught:
                ask(run_id)
            assert caught.value.diagnostics[0].code == "unknown-run"

    def test_lock_rejects_second_holder(self, store: StateStore) -> None:
        with store.lock("kdeclare apply"):
            holder = store.read_holder()
            assert holder is not None
            store.check_lock()
            with pytest.raises(KdeclareError) as caught, store.lock("kdeclare rollback"):
                pytest.fail("two holders")
        assert caught.value.exit_code is ExitCode.LOCKED
        detail = caught.value.diagnostics[0].detail
        for part in (holder.who, str(holder.pid), holder.since, "kdeclare apply"):
            assert part in detail
        assert store.read_holder() is None

    def test_lock_is_free_after_exception(self, store: StateStore) -> None:
        with pytest.raises(RuntimeError), store.lock("kdeclare apply"):
            raise RuntimeError
        with store.lock("kdeclare apply"):
            pass

    def test_break_lock_requires_current_holder(self, store: StateStore) -> None:
        other = LockInfo("ann@host", 1, "kdeclare apply", "2026-11-21T12:51:07Z")
        with pytest.raises(KdeclareError, match="it is now free"):
            store.break_lock(other)
        with store.lock("kdeclare apply"):
            with pytest.raises(KdeclareError, match="it is now held by"):
                store.break_lock(other)
            holder = store.read_holder()
            assert holder is not None
            store.break_lock(holder)
            assert store.read_holder() is None
            with store.lock("kdeclare rollback"):
                pass

    def test_abandoned_run_keeps_plan_and_journal(self, store: StateStore) -> None:
        for run_id in ("r1", "r2"):
            with store.begin_run(run_id, "{}") as journal:
                journal.append(run_id)
        assert store.list_abandoned() == frozenset()
        assert store.read_abandonment("r1") is None
        with store.lock("kdeclare state abandon"):
            store.abandon_run("r1", {"who": "é"})
            with pytest.raises(KdeclareError) as caught:
                store.abandon_run("r1", {"who": "other"})
        assert caught.value.diagnostics[0].code == "run-abandoned"
        assert store.list_abandoned() == {"r1"}
        assert store.read_abandonment("r1") == {"who": "é"}
        assert store.read_abandonment("r2") is None
        assert store.runs() == ("r1", "r2")
        assert (store.read_plan_text("r1"), store.entries("r1")) == ("{}", ("r1",))
        with pytest.raises(KdeclareError) as caught:
            store.abandon_run("r3", {})
        assert caught.value.diagnostics[0].code == "unknown-run"

    def test_entries_of_intact_journal_are_salvaged(self, store: StateStore) -> None:
        with store.begin_run("r1", "{}") as journal:
            assert store.salvage_entries("r1") == ((), True)
            for number in range(3):
                journal.append({"n": number})
        assert store.salvage_entries("r1") == (store.entries("r1"), True)
        with pytest.raises(KdeclareError) as caught:
            store.salvage_entries("r2")
        assert caught.value.diagnostics[0].code == "unknown-run"

    def test_summaries_are_read_by_run(self, store: StateStore) -> None:
        assert store.read_summaries(()) == {}
        for run_id in ("r1", "r2", "r3"):
            with store.begin_run(run_id, "{}") as journal:
                journal.append(run_id)
        store.write_summary("r1", {"text": "old"})
        store.write_summary("r1", {"text": "é"})
        store.write_summary("r3", [3])
        assert store.read_summaries(("r3", "r2", "r1")) == {"r1": {"text": "é"}, "r3": [3]}
        assert store.read_summaries(("r1", "r4")) == {"r1": {"text": "é"}}
        with pytest.raises(KdeclareError) as caught:
            store.write_summary("r4", {})
        assert caught.value.diagnostics[0].code == "unknown-run"

    def test_effects_are_read_by_run(self, store: StateStore) -> None:
        for run_id in ("r1", "r2"):
            store.begin_run(run_id, "{}").close()
        store.write_effects("r1", [{"text": "old"}])
        store.write_effects("r1", [{"text": "é"}])
        assert store.read_effects("r1") == [{"text": "é"}]
        assert store.read_effects("r2") is None
        assert store.runs() == ("r1", "r2")
        with pytest.raises(KdeclareError) as caught:
            store.write_effects("r4", [])
        assert caught.value.diagnostics[0].code == "unknown-run"

    def test_removed_run_leaves_nothing(self, store: StateStore) -> None:
        text = "".join(f'{{"line": {number}}}\n' for number in range(1000))
        with store.lock("kdeclare state prune"):
            for run_id in ("r1", "r2"):
                with store.begin_run(run_id, text) as journal:
                    journal.append({"text": text})
                store.write_summary(run_id, 1)
                store.write_effects(run_id, [1])
                store.report_loss(run_id, 2)
                store.abandon_run(run_id, 3)
            store.remove_run("r1")
            assert store.runs() == ("r2",)
            assert (store.read_plan_text("r2"), store.entries("r2")) == (text, ({"text": text},))
            assert store.list_abandoned() == {"r2"}
            with pytest.raises(KdeclareError) as caught:
                store.remove_run("r1")
            assert caught.value.diagnostics[0].code == "unknown-run"
            store.begin_run("r1", "{}").close()  # nothing of the removed run is left
            assert store.entries("r1") == ()
            assert store.read_losses("r1") == ()
            assert store.read_summaries(("r1",)) == {}
            assert store.read_effects("r1") is None
            assert store.list_abandoned() == {"r2"}
