"""The eleven traps of dynamic worker configuration, one test per trap."""

import shutil
import socket
import ssl
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kdeclare.sandbox import run_kafka_tool
from kdeclare.sandbox.connect_jars import install
from tests.kafka.connect.asking import (
    HOST,
    KEY_PASSWORD,
    KEYSTORE,
    KEYSTORE_PASSWORD,
    PATH,
    TRUSTSTORE,
    WorkerClient,
)
from tests.kafka.connect.certificates import ODD_KEY_PASSWORD, ODD_STORE_PASSWORD, PASSWORD
from tests.kafka.connect.fakes import compile_fake_jetty
from tests.kafka.connect.test_endpoints import build_change, read_records
from tests.kafka.connect.workers import Crew, Worker, Workshop, run_workers, wait_for_result

pytestmark = pytest.mark.kafka

_TOPICS = "org.apache.kafka.tools.TopicCommand"
_KEYSTORE_TYPE = "listeners.https.ssl.keystore.type"
_TRUSTSTORE_TYPE = "listeners.https.ssl.truststore.type"
_FENCED = "It is unknown whether the change was written"


@contextmanager
def run_worker(worker: Worker) -> Iterator[Worker]:
    """Run this worker during the block."""
    with run_workers([worker]):
        yield worker


def describe_topics(workshop: Workshop) -> str:
    """Return all topics and their configuration, as Kafka's tool shows them."""
    return run_kafka_tool(_TOPICS, "--bootstrap-server", workshop.bootstrap, "--describe").stdout


def build_odd_change(crew: Crew) -> dict[str, str]:
    """Return the change to a store of another type, with passwords that no other store has."""
    return {
        KEYSTORE: str(crew.certificates.odd),
        KEYSTORE_PASSWORD: ODD_STORE_PASSWORD,
        KEY_PASSWORD: ODD_KEY_PASSWORD,
        _KEYSTORE_TYPE: "JKS",
    }


def test_trap_1_worker_does_not_create_its_topic(crew: Crew, workshop: Workshop) -> None:
    """These brokers create topics on request, with cleanup.policy=delete, which is Kafka's default."""
    asks = {"kdeclare.worker.config.topic": "never-made", "kdeclare.worker.config.replay.timeout.ms": "2000"}
    with run_worker(workshop.worker("early", "early", asks)) as early:
        error = early.ask.status()["error"]
        assert (error["offset"], error["message"]) == (None, "The topic never-made does not exist.")
        assert early.ask("GET", "/connectors").status == 200
    described = describe_topics(workshop)
    assert "never-made" not in described
    assert "Topic: three-config" in described
    (config,) = [line for line in described.splitlines() if line.startswith("Topic: three-config\t")]
    assert "cleanup.policy=compact" in config


def test_trap_2_listener_survives_wrong_password(crew: Crew) -> None:
    leading = crew.leader().ask
    answer = leading.patch({KEYSTORE: str(crew.certificates.store("a")), KEYSTORE_PASSWORD: "wrong"})
    assert answer.status == 400
    assert answer.message == (
        f"{KEYSTORE_PASSWORD}: The password does not open {crew.certificates.store('a')}."
    )
    assert leading.read_served_sha256() == crew.certificates.sha256["static"]
    assert leading.patch(build_change(crew, "a")).status == 200
    assert leading.read_served_sha256() == crew.certificates.sha256["a"]


def test_trap_3_removed_key_password_has_no_effect(crew: Crew) -> None:
    leading = crew.leader().ask
    assert leading.patch(build_odd_change(crew)).status == 200
    crew.await_served(crew.certificates.sha256["a"])
    back = {**build_change(crew, "b"), KEY_PASSWORD: None, _KEYSTORE_TYPE: None}
    answer = leading.patch(back)
    assert (answer.status, answer.body) == (200, build_change(crew, "b"))
    crew.await_served(crew.certificates.sha256["b"])


