"""Completion as data: the text before the cursor, and the candidates."""

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.cli.interactive.completer import complete_line
from kdeclare.cli.interactive.grammar import Command, Parameter, build_grammar
from kdeclare.cli.interactive.words import quote_word
from kdeclare.core.parts import Connections
from kdeclare.core.resources.manifest_capabilities import (
    list_names,
)
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.consumer_group.group import GroupType
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster

T = TypeVar("T")


def cluster() -> MemoryCluster:
    """Three brokers, three topics, a group with a config, and a client metrics subscription."""
    made = MemoryCluster({1: None, 2: None, 12: None})
    configs = {"retention.ms": "1000", "cleanup.policy": "compact"}
    topics = {"orders": configs, "orders.dlq": {}, "payments": {}}
    made.create_topics([NewTopic(name, 1, 1, None, own) for name, own in topics.items()])
    made.set_overrides(
        ConfigResource(ConfigScope.GROUP, "checkout"), {"consumer.session.timeout.ms": "50000"}
    )
    made.set_overrides(ConfigResource(ConfigScope.CLIENT_METRICS, "producers"), {"metrics": "*"})
    made.add_group("billing")
    made.add_group("queue", GroupType.SHARE)
    return made


class KnownNames:
    """Names from the cluster and from a project."""

    connections = Connections(KafkaConnection(cluster()))

    def live(self, kind: str) -> tuple[str, ...]:
        return tuple(list_names(kind, self.connections))

    def ask(self, key: Hashable, question: Callable[[Connections], T], nothing: T) -> T:
        return question(self.connections)

    def declared(self) -> tuple[str, ...]:
        return ("BrokerConfig/2", "Topic/new", "Topic/orders")

    def runs(self) -> tuple[str, ...]:
        return ("20260102T000000Z-b", "20260101T000000Z-a")

    def environments(self) -> tuple[str, ...]:
        return ("lab", "live")


def make_option(name: str, *, is_flag: bool = False, repeats: bool = False, metavar: str = "") -> Parameter:
    return Parameter(name.replace("-", "_"), (f"--{name}",), metavar, is_flag=is_flag, is_repeatable=repeats)


CONFIG_OPTIONS = tuple(
    make_option(name, repeats=name == "config")
    for name in ("config", "add-config", "append-config", "delete-config", "subtract-config")
)
TOPIC = Command(
    "alter",
    "",
    (make_option("topic"), *CONFIG_OPTIONS, make_option("yes", is_flag=True)),
    (Parameter("names", is_repeatable=True),),
)
CONFIG = Command(
    "alter",
    "",
    (
        make_option("entity-type"),
        make_option("entity-name"),
        make_option("broker"),
        make_option("topic"),
        make_option("group"),
        make_option("client-metrics"),
        *CONFIG_OPTIONS,
    ),
)
GROUP = Command(
    "delete", "", (make_option("group", repeats=True),), (Parameter("names", is_repeatable=True),)
)
BY_HAND = Command(
    "kdeclare",
    commands={
        "topic": Command("topic", "Topics by hand", commands={"alter": TOPIC, "list": Command("list")}),
        "config": Command("config", "Configs by hand", commands={"alter": CONFIG}),
        "group": Command("group", "Groups by hand", commands={"delete": GROUP}),
    },
)
"""The option names that this test relies on."""


def list_candidates(line: str, root: Command | None = None) -> list[str]:
    """Return the candidates for the word at the cursor."""
    return [candidate.text for candidate in complete_line(line, root or build_grammar(), KnownNames())[1]]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", {"plan", "apply", "help", "exit", "quit", "sandbox"}),
        ("pl", {"plan"}),
        ("kdeclare pl", {"plan"}),
        ("sandbox st", {"start", "stop", "status"}),
        ("help sandbox st", {"start", "stop", "status"}),
        ("plan --allow", {"--allow-deletes"}),
        ("plan --format ", {"text", "json", "markdown", "sarif"}),
        ("plan --format=j", {"--format=json"}),
        ("plan --env ", {"lab", "live"}),
        ("plan --target ", {"Topic/", "BrokerConfig/", "Reassignment/"}),
        ("plan --target Topic/o", {"Topic/orders", "Topic/orders.dlq"}),
        ("plan --target=Topic/n", {"--target=Topic/new"}),
        (
            "plan --target BrokerConfig/",
            {"BrokerConfig/2", "BrokerConfig/cluster-default", "BrokerConfig/12"},
        ),
        ("rollback ", {"20260102T000000Z-b"}),
        ("history ", {"diff", "20260101T000000Z-a"}),
        ("history diff ", {"20260101T000000Z-a"}),
        ("reassign --broker-list 1,", {"1,2", "1,12"}),
        ("usage ord", {"orders", "orders.dlq"}),
        ("schema --kind T", {"Topic"}),
    ],
)
def test_completion_offers_commands_options_and_values(line: str, expected: set[str]) -> None:
    assert expected <= set(list_candidates(line))


@pytest.mark.parametrize(
    "line",
    ["bogus ", "plan --reason ", "sandbox bogus ", "exit ", "help plan --", "shel", "plan -- --al"],
)
def test_completion_offers_nothing_for_unknown_values(line: str) -> None:
    assert list_candidates(line) == []


