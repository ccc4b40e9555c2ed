"""Settings of connectors: sensitive keys, masks, topics, users, and messages without credentials."""

import pytest

from kdeclare.core.operations.footprint import Access, Prefix
from kdeclare.core.patterns import Pattern
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.providers.connect.client.connectors_port import LiveConnector, TaskStatus
from kdeclare.providers.connect.connector.settings import (
    find_key,
    find_path,
    is_hidden,
    is_masked,
    is_public,
    is_sensitive_setting,
    redact_setting,
)
from kdeclare.providers.connect.connector.status import (
    describe_status,
    find_target_state,
    has_reached,
    list_failures,
    redact_message,
)
from kdeclare.providers.connect.connector.topics import list_override_users, list_topic_entries, list_topics

JAAS = 'org.example.PlainLoginModule required username="joe" {};'


@pytest.mark.parametrize("key", ["connector.class", "tasks.max", "config.file", "config.topics"])
def test_paths_and_keys_correspond(key: str) -> None:
    path = find_path(key)
    assert find_key(path) == key


def test_paths_outside_the_config_have_no_key() -> None:
    assert find_key("state") is None
    assert find_key("tasks") is None


def test_sensitive_keys_are_recognized_by_their_end() -> None:
    sensitive = ("db.password", "aws.secret.access.key", "api-Key", "oauth.token", "sasl.jaas.config")
    assert all(map(is_sensitive_setting, sensitive))
    assert not any(map(is_sensitive_setting, ("key.converter", "password.file", "topics", "connector.class")))


@pytest.mark.parametrize(
    ("key", "text", "public"),
    [
        ("db.password", "${file:/a:b}", True),
        ("db.password", "${file:/a:b}-suffix", False),
        ("db.password", "", True),
        ("sasl.jaas.config", JAAS.format('password="${file:/a:b}"'), True),
        ("sasl.jaas.config", JAAS.format("password='hunter2'"), False),
        ("sasl.jaas.config", JAAS.format('password="x${file:/a:b}"'), False),
        ("sasl.jaas.config", "no options", False),
    ],
)
def test_placeholders_make_values_public(key: str, text: str, public: bool) -> None:
    assert is_public(key, text) is public
    assert is_hidden(key, text) is not public


def test_masked_values_are_unknown() -> None:
    assert is_masked("****")
    assert is_masked("••••••")
    assert not is_masked("")
    assert not is_masked("*a*")
    assert redact_setting("user", "****") == "(sensitive)"


def test_password_keys_of_the_class_are_hidden() -> None:
    assert redact_setting("pin", "1234") == "1234"
    assert redact_setting("pin", "1234", {"pin"}) == "(sensitive)"
    assert redact_setting("pin", "${file:/a:b}", {"pin"}) == "${file:/a:b}"


def test_topics_are_found_in_all_keys() -> None:
    config = {
        "topics": "a, b,,${file:/x:y}",
        "topic": "c",
        "kafka.topic": Secret("d", "${env.D}"),
        "errors.deadletterqueue.topic.name": "e",
        "other.topic": "f",
    }
    assert list_topics(config) == {"a", "b", "c", "e"}


def test_topics_of_a_regex_only_determine_the_order() -> None:
    (entry,) = list_topic_entries({"topics.regex": "orders-.*"})
    assert entry.access is Access.AFTER
    assert isinstance(entry.key, Pattern)
    assert entry.key.matches("orders-eu")


def test_regex_that_only_java_supports_means_all_topics() -> None:
    (entry,) = list_topic_entries({"topics.regex": "(?!internal).*"})
    assert (entry.key, entry.access) == (Prefix(""), Access.AFTER)


def test_users_of_overrides_are_found_in_values_and_secrets() -> None:
    config: dict[str, str | Secret] = {
        "producer.override.sasl.jaas.config": JAAS.format("password='x'"),
        "admin.override.sasl.jaas.config": Secret("Login required username=ann password=x;", "${env.JAAS}"),
        "sasl.jaas.config": "Login required username=other;",
        "consumer.override.sasl.jaas.config": 'Login required username="${file:/a:b}";',
    }
    assert list_override_users(config) == {"joe", "ann"}


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("line 1\n\tat line 2", "line 1"),
        ("jdbc:db://joe:hunter2@db/x refused", "jdbc:db://(sensitive)@db/x refused"),
        ("bad password=hunter2, user=joe", "bad password=(sensitive), user=joe"),
        ('{"api.key": "hunter 2", "a": 1}', '{"api.key": (sensitive), "a": 1}'),
        ("api.key: 'hunter 2' is bad", "api.key: (sensitive) is bad"),
        ("", ""),
    ],
)
def test_messages_are_redacted(message: str, expected: str) -> None:
    assert redact_message(message) == expected


def make_connector(state: str, *tasks: str) -> LiveConnector:
    statuses = tuple(TaskStatus(number, task) for number, task in enumerate(tasks))
    return LiveConnector("a", "sink", {}, state, tasks=statuses)


@pytest.mark.parametrize(
    ("live", "wanted", "reached"),
    [
        (("RUNNING", "RUNNING"), "RUNNING", True),
        (("RUNNING",), "RUNNING", False),
        (("RUNNING", "RUNNING", "UNASSIGNED"), "RUNNING", False),
        (("PAUSED", "RUNNING"), "PAUSED", False),
        (("PAUSED", "PAUSED", "FAILED"), "PAUSED", True),
        (("PAUSED",), "PAUSED", True),
        (("STOPPED", "RUNNING"), "STOPPED", False),
        (("STOPPED",), "STOPPED", True),
        (("UNASSIGNED", "RUNNING"), "RUNNING", False),
    ],
)
def test_state_is_reached_with_all_tasks(live: tuple[str, ...], wanted: str, reached: bool) -> None:
    assert has_reached(make_connector(*live), wanted) is reached


def test_target_state_is_unknown_between_states() -> None:
    assert find_target_state(make_connector("FAILED")) == "RUNNING"
    assert find_target_state(make_connector("PAUSED")) == "PAUSED"
    assert find_target_state(make_connector("UNASSIGNED")) is None
    assert find_target_state(make_connector("")) is None


def test_status_is_described_for_messages() -> None:
    assert describe_status(None) == "it does not exist"
    assert describe_status(make_connector("")) == "it is without a status (tasks: none)"
    live = make_connector("RUNNING", "RUNNING", "FAILED", "RUNNING")
    assert describe_status(live) == "it is RUNNING (tasks: 1 FAILED, 2 RUNNING)"


def test_failures_of_connector_and_tasks_are_listed() -> None:
    tasks = (TaskStatus(0, "RUNNING"), TaskStatus(1, "FAILED", trace="disk full."), TaskStatus(2, "FAILED"))
    live = LiveConnector("a", "sink", {}, "FAILED", trace="no class", tasks=tasks)
    assert list_failures(live) == (
        "the connector failed: no class",
        "task 1 failed: disk full",
        "task 2 failed",
    )
