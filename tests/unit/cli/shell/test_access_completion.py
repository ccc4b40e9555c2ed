"""Completion of principals, users, groups, quotas and credentials, with the real commands."""

from collections.abc import Callable, Hashable
from typing import TypeVar

import pytest

from kdeclare.cli.interactive.completer import complete_line
from kdeclare.cli.interactive.grammar import build_grammar
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.resources.manifest_capabilities import list_names
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic, ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from kdeclare.providers.kafka.testing import MemoryCluster

T = TypeVar("T")


def make_cluster() -> MemoryCluster:
    """ACLs of two principals, quotas of a user, a client id and an address, and two users with passwords."""
    made = MemoryCluster({1: None})
    made.create_topics([NewTopic("orders", 1, 1, None, {})])
    made.add_group("billing")
    made.add_group("queue", GroupType.SHARE)
    made.set_overrides(ConfigResource(ConfigScope.GROUP, "future"), {"share.isolation.level": "x"})
    texts = (
        "ALLOW User:alice READ topic:orders from 10.0.0.1",
        "ALLOW User:bob WRITE transactionalId:pay from *",
        "ALLOW User:alice READ group:jobs from *",
    )
    made.create_acls(list(map(parse_binding, texts)))
    user, client, ip = EntityType.USER, EntityType.CLIENT_ID, EntityType.IP
    made.alter_quotas(
        {
            QuotaEntity.of({user: "alice"}): {"producer_byte_rate": 10485760.0},
            QuotaEntity.of({user: "dave", client: "app"}): {"consumer_byte_rate": 5.0},
            QuotaEntity.of({user: None}): {"request_percentage": 50.0},
            QuotaEntity.of({ip: "10.0.0.9"}): {"connection_creation_rate": 5.0},
        }
    )
    made.alter_scram_users([ScramAlteration("carol", Mechanism.SHA_512, ScramUpsertion(8192, "x"))])
    return made


class KnownNames:
    """Names from a cluster. calls: the keys of the questions."""

    def __init__(self, cluster: MemoryCluster) -> None:
        self.connections = Connections(KafkaConnection(cluster))

    def live(self, kind: str) -> tuple[str, ...]:
        return tuple(list_names(kind, self.connections))

    def ask(self, key: Hashable, question: Callable[[Connections], T], nothing: T) -> T:
        return question(self.connections)

    def declared(self) -> tuple[str, ...]:
        return ()

    def runs(self) -> tuple[str, ...]:
        return ()

    def environments(self) -> tuple[str, ...]:
        return ()


def complete(line: str) -> dict[str, str]:
    """Return the candidates for the word at the cursor, with their descriptions."""
    candidates = complete_line(line, build_grammar(), KnownNames(make_cluster()))[1]
    return {candidate.text: candidate.about for candidate in candidates}


PRINCIPALS = ["User:alice", "User:bob", "User:carol", "User:dave", "User:*"]
RATES = ["producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("acl explain --principal ", PRINCIPALS),
        ("acl list --principal ", PRINCIPALS),
        ("acl add --allow-principal ", PRINCIPALS),
        ("acl add --allow-principal=User:c", ["--allow-principal=User:carol"]),
        ("acl add --allow-principal User:alice --allow-principal User:", PRINCIPALS[1:]),
        ("acl remove --deny-principal User:b", ["User:bob"]),
        ("acl add --allow-host ", ["10.0.0.1"]),
        ("acl explain --host ", ["10.0.0.1"]),
        ("acl explain --topic ", ["orders"]),
        ("acl add --group ", ["billing", "queue", "jobs"]),
        ("acl add --transactional-id ", ["pay"]),
        ("acl add --topic t --group g --operation A", ["All", "AlterConfigs"]),
        ("acl add --topic orders --operation D", ["Describe", "DescribeConfigs", "Delete"]),
        (
            "acl add --group g --operation ",
            ["Read", "Delete", "Describe", "DescribeConfigs", "AlterConfigs", "All"],
        ),
        ("acl explain --transactional-id x --operation T", ["TwoPhaseCommit"]),
        ("acl add --resource-pattern-type p", ["prefixed"]),
        ("config alter --user ", ["alice", "carol", "dave"]),
        ("config alter --user alice --user ", ["carol", "dave"]),
        ("config alter --client ", ["app"]),
        ("config alter --ip ", ["10.0.0.9"]),
        ("config describe --group ", ["billing", "future", "queue"]),
        ("config alter --entity-type c", ["client-metrics", "clients"]),
        ("config alter --entity-type users --entity-name ", ["alice", "carol", "dave"]),
        ("config alter --entity-type ips --entity-name ", ["10.0.0.9"]),
        ("config alter --entity-type users --entity-name dave --entity-type clients --entity-name ", ["app"]),
        ("config alter --user alice --add-config p", ["producer_byte_rate="]),
        ("config alter --user alice --add-config producer_byte_rate=", ["producer_byte_rate=10485760"]),
        (
            "config alter --user alice --add-config request_percentage=5,c",
            ["request_percentage=5,consumer_byte_rate=", "request_percentage=5,controller_mutation_rate="],
        ),
        ("config alter --client app --add-config S", []),
        ("config alter --ip 10.0.0.9 --add-config ", ["connection_creation_rate="]),
        ("config alter --user alice --delete-config ", ["producer_byte_rate"]),
        ("config alter --user carol --delete-config ", ["SCRAM-SHA-512"]),
        ("config alter --user-defaults --delete-config ", ["request_percentage"]),
        ("config alter --entity-type users --entity-name alice --delete-config ", ["producer_byte_rate"]),
        ("config alter --user nobody --delete-config ", [*RATES, "SCRAM-SHA-256", "SCRAM-SHA-512"]),
        ("config alter --client nobody --delete-config ", RATES),
        ("config alter --user dave --client app --delete-config ", ["consumer_byte_rate"]),
        ("config alter --user alice --add-config SCRAM-SHA-256=", []),
    ],
)
def test_completion_offers_names_of_access(line: str, expected: list[str]) -> None:
    assert sorted(complete(line)) == sorted(expected)


def test_completion_shows_current_values() -> None:
    offered = complete("config alter --user carol --add-config ")
    assert offered["producer_byte_rate="] == "bytes/s"
    assert [text for text, about in offered.items() if about == "now 8192 iterations"] == [
        "SCRAM-SHA-512=[iterations=8192,password="
    ]
    assert complete("config alter --user alice --add-config p") == {"producer_byte_rate=": "now 10 MiB/s"}
    assert complete("acl add --allow-principal User:c") == {"User:carol": "no ACL"}
    assert complete("config describe --group q") == {"queue": "share, Empty"}


def test_completion_without_permission_offers_what_is_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise Fault("CLUSTER_AUTHORIZATION_FAILED", "")

    for method in ("acls", "quotas"):
        monkeypatch.setattr(MemoryCluster, method, refuse)
    assert sorted(complete("acl explain --principal ")) == ["User:*", "User:carol"]
