"""The endpoints of KIP-1185 on real workers: the KIP's test plan, and findings of a feasibility build."""

import json
import shutil
import ssl
from pathlib import Path

import pytest

from kdeclare.sandbox import run_kafka_tool
from tests.cases import case
from tests.kafka.connect.asking import (
    KEYSTORE,
    KEYSTORE_PASSWORD,
    PATH,
    TRUSTSTORE,
    compute_sha256,
    send_request,
)
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.workers import OWN_FOLDER, Crew, Worker, Workshop, run_workers, wait_for_result

pytestmark = pytest.mark.kafka

_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"


def build_change(crew: Crew, name: str) -> dict[str, str]:
    """Return the change that rotates to a certificate."""
    return {KEYSTORE: str(crew.certificates.store(name)), KEYSTORE_PASSWORD: PASSWORD}


def read_records(workshop: Workshop, topic: str) -> list[tuple[str, str]]:
    """Return key and value of all records of a topic with one partition; ``null`` for a tombstone."""
    said = run_kafka_tool(
        _CONSUMER,
        *("--bootstrap-server", workshop.bootstrap, "--topic", topic, "--from-beginning"),
        *("--isolation-level", "read_committed", "--timeout-ms", "3000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "null.literal=null"),
    )
    pairs = (line.partition("\t") for line in said.stdout.splitlines() if "\t" in line)
    return [(key, value) for key, _, value in pairs]


def test_status_describes_one_worker(crew: Crew) -> None:
    leading = crew.leader()
    answer = leading.ask.patch(build_change(crew, "a"))
    assert answer.body == build_change(crew, "a")
    found = leading.ask.status()
    assert found["worker_id"] == f"127.0.0.1:{leading.port}"
    assert (found["leader"], found["mode"], found["plugin_version"]) == (True, "distributed", "0.2.0")
    assert found["seen"]["offset"] == found["applied"]["offset"]
    assert found["error"] is None
    assert found["overrides"] == sorted(build_change(crew, "a"))
    assert {KEYSTORE, TRUSTSTORE} <= set(found["whitelist"])
    (listener,) = found["listeners"]
    certificate = listener.pop("certificate")
    assert listener == {"name": "https", "port": leading.port}
    assert certificate.pop("sha256") == crew.certificates.sha256["a"] == leading.ask.read_served_sha256()
    assert certificate["subject"] == "CN=a"
    assert certificate["issuer"] == "CN=ca"
    assert certificate["not_before"] < certificate["not_after"]
    assert [w.ask.status()["leader"] for w in crew.workers].count(True) == 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_patch_through_any_worker_reaches_all_workers(crew: Crew, number: int) -> None:
    asked = [crew.leader(), *crew.followers()][number]
    answer = asked.ask.patch(build_change(crew, "a"))
    assert (answer.status, answer.body) == (200, build_change(crew, "a"))
    crew.await_served(crew.certificates.sha256["a"])
    assert all(w.ask.overrides() == build_change(crew, "a") for w in crew.workers)


def test_open_connection_keeps_its_certificate(crew: Crew) -> None:
    connection = crew.workers[0].ask.connection()
    assert send_request(connection, "GET", "/").status == 200
    secure = connection.sock
    assert crew.workers[0].ask.patch(build_change(crew, "a")).status == 200
    crew.await_served(crew.certificates.sha256["a"])
    assert send_request(connection, "GET", "/").status == 200
    assert connection.sock is secure
    assert isinstance(secure, ssl.SSLSocket)
    assert compute_sha256(secure) == crew.certificates.sha256["static"]
    connection.close()


@case("CON-01")
@case("CON-03")
def test_topic_record_has_all_overrides_and_tombstone_when_empty(crew: Crew, workshop: Workshop) -> None:
    leading = crew.leader().ask
    assert leading.patch(build_change(crew, "a")).status == 200
    assert leading.delete(KEYSTORE_PASSWORD).status == 204
    assert leading.overrides() == {KEYSTORE: str(crew.certificates.store("a"))}
    assert leading.delete(KEYSTORE).status == 204
    crew.await_served(crew.certificates.sha256["static"])
    written = [value for key, value in read_records(workshop, "three-config") if key == "worker-config"]
    assert json.loads(written[-3]) == {"version": 0, "properties": build_change(crew, "a")}
    assert json.loads(written[-2])["properties"] == {KEYSTORE: str(crew.certificates.store("a"))}
    assert written[-1] == "null"


def test_delete_of_missing_override_gets_404_from_any_worker(crew: Crew) -> None:
    for worker in (crew.leader(), crew.followers()[0]):
        answer = worker.ask.delete(KEYSTORE)
        assert (answer.status, answer.message) == (404, f"There is no override of {KEYSTORE}.")


@case("CON-06")
def test_validate_of_valid_change_changes_nothing(crew: Crew) -> None:
    follower = crew.followers()[0].ask
    before = follower.status()["seen"]
    answer = follower.validate(build_change(crew, "a"))
    assert answer.status == 200
    assert answer.body == {"valid": True, "configs": list(build_change(crew, "a")), "errors": {}}
    assert follower.status()["seen"] == before
    assert follower.read_served_sha256() == crew.certificates.sha256["static"]


def test_validate_of_invalid_change_reports_key_and_reason(crew: Crew) -> None:
    answer = crew.leader().ask.validate({KEYSTORE: "/nowhere/a.p12"})
    assert answer.status == 200
    assert not answer.body["valid"]
    assert answer.body["errors"] == {KEYSTORE: ["There is no file /nowhere/a.p12 on this worker."]}


def test_placeholders_are_stored_and_resolved_by_each_worker(crew: Crew) -> None:
    for worker, name in zip(crew.workers, ("a", "b", "a"), strict=True):
        shutil.copy(crew.certificates.store(name), worker.folder / "own.p12")
    secrets = crew.certificates.folder / "secrets.properties"
    secrets.write_text(f"keystore={PASSWORD}\n")
    raw = {KEYSTORE: f"${{env:{OWN_FOLDER}}}/own.p12", KEYSTORE_PASSWORD: f"${{file:{secrets}:keystore}}"}
    answer = crew.workers[0].ask.patch(raw)
    assert (answer.status, answer.body) == (200, raw)
    for worker, name in zip(crew.workers, ("a", "b", "a"), strict=True):
        sha256 = crew.certificates.sha256[name]
        wait_for_result(lambda w=worker, s=sha256: w.ask.read_served_sha256() == s)  # type: ignore[misc]
        assert worker.ask.overrides() == raw


def test_follower_without_file_reports_error_and_keeps_certificate(crew: Crew) -> None:
    lacking = crew.followers()[0]
    for worker in crew.workers:
        (worker.folder / "own.p12").unlink(missing_ok=True)
        if worker is not lacking:
            shutil.copy(crew.certificates.store("a"), worker.folder / "own.p12")
    raw = {KEYSTORE: f"${{env:{OWN_FOLDER}}}/own.p12"}
    assert crew.leader().ask.patch(raw).status == 200
    refused = wait_for_result(lambda: lacking.ask.status()["error"])
    assert refused["offset"] == lacking.ask.status()["seen"]["offset"]
    assert refused["message"] == f"{KEYSTORE}: There is no file {raw[KEYSTORE]} on this worker."
    assert lacking.ask.read_served_sha256() == crew.certificates.sha256["static"]
    assert refused["message"] in lacking.read_log()
    # The missing file exists now: the same change succeeds on retry.
    shutil.copy(crew.certificates.store("a"), lacking.folder / "own.p12")
    assert crew.leader().ask.patch({}).status == 200
    crew.await_served(crew.certificates.sha256["a"])
    assert wait_for_result(lambda: lacking.ask.status()["error"] is None)


def test_restarted_worker_applies_overrides_before_first_request(crew: Crew) -> None:
    assert crew.leader().ask.patch(build_change(crew, "a")).status == 200
    restarted = crew.followers()[0]
    restarted.stop()
    before = len(restarted.read_log())
    restarted.start()
    assert restarted.ask.read_served_sha256() == crew.certificates.sha256["a"]
    said = restarted.read_log()[before:]
    assert 0 < said.index("Applied dynamic worker configuration") < said.index("REST resources initialized")


@pytest.fixture
def source(crew: Crew, tmp_path: Path) -> str:
    """A running connector that copies lines of a file."""
    lines = tmp_path / "lines"
    lines.write_text("one\n")
    config = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(lines),
        "topic": "lines",
        "tasks.max": "1",
    }
    assert crew.workers[0].ask("PUT", "/connectors/lines/config", config).status in (200, 201)
    wait_for_result(lambda: find_running(crew.workers[0]))
    return "lines"


