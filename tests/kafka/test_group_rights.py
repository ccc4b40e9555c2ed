"""``kdeclare group`` as a user who lacks permissions, on a real broker with an authorizer."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER, get_password
from tests.beds import KafkaBed
from tests.commands import Ran, run_here
from tests.conftest import connect_as

pytestmark = pytest.mark.kafka


@dataclass
class Shop:
    """A group with offsets in two topics, and the reader, who may describe all topics but no group.

    The reader may also describe the cluster. Therefore, brokers list the group for the reader.
    """

    bed: KafkaBed
    admin: KafkaCluster
    client: Path
    folder: Path
    group: str
    orders: str
    refunds: str

    def __call__(self, *arguments: str) -> Ran:
        """Run a command as the reader."""
        return run_here(self.folder, *arguments)

    def say(self, *arguments: str) -> tuple[int, str]:
        """Run a command as the reader. Return its exit code and its output in one line."""
        ran = self(*arguments)
        return int(ran.code), " ".join((ran.out + ran.err).split())

    def grant(self, *rights: str) -> None:
        """Grant rights to the reader, and wait until the broker applies them."""
        bindings = [parse_binding(f"ALLOW User:{READER} {right} from *") for right in rights]
        assert set(self.admin.create_acls(bindings).values()) == {None}

        def is_applied() -> None:
            assert set(bindings) <= self.admin.acls([f"User:{READER}"])

        self.bed.eventually(is_applied)

    def read_offsets(self) -> dict[str, int]:
        """Return the offsets of the group, as the administrator reads them."""
        offsets = self.admin.groups.fetch_offsets([self.group])[self.group]
        return {str(where): committed.offset for where, committed in sorted(offsets.items())}


@pytest.fixture
def shop(secured_sandbox: SandboxStatus, tmp_path: Path) -> Iterator[Shop]:
    admin = connect_as(secured_sandbox, ADMIN)
    bed = KafkaBed(admin, secured_sandbox.bootstrap)
    at_first = admin.acls([f"User:{READER}"])
    files = resolve_layout(Path(secured_sandbox.folder)).security
    group = f"billing-{uuid.uuid4().hex[:8]}"
    made = Shop(
        bed,
        admin,
        files.client(READER),
        tmp_path,
        group,
        bed.create(partitions=2, name=bed.name("-orders")),
        bed.create(name=bed.name("-refunds")),
    )
    (tmp_path / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: rights}\n"
        f"spec: {{environments: {{lab: {{clientConfigFile: '{made.client}'}}}}}}\n"
    )
    offsets = {
        TopicPartition(made.orders, 0): CommittedOffset(0),
        TopicPartition(made.orders, 1): CommittedOffset(0),
        TopicPartition(made.refunds, 0): CommittedOffset(0, metadata="from billing"),
    }

    def commit() -> None:  # the first commit in a cluster waits for the coordinator
        assert set(admin.groups.alter_offsets({group: offsets}).values()) == {None}

    try:
        bed.eventually(commit)
        yield made
    finally:
        admin.delete_acls(sorted(admin.acls([f"User:{READER}"]) - at_first))
        admin.groups.delete_groups([group])
        bed.clean()
        admin.close()


def test_hidden_group_is_not_reported_as_missing(shop: Shop) -> None:
    for command in (
        ("describe", shop.group),
        ("reset-offsets", shop.group, "--topic", shop.orders, "--to-offset", "5", "--yes"),
        ("delete-offsets", shop.group, "--topic", shop.orders, "--yes"),
        ("delete", shop.group, "--yes"),
    ):
        code, text = shop.say("group", *command)
        assert code == 1, text
        assert f"not permitted to describe group '{shop.group}' (GROUP_AUTHORIZATION_FAILED)" in text
    assert shop.group in shop("group", "list", "--format", "names").out
    assert len(shop.read_offsets()) == 3


def test_refused_offsets_name_partitions_and_missing_permission(shop: Shop) -> None:
    """The rights grow step by step, until all changes are permitted."""
    group, orders, refunds = shop.group, shop.orders, shop.refunds
    shop.bed.cluster = shop.admin
    before = shop.read_offsets()
    delete_offsets = ("group", "delete-offsets", group, "--all-topics", "--yes")
    shop.grant(f"DESCRIBE group:{group}")
    everywhere = f"{orders}-0, {orders}-1, {refunds}-0"
    code, text = shop.say(*delete_offsets)
    assert code == 1
    assert (
        f"{everywhere}: the principal needs Delete on group {group} (GROUP_AUTHORIZATION_FAILED)" in text
    ), text
    code, text = shop.say("group", "delete", group, "--yes")
    assert code == 1
    assert f"the principal needs Delete on group {group} (GROUP_AUTHORIZATION_FAILED)" in text, text

    shop.grant(f"DELETE group:{group}")
    code, text = shop.say(*delete_offsets)
    assert code == 1
    assert (
        f"{orders}-0, {orders}-1: the principal needs Read on topic {orders} (TOPIC_AUTHORIZATION_FAILED); "
        f"{refunds}-0: the principal needs Read on topic {refunds} (TOPIC_AUTHORIZATION_FAILED)" in text
    ), text
    assert shop.read_offsets() == before

    shop.grant(f"READ topic:{orders}")
    code, text = shop.say(*delete_offsets)
    assert code == 5
    missing = f"{refunds}-0: the principal needs Read on topic {refunds} (TOPIC_AUTHORIZATION_FAILED)."
    assert f"{missing} 2 other offsets changed" in text, text
    assert shop.read_offsets() == {f"{refunds}-0": 0}
    code, text = shop.say("rollback", "--yes")
    assert code == 5
    assert f"the principal needs Read on group {group} (GROUP_AUTHORIZATION_FAILED)" in text, text

    shop.grant(f"READ group:{group}", f"READ topic:{refunds}")
    run_id = next(line.split()[0] for line in shop("history").out.splitlines() if "delete-offsets" in line)
    code, text = shop.say("rollback", run_id, "--yes")
    assert (code, shop.read_offsets()) == (0, before), text
    assert shop.say(*delete_offsets)[0] == 0
    assert shop.read_offsets() == {}
    assert shop.say("rollback", "--yes")[0] == 0
    offsets = shop.admin.groups.fetch_offsets([group])[group]
    assert offsets[TopicPartition(refunds, 0)].metadata == "from billing"


def test_refused_commits_name_partitions_and_missing_permission(shop: Shop) -> None:
    for topic in (shop.orders, shop.refunds):
        produce(shop, topic)
    reset = ("group", "reset-offsets", shop.group, "--all-topics", "--to-latest", "--yes")
    shop.grant(f"DESCRIBE group:{shop.group}")
    code, text = shop.say(*reset)
    assert code == 1
    assert f"the principal needs Read on group {shop.group} (GROUP_AUTHORIZATION_FAILED)" in text, text
    shop.grant(f"READ group:{shop.group}", f"READ topic:{shop.refunds}")
    code, text = shop.say(*reset)
    assert code == 5
    assert f"the principal needs Read on topic {shop.orders} (TOPIC_AUTHORIZATION_FAILED)" in text, text
    assert shop.read_offsets()[f"{shop.refunds}-0"] == 4
    assert shop.say("rollback", "--yes")[0] == 0
    assert set(shop.read_offsets().values()) == {0}


def produce(shop: Shop, topic: str) -> None:
    """Write four records to each partition of a topic."""
    from kafka import KafkaProducer

    properties = dict(
        line.split("=", 1) for line in shop.client.with_name(f"{ADMIN}.properties").read_text().splitlines()
    )
    producer = KafkaProducer(
        bootstrap_servers=properties["bootstrap.servers"],
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_plain_username=ADMIN,
        sasl_plain_password=get_password(ADMIN),
        ssl_cafile=properties["ssl.truststore.location"],
    )
    for partition in producer.partitions_for(topic):
        for _ in range(4):
            producer.send(topic, b"x", partition=partition)
    producer.flush()
    producer.close()
