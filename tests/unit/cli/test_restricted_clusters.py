"""Commands on clusters that hide or refuse something, as managed clusters do.

Commands that do not need it work. Otherwise, they say what is unknown and why.
"""

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing.restrictions import MANAGED, Restrictions
from tests.unit.cli.command_line import CommandLine

UNSUPPORTED, DENIED = "UNSUPPORTED_VERSION", "CLUSTER_AUTHORIZATION_FAILED"
OK, ERROR, BLOCKED = ExitCode.OK, ExitCode.ERROR, ExitCode.DENIED

RESTRICTIONS = {
    "moves unsupported": Restrictions({"moves": UNSUPPORTED, "reassign": UNSUPPORTED}),
    "moves denied": Restrictions({"moves": DENIED, "reassign": DENIED}),
    "log dirs unsupported": Restrictions({"log_dirs": UNSUPPORTED}),
    "log dirs denied": Restrictions({"log_dirs": DENIED}),
    "ACLs unsupported": Restrictions(dict.fromkeys(("acls", "create_acls", "delete_acls"), UNSUPPORTED)),
    "quotas unsupported": Restrictions(dict.fromkeys(("quotas", "alter_quotas"), UNSUPPORTED)),
    "SCRAM unsupported": Restrictions(dict.fromkeys(("scram_users", "alter_scram_users"), UNSUPPORTED)),
    "broker configs denied": Restrictions(refused_configs=frozenset({ConfigScope.BROKER})),
    "topic configs denied": Restrictions(refused_configs=frozenset({ConfigScope.TOPIC})),
    "config hidden": Restrictions(hidden_keys=frozenset({"retention.ms"})),
    "config fixed": Restrictions(fixed_keys=frozenset({"retention.ms"})),
    "replication factor fixed": Restrictions(replication_factor=3),
    "racks hidden": Restrictions(hides_racks=True),
    "managed": MANAGED,
}

PLAN, APPLY, AGAIN = ("plan", "--adopt"), ("apply", "--adopt", "--yes"), ("plan",)
IMPORT = ("import", "--include-declared")
IMPACT = ("impact", "Topic/orders", "--add-config", "segment.ms=100")
MOVE_IMPACT = ("impact", "Topic/orders", "--replication-factor", "2")
USAGE, STATUS = ("usage", "orders"), ("status",)
DESCRIBE = ("topic", "describe", "orders", "--sizes")
BROKER = ("config", "describe", "--broker", "1")
AUDIT = ("fleet", "audit", "fleet.yaml", "--engine", "local", "--out", "audits")
COMMANDS = (PLAN, APPLY, AGAIN, IMPORT, IMPACT, MOVE_IMPACT, USAGE, STATUS, DESCRIBE, BROKER, AUDIT)

NO_MOVES = "The brokers do not support ListPartitionReassignments"
NOT_MOVES = "Without the Describe permission on the cluster, kdeclare cannot see in-flight reassignments"
NO_SIZES = "Sizes are unknown, because the brokers did not describe their log directories"
NO_CONFIGS = "the brokers do not describe the configs"
POLICY = "Altering retention.ms is not allowed"

