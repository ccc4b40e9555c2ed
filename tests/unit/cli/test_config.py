"""`kdeclare config alter` on an in-memory cluster."""

import json

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.consumer_group.group import GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigQuery, NewTopic
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_golden


def create_topics(kdeclare: CommandLine, *names: str) -> None:
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in names])


def read_overrides(kdeclare: CommandLine, scope: str, name: str) -> dict[str, str | None]:
    resource = ConfigResource(ConfigScope(scope), name)
    found = kdeclare.cluster.configs([ConfigQuery(resource, overrides=True)])
    return {key: entry.value for key, entry in found[resource].items()}


def test_config_alter_applies_all_changes_of_topic_at_once(kdeclare: CommandLine) -> None:
    create_topics(kdeclare, "t")
    kdeclare("config", "alter", "--topic", "t", "--add-config", "max.message.bytes=5", "--yes")
    options = ("--add-config", "retention.ms=7,min.insync.replicas=1", "--delete-config", "max.message.bytes")
    ran = kdeclare(
        "config", "alter", "--entity-type", "topics", "--entity-name", "t", *options, answer="yes\n"
    )
    assert ran.code == 0
    assert read_overrides(kdeclare, "TOPIC", "t") == {"retention.ms": "7", "min.insync.replicas": "1"}
    assert kdeclare("rollback", "--yes").code == 0
    assert read_overrides(kdeclare, "TOPIC", "t") == {"max.message.bytes": "5"}


def test_config_alter_sets_appends_and_subtracts_lists(kdeclare: CommandLine) -> None:
    create_topics(kdeclare, "t")
    kdeclare("config", "alter", "--topic", "t", "--append-config", "cleanup.policy=compact", "--yes")
    assert read_overrides(kdeclare, "TOPIC", "t") == {"cleanup.policy": "delete,compact"}
    kdeclare("config", "alter", "--topic", "t", "--subtract-config", "cleanup.policy=delete", "--yes")
    assert read_overrides(kdeclare, "TOPIC", "t") == {"cleanup.policy": "compact"}
    both = ("--append-config", "cleanup.policy=delete", "--subtract-config", "cleanup.policy=compact")
    assert kdeclare("config", "alter", "--topic", "t", *both, "--yes").code == 0
    assert read_overrides(kdeclare, "TOPIC", "t") == {"cleanup.policy": "delete"}
    kdeclare("config", "alter", "--topic", "t", "--add-config", "cleanup.policy=[compact,delete]", "--yes")
    assert read_overrides(kdeclare, "TOPIC", "t") == {
        "cleanup.policy": "delete,compact"
    }  # existing elements stay


def test_config_alter_changes_groups_and_subscriptions(kdeclare: CommandLine) -> None:
    session = "consumer.session.timeout.ms"
    assert (
        kdeclare("config", "alter", "--group", "a,b", "--add-config", f"{session}=50000", "--yes").code == 0
    )
    options = ("--entity-type", "groups", "--entity-name", "other")
    assert kdeclare("config", "alter", *options, "--add-config", f"{session}=60000", "--yes").code == 0
    assert read_overrides(kdeclare, "GROUP", "a,b") == {session: "50000"}
    assert read_overrides(kdeclare, "GROUP", "other") == {session: "60000"}
    metrics = ("--client-metrics", "m", "--add-config", "metrics=[org.a.,org.b.],interval.ms=1000")
    assert kdeclare("config", "alter", *metrics, "--yes").code == 0
    assert read_overrides(kdeclare, "CLIENT_METRICS", "m") == {
        "metrics": "org.a.,org.b.",
        "interval.ms": "1000",
    }

    shown = kdeclare("config", "describe", "--entity-type", "groups").out
    assert "Group a,b: 1 key set" in shown
    assert "set on the group" in shown
    assert "Group other" in shown
    shown = kdeclare("config", "describe", "--client-metrics", "m", "--format", "json").out
    (item,) = json.loads(shown)["resources"]
    assert (item["entity_type"], item["entity_name"]) == ("client-metrics", "m")
    assert kdeclare("rollback", "--yes").code == 0
    assert read_overrides(kdeclare, "CLIENT_METRICS", "m") == {}


def test_config_alter_rejects_patches_of_subscriptions(kdeclare: CommandLine) -> None:
    ran = kdeclare("config", "alter", "--client-metrics", "m", "--append-config", "metrics=org.a.", "--yes")
    assert ran.code == 1
    assert "'metrics' is replaced as a whole, so 'append' and 'subtract' are not supported." in ran.err
    assert kdeclare.cluster.requests("alter_configs") == []


def test_config_describe_warns_of_groups_that_are_not_visible(kdeclare: CommandLine) -> None:
    session = "consumer.session.timeout.ms"
    for name in ("a", "b"):
        kdeclare.cluster.set_overrides(ConfigResource(ConfigScope.GROUP, name), {session: "50000"})
    refused = Fault("GROUP_AUTHORIZATION_FAILED", "")
    kdeclare.cluster.faults.fail(refused, method="configs", item="GROUP/a", nth=None)
    ran = kdeclare("config", "describe", "--entity-type", "groups")
    assert ran.code == 0
    assert "Group b: 1 key set" in ran.out
    assert "Group a" not in ran.out
    assert (
        "The brokers refuse to describe the configs of group a: no reason given (GROUP_AUTHORIZATION_FAILED)."
        in ran.err
    )


