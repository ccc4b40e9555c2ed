"""The commands other than plan and apply, as a user runs them."""

import json
import os
import re
import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kdeclare import sandbox
from kdeclare.app import status
from kdeclare.app.recovery import recover_if_possible
from kdeclare.app.workspace import WorkspaceOptions, open_workspace
from kdeclare.cli import run_output
from kdeclare.core.clock import SystemClock
from kdeclare.core.diagnostics import Diagnostic
from kdeclare.core.resources.changes import FieldOp
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.run.documents import build_run_schemas
from kdeclare.sandbox import BrokerStatus, SandboxSettings, SandboxStatus
from tests.engine.moving import list_throttles
from tests.git_remotes import create_remote, open_git_objects
from tests.unit.cli.command_line import CommandLine


def test_rollback_undoes_apply_and_can_be_undone(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders", configs={"retention.ms": 1000})
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.topic("orders", configs={"retention.ms": 2000})
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("rollback", "--yes")
    assert ran.code == 0
    assert "2000 (2 s) → 1000 (1 s)" in ran.out
    assert "Rolled back on shop/lab" in ran.out
    assert "1 to change" in kdeclare("plan").out
    assert kdeclare("rollback", answer="yes\n").code == 0
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_rollback_notes_that_manifests_are_unchanged(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    told = "The manifests are unchanged. Revert them too"
    assert told in kdeclare("rollback", "--yes").err
    assert told not in kdeclare("rollback", "--yes").err, "the rollback undone, they are right again"
    kdeclare("rollback", "--out", "undo.plan")
    assert told not in kdeclare("apply", "undo.plan", "--yes").err
    kdeclare("apply", "--yes")
    kdeclare("rollback", "--out", "undo.plan")
    assert told in kdeclare("apply", "undo.plan", "--yes", "--format", "json").err
    kdeclare("topic", "create", "by-hand", "--yes")
    ran = kdeclare("rollback", "--yes")
    assert "Rolled back" in ran.out
    assert told not in ran.err, "no manifest speaks of it"


def test_rollback_plan_can_be_saved_and_applied(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("rollback", "--out", "undo.plan")
    assert ran.code == 0
    assert "Rollback plan" in ran.out
    assert "The plan was saved to undo.plan" in ran.err
    assert kdeclare.topics == {"orders"}
    shown = json.loads(kdeclare("rollback", "--out", "undo.plan", "--format", "json").out)
    assert shown["undoes"]
    assert kdeclare("apply", "undo.plan", "--yes").code == 0
    assert not kdeclare.topics


def test_rollback_declined_changes_nothing(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    ran = kdeclare("rollback", answer="no\n")
    assert (ran.code, kdeclare.topics) == (1, {"orders"})
    assert ran.err == "Roll back? Only 'yes' is accepted: \nNothing was changed.\n"


def test_rollback_keeps_topic_with_records(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("apply", "--yes")
    kdeclare.cluster.produce("orders", 3)
    assert kdeclare("rollback", "--yes").code == 5
    assert kdeclare("rollback", "--yes", "--allow-data-loss").code in (0, 5)


def test_history_lists_and_shows_runs(kdeclare: CommandLine) -> None:
    assert kdeclare("history").out == "No runs yet.\n"
    kdeclare.topic("orders")
    kdeclare("apply", "--yes", "--state", "state")
    kdeclare.topic("payments")
    kdeclare("plan", "--out", "it.plan")
    runs = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert [run["command"] for run in runs] == ["kdeclare apply --yes --state state"]
    run_id = runs[0]["run_id"]
    assert run_id in kdeclare("history").out
    assert "topic.create Topic/orders" in kdeclare("history", run_id, "--steps").out
    assert json.loads(kdeclare("history", run_id, "--format", "json").out)["run_id"] == run_id
    diff = kdeclare("history", "diff", run_id, "it.plan")
    assert "Topic/payments" in diff.out
    document = json.loads(kdeclare("history", "diff", run_id, "it.plan", "--format", "json").out)
    assert {d["resource"] for d in document["differences"]} == {"Topic/orders", "Topic/payments"}
    ran = kdeclare("history", "nope")
    assert ran.code == 1
    assert "No such run" in ran.err


def test_history_shows_adopted_resources(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in ("orders", "refunds")])
    kdeclare.topic("orders")
    kdeclare.topic("refunds")
    kdeclare("apply", "--yes")
    [run] = json.loads(kdeclare("history", "--format", "json").out)["runs"]
    assert (run["adopted"], run["operations"]) == (2, 0)
    listed = kdeclare("history").out
    assert "2 adopted" in listed
    assert "0/0" not in listed
    assert "2 resources without a change" in kdeclare("history", run["run_id"]).out
    assert '["adopted","2 resources"]' in kdeclare("history", run["run_id"], "--format", "html").out


def test_status_of_idle_cluster_is_idle(kdeclare: CommandLine) -> None:
    ran = kdeclare("status")
    assert ran.code == 0
    assert ran.out.startswith("Idle.")
    assert json.loads(kdeclare("status", "--format", "json", "--watch").out)["moves"] == []


def test_status_watch_follows_moves_to_end(kdeclare: CommandLine) -> None:
    kdeclare.monkeypatch.setattr("kdeclare.cli.commands.status._POLL_S", 0.0)
    kdeclare.cluster.move_ticks = 12
    kdeclare.topic("orders", partitions=1, replicationFactor=1)
    kdeclare("apply", "--yes")
    kdeclare.topic("orders", partitions=1, replicationFactor=2)
    ran = kdeclare("apply", "--yes", "--no-wait")
    assert ran.code == 0
    assert "Still in progress in the cluster" in ran.out
    out = kdeclare("status", "--watch").out
    assert "1 partition moving" in out
    assert "Idle." in out.splitlines()[-3]


def start_moves(kdeclare: CommandLine) -> None:
    """Declare a topic and a throttled Reassignment in batches of one, which continues until a tick."""
    kdeclare.monkeypatch.setattr("kdeclare.cli.commands.status._POLL_S", 0.0)
    kdeclare.monkeypatch.setattr(SystemClock, "sleep", lambda *_: None)
    kdeclare.cluster.create_topics([NewTopic("foo", None, None, dict.fromkeys(range(3), (1, 2)), {})])
    partitions = [{"topic": "foo", "partition": n, "replicas": [3, 1]} for n in range(3)]
    kdeclare.write(
        "manifests/move.yaml", "Reassignment", "move", partitions=partitions, throttle=1000, batchSize=1
    )
    kdeclare.cluster.tick_on_poll = False
    kdeclare.cluster.move_ticks = 100


def get_state_file(kdeclare: CommandLine) -> Path:
    return kdeclare.folder / "state" / "shop" / "lab" / "state.json"


def read_leftovers(kdeclare: CommandLine) -> tuple[object, object]:
    """Return the throttles in the cluster and the pending cleanup in the state."""
    return list_throttles(kdeclare.cluster), json.loads(get_state_file(kdeclare).read_text()).get("leftovers")


def test_apply_after_ctrl_c_removes_throttle(kdeclare: CommandLine) -> None:
    start_moves(kdeclare)

    def press_once(other: MemoryCluster) -> None:
        if other.moves() and not pressed.is_set():
            pressed.set()
            os.kill(os.getpid(), signal.SIGINT)

    pressed = Event()
    kdeclare.cluster.faults.run_before(press_once, method="moves", nth=None)
    assert kdeclare("apply", "--yes").code == 130
    assert list_throttles(kdeclare.cluster)
    kdeclare.cluster.tick(60)  # the first reassignment continues while the second apply starts
    kdeclare.cluster.tick_on_poll = True
    kdeclare.cluster.move_ticks = 3
    assert kdeclare("apply", "--yes").code == 0
    assert not kdeclare.cluster.moves()
    assert read_leftovers(kdeclare) == ({}, None)
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_rollback_after_no_wait_removes_throttle(kdeclare: CommandLine) -> None:
    start_moves(kdeclare)
    kdeclare("apply", "--yes", "--no-wait")
    assert list_throttles(kdeclare.cluster)
    assert kdeclare("rollback", "--yes").code == 0
    assert not kdeclare.cluster.moves()
    assert read_leftovers(kdeclare) == ({}, None)


@pytest.mark.slow
@pytest.mark.parametrize("nth", range(1, 11))
def test_status_watch_continues_until_cleanup(kdeclare: CommandLine, nth: int) -> None:
    """The last reassignment can end before, between or after the requests of status."""
    start_moves(kdeclare)
    kdeclare("apply", "--yes", "--no-wait")
    assert list_throttles(kdeclare.cluster)
    kdeclare.cluster.faults.run_before(lambda other: other.tick(200), method="moves", nth=nth)
    ran = kdeclare("status", "--watch")
    assert ran.code == 0
    assert "Idle." in ran.out
    assert read_leftovers(kdeclare) == ({}, None)


def test_status_watch_cleans_up_after_last_move(kdeclare: CommandLine) -> None:
    start_moves(kdeclare)
    kdeclare("apply", "--yes", "--no-wait")

    def recover_and_arrive(*arguments: Any, **more: Any) -> tuple[Diagnostic, ...]:
        notices = recover_if_possible(*arguments, **more)
        kdeclare.cluster.tick(200)
        return notices

    kdeclare.monkeypatch.setattr("kdeclare.app.status.recover_if_possible", recover_and_arrive)
    looks = status.watch_status(open_workspace(WorkspaceOptions(), os.environ), clean_up=True)
    first, _ = next(looks)
    assert [work.document["partition"] for work in first.ongoing] == [0]
    assert list_throttles(kdeclare.cluster)
    second, notices = next(looks)
    assert not second.ongoing
    assert [d.code for d in notices] == ["tidied"]
    assert read_leftovers(kdeclare) == ({}, None)


def test_state_of_earlier_version_keeps_pending_cleanup(kdeclare: CommandLine) -> None:
    """An older kdeclare refuses a newer state, because it would lose fields that it does not know."""

    def read_version() -> object:
        return json.loads(get_state_file(kdeclare).read_text())["version"]

    start_moves(kdeclare)
    kdeclare("apply", "--yes", "--no-wait")
    assert read_version() == 3
    assert "1 partition moving" in kdeclare("status").out
    text = get_state_file(kdeclare).read_text()
    text = re.sub(r'  "checksum": .*\n', "", text)
    get_state_file(kdeclare).write_text(text.replace('"version": 3', '"version": 2', 1))
    assert "1 partition moving" in kdeclare("status").out
    kdeclare.cluster.tick(200)
    kdeclare.cluster.tick_on_poll = True
    kdeclare.cluster.move_ticks = 1
    assert kdeclare("apply", "--yes").code == 0
    assert read_version() == 3
    assert read_leftovers(kdeclare) == ({}, None)
    text = get_state_file(kdeclare).read_text()
    text = re.sub(r'  "checksum": .*\n', "", text)
    get_state_file(kdeclare).write_text(text.replace('"version": 3', '"version": 1', 1))
    assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_status_recovers_interrupted_run(kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C twice, the second time while a request hangs."""
    kdeclare.topic("orders")
    announced, ended = Event(), Event()
    monkeypatch.setattr(run_output, "announce_stop", announced.set)

    def press_twice(_: MemoryCluster) -> None:
        for is_done in (announced, ended):
            os.kill(os.getpid(), signal.SIGINT)
            is_done.wait(30)

    kdeclare.cluster.faults.run_before(press_twice)
    ran = kdeclare("apply", "--yes")
    ended.set()
    assert ran.code == 130
    assert "The run was stopped immediately" in ran.err
    time.sleep(0.6)
    seen = kdeclare("status")
    assert seen.code == 0
    assert "Unfinished run was recovered" in seen.err
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.topics == {"orders"}


def test_first_ctrl_c_announces_second(capfd: pytest.CaptureFixture[str]) -> None:
    run_output.announce_stop()
    assert "Press Ctrl-C again to exit at once" in capfd.readouterr().err


def test_import_then_plan_has_no_changes(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("orders", 2, 1, None, {"retention.ms": "1000"})])
    kdeclare.cluster.create_topics([NewTopic("payments", 1, 1, None, {})])
    ran = kdeclare("import")
    assert ran.out.count("kind: Topic") == 2
    assert ran.out.count("\n---\n") >= 1
    assert "orders" not in kdeclare("import", "--match", "pay.*").out
    assert kdeclare("import", "--match", "(").code == 64
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == 0
    assert not ran.out
    assert "to manifests." in ran.err
    ran = kdeclare("plan", "--detailed-exitcode")
    assert ran.code == 0
    assert ran.out.startswith("No changes.")
    ran = kdeclare("import", "--include-declared", "--out", "manifests")
    assert ran.code == 1, "nothing is overwritten"


def test_import_leaves_out_declared_resources(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in ("orders", "payments", "new")])
    kdeclare.topic("orders")
    kdeclare.topic("payments", partitons=2)  # a mistake in a manifest does not matter
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == 0
    assert "Wrote 1 manifest to manifests." in ran.err
    assert "2 resources (already declared in the project)" in ran.err
    assert [path.name for path in (kdeclare.folder / "manifests" / "topics").iterdir()] == ["new.yaml"]
    ran = kdeclare("import", "--match", "orders")
    assert (ran.code, ran.out) == (0, "")
    assert "Left out: 1 resource (already declared in the project)." in ran.err
    assert "metadata:\n  name: orders\n" in kdeclare("import", "--include-declared").out


def test_import_asks_for_no_variable_that_only_comment_names(kdeclare: CommandLine) -> None:
    resource = ConfigResource(ConfigScope.BROKER, "1")
    secret = ConfigOp("listener.name.external.ssl.keystore.password", FieldOp.SET, "changeit")
    kdeclare.cluster.alter_configs([ConfigAlteration(resource, (secret,))])
    result = kdeclare("import")
    assert "declare it as ${env.NAME}" in result.out
    assert "Set these environment variables" not in result.err


def test_import_of_topic_with_leading_dot_writes_loaded_file(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in (".x", "topic.x", "..x")])
    assert kdeclare("import", "--match", ".*x", "--out", "manifests").code == 0
    found = sorted(path.name for path in (kdeclare.folder / "manifests" / "topics").iterdir())
    assert found == ["topic+..x.yaml", "topic+.x.yaml", "topic.x.yaml"]
    assert "Valid: 3 resources" in kdeclare("validate").out
    assert kdeclare("plan", "--detailed-exitcode").out.startswith("No changes.")
    assert kdeclare("new", "topic", ".y").out == "manifests/topics/topic+.y.yaml\n"


def test_import_reports_omitted_resources(kdeclare: CommandLine) -> None:
    names = ("orders", "moved", "offsets")
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in names])
    kdeclare.cluster.mark_internal("offsets")
    held = "1 cluster-wide config (kept by the cluster)."
    assert f"Left out: 1 internal topic (Kafka's own), {held}" in kdeclare("import", "--out", "before").err
    set_ = [
        (ConfigResource(ConfigScope.TOPIC, "moved"), "leader.replication.throttled.replicas", "*"),
        (ConfigResource(ConfigScope.BROKER, "1"), "leader.replication.throttled.rate", "1000"),
        (ConfigResource(ConfigScope.BROKER, "1"), "listener.name.tls.ssl.keystore.password", "hunter2"),
    ]
    ops = [ConfigAlteration(entity, (ConfigOp(key, FieldOp.SET, value),)) for entity, key, value in set_]
    assert not any(any(kdeclare.cluster.alter_configs([op]).values()) for op in ops)
    told = kdeclare("import").err
    assert "2 throttles (set by reassignments), 1 secret (Kafka hides the values;" in told
    assert told.endswith(f", {held}\n")
    assert "hunter2" not in told
    ran = kdeclare("import", "--match", "orders")
    assert not ran.err, "nothing of what was asked for is missing"


def test_import_output_is_valid_manifest(kdeclare: CommandLine) -> None:
    kdeclare.cluster.create_topics([NewTopic("orders", 2, 1, None, {}), NewTopic("payments", 1, 1, None, {})])
    (kdeclare.folder / "all.yaml").write_text(kdeclare("import").out)
    assert kdeclare("plan", "all.yaml", "--detailed-exitcode").code == 0


def test_lock_show_and_break_handle_lock(kdeclare: CommandLine) -> None:
    assert kdeclare("lock", "show").out == "Not locked.\n"
    nobody = json.loads(kdeclare("lock", "show", "--format", "json").out)
    Draft202012Validator(build_run_schemas()["lock"]).validate(nobody)
    assert kdeclare("lock", "break").out == "Not locked.\n"
    with LocalStore(kdeclare.folder / "state" / "shop" / "lab").lock("apply by hand"):
        assert "apply by hand" in kdeclare("lock", "show").out
        shown = json.loads(kdeclare("lock", "show", "--format", "json").out)
        assert shown["lock"]["pid"] == os.getpid()
        Draft202012Validator(build_run_schemas()["lock"]).validate(shown)
        assert "locked" in kdeclare("status").out
        assert kdeclare("lock", "break").code == 64
        assert kdeclare("lock", "break", answer="no\n").code == 1
        ran = kdeclare("lock", "break", answer="yes\n")
        assert ran.code == 0
        assert "The lock was broken." in ran.out
        assert kdeclare("lock", "show").out == "Not locked.\n"


def test_validate_reports_valid_and_invalid_project(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    ran = kdeclare("validate")
    assert (ran.code, ran.out) == (0, "Valid: 1 resource in 1 file.\n")
    kdeclare.topic("payments", partitons=1)
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "manifests/payments.yaml:" in ran.out
    assert "Did you mean 'partitions'?" in ran.out
    assert "Not valid: 1 error" in ran.out
    document = json.loads(kdeclare("validate", "--format", "json").out)
    assert document["valid"] is False
    assert kdeclare("validate", "manifests/orders.yaml").code == 0


def test_validate_needs_no_connection_secrets(kdeclare: CommandLine) -> None:
    lab = {"bootstrapServers": "${env.SERVERS}", "clientConfig": {"sasl.password": "${env.KAFKA_SECRET}"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    kdeclare.topic("orders")
    assert kdeclare("validate").code == 0
    assert kdeclare("show-manifest", "Topic/orders").code == 0
    assert "KAFKA_SECRET" in kdeclare("plan").err
    kdeclare.topic("payments", configs={"retention.ms": "${env.RETENTION}"})
    assert "RETENTION" in kdeclare("validate").out


def test_validate_reports_names_unusable_as_folders(kdeclare: CommandLine) -> None:
    head = "apiVersion: kdeclare/v1\nkind: Project\n"
    Path("kdeclare.yaml").write_text(f"{head}metadata: {{name: ..}}\nspec: {{environments: {{a/b: {{}}}}}}\n")
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "kdeclare.yaml:3:18" in ran.out + ran.err
    assert "kdeclare.yaml:4:23" in ran.out + ran.err


def test_validate_sends_no_requests(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    kdeclare("validate")
    assert not kdeclare.cluster.calls


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "Topic", "BrokerConfig", "Reassignment", "Project"])
def test_schema_validates_topic(kdeclare: CommandLine, kind: str | None) -> None:
    ran = kdeclare("schema", *(["--kind", kind] if kind else []))
    schema = json.loads(ran.out)
    Draft202012Validator.check_schema(schema)
    topic = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": "x"},
        "spec": {"partitions": 1},
    }
    assert Draft202012Validator(schema).is_valid(topic) is (kind in (None, "Topic"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [None, "Topic"])
def test_overlay_schema_accepts_partial_topic(kdeclare: CommandLine, kind: str | None) -> None:
    ran = kdeclare("schema", "--overlay", *(["--kind", kind] if kind else []))
    schema = json.loads(ran.out)
    Draft202012Validator.check_schema(schema)
    assert Draft202012Validator(schema).is_valid({"kind": "Topic", "metadata": {"name": "x"}})


def test_overlay_schema_rejects_kind_without_overlays(kdeclare: CommandLine) -> None:
    ran = kdeclare("schema", "--overlay", "--kind", "Defaults")
    assert (ran.code, ran.out) == (64, "")
    assert "'Defaults' is not a kind with overlays." in ran.err


def _make_status(folder: Path, *, ready: bool) -> SandboxStatus:
    brokers = tuple(
        BrokerStatus(i, 100 + i if ready else None, 19091 + i, "rack-a", ready, ready, Path(f"{i}.log"))
        for i in (1, 2)
    )
    return SandboxStatus(folder, SandboxSettings(folder, 2, 1), "id", brokers)


def test_sandbox_start_and_status_print_addresses(kdeclare: CommandLine) -> None:
    asked: list[SandboxSettings] = []

    def start(settings: SandboxSettings, progress: object) -> SandboxStatus:
        asked.append(settings)
        return _make_status(settings.folder, ready=True)

    kdeclare.monkeypatch.setattr(sandbox, "start", start)
    ran = kdeclare("sandbox", "start", "--brokers", "2")
    assert ran.out == "127.0.0.1:19092,127.0.0.1:19093\n", "for a script, the address and nothing else"
    assert "2 brokers ready" in ran.err
    assert (asked[0].brokers, asked[0].racks, asked[0].port) == (2, 2, 19092)
    kdeclare("sandbox", "start")
    assert (asked[1].brokers, asked[1].racks) == (3, 3)

    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(folder, ready=True))
    kdeclare("sandbox", "start", "--port", "29092")
    assert (asked[2].brokers, asked[2].racks, asked[2].port) == (2, 1, 29092), "what is not said stays"
    assert "ready" in kdeclare("sandbox", "status").out
    assert json.loads(kdeclare("sandbox", "status", "--format", "json").out)["ready"] is True


def test_sandbox_reset_asks_for_confirmation(kdeclare: CommandLine) -> None:
    assert "There is no sandbox" in kdeclare("sandbox", "status").out
    assert kdeclare("sandbox", "stop").code == 0
    assert kdeclare("sandbox", "reset").code == 0
    deleted: list[Path] = []
    kdeclare.monkeypatch.setattr(sandbox, "status", lambda folder: _make_status(folder, ready=False))
    kdeclare.monkeypatch.setattr(sandbox, "reset", deleted.append)
    assert kdeclare("sandbox", "reset").code == 64
    assert kdeclare("sandbox", "reset", answer="no\n").code == 1
    assert not deleted
    assert kdeclare("sandbox", "reset", answer="yes\n").code == 0
    assert kdeclare("sandbox", "reset", "--yes").code == 0
    assert deleted == [Path(".sandbox")] * 2


@pytest.mark.slow
@pytest.mark.parametrize("is_alive", [False, True])
def test_status_watch_ends_lock_of_dead_process(kdeclare: CommandLine, is_alive: bool) -> None:
    """The process died while it held the lease, and began no run."""
    url = f"git+file://{create_remote(kdeclare.folder / 'state.git')}"
    # the record is old, so that the holder does not look alive
    timing = LeaseTiming(4.0, read_time=lambda: datetime(2026, 1, 1, tzinfo=UTC), starts_renewals=is_alive)
    store = SharedStore(lambda: open_git_objects(url), timing)
    holding = store.lock("kdeclare apply")
    holding.__enter__()
    looks = status.watch_status(open_workspace(WorkspaceOptions(state=url), os.environ), clean_up=True)
    holders = [next(looks)[0].lock for _ in range(2)]
    assert holders[0] is not None
    assert (holders[1] is not None) is is_alive
    holding.__exit__(None, None, None)