def test_completion_offers_option_once_unless_repeatable() -> None:
    assert "--env" not in list_candidates("plan --env lab --")
    assert "--target" in list_candidates("plan --target Topic/orders --")
    assert "--yes" not in list_candidates("topic alter --yes --", BY_HAND)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("topic a", ["alter"]),
        ("topic alter ", ["orders", "orders.dlq", "payments"]),
        ("topic alter orders o", ["orders.dlq"]),
        ("topic alter --topic p", ["payments"]),
        ("topic alter --topic=p", ["--topic=payments"]),
        ("topic alter --config compression.type=z", ["compression.type=zstd"]),
        ("topic alter --config preall", ["preallocate="]),
        ("topic alter --config preallocate=", ["preallocate=true", "preallocate=false"]),
        ("topic alter --add-config cleanup.policy=[", ["cleanup.policy=[delete", "cleanup.policy=[compact"]),
        ("topic alter --add-config cleanup.policy=[delete,", ["cleanup.policy=[delete,compact"]),
        ("topic alter --append-config c", ["cleanup.policy="]),
        ("topic alter orders --delete-config ", ["cleanup.policy", "retention.ms"]),
        ("topic alter orders --delete-config retention.ms,", ["retention.ms,cleanup.policy"]),
        ("topic alter payments --delete-config retention.b", ["retention.bytes"]),
        ("topic alter orders --add-config retention.ms=", ["retention.ms=1000", "retention.ms=604800000"]),
        (
            "config alter --entity-type ",
            ["topics", "brokers", "groups", "client-metrics", "users", "clients", "ips"],
        ),
        ("config alter --group ", ["billing", "checkout", "queue"]),
        ("config alter --entity-type groups --entity-name ", ["billing", "checkout", "queue"]),
        ("config alter --client-metrics p", ["producers"]),
        ("config alter --group checkout --add-config share.iso", ["share.isolation.level="]),
        (
            "config alter --group checkout --add-config share.isolation.level=read_c",
            ["share.isolation.level=read_committed"],
        ),
        ("config alter --group checkout --delete-config ", ["consumer.session.timeout.ms"]),
        ("config alter --client-metrics producers --append-config ", []),
        ("group delete ", ["billing", "queue"]),
        ("group delete billing ", ["queue"]),
        ("group delete --group q", ["queue"]),
        ("config alter --entity-name o", ["orders", "orders.dlq"]),
        ("config alter --entity-type topics --entity-name p", ["payments"]),
        ("config alter --entity-type brokers --entity-name 1", ["1", "12"]),
        ("config alter --broker 2", ["2"]),
        ("config alter --broker 1 --add-config log.cleaner.th", ["log.cleaner.threads="]),
        ("config alter --broker 1 --add-config ssl.client.auth=n", ["ssl.client.auth=none"]),
        ("config alter --broker 1 --add-config ssl.key.password=", []),
        ("config alter --broker 1 --add-config broker.id", []),
    ],
)
def test_completion_offers_names_keys_and_values(line: str, expected: list[str]) -> None:
    assert list_candidates(line, BY_HAND) == expected


def test_completion_of_key_shows_current_value() -> None:
    _, found = complete_line("topic alter orders --add-config retention.ms", BY_HAND, KnownNames())
    assert [(c.shown, c.about) for c in found] == [("retention.ms=", "now 1000")]
    _, found = complete_line("topic alter --add-config retention.ms", BY_HAND, KnownNames())
    assert found[0].about == "default 604800000"


def test_completion_of_group_shows_type_and_state() -> None:
    _, found = complete_line("group delete q", BY_HAND, KnownNames())
    assert [(c.shown, c.about) for c in found] == [("queue", "share, Empty")]


def test_completion_offers_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("orders.yaml", ".hidden", "other file.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "overlays").mkdir()
    (tmp_path / "overlays" / "lab.yaml").touch()
    assert list_candidates("plan ") == ["orders.yaml", "other file.yaml", "overlays/"]
    assert list_candidates("plan .h") == [".hidden"]
    assert list_candidates("plan overlays/") == ["overlays/lab.yaml"]
    assert list_candidates("plan --out ov") == ["overlays/"]
    assert list_candidates(f"plan {tmp_path}/ord") == [f"{tmp_path}/orders.yaml"]
    assert list_candidates("plan no/such/folder/") == []
    assert quote_word(list_candidates("plan 'other f")[0]) == "'other file.yaml'"


def test_completion_replaces_word_at_cursor() -> None:
    line = "plan --target 'Topic/o"
    word, _ = complete_line(line, build_grammar(), KnownNames())
    assert (line[word.start :], word.quote) == ("'Topic/o", "'")
    word, _ = complete_line("plan ", build_grammar(), KnownNames())
    assert word.start == len("plan ")


@given(
    st.text(alphabet="abcopst-=,[]/ '\"\\", max_size=30),
    st.sampled_from(["", "topic alter ", "config alter "]),
)
def test_completion_candidates_start_with_word(text: str, lead: str) -> None:
    word, found = complete_line(lead + text, BY_HAND, KnownNames())
    assert all(candidate.text.startswith(word.text) for candidate in found)


def test_grammar_contains_every_command() -> None:
    root = build_grammar()
    assert set(root.commands["sandbox"].commands) == {"start", "stop", "status", "reset"}
    assert root.commands["plan"].option("-o") == root.commands["plan"].option("--out")
    assert all(command.about for command in root.commands.values())
