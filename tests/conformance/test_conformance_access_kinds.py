"""Conformance cases for quotas, SCRAM users, group configs and client metrics, through the command line.

Every case is named in the docstring of its test. The tests share a broker, so most names have a prefix.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from kdeclare.providers.kafka.client_quota.entity import DEFAULT_USER, EntityType, QuotaEntity
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigSource
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, ScramAlteration
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from tests.beds import DELETE, SET
from tests.conformance.kinds_bed import PASSWORD, KindsBed, get_only, pick
from tests.conformance.test_conformance_acls import expect_errors_in_each_file
from tests.jsontypes import Json

SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
ISOLATION = "share.isolation.level"
REFERENCE: Json = {"password": "${env.P}"}


# Quotas


@pytest.fixture
def quota_bed(kinds_bed: KindsBed) -> Iterator[KindsBed]:
    """Quotas of entities with the prefix of the test, and of default users, are removed at the end."""
    yield kinds_bed
    mine = {
        entity: dict.fromkeys(limits)
        for entity, limits in kinds_bed.cluster.quotas().items()
        if kinds_bed.prefix in entity.key or entity in (DEFAULT_USER, user_entity("<default>"))
    }
    if mine:
        assert set(kinds_bed.cluster.alter_quotas(mine).values()) == {None}


def user_entity(name: str) -> QuotaEntity:
    return QuotaEntity.of({EntityType.USER: name})


def quota(name: str, entity: Json, **limits: Json) -> tuple[str, str, Json]:
    return "ClientQuota", name, {"entity": entity, "limits": limits}


def set_limits(bed: KindsBed, entity: QuotaEntity, **limits: float) -> None:
    """Set limits as another client."""
    assert bed.cluster.alter_quotas({entity: limits}) == {entity: None}


def test_new_quota_is_validated_and_sent_as_one_entry(quota_bed: KindsBed) -> None:
    """P-QUO-01."""
    bed, name = quota_bed, quota_bed.name("a")
    bed.declare(quota("a", {"user": name}, producer_byte_rate="1MiB", consumer_byte_rate="2MiB"))
    _, plan = bed.plan()
    op = get_only(plan["operations"])
    assert (op["verb"], op["args"]["ops"]) == (
        "quota.alter",
        [
            {"key": "consumer_byte_rate", "op": "SET", "value": 2097152},
            {"key": "producer_byte_rate", "op": "SET", "value": 1048576},
        ],
    )
    bed.apply()
    assert [(sent.method, sent.validate_only, len(sent.items)) for sent in bed.requests] == [
        ("alter_quotas", True, 1),
        ("alter_quotas", False, 1),
    ]
    limits = bed.cluster.quotas([user_entity(name)])[user_entity(name)]
    assert limits == {"producer_byte_rate": 2.0**20, "consumer_byte_rate": 2.0**21}
    bed.expect_up_to_date()


def test_limit_that_left_is_removed_and_others_stay(quota_bed: KindsBed) -> None:
    """P-QUO-02."""
    bed, entity = quota_bed, user_entity(quota_bed.name("a"))
    declared = {"user": bed.name("a")}
    bed.declare(quota("a", declared, producer_byte_rate=1, consumer_byte_rate=2))
    bed.apply()
    set_limits(bed, entity, request_percentage=50)
    bed.declare(quota("a", declared, producer_byte_rate=1))
    _, plan = bed.plan()
    change = get_only(plan["changes"])
    assert change["id"] == "ClientQuota/a"
    assert pick(get_only(change["fields"]), "path", "op") == ("limits.consumer_byte_rate", "DELETE")
    assert plan["unmanaged_configs"] == {"ClientQuota/a": ["request_percentage"]}
    bed.apply()
    assert bed.cluster.quotas([entity])[entity] == {"producer_byte_rate": 1.0, "request_percentage": 50.0}


def test_default_user_differs_from_user_called_default(quota_bed: KindsBed) -> None:
    """P-QUO-03."""
    bed, named = quota_bed, user_entity("<default>")
    set_limits(bed, named, producer_byte_rate=10)
    bed.declare(quota("everyone", {"user": {"default": True}}, producer_byte_rate=5))
    _, plan = bed.plan()
    change = get_only(plan["changes"])
    assert pick(change, "id", "action", "reason") == ("ClientQuota/everyone", "create", "declared")
    assert get_only(plan["operations"])["args"]["entity"] == {"user": None}
    bed.apply()
    quotas = bed.cluster.quotas([named, DEFAULT_USER])
    assert quotas == {named: {"producer_byte_rate": 10.0}, DEFAULT_USER: {"producer_byte_rate": 5.0}}


def test_order_of_entity_and_spelling_of_number_are_no_change(quota_bed: KindsBed) -> None:
    """P-QUO-04."""
    bed, user, app = quota_bed, quota_bed.name("a"), quota_bed.name("app")
    pair = QuotaEntity.of({EntityType.CLIENT_ID: app, EntityType.USER: user})
    set_limits(bed, pair, request_percentage=200.0)
    bed.declare(quota("x", {"user": user, "clientId": app}, request_percentage=200))
    bed.expect_up_to_date()
    assert bed("apply", "--yes").code == 0
    assert bed.requests == []


def test_impossible_quotas_are_refused_offline(kinds_bed: KindsBed) -> None:
    """P-QUO-05."""
    bed = kinds_bed
    bed.declare(
        quota("ip-user", {"ip": "10.0.0.1", "user": "a"}, connection_creation_rate=1),
        quota("ip-rate", {"ip": "10.0.0.1"}, producer_byte_rate=1),
        quota("user-rate", {"user": "a"}, connection_creation_rate=1),
        quota("zero", {"user": "b"}, producer_byte_rate=0),
        quota("nan", {"user": "c"}, producer_byte_rate=float("nan")),
        quota("half", {"user": "d"}, producer_byte_rate=10.5),
        quota("nobody", {}, producer_byte_rate=1),
        quota("typo", {"user": "e"}, producer_byterate=1),
    )
    assert "Did you mean 'producer_byte_rate'?" in expect_errors_in_each_file(bed)


# SCRAM users


@pytest.fixture
def scram_bed(kinds_bed: KindsBed) -> Iterator[KindsBed]:
    """Credentials of users with the prefix of the test are deleted at the end."""
    yield kinds_bed
    for name, credentials in kinds_bed.cluster.scram_users().items():
        for mechanism in credentials if name.startswith(kinds_bed.prefix) else ():
            kinds_bed.cluster.alter_scram_users([ScramAlteration(name, mechanism)])


def scram_user(name: str, **mechanisms: Json) -> tuple[str, str, Json]:
    """Declare a user. The keys are the digest sizes of the mechanisms, such as ``sha512``."""
    return "ScramUser", name, {"mechanisms": {f"SCRAM-SHA-{k[-3:]}": v for k, v in mechanisms.items()}}


def test_two_mechanisms_of_one_user_are_two_requests(scram_bed: KindsBed) -> None:
    """P-SCR-01."""
    bed, name = scram_bed, scram_bed.name("a")
    bed.declare(scram_user(name, sha256=REFERENCE, sha512=REFERENCE))
    _, plan = bed.plan(P=PASSWORD)
    assert [op["verb"] for op in plan["operations"]] == ["scram.upsert", "scram.upsert"]
    bed.apply(P=PASSWORD)
    requests = [[item.user for item in sent.items] for sent in bed.sent("alter_scram_users")]
    assert requests == [[name], [name]]
    for mechanism in (SHA_256, SHA_512):
        assert bed.cluster.can_log_in(name, mechanism, PASSWORD)
        assert not bed.cluster.can_log_in(name, mechanism, "wrong")
    bed.expect_up_to_date(P=PASSWORD)


def test_password_is_nowhere(scram_bed: KindsBed) -> None:
    """P-SCR-02."""
    bed, name = scram_bed, scram_bed.name("a")
    bed.declare(scram_user(name, sha512=REFERENCE))
    commands = (
        ("plan", "--out", "it.plan"),
        ("show", "it.plan"),
        ("apply", "it.plan", "--yes", "-v"),
        ("history",),
        ("plan",),
    )
    texts = []
    for command in commands:
        ran = bed(*command, P=PASSWORD)
        assert ran.code == 0, ran
        texts.append(ran.out + ran.err)
    assert "(sensitive)" in texts[0]
    assert "(sensitive)" in texts[1]
    texts += [file.read_text() for file in bed.folder.rglob("*") if file.is_file()]
    assert len(texts) > len(commands) + 3  # the manifest, the plan, the state, the journal …
    assert not [text for text in texts if PASSWORD in text]
    assert bed.cluster.can_log_in(name, SHA_512, PASSWORD)


def test_literal_password_is_a_warning_and_never_saved(scram_bed: KindsBed) -> None:
    """P-SCR-02, for a password in the manifest."""
    bed = scram_bed
    bed.declare(scram_user(bed.name("a"), sha512={"password": PASSWORD}))
    ran = bed("plan")
    assert (ran.code, "warning: " in ran.out) == (0, True)
    assert PASSWORD not in ran.out + ran.err
    ran = bed("plan", "--out", "it.plan")
    assert ran.code == 1
    assert PASSWORD not in ran.out + ran.err
    assert not (bed.folder / "it.plan").exists()


def test_unchanged_secret_is_no_change_and_changed_secret_is_one(scram_bed: KindsBed) -> None:
    """P-SCR-03."""
    bed, name = scram_bed, scram_bed.name("a")
    bed.declare(scram_user(name, sha512=REFERENCE))
    bed.apply(P="one")
    bed.expect_up_to_date(P="one")
    _, plan = bed.plan(P="two")
    assert pick(get_only(plan["changes"]), "id", "action", "risk") == (
        f"ScramUser/{name}",
        "update",
        "disruptive",
    )
    assert [op["verb"] for op in plan["operations"]] == ["scram.upsert"]
    bed.apply(P="two")
    assert bed.cluster.can_log_in(name, SHA_512, "two")
    assert not bed.cluster.can_log_in(name, SHA_512, "one")


def test_impossible_credentials_are_refused_offline(kinds_bed: KindsBed) -> None:
    """P-SCR-04."""
    bed = kinds_bed
    bed.declare(
        scram_user("few", sha512={"password": "${env.P}", "iterations": 4095}),
        scram_user("many", sha512={"password": "${env.P}", "iterations": 16385}),
        ("ScramUser", "sha1", {"mechanisms": {"SCRAM-SHA-1": REFERENCE}}),
        scram_user("empty", sha512={"password": ""}),
        scram_user("none"),
    )
    expect_errors_in_each_file(bed)


def test_mechanism_that_left_and_is_gone_already_is_no_error(scram_bed: KindsBed) -> None:
    """P-SCR-05."""
    bed, name = scram_bed, scram_bed.name("a")
    bed.declare(scram_user(name, sha256=REFERENCE, sha512=REFERENCE))
    bed.apply(P=PASSWORD)
    assert bed.cluster.alter_scram_users([ScramAlteration(name, SHA_256)]) == {name: None}
    bed.declare(scram_user(name, sha512=REFERENCE))
    bed.apply(P=PASSWORD)
    assert set(bed.owned()[f"ScramUser/{name}"]["mechanisms"]) == {"SCRAM-SHA-512"}
    assert set(bed.cluster.scram_users([name])[name]) == {SHA_512}
    assert bed.cluster.can_log_in(name, SHA_512, PASSWORD)


# Group configs and client metrics


@pytest.fixture
def config_bed(kinds_bed: KindsBed) -> Iterator[KindsBed]:
    """Configs of groups and subscriptions with the prefix of the test are reset at the end."""
    yield kinds_bed
    for scope in (ConfigScope.GROUP, ConfigScope.CLIENT_METRICS):
        for resource in kinds_bed.cluster.list_config_resources(scope):
            if resource.name.startswith(kinds_bed.prefix):
                alter(kinds_bed, resource, dict.fromkeys(read_overrides(kinds_bed, resource)))


def alter(bed: KindsBed, resource: ConfigResource, values: Mapping[str, str | None]) -> None:
    """Set or reset configs as another client."""
    ops = tuple(ConfigOp(k, DELETE if value is None else SET, value) for k, value in values.items())
    assert bed.cluster.alter_configs([ConfigAlteration(resource, ops)]) == {resource: None}


def read_overrides(bed: KindsBed, resource: ConfigResource) -> dict[str, str | None]:
    found = bed.cluster.configs([ConfigQuery(resource, overrides=True)]).get(resource, {})
    return {key: entry.value for key, entry in found.items() if entry.source is not ConfigSource.DEFAULT}


def group_config(name: str, **configs: Json) -> tuple[str, str, Json]:
    return "GroupConfig", name, {"configs": {key.replace("_", "."): value for key, value in configs.items()}}


def test_group_configs_are_set_and_reset_as_those_of_topics(config_bed: KindsBed) -> None:
    """P-GRP-01."""
    bed, name = config_bed, config_bed.name("g")
    resource = ConfigResource(ConfigScope.GROUP, name)
    bed.declare(("GroupConfig", name, {"configs": {SESSION: 50000}}))
    bed.apply()
    alter(bed, resource, {ISOLATION: "read_committed"})
    bed.declare(("GroupConfig", name, {"configs": {HEARTBEAT: 6000}}))
    _, plan = bed.plan()
    op = get_only(plan["operations"])
    assert (op["verb"], op["args"]["ops"]) == (
        "configs.alter",
        [
            {"key": HEARTBEAT, "op": "SET", "value": "6000"},
            {"key": SESSION, "op": "DELETE", "value": None},
        ],
    )
    assert plan["unmanaged_configs"] == {f"GroupConfig/{name}": [ISOLATION]}
    bed.apply()
    assert [item.resource for item in get_only(bed.sent("alter_configs")).items] == [resource]
    assert read_overrides(bed, resource) == {HEARTBEAT: "6000", ISOLATION: "read_committed"}
    bed.expect_up_to_date()


def test_bounds_and_unknown_keys_of_groups_are_known_before_apply(config_bed: KindsBed) -> None:
    """P-GRP-02."""
    bed = config_bed
    unknown = ("GroupConfig", "unknown", {"configs": {"consumer.session.timeoutms": 1}})
    bed.declare(
        unknown, ("GroupConfig", "append", {"configs": {"share.auto.offset.reset": {"append": ["latest"]}}})
    )
    assert f"Did you mean '{SESSION}'?" in expect_errors_in_each_file(bed)
    name = bed.name("bounds")
    bed.declare(("GroupConfig", name, {"configs": {SESSION: 6_000_000}}))
    assert bed("validate").code == 0
    assert bed.requests == []
    code, plan = bed.plan()
    assert code == 1
    problem = get_only([d for d in plan["diagnostics"] if d["severity"] == "error"])
    assert problem["resource"] == f"GroupConfig/{name}"
    assert [request.validate_only for request in bed.requests] == [True]
    assert bed("apply", "--yes").code == 1
    assert bed.sent() == []


def test_subscription_is_created_and_deleted_by_its_keys(config_bed: KindsBed) -> None:
    """P-CM-01."""
    bed, name = config_bed, config_bed.name("m")
    resource = ConfigResource(ConfigScope.CLIENT_METRICS, name)
    spec: dict[str, Any] = {
        "metrics": ["org.apache.kafka.producer."],
        "match": {"client_id": "app-.*"},
        "interval": "30s",
    }
    bed.declare(("ClientMetrics", name, spec))
    _, plan = bed.plan()
    change = get_only(plan["changes"])
    assert pick(change, "id", "action", "reason") == (f"ClientMetrics/{name}", "create", "declared")
    bed.apply()
    assert read_overrides(bed, resource) == {
        "metrics": "org.apache.kafka.producer.",
        "match": "client_id=app-.*",
        "interval.ms": "30000",
    }
    bed.declare()
    _, plan = bed.plan("--allow-deletes", "--allow-empty")
    op = get_only(plan["operations"])
    assert (op["verb"], {item["op"] for item in op["args"]["ops"]}) == ("configs.alter", {"DELETE"})
    bed.apply("--allow-deletes", "--allow-empty")
    assert resource not in bed.cluster.list_config_resources(ConfigScope.CLIENT_METRICS)
    assert bed.owned() == {}


def test_metrics_takes_only_whole_lists(kinds_bed: KindsBed) -> None:
    """P-CM-02."""
    kinds_bed.declare(("ClientMetrics", "m", {"metrics": {"append": ["org.x."]}}))
    expect_errors_in_each_file(kinds_bed)
