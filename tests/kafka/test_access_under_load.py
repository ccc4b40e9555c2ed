"""Real clients that send while ACLs and passwords change: they gain and lose access exactly as planned."""

import json
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import kafka
import pytest

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.request_values import NewTopic, ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.sandbox.security import ADMIN, get_password
from tests.kafka.access_load import Credential, Load, LoadConsumer, LoadProducer
from tests.kafka.secured_project import open_secured_project, start_secured_broker
from tests.kafka.test_secured import SecuredBrokers
from tests.polling import wait_for
from tests.thoroughness import mark_rest

pytestmark = pytest.mark.kafka

OLD, NEW = "old-password", "new-password"
SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512
_STEP_S = 0.7
"""How long a test waits after each request that changes ACLs, so that clients send in between."""


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    with start_secured_broker(tmp_path_factory.mktemp("load")) as started:
        yield started


class Project:
    """A project, and a super user's client of the same cluster. Names begin with a prefix of the test."""

    def __init__(
        self, folder: Path, brokers: SecuredBrokers, capsys: pytest.CaptureFixture[str], cluster: KafkaCluster
    ) -> None:
        self.folder, self.capsys, self.cluster = folder, capsys, cluster
        self.settings = brokers.settings
        self.prefix = f"t{uuid.uuid4().hex[:6]}-"
        self._client = brokers.files.client(ADMIN)

    def declare(self, kind: str, resource: str, **spec: Any) -> None:
        manifest = {
            "apiVersion": "kdeclare/v1",
            "kind": kind,
            "metadata": {"name": self.prefix + resource},
            "spec": spec,
        }
        (self.folder / "manifests").mkdir(exist_ok=True)
        (self.folder / "manifests" / f"{kind}-{resource}.yaml").write_text(json.dumps(manifest))

    def remove(self, kind: str, resource: str) -> None:
        (self.folder / "manifests" / f"{kind}-{resource}.yaml").unlink()

    def __call__(self, *arguments: str) -> str:
        self.capsys.readouterr()
        code = main([*arguments, "--command-config", str(self._client)])
        shown = self.capsys.readouterr()
        assert code == ExitCode.OK, shown.out + shown.err
        return shown.out

    def create_topics(self, *names: str, partitions: int = 1) -> None:
        topics = [NewTopic(self.prefix + name, partitions, 1, None, {}) for name in names]
        assert all(not isinstance(r, Exception) for r in self.cluster.create_topics(topics).values())

    def produce_as_admin(self, topic: str) -> None:
        """Send a record."""
        producer = kafka.KafkaProducer(**Credential(ADMIN, get_password(ADMIN)).connect_to(self.settings))
        producer.send(topic, b"x", key=b"secret").get(30)
        producer.close()

    def create_user(self, name: str) -> Credential:
        """Create a user outside kdeclare."""
        credential = Credential(self.prefix + name, OLD)
        alteration = ScramAlteration(credential.user, SHA_512, ScramUpsertion(4096, OLD))
        assert self.cluster.alter_scram_users([alteration]) == {credential.user: None}
        return credential