EXPECTED: dict[tuple[str, tuple[str, ...]], tuple[ExitCode, str]] = {
    **{("moves unsupported", c): (OK, NO_MOVES) for c in (PLAN, APPLY, AGAIN, IMPACT, STATUS)},
    ("moves unsupported", MOVE_IMPACT): (OK, NO_MOVES),
    **{("moves denied", c): (OK, NOT_MOVES) for c in (PLAN, APPLY, AGAIN, IMPACT, MOVE_IMPACT, STATUS)},
    **{(f"moves {why}", DESCRIBE): (OK, "did not list the moves") for why in ("unsupported", "denied")},
    **{(f"log dirs {why}", DESCRIBE): (OK, NO_SIZES) for why in ("unsupported", "denied")},
    **{(f"log dirs {why}", USAGE): (OK, "could not determine the size") for why in ("unsupported", "denied")},
    ("broker configs denied", BROKER): (OK, "refuse to describe the configs of broker 1"),
    ("broker configs denied", IMPORT): (OK, f"4 sets of broker configs ({NO_CONFIGS}"),
    ("topic configs denied", PLAN): (BLOCKED, "Topic/orders is left unchanged: kdeclare cannot compare"),
    ("topic configs denied", APPLY): (BLOCKED, "it cannot list them as unmanaged"),
    ("topic configs denied", AGAIN): (BLOCKED, "the brokers do not describe them"),
    ("topic configs denied", IMPORT): (OK, f"3 sets of topic configs ({NO_CONFIGS}"),
    ("topic configs denied", IMPACT): (BLOCKED, "the brokers do not describe them"),
    ("topic configs denied", MOVE_IMPACT): (OK, "could not determine whether 'orders' can be written"),
    ("topic configs denied", USAGE): (OK, "lacks the DescribeConfigs permission on the topic"),
    ("topic configs denied", DESCRIBE): (OK, "refuse to describe the configs of topic 'orders'"),
    ("topic configs denied", AUDIT): (ERROR, "The configs cannot be read"),
    ("broker configs denied", AUDIT): (ERROR, "4 of its resources could not be read"),
    ("managed", AUDIT): (ERROR, "4 of its resources could not be read"),
    ("config hidden", PLAN): (OK, "The plan shows retention.ms as unset, although the cluster may have"),
    ("config hidden", APPLY): (OK, "The plan shows retention.ms as unset, although the cluster may have"),
    ("config hidden", AGAIN): (OK, "No changes."),
    ("config fixed", PLAN): (BLOCKED, POLICY),
    ("config fixed", APPLY): (BLOCKED, POLICY),
    ("config fixed", AGAIN): (BLOCKED, "Topic/orders"),
    ("replication factor fixed", PLAN): (BLOCKED, "The replication factor must be 3, not 2"),
    ("replication factor fixed", APPLY): (BLOCKED, "The replication factor must be 3, not 2"),
    ("replication factor fixed", AGAIN): (BLOCKED, "The replication factor must be 3, not 2"),
    **{("managed", c): (OK, NO_MOVES) for c in (PLAN, APPLY, AGAIN, IMPACT, MOVE_IMPACT, STATUS)},
    ("managed", IMPORT): (OK, "Acl: the brokers do not support them"),
    ("managed", USAGE): (OK, "could not determine the size"),
    ("managed", DESCRIBE): (OK, NO_SIZES),
    ("managed", BROKER): (OK, "refuse to describe the configs of broker 1"),
}
"""The exit code and a part of the output. All other commands succeed without a warning."""

