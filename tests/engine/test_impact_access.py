"""What plans say about clients with lower quotas, removed permissions and changed credentials."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.observation import Observation
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.consumer_group.group import GroupMember, GroupType
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.impact import impact_reader
from kdeclare.providers.kafka.impact.access.remaining_access import observe_references
from kdeclare.testing.world import Secrets
from tests.engine.impacts import find_figures, list_texts, observe
from tests.engine.world import World, desired, topic

DELETING = PlanScope(impact=True, allow_deletes=True, allow_empty=True)
NOT_ALLOWED = Fault("CLUSTER_AUTHORIZATION_FAILED", "Not authorized.")
REQUESTS = {"list_groups", "describe_groups", "fetch_offsets", "cluster_rights", "acls", "quotas"}
GROUPS = {"list_groups", "describe_groups", "cluster_rights"}


@pytest.fixture
def world() -> World:
    """Topics with readers: 'billing' has two members and reads both topics, 'archive' has one."""
    world = World(adopts=True, secrets=Secrets({"${env.OLD}": "old", "${env.NEW}": "new"}))
    world.cluster.create_topics([])
    orders, payments = TopicPartition("orders", 0), TopicPartition("payments", 0)
    world.cluster.set_members(
        "billing",
        GroupMember("1", "billing-app", "/10.0.0.1", partitions=(orders,)),
        GroupMember("2", "billing-app", "/10.0.0.2", partitions=(payments,)),
    )
    world.cluster.set_members("archive", GroupMember("3", "archiver", "/10.0.0.3", partitions=(orders,)))
    return world


def quota(entity: dict[str, Any], **limits: float | None) -> DesiredResource:
    """Declare a quota."""
    return desired("ClientQuota", "q", entity=entity, limits=limits)


def acl(*bindings: dict[str, Any], principal: str = "User:billing") -> DesiredResource:
    """Declare the permissions of a principal."""
    return desired("Acl", "billing", principal=principal, bindings=list(bindings))


def user(name: str, **passwords: tuple[str, str]) -> DesiredResource:
    """Declare a user with a password for each mechanism; underscores represent hyphens."""
    given = {key.replace("_", "-"): {"password": Referenced(*value)} for key, value in passwords.items()}
    return desired("ScramUser", name, mechanisms=given)


READ_ORDERS: dict[str, Any] = {"topic": "orders", "allow": ["READ"]}
READ_ALL: dict[str, Any] = {"topic": "*", "allow": ["READ"]}
JOIN: dict[str, Any] = {"group": "billing", "allow": ["READ"]}
WRITE: dict[str, Any] = {"topic": "orders", "allow": ["WRITE"]}


# quotas


def test_lower_quota_of_client_id_names_groups(world: World) -> None:
    world.apply(quota({"clientId": "billing-app"}, consumer_byte_rate=2000))
    observations = observe(world, quota({"clientId": "billing-app"}, consumer_byte_rate=1000))
    assert list_texts(observations, "limited-clients") == [
        "ClientQuota/q: effect: 2 members of 1 group use client id 'billing-app': billing (2)."
    ]
    assert find_figures(observations, "limited-clients") == {"groups": 1, "members": 2}
    assert len(observations) == 1


def test_higher_quota_and_removed_quota_have_no_impact(world: World) -> None:
    world.apply(quota({"clientId": "billing-app"}, consumer_byte_rate=2000))
    assert observe(world, quota({"clientId": "billing-app"}, consumer_byte_rate=3000)) == ()
    assert observe(world, quota({"clientId": "billing-app"}, consumer_byte_rate=None)) == ()


def test_quota_of_user_and_client_id_may_be_about_others(world: World) -> None:
    entity = {"user": "alice", "clientId": "archiver"}
    assert list_texts(observe(world, quota(entity, request_percentage=10)), "limited-clients") == [
        "ClientQuota/q: effect: 1 member of 1 group uses client id 'archiver', as user 'alice' or as another "
        "user: archive (1)."
    ]


def test_quota_of_address_names_groups(world: World) -> None:
    change = quota({"ip": "10.0.0.2"}, connection_creation_rate=5)
    assert list_texts(observe(world, change), "limited-clients") == [
        "ClientQuota/q: effect: 1 member of 1 group uses IP address '10.0.0.2': billing (1)."
    ]


def test_quota_without_known_members(world: World) -> None:
    assert list_texts(observe(world, quota({"clientId": "x"}, consumer_byte_rate=5)), "limited-clients") == [
        "ClientQuota/q: info: No known group member uses client id 'x'."
    ]


@pytest.mark.parametrize(
    ("entity", "limits", "expected"),
    [
        ({"clientId": "a"}, {"producer_byte_rate": 5}, "which producers use client id 'a'"),
        ({"user": "alice"}, {"consumer_byte_rate": 5}, "which clients are connected as user 'alice'"),
        (
            {"clientId": {"default": True}},
            {"consumer_byte_rate": 5},
            "which clients are subject to this default, that is, have no more specific limit",
        ),
    ],
)
def test_clients_that_brokers_do_not_report(
    world: World, entity: dict[str, Any], limits: dict[str, float], expected: str
) -> None:
    (observation,) = observe(world, quota(entity, **limits))
    assert observation.text == f"Brokers do not report {expected}."


def test_hidden_and_unreadable_groups_are_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(world.cluster), "find_cluster_rights", lambda _: frozenset())
    world.cluster.add_group("shares", GroupType.SHARE)
    world.cluster.set_members("shares", GroupMember("4", "a", "/10.0.0.4"))
    texts = list_texts(observe(world, quota({"clientId": "a"}, consumer_byte_rate=5)), "hidden-groups")
    assert [text.partition(":")[2] for text in texts] == [
        " unknown: Other groups may be affected: without the Describe permission on the cluster, kdeclare "
        "sees only the groups that it is permitted to describe.",
        " unknown: 1 other group may be affected (shares): kdeclare cannot read the members of share groups, "
        "Kafka Streams groups, and groups of an unknown type.",
    ]


def test_slow_groups_are_unknown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(impact_reader, "_TIME_LIMIT_S", -1.0)
    (observation,) = observe(world, quota({"clientId": "a"}, consumer_byte_rate=5))
    assert observation.text.startswith(
        "kdeclare could not determine which members of groups use client id 'a':"
    )


# permissions


def test_removed_permission_names_groups_that_read(world: World) -> None:
    world.apply(acl(READ_ORDERS, JOIN))
    observations = observe(world, acl(JOIN))
    assert list_texts(observations, "lost-access") == [
        "Acl/billing: effect: 1 member of group 'archive' may lose access to topic orders, if it connects as "
        "User:billing.",
        "Acl/billing: effect: 1 member of group 'billing' may lose access to topic orders, if it connects as "
        "User:billing.",
    ]


def test_removed_permission_on_group_names_it(world: World) -> None:
    world.apply(acl(READ_ORDERS, JOIN))
    assert list_texts(observe(world, acl(READ_ORDERS)), "lost-access") == [
        "Acl/billing: effect: 2 members of group 'billing' may lose access to the group, if they connect as "
        "User:billing."
    ]


def test_permission_that_another_binding_grants_is_not_lost(world: World) -> None:
    world.apply(acl(READ_ORDERS, READ_ALL))
    assert list_texts(observe(world, acl(READ_ALL)), "lost-access") == [
        "Acl/billing: info: No known group member needs these permissions to read."
    ]


def test_new_denial_names_groups_that_read(world: World) -> None:
    world.apply(acl(READ_ALL))
    denial = {"topic": "pay", "pattern": "prefixed", "deny": ["READ"]}
    assert list_texts(observe(world, acl(READ_ALL, denial)), "lost-access") == [
        "Acl/billing: effect: 1 member of group 'billing' may lose access to topic payments, if it connects "
        "as User:billing."
    ]


def test_permission_of_another_host_is_not_lost(world: World) -> None:
    world.apply(acl({**READ_ORDERS, "hosts": ["10.0.0.1"]}))
    observations = observe(world, scope=DELETING)
    assert [item.figures["group"] for item in observations if item.code == "lost-access"] == ["billing"]


def test_many_groups_are_counted(world: World) -> None:
    for number in range(10):
        member = GroupMember("m", "c", "/10.0.0.9", partitions=(TopicPartition("orders", 0),))
        world.cluster.set_members(f"g{number}", member)
    world.apply(acl(READ_ORDERS))
    texts = list_texts(observe(world, scope=DELETING), "lost-access")
    assert len(texts) == 6
    assert texts[-1] == "Acl/billing: effect: Members of 7 other groups may lose access as well."


# what still names deleted objects


def grant(world: World, *texts: str) -> None:
    """Create bindings as another client."""
    assert set(world.cluster.elsewhere().create_acls(list(map(parse_binding, texts))).values()) == {None}


def test_deleted_topic_names_remaining_acls(world: World) -> None:
    world.apply(topic("orders", partitions=1))
    grant(
        world,
        "ALLOW User:a READ topic:orders from *",
        "ALLOW User:b WRITE topic:orders from *",
        "ALLOW User:c READ topic:ord* from *",
        "ALLOW User:d READ group:orders from *",
    )
    observations = observe(world, scope=DELETING)
    assert list_texts(observations, "remaining-access") == [
        "Topic/orders: info: 2 ACL bindings still name the topic (User:a, User:b). A new topic with this "
        "name would be subject to them."
    ]


def test_acls_that_the_same_plan_deletes_do_not_remain(world: World) -> None:
    world.apply(topic("orders", partitions=1), acl(READ_ORDERS))
    assert list_texts(observe(world, scope=DELETING), "remaining-access") == []


def test_acls_that_are_not_visible_are_unknown_once(world: World) -> None:
    world.apply(topic("a", partitions=1), topic("b", partitions=1))
    world.cluster.faults.fail(NOT_ALLOWED, method="acls", nth=None)
    assert list_texts(observe(world, scope=DELETING), "not-determined") == [
        "Topic/a: unknown: kdeclare could not determine which ACLs still name deleted topics or users: "
        "kdeclare "
        "lacks the Describe permission on the cluster."
    ]


def test_cluster_without_authorizer_has_no_acls(world: World) -> None:
    world.apply(topic("a", partitions=1))
    world.cluster.has_authorizer = False
    codes = {item.code for item in observe(world, scope=DELETING)}
    assert codes.isdisjoint({"remaining-access", "not-determined"})


OLD, NEW = ("old", "${env.OLD}"), ("new", "${env.NEW}")


def test_deleted_user_names_remaining_acls_and_quotas(world: World) -> None:
    world.apply(user("alice", SCRAM_SHA_512=OLD))
    grant(world, "ALLOW User:alice READ topic:orders from *")
    entities: Sequence[dict[EntityType, str | None]] = (
        {EntityType.USER: "alice"},
        {EntityType.USER: "alice", EntityType.CLIENT_ID: "a"},
        {EntityType.USER: "bob"},
    )
    for entity in entities:
        world.cluster.elsewhere().alter_quotas({QuotaEntity.of(entity): {"consumer_byte_rate": 1.0}})
    observations = observe(world, scope=DELETING)
    assert list_texts(observations, "remaining-access") == [
        "ScramUser/alice: info: 1 ACL binding and 2 quotas still name the user. A new user with this name "
        "would be subject to them."
    ]
    assert list_texts(observations, "unknown-clients") == [
        "ScramUser/alice: unknown: Brokers do not report which clients are connected as user 'alice'."
    ]


def test_unknown_users_are_reported_once(world: World) -> None:
    world.apply(user("alice", SCRAM_SHA_512=OLD), user("bob", SCRAM_SHA_512=OLD))
    observations = observe(world, user("alice", SCRAM_SHA_512=NEW), user("bob", SCRAM_SHA_512=NEW))
    assert list_texts(observations, "unknown-clients") == [
        "ScramUser/alice: unknown: Brokers do not report which clients are connected as these users: alice, "
        "bob."
    ]
    assert len(observations) == 1


def test_user_with_another_mechanism_is_not_deleted(world: World) -> None:
    world.apply(user("alice", SCRAM_SHA_512=OLD, SCRAM_SHA_256=OLD))
    grant(world, "ALLOW User:alice READ topic:orders from *")
    observations = observe(world, user("alice", SCRAM_SHA_512=OLD))
    assert [item.code for item in observations] == ["unknown-clients"]


def test_quotas_that_are_not_visible_name_the_permission(world: World) -> None:
    world.apply(user("alice", SCRAM_SHA_512=OLD))
    world.cluster.faults.fail(NOT_ALLOWED, method="quotas", nth=None)
    assert list_texts(observe(world, scope=DELETING), "not-determined") == [
        "ScramUser/alice: unknown: kdeclare could not determine which quotas still name deleted users: "
        "kdeclare lacks the DescribeConfigs permission on the cluster."
    ]


def declare_connector(name: str, config: dict[str, str]) -> DesiredResource:
    """Declare a connector with a config."""
    spec: dict[str, Any] = {"class": "S", "config": config}
    return desired("Connector", name, **spec)


def test_declared_resources_that_refer_to_a_deleted_topic_are_named() -> None:
    declared = [
        declare_connector("sink", {"topics": "orders, payments"}),
        declare_connector("regex", {"topics.regex": "ord.*"}),
        desired("Schema", "orders-value", schema='{"type": "string"}', type="AVRO"),
        desired("Schema", "orders", schema='{"type": "string"}', type="AVRO"),
    ]
    assert list_texts(list(observe_references(["orders", "other"], declared)), "references") == [
        "Topic/orders: effect: Connector/sink, Schema/orders-value refer to this topic, and are still "
        "declared."
    ]


# requests


def delete_topic(world: World) -> Sequence[DesiredResource]:
    world.apply(topic("orders", partitions=1))
    return ()


def delete_user(world: World) -> Sequence[DesiredResource]:
    world.apply(user("alice", SCRAM_SHA_512=OLD))
    return ()


def change_password(world: World) -> Sequence[DesiredResource]:
    world.apply(user("alice", SCRAM_SHA_512=OLD))
    return (user("alice", SCRAM_SHA_512=NEW),)


def change_acl(before: DesiredResource, after: DesiredResource) -> Callable[[World], list[DesiredResource]]:
    def change(world: World) -> list[DesiredResource]:
        world.apply(before)
        return [after]

    return change


def limit(entity: dict[str, Any], **limits: float) -> Callable[[World], list[DesiredResource]]:
    return lambda _: [quota(entity, **limits)]


@pytest.mark.parametrize(
    ("change", "requests"),
    [
        (limit({"clientId": "a"}, consumer_byte_rate=5), GROUPS),
        (limit({"ip": "10.0.0.1"}, connection_creation_rate=5), GROUPS),
        (limit({"clientId": "a"}, producer_byte_rate=5), set()),
        (limit({"user": "a"}, consumer_byte_rate=5), set()),
        (change_acl(acl(READ_ORDERS, WRITE), acl(WRITE)), GROUPS),
        (change_acl(acl(READ_ORDERS, WRITE), acl(READ_ORDERS)), set()),
        (change_acl(acl(WRITE), acl(READ_ORDERS, WRITE)), set()),
        (change_password, set()),
        (delete_user, {"acls", "quotas"}),
        (delete_topic, GROUPS | {"fetch_offsets", "acls"}),
    ],
    ids=[
        "quota of consumers",
        "quota of an address",
        "quota of producers",
        "quota of a user",
        "permission to read removed",
        "permission to write removed",
        "permission added",
        "password",
        "user deleted",
        "topic deleted",
    ],
)
def test_only_what_a_change_of_access_needs_is_read(
    world: World, change: Callable[[World], Sequence[DesiredResource]], requests: set[str]
) -> None:
    """These requests are sent in addition to those of a plan without impact."""
    declared = change(world)
    counts: list[dict[str, int]] = []
    for impact in (False, True):
        world.cluster.calls.clear()
        world.plan(*declared, scope=PlanScope(impact=impact, allow_deletes=True, allow_empty=True))
        methods = [call.method for call in world.cluster.calls]
        counts.append({method: methods.count(method) for method in REQUESTS})
    more = {method: counts[1][method] - counts[0][method] for method in REQUESTS}
    assert {method for method, count in more.items() if count} == requests
    assert max(more.values()) <= 2  # describing groups also lists them


def test_groups_are_read_once_for_all_changes(world: World) -> None:
    world.apply(topic("orders", partitions=1), acl(READ_ORDERS))
    world.cluster.calls.clear()
    observations: Sequence[Observation] = observe(
        world, quota({"clientId": "a"}, consumer_byte_rate=5), scope=DELETING
    )
    assert {"limited-clients", "lost-access", "deleted-records"} <= {item.code for item in observations}
    assert len(world.cluster.requests("describe_groups")) == 1