@pytest.fixture
def project(
    brokers: SecuredBrokers,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    with open_secured_project(brokers, tmp_path, monkeypatch, {"OLD": OLD, "NEW": NEW}) as cluster:
        yield Project(tmp_path, brokers, capsys, cluster)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times of the requests that change ACLs. Each is followed by a pause."""
    times: list[float] = []

    def slow_down(method: str) -> None:
        send = getattr(KafkaCluster, method)

        def send_slowly(cluster: KafkaCluster, *arguments: Any) -> Any:
            results = send(cluster, *arguments)
            times.append(time.monotonic())
            time.sleep(_STEP_S)
            return results

        monkeypatch.setattr(KafkaCluster, method, send_slowly)

    slow_down("create_acls")
    slow_down("delete_acls")
    return times


def test_clients_gain_and_lose_access_as_planned(project: Project) -> None:
    """A plan changes nothing. An apply takes effect for clients that are connected already."""
    project.create_topics("orders")
    topic, group = f"{project.prefix}orders", f"{project.prefix}readers"
    shop, reader = project.create_user("shop"), project.create_user("reader")
    producer = LoadProducer(project.settings, shop, topic)
    consumer = LoadConsumer(project.settings, reader, topic, group=group)
    project.declare("Acl", "shop", principal=f"User:{shop.user}", produce=[topic])
    project.declare(
        "Acl", "reader", principal=f"User:{reader.user}", consume={"topics": [topic], "groups": [group]}
    )
    with producer.running(), consumer.running():
        project("plan")
        assert producer.is_refused()
        assert consumer.is_refused()
        project("apply", "--yes")
        assert not producer.is_refused()
        assert not consumer.is_refused()
        project.declare("Acl", "reader", principal=f"User:{reader.user}")
        shown = project("plan")
        assert f"ALLOW User:{reader.user} READ" in shown
        assert not consumer.is_refused()
        project("apply", "--yes")
        assert consumer.is_refused()
        assert not producer.is_refused()
        project("rollback", "--yes")
        assert not consumer.is_refused()
        project.declare(
            "Acl",
            "shop",
            principal=f"User:{shop.user}",
            produce=[topic],
            bindings=[{"topic": topic, "deny": ["ALL"]}],
        )
        project("apply", "--yes")
        assert producer.is_refused()
        wait_for(lambda: set(consumer.received) >= set(producer.acknowledged), 90)
    assert sorted(set(consumer.received)) == sorted(producer.acknowledged)


def test_no_client_loses_or_gains_access_between_steps(project: Project, steps: list[float]) -> None:
    """P-ACL-10: a prefix replaces a name, and a new denial an old one, below clients that never stop."""
    project.create_topics("orders", "orders-secret", "old", "old-secret")
    orders, old = f"{project.prefix}orders", f"{project.prefix}old"
    group = f"{project.prefix}readers"
    shop = project.create_user("shop")

    def produce(topic: str) -> LoadProducer:
        return LoadProducer(project.settings, shop, topic)

    def consume(topic: str) -> LoadConsumer:
        return LoadConsumer(project.settings, shop, topic, group=f"{group}-{topic}")

    def declare(topics: list[str], secret: str | None) -> None:
        denial = [{"topic": f"{secret}-secret", "deny": ["READ", "WRITE"]}] if secret else []
        project.declare(
            "Acl",
            "shop",
            principal=f"User:{shop.user}",
            produce=topics,
            consume={"topics": topics, "groups": [f"{group}*"]},
            bindings=denial,
        )

    for topic in (f"{orders}-secret", f"{old}-secret"):
        project.produce_as_admin(topic)
    producer = produce(orders)
    permitted: list[Load] = [producer, consume(orders)]
    denied: list[Load] = [produce(f"{orders}-secret"), produce(f"{old}-secret")]
    spies = [consume(f"{orders}-secret"), consume(f"{old}-secret")]
    declare([orders, f"{old}*"], old)
    project("apply", "--yes")
    with ExitStack() as stack:
        for load in (*permitted, *denied, *spies):
            stack.enter_context(load.running())
        for load in permitted:
            assert not load.is_refused()
        for load in denied:
            assert load.is_refused()
        begun = time.monotonic()
        steps.clear()
        declare([f"{orders}*"], orders)
        project("apply", "--yes")
        declare([orders, f"{old}*"], old)
        project("apply", "--yes")
        ended = time.monotonic()
        for load in (*permitted, *denied):
            load.wait_for_attempts()
        assert [spy.received for spy in spies] == [[], []]
        changes = list(steps)
        declare([f"{orders}*", f"{old}*"], None)
        project("apply", "--yes")
        for load in (*permitted, *denied):
            assert not load.is_refused()
        for spy in spies:
            spy.wait_for_attempts(1)
            assert spy.received, "without the denial, this client reads records"
    assert len(changes) == 8, "each of the two applies has four steps"
    for load in permitted:
        assert [at for at in load.refused if at >= begun] == []
    for load in denied:
        attempts = [at for at in load.attempts if begun <= at < ended]
        assert attempts == [at for at in load.refused if begun <= at < ended]
    for load in (*permitted, *denied):
        for step in changes:
            assert any(step <= at < step + _STEP_S for at in load.attempts)
    assert producer.failures == []
    assert len(producer.acknowledged) == len(producer.attempts)


@pytest.fixture
def loads() -> Iterator[list[Load]]:
    """The clients of a test, which run at most until its end."""
    loads: list[Load] = []
    yield loads
    for load in loads:
        load.stop()


@pytest.mark.parametrize("second", mark_rest(["user", "mechanism"], 1))
def test_password_rotates_without_a_failed_request(project: Project, second: str, loads: list[Load]) -> None:
    """docs/howto/rotate-a-password.md, with two producers and two consumers that restart one by one."""
    project.create_topics("orders", partitions=6)
    topic, group = f"{project.prefix}orders", f"{project.prefix}readers"
    user = f"{project.prefix}checkout"
    other = f"{user}-2" if second == "user" else user
    before, after = Credential(user, OLD, "SCRAM-SHA-256"), Credential(other, NEW, "SCRAM-SHA-512")

    def declare(*credentials: Credential) -> None:
        by_user: dict[str, dict[str, Any]] = {}
        for credential in credentials:
            reference = "${env.OLD}" if credential.password == OLD else "${env.NEW}"
            by_user.setdefault(credential.user, {})[credential.mechanism] = {"password": reference}
        for name in {user, other} - by_user.keys():
            project.remove("ScramUser", name.removeprefix(project.prefix))
        for name, mechanisms in by_user.items():
            project.declare("ScramUser", name.removeprefix(project.prefix), mechanisms=mechanisms)
        project.declare(
            "Acl",
            "checkout",
            principals=[f"User:{name}" for name in by_user],
            produce=[topic],
            consume={"topics": [topic], "groups": [group]},
        )

    def start(number: int, credential: Credential) -> tuple[LoadProducer, LoadConsumer]:
        producer = LoadProducer(
            project.settings, credential, topic, name=f"p{number}-{credential.mechanism[-3:]}"
        )
        consumer = LoadConsumer(project.settings, credential, topic, group=group)
        for load in (producer, consumer):
            loads.append(load)
            load.start()
            load.wait_for_attempts()
        return producer, consumer

    if second == "user":
        project.declare("ScramUser", "checkout-2", mechanisms={})
    declare(before)
    project("apply", "--yes")
    instances = {number: start(number, before) for number in (1, 2)}
    declare(before, after)
    project("apply", "--yes")
    for number in list(instances):
        for load in instances[number]:
            load.stop()
        instances[number] = start(number, after)
    declare(after)
    project("apply", "--yes", "--allow-deletes")
    refused = LoadProducer(project.settings, before, topic)
    refused.start()
    refused.stop()
    assert refused.attempts == []
    assert refused.failures
    for producer, _ in instances.values():
        producer.wait_for_attempts(20)
        producer.stop()
    acknowledged = [key for load in loads if isinstance(load, LoadProducer) for key in load.acknowledged]
    consumers = [load for load in loads if isinstance(load, LoadConsumer)]
    wait_for(lambda: sum(len(load.received) for load in consumers) >= len(acknowledged), 90)
    for _, consumer in instances.values():
        consumer.stop()
    assert [load.failures for load in loads] == [[]] * 8
    assert sum(len(load.attempts) for load in loads if isinstance(load, LoadProducer)) == len(acknowledged)
    received = [key for load in consumers for key in load.received]
    assert sorted(received) == sorted(acknowledged)
    assert len(acknowledged) > 100
