"""Workers with special settings: administrators, another whitelist, mistakes; and standalone workers."""

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from tests.kafka.connect.asking import KEYSTORE, KEYSTORE_PASSWORD, PATH, Answer
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.workers import OPEN, PLAIN, Worker, Workshop, run_workers, wait_for_result

pytestmark = pytest.mark.kafka

_PREFIX = "kdeclare.worker.config."


Right = tuple[ResourceType, str, ACLOperation]
_READ, _WRITE, _CREATE = ACLOperation.READ, ACLOperation.WRITE, ACLOperation.CREATE
# The ACLs that Connect needs anyway, and those that the plug-in needs besides (docs/connect-plugin.md).
_CONNECTS: list[Right] = [
    *((ResourceType.TOPIC, "guarded-", operation) for operation in (_READ, _WRITE, _CREATE)),
    (ResourceType.TOPIC, "guarded-", ACLOperation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, "guarded", _READ),
]
_PLUG_INS: list[Right] = [(ResourceType.TRANSACTIONAL_ID, "connect-cluster-guarded", _WRITE)]


@contextmanager
def open_admin_client(workshop: Workshop) -> Iterator[KafkaAdminClient]:
    """A user who may do everything."""
    admin = KafkaAdminClient(bootstrap_servers=workshop.bootstrap)
    try:
        yield admin
    finally:
        admin.close()


def build_acls(rights: Sequence[Right]) -> list[ACL]:
    """ACLs of alice, by prefix."""
    return [
        ACL(
            "User:alice",
            "*",
            operation,
            ACLPermissionType.ALLOW,
            ResourcePattern(kind, prefix, ACLResourcePatternType.PREFIXED),
        )
        for kind, prefix, operation in rights
    ]


def build_basic_header(name: str, password: str) -> dict[str, str]:
    """Return the header of HTTP Basic."""
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


@pytest.fixture(scope="module")
def guarded_workers(workshop: Workshop) -> Iterator[list[Worker]]:
    """One worker with TLS, a password, few ACLs, and administrators; one with a mistake."""
    admins = workshop.certificates.folder / "admins.properties"
    admins.write_text("ada=lovelace\n")
    chosen = {
        "bootstrap.servers": workshop.login,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{PLAIN} required username="alice" password="wonder";',
        f"{_PREFIX}trust.check": "false",
        OPEN: "",
        f"{_PREFIX}admins.file": str(admins),
        f"{_PREFIX}whitelist": f"{KEYSTORE}, listeners.https.ssl.client.auth",
        # not in config.providers, so Connect ignores it, too
        "config.providers.absent.class": "io.example.Absent",
    }
    workers = [
        workshop.worker("guarded", "guarded", chosen),
        workshop.worker("mistaken", "mistaken", {f"{_PREFIX}whitelist": f"{KEYSTORE},group.id"}),
    ]
    with open_admin_client(workshop) as admin:
        assert not admin.create_acls(build_acls([*_CONNECTS, *_PLUG_INS]))["failed"]
    with run_workers(workers):
        yield workers


@pytest.mark.thorough
def test_only_administrators_read_or_change_overrides(guarded_workers: list[Worker]) -> None:
    ask = guarded_workers[0].ask
    change = {KEYSTORE: str(guarded_workers[0].certificates.store("a"))}
    requests = [
        ("GET", PATH),
        ("GET", f"{PATH}/status"),
        ("PATCH", PATH),
        ("POST", f"{PATH}/validate"),
        ("DELETE", f"{PATH}/{KEYSTORE}"),
    ]
    for method, path in requests:
        assert ask(method, path, change).status == 401
        assert ask(method, path, change, build_basic_header("ada", "byron")).status == 403
        assert ask(method, path, change, build_basic_header("bob", "lovelace")).status == 403
        assert ask(method, path, change, {"Authorization": "Basic %%%"}).status == 403
    assert ask("PATCH", PATH, change, build_basic_header("ada", "lovelace")).status == 200
    assert ask("GET", PATH, headers=build_basic_header("ada", "lovelace")).body == change
    assert ask.status(build_basic_header("ada", "lovelace"))["overrides"] == [KEYSTORE]
    assert ask("GET", "/connectors").status == 200
    assert ask("DELETE", f"{PATH}/{KEYSTORE}", headers=build_basic_header("ada", "lovelace")).status == 204


def test_change_without_write_permission_reports_it(
    guarded_workers: list[Worker], workshop: Workshop
) -> None:
    ask, admin = guarded_workers[0].ask, build_basic_header("ada", "lovelace")
    change = {"listeners.https.ssl.client.auth": "requested"}
    with open_admin_client(workshop) as cluster:
        cluster.delete_acls(build_acls(_PLUG_INS))
        refused = wait_for_result(lambda: _find_failure(ask("PATCH", PATH, change, admin)))
        assert refused is not None
        assert "Nothing was written: " in refused.message
        assert "Transactional Id authorization failed" in refused.message
        assert not cluster.create_acls(build_acls(_PLUG_INS))["failed"]
    wait_for_result(lambda: ask("PATCH", PATH, change, admin).status == 200)
    assert ask("PATCH", PATH, dict.fromkeys(change), admin).status == 200