CHANGED_ELSEWHERE = "changed outside kdeclare"


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Two topics that are also declared, one of them with configs, and a topic to create."""
    topics = [
        NewTopic("orders", 2, 3, None, {"cleanup.policy": "compact"}),
        NewTopic("plain", 1, 3, None, {}),
    ]
    kdeclare.cluster.create_topics(topics)
    kdeclare.cluster.produce("orders", 10)
    configs = {"cleanup.policy": "compact", "retention.ms": "1000"}
    kdeclare.topic("orders", partitions=2, configs=configs)
    kdeclare.topic("plain", partitions=2)
    kdeclare.topic("new", partitions=1, replicationFactor=2)
    kdeclare.write(
        "fleet.yaml", "Fleet", "shop", clusters=[{"name": "eu", "project": "kdeclare.yaml", "env": "lab"}]
    )
    return kdeclare


@pytest.mark.slow
@pytest.mark.parametrize("restriction", RESTRICTIONS)
def test_commands_work_without_what_they_do_not_need(shop: CommandLine, restriction: str) -> None:
    shop.cluster.restrictions = RESTRICTIONS[restriction]
    for command in COMMANDS:
        quiet = ("--quiet",) if command[0] in ("plan", "apply", "fleet") else ()
        ran = shop(*command, *quiet)
        text = " ".join((ran.out + ran.err).split())
        code, part = EXPECTED.get((restriction, command), (OK, ""))
        assert (ran.code, part in text) == (code, True), (command, ran)
        assert "Internal error" not in text
        assert "Traceback" not in text
        assert CHANGED_ELSEWHERE not in text, "kdeclare is the only client"
        if not part:
            assert "warning:" not in ran.out + ran.err, (command, ran)
        if command == AGAIN and code == OK:
            assert "No changes." in ran.out
    expected_topics = (
        {"orders", "plain"} if restriction == "replication factor fixed" else {"orders", "plain", "new"}
    )
    assert shop.topics == expected_topics
    assert len(shop.cluster.topics()["plain"].partitions) == 2


UNAVAILABLE_KINDS = [
    ("Acl", "ACLs", {"principal": "User:a", "produce": ["orders"]}),
    ("ClientQuota", "client quotas", {"entity": {"user": "a"}, "limits": {"producer_byte_rate": 5}}),
    ("ScramUser", "SCRAM credentials", {"mechanisms": {"SCRAM-SHA-512": {"password": "${env.P}"}}}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "objects", "spec"), UNAVAILABLE_KINDS)
def test_declared_kind_that_brokers_do_not_support_is_blocked_alone(
    shop: CommandLine, kind: str, objects: str, spec: dict[str, object]
) -> None:
    shop.monkeypatch.setenv("P", "secret")
    shop.write("manifests/other.yaml", kind, "other", **spec)
    assert shop("apply", "--adopt", "--yes").code == OK
    shop.cluster.restrictions = MANAGED
    (shop.folder / "manifests" / "plain.yaml").unlink()
    for command in (AGAIN, ("apply", "--yes")):
        ran = shop(*command)
        assert ran.code == BLOCKED, ran
        assert f"{kind}/other is left unchanged: the brokers do not support managing {objects}." in " ".join(
            ran.out.split()
        )
    ran = shop(*AUDIT)
    assert (ran.code, f"unreachable  eu  {kind}/other" in ran.out) == (ERROR, True), ran
    assert "Topic/orders" not in ran.out
    (shop.folder / "manifests" / "other.yaml").unlink()
    ran = shop(*AGAIN)
    assert (ran.code, "and stays owned" in ran.out) == (OK, True), ran
    ran = shop("apply", "--yes", "--forget", f"{kind}/other")
    assert ran.code == OK, ran
    assert f"{kind}/other" not in shop(*AGAIN).out


def test_declared_broker_config_that_is_hidden_is_blocked_alone(shop: CommandLine) -> None:
    shop.write("manifests/broker.yaml", "BrokerConfig", "1", configs={"log.cleaner.threads": "2"})
    shop.cluster.restrictions = RESTRICTIONS["broker configs denied"]
    ran = shop(*APPLY)
    assert ran.code == BLOCKED, ran
    assert "BrokerConfig/1 is left unchanged: kdeclare cannot compare its configs" in " ".join(
        ran.out.split()
    )
    assert "new" in shop.topics


def test_hidden_config_is_set_again_only_if_the_manifest_changes(shop: CommandLine) -> None:
    shop.cluster.restrictions = RESTRICTIONS["config hidden"]
    assert shop(*APPLY).code == OK
    ran = shop(*AGAIN)
    assert "kdeclare assumes that retention.ms did not change since the last apply." in " ".join(
        ran.out.split()
    )
    assert shop(*AUDIT).code == OK
    shop.topic("orders", partitions=2, configs={"cleanup.policy": "compact", "retention.ms": "2000"})
    assert "retention.ms  SET" in shop(*AGAIN).out
    assert "retention.ms" in shop(*AUDIT).out
    assert shop("apply", "--yes").code == OK
    assert "No changes." in shop(*AGAIN).out


@pytest.mark.parametrize("error", [UNSUPPORTED, DENIED])
def test_audit_without_reassignments_does_not_judge_replicas_that_may_be_moving(
    shop: CommandLine, error: str
) -> None:
    assert shop(*APPLY).code == OK
    shop.cluster.move_ticks = 1000
    target = {TopicPartition("new", 0): (3, 2)}
    shop.cluster.reassign(target, allow_replication_factor_change=True)
    shop.cluster.restrictions = Restrictions({"moves": error})
    ran = shop(*AUDIT)
    text = " ".join(ran.out.split())
    assert (ran.code, "Topic/new" in text) == (ERROR, True), ran
    assert "cannot determine whether a reassignment is changing the replicas" in text
    assert "Topic/orders" not in text