def test_trap_4_related_keys_are_removed_together(crew: Crew) -> None:
    asked = crew.followers()[0].ask
    assert asked.patch(build_odd_change(crew)).status == 200
    alone = asked.delete(KEYSTORE)
    assert alone.status == 400
    assert "the file that this worker's own configuration names" in alone.message
    assert str(crew.certificates.store("static")) not in alone.message
    assert asked.patch(dict.fromkeys(build_odd_change(crew))).body == {}
    crew.await_served(crew.certificates.sha256["static"])


def test_trap_5_override_keeps_client_authentication(crew: Crew) -> None:
    """The workers' files have plain ssl.* keys, including ssl.client.auth=required."""
    for changes in ({}, {KEYSTORE: str(crew.certificates.store("a"))}):
        assert crew.leader().ask.patch(changes).status == 200
        for worker in crew.workers:
            assert worker.ask("GET", "/").status == 200
            with pytest.raises((ssl.SSLError, ConnectionError)):
                worker.ask_unidentified("GET", "/")
    crew.await_served(crew.certificates.sha256["a"])


def test_trap_6_admin_listener_keeps_its_certificate(crew: Crew) -> None:
    worker = crew.workers[2]
    port = int(worker.properties["admin.listeners"].rpartition(":")[2])
    admin = WorkerClient(port, worker.ask.tls)
    assert admin("GET", "/admin/loggers").status == 200
    assert worker.ask.patch(build_change(crew, "a")).status == 200
    crew.await_served(crew.certificates.sha256["a"])
    assert admin.read_served_sha256() == crew.certificates.sha256["static"]
    assert [listener["port"] for listener in worker.ask.status()["listeners"]] == [worker.port]
    assert admin("GET", PATH).status == 404


def test_trap_7_certificate_untrusted_by_workers_is_refused(crew: Crew) -> None:
    for worker in crew.workers:
        answer = worker.ask.patch(build_change(crew, "foreign"))
        assert answer.status == 400
        assert "The other workers would not accept this certificate" in answer.message
    trust = {TRUSTSTORE: str(crew.certificates.foreign_trust)}
    answer = crew.leader().ask.patch(trust)
    assert answer.status == 400
    assert "would not accept the certificates with which the other workers forward requests" in answer.message


def test_trap_8_replaced_file_at_same_path_is_loaded(crew: Crew, tmp_path: Path) -> None:
    path = tmp_path / "rotating.p12"
    changes = {KEYSTORE: str(path), KEYSTORE_PASSWORD: PASSWORD}
    for name in ("a", "b"):
        shutil.copy(crew.certificates.store(name), path)
        assert crew.leader().ask.patch(changes).status == 200
        crew.await_served(crew.certificates.sha256[name])
    shutil.copy(crew.certificates.store("a"), path)
    assert crew.followers()[0].ask.patch({}).body == changes
    crew.await_served(crew.certificates.sha256["a"])