def _find_failure(answer: Answer) -> Answer | None:
    """Brokers apply new ACLs with a delay."""
    return None if answer.status == 200 else answer


def test_whitelist_setting_replaces_allowed_keys(guarded_workers: list[Worker]) -> None:
    worker, admin = guarded_workers[0], build_basic_header("ada", "lovelace")
    with pytest.raises(OSError, match=r"certificate|reset|closed|EOF"):
        worker.ask_unidentified("GET", "/")
    changes = {"listeners.https.ssl.client.auth": "none"}
    assert worker.ask("PATCH", PATH, changes, admin).status == 200
    assert worker.ask_unidentified("GET", "/").status == 200
    refused = worker.ask("PATCH", PATH, {KEYSTORE_PASSWORD: PASSWORD}, admin)
    assert refused.status == 400
    wrong = worker.ask("PATCH", PATH, {"listeners.https.ssl.client.auth": "maybe"}, admin)
    assert wrong.status == 400
    assert "maybe" in wrong.message
    assert worker.ask("PATCH", PATH, dict.fromkeys(changes), admin).status == 200
    with pytest.raises(OSError, match=r"certificate|reset|closed|EOF"):
        worker.ask_unidentified("GET", "/")


def test_trust_check_of_other_workers_can_be_disabled(guarded_workers: list[Worker]) -> None:
    change = {KEYSTORE: str(guarded_workers[0].certificates.store("foreign"))}
    answer = guarded_workers[0].ask("POST", f"{PATH}/validate", change, build_basic_header("ada", "lovelace"))
    assert answer.body == {"valid": True, "configs": [KEYSTORE], "errors": {}}


def test_certificate_for_other_host_is_refused(guarded_workers: list[Worker]) -> None:
    change = {KEYSTORE: str(guarded_workers[0].certificates.store("elsewhere"))}
    answer = guarded_workers[0].ask("PATCH", PATH, change, build_basic_header("ada", "lovelace"))
    assert answer.status == 400
    assert "The certificate does not name 127.0.0.1, by which this worker is known" in answer.message
    # Jetty responds like this to requests for a host that its certificate does not name
    assert guarded_workers[0].ask("GET", "/", headers={"Host": "elsewhere.example"}).status == 400


def test_ca_certificate_is_accepted_as_server_certificate(guarded_workers: list[Worker]) -> None:
    change = {KEYSTORE: str(guarded_workers[0].certificates.store("signing"))}
    answer = guarded_workers[0].ask("POST", f"{PATH}/validate", change, build_basic_header("ada", "lovelace"))
    assert answer.body == {"valid": True, "configs": [KEYSTORE], "errors": {}}


def test_broken_config_provider_is_reported_when_used(guarded_workers: list[Worker]) -> None:
    change = {KEYSTORE: "${absent:path:key}"}
    answer = guarded_workers[0].ask("PATCH", PATH, change, build_basic_header("ada", "lovelace"))
    assert answer.status == 400
    assert "the config provider 'absent', io.example.Absent, cannot be created" in answer.message
    assert "io.example.Absent" in answer.message
    assert "ClassNotFoundException" in answer.message


def test_worker_with_invalid_settings_still_runs(guarded_workers: list[Worker]) -> None:
    ask = guarded_workers[1].ask
    answer = ask.patch({})
    assert answer.status == 503
    assert "This worker has no component that can change group.id while it runs." in answer.message
    assert ask("GET", PATH).status == 503
    assert "group.id" in ask.status()["error"]["message"]
    assert ask("GET", "/connectors").status == 200


@pytest.fixture
def standalone_worker(workshop: Workshop, tmp_path: Path) -> Iterator[Worker]:
    """A standalone worker that watches a file."""
    worker = workshop.standalone("alone", {f"{_PREFIX}file": str(tmp_path / "overrides.json")})
    with run_workers([worker]):
        yield worker


def test_standalone_worker_watches_its_file(
    standalone_worker: Worker, workshop: Workshop, tmp_path: Path
) -> None:
    ask, sha256 = standalone_worker.ask, workshop.certificates.sha256
    file = tmp_path / "overrides.json"

    def to(name: str) -> dict[str, str]:
        return {KEYSTORE: str(workshop.certificates.store(name)), KEYSTORE_PASSWORD: PASSWORD}

    assert (ask.status()["mode"], ask.status()["seen"], ask.overrides()) == ("standalone", None, {})
    file.write_text(json.dumps(to("a")))
    wait_for_result(lambda: ask.read_served_sha256() == sha256["a"])
    assert ask.overrides() == to("a")
    assert ask.patch(to("b")).body == to("b")
    assert ask.read_served_sha256() == sha256["b"]
    assert json.loads(file.read_text()) == to("b")
    file.write_text("{")
    error = wait_for_result(lambda: ask.status()["error"])
    assert f"{file}: it is not valid JSON" in error["message"]
    file.write_text(json.dumps(to("expired")))
    wait_for_result(lambda: "expired" in ask.status()["error"]["message"])
    assert ask.read_served_sha256() == sha256["b"]
    file.unlink()
    wait_for_result(lambda: ask.read_served_sha256() == sha256["static"])
    assert ask.status()["error"] is None
