"""Overrides that a worker cannot use: unreadable records, and a worker without HTTPS."""

import json
from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from tests.kafka.connect.asking import HOST, KEYSTORE, KEYSTORE_PASSWORD, PATH
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.workers import Worker, Workshop, run_workers, wait_for_result

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def two_workers(workshop: Workshop) -> Iterator[tuple[Worker, Worker]]:
    """A normal worker, and one with plain HTTP only; each leads its own group."""
    usual = workshop.worker("damaged", "damaged")
    plain = workshop.worker("plain", "plain")
    plain.properties["listeners"] = f"http://{HOST}:{plain.port}"
    plain.tls = False
    with run_workers([usual, plain]):
        yield usual, plain


def write_record(workshop: Workshop, topic: str, value: bytes | None) -> None:
    """Write a record of overrides without going through a worker."""
    producer = KafkaProducer(bootstrap_servers=workshop.bootstrap)
    producer.send(topic, key=b"worker-config", value=value, partition=0).get(10)
    producer.close()


def read_error(worker: Worker) -> str:
    """Return the error in its status; empty if there is none."""
    error = worker.ask.status()["error"]
    return "" if error is None else str(error["message"])


@pytest.mark.thorough
def test_change_is_refused_while_stored_overrides_are_unreadable(
    two_workers: tuple[Worker, Worker], workshop: Workshop
) -> None:
    worker, sha256 = two_workers[0], workshop.certificates.sha256
    to_a = {KEYSTORE: str(workshop.certificates.store("a")), KEYSTORE_PASSWORD: PASSWORD}

    write_record(workshop, "damaged-config", b"no map of overrides")
    wait_for_result(lambda: "cannot be read" in read_error(worker))
    unknown = worker.ask("GET", PATH)
    assert (unknown.status, "cannot be read" in unknown.message) == (500, True)
    assert "cannot be read" in worker.ask.validate(to_a).body["errors"][""][0]
    refused = worker.ask.patch(to_a)
    assert refused.status == 500
    assert "a change would lose the stored overrides, which cannot be read (offset " in refused.message
    assert "write a tombstone with the key worker-config to partition 0 of damaged-config" in refused.message

    write_record(workshop, "damaged-config", None)
    wait_for_result(lambda: not read_error(worker))
    assert worker.ask.patch(to_a).status == 200
    assert worker.ask.read_served_sha256() == sha256["a"]

    write_record(workshop, "damaged-config", b"{")
    wait_for_result(lambda: "cannot be read" in read_error(worker))
    worker.kill()
    worker.start()
    assert worker.ask.read_served_sha256() == sha256["a"]
    assert "cannot be read" in read_error(worker)
    assert worker.ask.patch({KEYSTORE: str(workshop.certificates.store("b"))}).body == {
        **to_a,
        KEYSTORE: str(workshop.certificates.store("b")),
    }
    assert (worker.ask.read_served_sha256(), read_error(worker)) == (sha256["b"], "")


def test_worker_without_https_only_removes_overrides(
    two_workers: tuple[Worker, Worker], workshop: Workshop
) -> None:
    worker, change = two_workers[1], {KEYSTORE: str(workshop.certificates.store("a"))}
    refused = worker.ask.patch(change)
    assert refused.status == 400
    assert "This worker has no HTTPS listener to apply this to." in refused.message

    there = {**change, KEYSTORE_PASSWORD: "another"}
    write_record(workshop, "plain-config", json.dumps({"version": 0, "properties": there}).encode())
    wait_for_result(lambda: "no HTTPS listener" in read_error(worker))
    assert worker.ask.validate({KEYSTORE: None}).body["valid"]
    assert worker.ask.delete(KEYSTORE).status == 204
    assert worker.ask.overrides() == {KEYSTORE_PASSWORD: "another"}
    assert "no HTTPS listener" in read_error(worker)
    assert worker.ask.delete(KEYSTORE_PASSWORD).status == 204
    assert (worker.ask.overrides(), read_error(worker)) == ({}, "")
