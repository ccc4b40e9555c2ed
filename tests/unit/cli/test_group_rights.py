"""``kdeclare group`` as a principal that lacks permissions: errors name the partitions and the permission."""

import pytest

from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine

FIRST, SECOND = (TopicPartition("orders", number) for number in range(2))
REFUND = TopicPartition("refunds", 0)
BEFORE = {"orders-0": 4, "orders-1": 5, "refunds-0": 6}
RESET = ("group", "reset-offsets", "billing", "--all-topics", "--to-earliest", "--yes")
DELETE_OFFSETS = ("group", "delete-offsets", "billing", "--all-topics", "--yes")
DELETE = ("group", "delete", "billing", "--yes")


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Two topics, and a group with offsets in both."""
    cluster = kdeclare.cluster
    cluster.create_topics([NewTopic("orders", 2, 1, None, {}), NewTopic("refunds", 1, 1, None, {})])
    for topic in ("orders", "refunds"):
        cluster.produce(topic, 20)
    offsets = {FIRST: CommittedOffset(4), SECOND: CommittedOffset(5), REFUND: CommittedOffset(6)}
    cluster.groups.alter_offsets({"billing": offsets})
    return kdeclare


def log_in(shop: CommandLine, *rights: str) -> None:
    """Let the commands run as a principal that has only these rights."""
    texts = [f"ALLOW User:ops {right} from *" for right in rights]
    shop.cluster.create_acls([parse_binding(text) for text in texts])
    shop.cluster.principal, shop.cluster.is_super_user = "User:ops", False


def read_offsets(shop: CommandLine) -> dict[str, int]:
    shop.cluster.is_super_user = True
    offsets = shop.cluster.groups.fetch_offsets(["billing"])["billing"]
    return {str(where): committed.offset for where, committed in sorted(offsets.items())}


@pytest.mark.parametrize(
    ("command", "rights", "message"),
    [
        (
            RESET,
            ("DESCRIBE group:billing", "READ topic:*"),
            "orders-0, orders-1, refunds-0: the principal needs Read on group billing "
            "(GROUP_AUTHORIZATION_FAILED)",
        ),
        (
            RESET,
            ("READ group:billing", "DESCRIBE topic:*"),
            "orders-0, orders-1: the principal needs Read on topic orders (TOPIC_AUTHORIZATION_FAILED); "
            "refunds-0: the principal needs Read on topic refunds (TOPIC_AUTHORIZATION_FAILED)",
        ),
        (
            DELETE_OFFSETS,
            ("READ group:billing", "READ topic:*"),
            "orders-0, orders-1, refunds-0: the principal needs Delete on group billing "
            "(GROUP_AUTHORIZATION_FAILED)",
        ),
        (
            DELETE_OFFSETS,
            ("DELETE group:billing", "DESCRIBE topic:*"),
            "refunds-0: the principal needs Read on topic refunds (TOPIC_AUTHORIZATION_FAILED)",
        ),
        (
            DELETE,
            ("READ group:billing", "READ topic:*"),
            "the principal needs Delete on group billing (GROUP_AUTHORIZATION_FAILED)",
        ),
    ],
)
def test_refused_change_names_partitions_and_missing_permission(
    shop: CommandLine, command: tuple[str, ...], rights: tuple[str, ...], message: str
) -> None:
    log_in(shop, *rights)
    ran = shop(*command)
    assert ran.code == 1
    assert message in " ".join(ran.out.split())
    assert read_offsets(shop) == BEFORE


def test_partly_permitted_reset_names_refused_partition_and_is_rolled_back(shop: CommandLine) -> None:
    log_in(shop, "READ group:billing", "READ topic:orders", "DESCRIBE topic:refunds")
    ran = shop(*RESET)
    assert ran.code == 5
    assert (
        "refunds-0: the principal needs Read on topic refunds (TOPIC_AUTHORIZATION_FAILED). 2 other offsets "
        "changed" in " ".join(ran.out.split())
    )
    assert read_offsets(shop) == {"orders-0": 0, "orders-1": 0, "refunds-0": 6}
    shop.cluster.is_super_user = False
    assert shop("rollback", "--yes").code == 0
    assert read_offsets(shop) == BEFORE


@pytest.mark.parametrize(
    "command",
    [
        RESET,
        (*RESET[:3], "--topic", "orders", "--to-latest", "--yes"),
        DELETE_OFFSETS,
        DELETE,
        ("group", "describe", "billing"),
    ],
)
@pytest.mark.parametrize("rights", [("READ topic:*",), ("READ topic:*", "DESCRIBE cluster:kafka-cluster")])
def test_hidden_group_is_not_reported_as_missing(
    shop: CommandLine, command: tuple[str, ...], rights: tuple[str, ...]
) -> None:
    """A principal that may describe the cluster sees all groups in lists."""
    log_in(shop, *rights)
    ran = shop(*command)
    assert (ran.code, ran.out) == (1, "")
    message = " ".join(ran.err.split())
    assert "not permitted to describe group 'billing' (GROUP_AUTHORIZATION_FAILED)" in message
    assert "Grant Describe on group billing." in message
    assert "no group" not in message
    assert read_offsets(shop) == BEFORE


def test_hidden_group_does_not_prevent_change_of_others(shop: CommandLine) -> None:
    shop.cluster.groups.alter_offsets({"mail": {FIRST: CommittedOffset(4)}})
    log_in(shop, "READ topic:*", "READ group:mail", "DESCRIBE cluster:kafka-cluster")
    ran = shop("group", "reset-offsets", "billing", "mail", "--topic", "orders:0", "--to-latest", "--yes")
    assert ran.code == 5
    assert "not permitted to describe group 'billing'" in ran.out
    assert "✓ Group/mail     altered\n" in ran.out


def test_list_shows_only_groups_that_principal_may_describe(shop: CommandLine) -> None:
    shop.cluster.add_group("mail")
    log_in(shop, "DESCRIBE group:mail")
    assert shop("group", "list", "--format", "names").out == "mail\n"