def find_running(worker: Worker) -> object:
    """Return where the connector and its task run, once both do; otherwise nothing."""
    answer = worker.ask("GET", "/connectors/lines/status")
    if answer.status != 200:
        return None
    parts = [answer.body["connector"], *answer.body["tasks"]]
    states = {part["state"] for part in parts}
    # a worker that has not read the connector's configuration yet does not know its type
    known = answer.body["type"] == "source"
    return answer.body if known and len(parts) == 2 and states == {"RUNNING"} else None


@case("CON-09")
def test_rotation_restarts_no_task_and_keeps_worker_without_plugin(
    crew: Crew, source: str, workshop: Workshop
) -> None:
    plain = workshop.worker("plain", "three", {"rest.extension.classes": ""})
    with run_workers([plain]):
        everybody = [*crew.workers, plain]
        # The new worker has its share of the work when the delayed rebalance has ended.
        wait_for_result(lambda: all("Joined group" in w.read_log() for w in everybody))
        wait_for_result(lambda: find_running(plain))
        before = [len(w.read_log()) for w in everybody]
        status = find_running(plain)
        for name in ("a", "b", "a"):
            assert crew.followers()[0].ask.patch(build_change(crew, name)).status == 200
            crew.await_served(crew.certificates.sha256[name])
        assert find_running(plain) == status
        for worker, length in zip(everybody, before, strict=True):
            said = worker.read_log()[length:]
            assert not [line for line in said.splitlines() if "ebalance" in line or "Starting task" in line]
        assert plain.ask.read_served_sha256() == crew.certificates.sha256["static"]
        assert "invalid key: worker-config" in plain.read_log()
        assert plain.ask("GET", PATH).status == 404
    assert crew.workers[0].ask("DELETE", "/connectors/lines").status in (204, 409)
