"""Permissions of a state in a topic, and a cluster that does not respond, on a broker with an authorizer."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.providers.kafka.acl.binding import ALLOW, LITERAL, TOPIC, TRANSACTIONAL_ID, Binding
from kdeclare.providers.kafka.client import KafkaCluster, read_properties
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.providers.kafka.state_topic.state_log import OPEN_TRANSACTION_S
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER, get_password
from tests.conftest import connect_as
from tests.kafka.state.topics import ENVIRONMENT, PROJECT, StateTopics
from tests.polling import wait_for
from tests.ports import reserve_ports

pytestmark = pytest.mark.kafka

USER, PASSWORD = "state-user", "state-user-secret"
TIMEOUT_S = 2.0


@pytest.fixture
def admin(secured_sandbox: SandboxStatus) -> Iterator[KafkaCluster]:
    cluster = connect_as(secured_sandbox, ADMIN)
    yield cluster
    cluster.close()


@pytest.fixture
def secured_topic(admin: KafkaCluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a topic that does not exist yet."""
    name = f"state-{time.time_ns()}"
    yield name
    admin.delete_topics({name: None})


def open_topics(sandbox: SandboxStatus, user: str, password: str) -> StateTopics:
    """Log in with SCRAM over TLS."""
    properties = read_properties(resolve_layout(Path(sandbox.folder)).security.client(READER))
    login = properties["sasl.jaas.config"]
    login = login.replace(get_password(READER), password).replace(f'"{READER}"', f'"{user}"')
    config = properties | {"sasl.jaas.config": login}
    return StateTopics(sandbox.bootstrap, config=tuple(config.items()), timeout_s=TIMEOUT_S)


def grant(cluster: KafkaCluster, *bindings: Binding) -> None:
    assert set(cluster.create_acls(bindings).values()) == {None}


def list_bindings(topic: str) -> list[Binding]:
    """The rights that docs/state.md lists."""
    on_topic = [
        Binding(TOPIC, topic, LITERAL, f"User:{USER}", "*", operation, ALLOW)
        for operation in ("CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS")
    ]
    name = f"kdeclare-state-{topic}/{PROJECT}/{ENVIRONMENT}"
    return [*on_topic, Binding(TRANSACTIONAL_ID, name, LITERAL, f"User:{USER}", "*", "WRITE", ALLOW)]


def write_and_read(topics: StateTopics, topic: str, key: str) -> None:
    """Write the first object of a process, and read it. An empty topic can be written without Read."""
    objects = topics.open(topic)
    try:
        objects.create(key, b"{}")
        assert objects.get(key) is not None
    finally:
        objects.close()


def test_listed_permissions_are_enough_and_needed(
    secured_sandbox: SandboxStatus, admin: KafkaCluster, secured_topic: str
) -> None:
    upsertion = ScramUpsertion(4096, PASSWORD)
    assert admin.alter_scram_users([ScramAlteration(USER, Mechanism.SHA_512, upsertion)]) == {USER: None}
    topics = open_topics(secured_sandbox, USER, PASSWORD)
    bindings = list_bindings(secured_topic)
    denied: list[str] = []
    for missing in bindings:  # without CREATE, the topic does not exist; it exists afterwards
        given = [binding for binding in bindings if binding is not missing]
        grant(admin, *given)
        with pytest.raises(KdeclareError) as caught:
            write_and_read(topics, secured_topic, f"plans/{len(denied)}")
        [diagnostic] = caught.value.diagnostics
        assert diagnostic.code == "state-no-access", missing
        assert PASSWORD not in f"{diagnostic.detail}{diagnostic.hint}"
        resource = "transactional id" if missing.resource_type == TRANSACTIONAL_ID else "topic"
        assert f"the state's {resource} '{missing.name}'" in diagnostic.detail
        denied.append(missing.operation)
        admin.delete_acls(given)
    assert denied == ["CREATE", "READ", "WRITE", "DESCRIBE_CONFIGS", "WRITE"]
    grant(admin, *bindings)
    write_and_read(topics, secured_topic, "state.json")
    admin.delete_acls(bindings)
    # who only reads needs no more than this
    reads = [binding for binding in bindings if binding.operation in ("READ", "DESCRIBE_CONFIGS")]
    grant(admin, *reads)
    reader = topics.open(secured_topic)
    assert "state.json" in reader.list_keys("")
    assert reader.get("state.json") is not None
    with pytest.raises(KdeclareError, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        reader.create("lease.json", b"{}")
    reader.close()
    admin.delete_acls(reads)


def test_wrong_password_is_reported(secured_sandbox: SandboxStatus, secured_topic: str) -> None:
    with pytest.raises(KdeclareError, match="authentication failed") as caught:
        open_topics(secured_sandbox, ADMIN, "wrong-password").open(secured_topic)
    assert "wrong-password" not in str(caught.value)


def test_unreachable_cluster_is_reported_in_time() -> None:
    port = reserve_ports(lambda first: [first])
    started_at = time.monotonic()
    with pytest.raises(KdeclareError, match="connection refused"):
        StateTopics(f"127.0.0.1:{port}", timeout_s=TIMEOUT_S).open("state")
    assert time.monotonic() - started_at < 10 * TIMEOUT_S


def expect_failure(request: Callable[[], object], at_most_s: float) -> None:
    started_at = time.monotonic()
    with pytest.raises(KdeclareError) as caught:
        request()
    took_s = time.monotonic() - started_at
    print({"took_s": took_s, "detail": caught.value.diagnostics[0].detail})
    assert caught.value.diagnostics[0].code == "state-storage"
    assert took_s < at_most_s


def test_cluster_that_stops_responding_is_reported_in_time(
    secured_sandbox: SandboxStatus, secured_topic: str
) -> None:
    topics = open_topics(secured_sandbox, ADMIN, get_password(ADMIN))
    objects, others = topics.open(secured_topic), topics.open(secured_topic)
    version = objects.create("state.json", b"1")
    assert others.list_keys("") == ("state.json",)
    [broker] = kafka_sandbox.status(secured_sandbox.folder).brokers
    assert broker.pid is not None
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        expect_failure(lambda: others.get("state.json"), 8 * TIMEOUT_S)
        expect_failure(lambda: others.list_keys(""), 8 * TIMEOUT_S)
        limit_s = OPEN_TRANSACTION_S + 10 * TIMEOUT_S
        expect_failure(lambda: objects.replace("state.json", b"2", version), limit_s)
        started_at = time.monotonic()
        others.close()
        assert time.monotonic() - started_at < 10 * TIMEOUT_S
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    wait_for_data(objects, b"1")
    assert objects.replace("state.json", b"3", version) != version
    objects.close()


def wait_for_data(objects: ConditionalObjects, data: bytes) -> None:
    def find() -> bytes | None:
        try:
            stored = objects.get("state.json")
        except KdeclareError:
            return None
        assert stored is not None
        return stored.data

    assert wait_for(find) == data