def test_config_alter_append_rejects_non_list_key(kdeclare: CommandLine) -> None:
    create_topics(kdeclare, "t")
    ran = kdeclare("config", "alter", "--topic", "t", "--append-config", "retention.ms=1", "--yes")
    assert ran.code == 1
    assert "has type LONG, not LIST" in ran.err


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--broker", "1"), "1"),
        (("--entity-type", "brokers", "--entity-name", "1"), "1"),
        (("--broker-defaults",), ""),
        (("--entity-type", "brokers", "--entity-default"), ""),
    ],
)
def test_config_alter_changes_brokers_and_broker_default(
    kdeclare: CommandLine, options: tuple[str, ...], name: str
) -> None:
    before = read_overrides(kdeclare, "BROKER", name)
    assert kdeclare("config", "alter", *options, "--add-config", "log.cleaner.threads=2", "--yes").code == 0
    assert read_overrides(kdeclare, "BROKER", name) == {**before, "log.cleaner.threads": "2"}
    assert kdeclare("config", "alter", *options, "--delete-config", "log.cleaner.threads", "--yes").code == 0
    assert read_overrides(kdeclare, "BROKER", name) == before


def test_config_alter_reports_each_topic_separately(kdeclare: CommandLine) -> None:
    create_topics(kdeclare, "a", "b")
    options = ("--topic", "a,b,gone", "--add-config", "retention.ms=7", "--yes", "--format", "json")
    ran = kdeclare("config", "alter", *options)
    assert ran.code == 5
    found = {item["resource"]: item["result"] for item in json.loads(ran.out)["results"]}
    assert found == {"Topic/a": "altered", "Topic/b": "altered", "Topic/gone": "failed"}


def test_config_alter_reports_unknown_broker(kdeclare: CommandLine) -> None:
    ran = kdeclare("config", "alter", "--broker", "1,9", "--add-config", "log.cleaner.threads=2", "--yes")
    assert ran.code == 5
    assert "Broker 9 is not registered in the cluster" in ran.err
    assert read_overrides(kdeclare, "BROKER", "1") == {"log.cleaner.threads": "2"}


def test_config_alter_resolves_references_and_hides_secrets(
    kdeclare: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE_PASSWORD", "s3cret-by-reference")
    key = "listener.name.internal.ssl.keystore.password"
    options = ("--add-config", f"{key}=${{env.STORE_PASSWORD}}")
    ran = kdeclare("config", "alter", "--broker", "1", *options, "--yes", "--format", "json")
    assert ran.code == 0
    assert read_overrides(kdeclare, "BROKER", "1") == {key: None}  # sensitive: unknown, not unset
    everything = [p.read_text() for p in (kdeclare.folder / "state").rglob("*") if p.is_file()]
    assert "s3cret" not in "".join([*everything, ran.out, ran.err])


def test_config_alter_reports_undefined_reference(kdeclare: CommandLine) -> None:
    create_topics(kdeclare, "t")
    ran = kdeclare("config", "alter", "--topic", "t", "--add-config", "retention.ms=${env.NO_SUCH}", "--yes")
    assert ran.code == 1
    assert "The environment variable 'NO_SUCH' is not set." in ran.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "specify topics, brokers, groups, client metrics, users, client ids or IP addresses"),
        (("--entity-type", "topics"), "specify a resource"),
        (("--topic", "t"), "specify a change"),
        (("--topic", "t", "--broker", "1"), "use only one of these options in a command"),
        (
            ("--entity-type", "broker-loggers", "--entity-name", "1"),
            "for broker-loggers, use Kafka's kafka-configs.sh",
        ),
        (("--entity-type", "topcs", "--entity-name", "u"), "is not an entity type"),
        (
            ("--entity-name", "t"),
            "specify topics, brokers, groups, client metrics, users, client ids or IP addresses",
        ),
        (("--entity-type", "topics", "--entity-default"), "topics have no default entity"),
        (("--group", "g", "--entity-default"), "groups have no default entity"),
        (("--group", "g", "--client-metrics", "m"), "use only one of these options in a command"),
        (("--group", ""), "The value is empty."),
        (("--broker", "one"), "is not a broker id"),
    ],
)
def test_config_alter_rejects_wrong_usage(
    kdeclare: CommandLine, arguments: tuple[str, ...], said: str
) -> None:
    change = () if "specify a change" in said else ("--add-config", "retention.ms=1")
    ran = kdeclare("config", "alter", *arguments, *change, "--yes")
    assert ran.code == 64
    assert said in " ".join(ran.err.split())


def test_config_of_another_group_type_is_warned_about(kdeclare: CommandLine) -> None:
    kdeclare.cluster.add_group("queue", GroupType.SHARE)
    configs = {"consumer.session.timeout.ms": 50000, "streams.num.standby.replicas": 1}
    kdeclare.write("manifests/g.yaml", "GroupConfig", "queue", configs=configs)
    ran = kdeclare("plan")
    assert ran.code == 0
    check_golden("plan-group-type", ran.out)
    ran = kdeclare("config", "alter", "--group", "queue", "--add-config", "share.isolation.level=x", "--yes")
    assert "type of the group" not in ran.out + ran.err
    timeout = "consumer.session.timeout.ms=50000"
    ran = kdeclare("config", "alter", "--group", "queue", "--add-config", timeout, "--yes")
    assert (ran.code, "because group queue is a share group" in ran.out) == (0, True), ran
