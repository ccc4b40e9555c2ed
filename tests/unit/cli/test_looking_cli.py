"""``topic list``, ``topic describe`` and ``config describe`` on the command line."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing.partitions import PartitionState
from tests.unit.cli.command_line import CommandLine

LONG = "payments.captured.by-country-and-currency.europe.with-a-very-long-name.v2"


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """A cluster with topics, one of which is under-replicated."""
    kdeclare.cluster.create_topics(
        [
            NewTopic("orders", None, None, {0: (1, 2), 1: (2, 3)}, {"retention.ms": "1000"}),
            NewTopic(LONG, 1, 1, None, {}),
        ]
    )
    kdeclare.cluster.tick_on_poll = False  # advancing time would repair it
    kdeclare.cluster.set_partition(TopicPartition("orders", 1), PartitionState((2, 3), (2,), 2))
    return kdeclare


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def run_on_terminal(k: CommandLine, *arguments: str) -> str:
    """Return the output of a command for a terminal of 60 columns."""
    screen = Terminal()
    with k.monkeypatch.context() as patch:
        patch.setenv("COLUMNS", "60")
        patch.setattr(sys, "stdout", screen)
        assert k(*arguments).code == 0
    return screen.getvalue()


def test_topic_list_shows_health_and_configs(shop: CommandLine) -> None:
    ran = shop("topic", "list")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("2 topics with 3 partitions on lab:9092: 1 under-replicated.\n")
    assert f"{LONG}           1         1  ok\n" in ran.out
    assert "retention.ms=1000" not in ran.out
    assert "1 under-replicated  retention.ms=1000\n" in shop("topic", "list", "--configs").out


def test_topic_list_names_prints_one_per_line(shop: CommandLine) -> None:
    assert shop("topic", "list", "--format", "names").out == f"orders\n{LONG}\n"
    assert shop("topic", "list", "--topic", "x.*", "--format", "names").out == ""


def test_topic_list_combines_arguments_and_options(shop: CommandLine) -> None:
    for line in (
        ["orders", "--topic", f"{LONG},orders"],
        ["--topic", f"orders, {LONG}"],
        ["--topic", "orders", "p.*"],
    ):
        assert {*shop("topic", "list", "--format", "names", *line).out.split()} == {"orders", LONG}


@pytest.mark.parametrize("command", ["list", "describe"])
def test_topic_commands_suggest_name_for_unknown_topic(shop: CommandLine, command: str) -> None:
    ran = shop("topic", command, "ordres")
    assert (ran.code, ran.out) == (1, "")
    assert "There is no topic 'ordres'." in ran.err
    assert "Did you mean 'orders'?" in ran.err
    assert shop("topic", command, "ordres", "--if-exists").code == 0
    problem = json.loads(shop("topic", command, "ordres", "--format", "json").out)
    assert [d["code"] for d in problem["diagnostics"]] == ["no-such-topic"]


def test_topic_list_explains_malformed_pattern(shop: CommandLine) -> None:
    ran = shop("topic", "list", "*")
    assert ran.code == 64
    assert "To match all names that start with x, write 'x.*'" in ran.err


def test_topic_describe_shows_partitions_and_configs(shop: CommandLine) -> None:
    ran = shop("topic", "describe", "orders", "--sizes")
    assert (ran.code, ran.err) == (0, "")
    assert "orders: 2 partitions, replication factor 2\n" in ran.out
    assert "  retention.ms         1000 (1 s)  set on the topic" in ran.out
    assert "          1       2  2,3       2     0 B  under-replicated, at min ISR\n" in ran.out
    assert LONG not in ran.out


@pytest.mark.parametrize(
    ("flag", "count"),
    [
        ("--under-replicated-partitions", 1),
        ("--under-min-isr-partitions", 0),
        ("--at-min-isr-partitions", 2),
        ("--unavailable-partitions", 0),
        ("--not-preferred-leader", 0),
    ],
)
def test_topic_describe_filters_partitions(shop: CommandLine, flag: str, count: int) -> None:
    document = json.loads(shop("topic", "describe", flag, "--format", "json").out)
    assert sum(len(topic["partitions"]) for topic in document["topics"]) == count
    assert len(document["only"]) == 1
    assert shop("topic", "describe", flag).out.startswith(f"{count or 'None'} of 3 partitions in 2 topics ")


def test_topic_describe_filters_topics_with_overrides(shop: CommandLine) -> None:
    document = json.loads(shop("topic", "describe", "--topics-with-overrides", "--format", "json").out)
    assert [topic["name"] for topic in document["topics"]] == ["orders"]


def test_topic_output_fits_terminal_width(shop: CommandLine) -> None:
    for line in (["topic", "list"], ["topic", "describe", "--at-min-isr-partitions"]):
        screen = run_on_terminal(shop, *line, "--no-color")
        rows = [row for row in screen.splitlines() if not row.endswith(".")]
        assert max(map(len, rows)) <= 60
        assert LONG not in screen
        assert "payments…" in screen or "payments.c" in screen
    assert LONG in shop("topic", "list").out


def test_topic_list_uses_colors_on_terminals_only(shop: CommandLine) -> None:
    assert "\x1b[33m1 under-replica…\x1b[0m" in run_on_terminal(shop, "topic", "list")
    assert "\x1b" not in shop("topic", "list").out


def test_topic_list_warns_about_unreadable_moves(shop: CommandLine) -> None:
    shop.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "No."), method="moves", nth=None)
    ran = shop("topic", "list")
    assert ran.code == 0
    assert "warning: Cannot read replica moves" in ran.err
    assert "Grant kdeclare the Describe permission on the cluster" in ran.err
    document = json.loads(shop("topic", "list", "--format", "json").out)
    assert [d["code"] for d in document["diagnostics"]] == ["moves-unknown"]
    shop.cluster.faults.fail(
        Fault("TOPIC_AUTHORIZATION_FAILED", "No."), method="configs", nth=None, item="TOPIC/orders"
    )
    ran = shop("topic", "describe")
    assert ran.code == 0
    assert "configs: ? (not readable)" in ran.out
    assert "warning: Cannot read configs" in ran.err
    ran = shop("topic", "describe", "--under-min-isr-partitions")
    assert (ran.code, ran.out) == (1, "")
    assert "error: Cannot read configs" in ran.err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("topic list --topic=", "'--topic': The value is empty."),
        ("topic list --topic orders,,x", "--topic: a name is empty."),
        ("topic describe --format names", "--format"),
        ("config describe", "--entity-type: specify topics, brokers, groups, client metrics, users"),
        ("config describe --all", "--entity-type: specify topics, brokers, groups, client metrics, users"),
        ("config describe --entity-type broker-loggers", "for broker-loggers, use Kafka's kafka-configs.sh"),
        ("config describe --entity-type topic", "'topic' is not an entity type"),
        ("config describe --entity-type topics --entity-default", "topics have no default entity."),
        ("config describe --entity-type topics --broker 1", "use only one of these options in a command."),
        ("config describe --topic orders --broker-defaults", "use only one of these options in a command."),
        (
            "config describe --topic orders --entity-type brokers",
            "use only one of these options in a command.",
        ),
        ("config describe --broker one", "'one' is not a broker id"),
        ("config describe --topic=", "The value is empty."),
    ],
)
def test_read_commands_reject_wrong_usage(shop: CommandLine, line: str, said: str) -> None:
    ran = shop(*line.split())
    assert (ran.code, ran.out) == (64, "")
    assert said in ran.err.replace("Invalid value for ", "")


def test_config_describe_shows_topic_configs(shop: CommandLine) -> None:
    ran = shop("config", "describe", "--topic", "orders")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Topic orders: 1 key set\n")
    assert "retention.ms  1000 (1 s)  set on the topic  DYNAMIC_TOPIC_CONFIG\n" in ran.out
    assert shop("config", "describe", "--entity-type", "topics", "--entity-name", "orders").out == ran.out


def test_config_describe_shows_broker_configs(shop: CommandLine) -> None:
    shop.cluster.set_overrides(ConfigResource(ConfigScope.BROKER, "1"), {"log.cleaner.threads": "2"})
    both = shop("config", "describe", "--broker", "01", "--broker-defaults").out
    line = "config describe --entity-type brokers --entity-name 1 --entity-default"
    assert both == shop(*line.split()).out
    assert "Broker 1: 1 key set\n" in both
    assert "All brokers (cluster-wide default): 1 key set\n" in both
    document = json.loads(shop("config", "describe", "--broker", "1", "--all", "--format", "json").out)
    (broker,) = document["resources"]
    threads = next(c for c in broker["configs"] if c["key"] == "log.cleaner.threads")
    assert (threads["value"], threads["source"], threads["beneath"]) == ("2", "DYNAMIC_BROKER_CONFIG", "1")


def test_config_describe_reports_unknown_or_fenced_broker(shop: CommandLine) -> None:
    ran = shop("config", "describe", "--broker", "9")
    assert (ran.code, ran.out) == (1, "")
    assert "Broker 9 is not registered in the cluster." in ran.err
    shop.cluster.fence(3)
    ran = shop("config", "describe", "--entity-type", "brokers")
    assert ran.code == 0
    assert "warning: Broker is not available" in ran.err
    assert "Broker 3" not in ran.out
    assert shop("config", "describe", "--broker", "3").code == 1


@pytest.mark.slow
def test_topic_list_imports_only_what_it_needs(tmp_path: Path) -> None:
    unwanted = (
        "rich",
        "networkx",
        "deepdiff",
        "cel_expr_python",
        "pyspark",
        "kdeclare.engine.planning.build",
        "kdeclare.providers.kafka.provider",
        "kdeclare.providers.connect",
    )
    code = (
        "import sys; from kdeclare.cli.main import main;"
        "assert main(['topic', 'list', '--bootstrap-server', '127.0.0.1:1']) == 1;"
        f"print([m for m in {unwanted} if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stdout == "[]\n", ran.stderr