@pytest.mark.thorough
def test_trap_9_concurrent_leaders_lose_no_writes(crew: Crew, workshop: Workshop) -> None:
    """Leadership is a check, not a fence: three workers lead at once, each in its group, over one record."""
    shared = {
        "kdeclare.worker.config.topic": "three-config",
        "kdeclare.worker.config.transactional.id": "connect-cluster-three-worker-config",
    }
    others = [workshop.worker(f"pretender-{n}", f"pretender-{n}", shared) for n in (1, 2)]
    secrets = crew.certificates.folder / "rounds.properties"
    secrets.write_text("".join(f"{n}={PASSWORD}\nt{n}=PKCS12\n" for n in range(4)))
    keys = {KEYSTORE_PASSWORD: "", _KEYSTORE_TYPE: "t", _TRUSTSTORE_TYPE: "t"}
    refused: list[str] = []

    def write(worker: Worker, key: str, prefix: str) -> None:
        for number in range(4):
            for _ in range(50):  # a fenced writer retries: merging again is harmless
                answer = worker.ask.patch({key: f"${{file:{secrets}:{prefix}{number}}}"})
                if answer.status != 500 or _FENCED not in answer.text:
                    break
            if answer.status != 200:
                refused.append(answer.text)

    with run_workers(others):
        leaders = [crew.leader(), *others]
        assert all(w.ask.status()["leader"] for w in leaders)
        threads = [
            threading.Thread(target=write, args=(worker, key, prefix))
            for worker, (key, prefix) in zip(leaders, keys.items(), strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not refused
        crew.await_settled()
        last = {key: f"${{file:{secrets}:{prefix}3}}" for key, prefix in keys.items()}
        assert crew.workers[0].ask.overrides() == last
    written = [value for key, value in read_records(workshop, "three-config") if key == "worker-config"]
    for before, after in zip(written[-12:-1], written[-11:], strict=True):
        assert set(list_keys(before)) <= set(list_keys(after)), "a change took back another"


def list_keys(value: str) -> list[str]:
    """Return the keys of a record that has any."""
    return [key for key in (KEYSTORE_PASSWORD, _KEYSTORE_TYPE, _TRUSTSTORE_TYPE) if key in value]


def test_trap_10_passwords_are_in_no_log_status_or_message(crew: Crew) -> None:
    secret = "a-password-that-nothing-else-has"
    leading = crew.leader().ask
    refused = leading.patch({KEYSTORE_PASSWORD: secret})
    assert refused.status == 400
    assert secret not in refused.text
    broken = leading("PATCH", PATH, f'{{"{KEYSTORE_PASSWORD}": {secret}}}')
    assert broken.status == 400
    assert secret not in broken.text
    valid = leading.validate({KEYSTORE_PASSWORD: secret})
    assert secret not in valid.text
    assert leading.patch(build_odd_change(crew)).status == 200
    assert leading.overrides()[KEY_PASSWORD] == ODD_KEY_PASSWORD
    crew.await_settled()
    for worker in crew.workers:
        shown = worker.read_log() + worker.ask("GET", f"{PATH}/status").text
        assert not [word for word in (secret, ODD_KEY_PASSWORD, ODD_STORE_PASSWORD) if word in shown]


@pytest.mark.thorough
def test_trap_11_unsupported_jetty_gives_503_and_worker_runs(
    crew: Crew, workshop: Workshop, tmp_path: Path
) -> None:
    """Other classes with Jetty's names are next to the plug-in, without what it searches for."""
    installed = install(tmp_path / "plugins" / "with-another-jetty").jar
    with zipfile.ZipFile(installed.with_name("jetty.jar"), "w") as jar:
        for name, content in compile_fake_jetty(workshop.jars, tmp_path).items():
            jar.writestr(name, content)
    odd_one = workshop.worker("strange", "strange", {"plugin.path": str(tmp_path / "plugins")})
    with run_worker(odd_one) as worker:
        for answer in (worker.ask.patch({}), worker.ask.validate({}), worker.ask.delete(KEYSTORE)):
            assert answer.status == 503
            assert "cannot be reached in this version of Connect" in answer.message
        assert worker.ask.overrides() == {}
        status = worker.ask.status()
        assert status["listeners"] == []
        assert "cannot be reached" in status["error"]["message"]
        assert worker.ask("GET", "/connectors").status == 200
        assert worker.ask.read_served_sha256() == crew.certificates.sha256["static"]


@pytest.mark.thorough
def test_server_registered_by_request_gets_overrides(workshop: Workshop, tmp_path: Path) -> None:
    """If Jetty keeps no list of servers, apply on registration."""
    installed = install(tmp_path / "plugins" / "with-another-list").jar
    with zipfile.ZipFile(installed.with_name("jetty.jar"), "w") as jar:
        for name, content in compile_fake_jetty(workshop.jars, tmp_path).items():
            if "ShutdownThread" in name:
                jar.writestr(name, content)
    late = workshop.worker("late", "late", {"plugin.path": str(tmp_path / "plugins")})
    with run_worker(late) as worker:
        changes = {KEYSTORE: str(workshop.certificates.store("a"))}
        assert worker.ask.patch(changes).status == 200
        worker.stop()
        worker.start()
        assert worker.ask.overrides() == changes
        wait_for_result(lambda: worker.ask.read_served_sha256() == workshop.certificates.sha256["a"])
        with socket.create_connection((HOST, worker.port)):
            assert worker.ask.status()["applied"]
