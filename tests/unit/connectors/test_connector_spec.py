"""Manifests of connectors: problems that need no Connect cluster, secrets, and plain data."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from kdeclare.core.diagnostics import LITERAL_SECRET, Severity
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.secrets.secret_refs import Referenced, Secret
from kdeclare.providers.connect.connector.spec import (
    ConnectorBody,
    ConnectorSpec,
    bind_connector,
    dump_connector,
    parse_connector,
)


def parse(name: str = "orders", /, **spec: Any) -> tuple[ConnectorBody, list[tuple[SpecPath, str]]]:
    """Return the body, and the path and the detail of each problem."""
    model = ConnectorSpec.model_validate({"class": "FileStreamSink", **spec})
    body, problems = parse_connector(name, model)
    return body, [(problem.path, problem.diagnostic.detail) for problem in problems]


def test_names_and_config_are_taken_from_the_spec() -> None:
    body, problems = parse(
        name="orders-sink",
        tasksMax=2,
        config={"topics": "orders", "batch.size": 5, "flag": True, "unset": None},
        needs=["Schema/orders-value"],
    )
    assert problems == []
    assert body.name == "orders-sink"
    assert body.config == {"topics": "orders", "batch.size": "5", "flag": "true"}
    assert list(body.whole_config) == ["connector.class", "tasks.max", "batch.size", "flag", "topics"]
    assert body.needs == (ResourceId("Schema", "orders-value"),)


@pytest.mark.parametrize(
    ("name", "words"),
    [("a/b", "never change"), ("a%2Fb", "never change"), ("..", "never change"), (" a", "white space")],
)
def test_name_that_connect_cannot_address_is_an_error(name: str, words: str) -> None:
    for path, problems in (
        (("name",), parse(name=name)[1]),
        (("metadata", "name"), parse(name)[1]),
    ):
        ((found_path, detail),) = problems
        assert found_path == path
        assert words in detail


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("name", "other", "contradicts spec.name (orders)"),
        ("connector.class", "Other", "contradicts spec.class (FileStreamSink)"),
        ("tasks.max", "3", "belongs to spec.tasksMax"),
    ],
)
def test_key_that_contradicts_a_field_is_an_error(key: str, value: str, words: str) -> None:
    body, problems = parse(config={key: value})
    ((path, detail),) = problems
    assert path == ("config", key)
    assert words in detail
    assert body.config == {}


def test_key_that_repeats_a_field_is_allowed() -> None:
    config = {"name": "orders", "connector.class": "FileStreamSink", "tasks.max": "2"}
    body, problems = parse(tasksMax=2, config=config)
    assert problems == []
    assert body.config == {}


def test_nested_value_is_an_error() -> None:
    _, problems = parse(config={"topics": ["a", "b"]})
    assert problems == [
        (("config", "topics"), "'topics' is a list or a mapping, but Connect accepts only strings.")
    ]


def test_declared_key_cannot_be_ignored() -> None:
    _, problems = parse(config={"a": "1"}, ignore=["b", "a", "tasks.max"])
    assert [path for path, _ in problems] == [("ignore", 1), ("ignore", 2)]


@pytest.mark.parametrize("need", ["orders", "/orders", "Schema/", "Connector/orders"])
def test_bad_need_is_an_error(need: str) -> None:
    body, problems = parse(needs=["Topic/a", need])
    assert [path for path, _ in problems] == [("needs", 1)]
    assert body.needs == (ResourceId("Topic", "a"),)


@pytest.mark.parametrize("spec", [{"state": "FAILED"}, {"state": "running"}, {"tasksMax": "2"}, {"tasks": 1}])
def test_spec_rejects_other_values(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse(**spec)


def test_values_from_outside_are_secrets() -> None:
    body, problems = parse(config={"user": Referenced("joe-from-env", "${env.USER}")})
    assert problems == []
    assert body.config["user"] == Secret("joe-from-env", "${env.USER}")


@pytest.mark.parametrize("key", ["db.password", "aws.secret.access.key", "apiKey", "sasl.jaas.config"])
def test_literal_secret_is_a_warning(key: str) -> None:
    model = ConnectorSpec.model_validate({"class": "S", "config": {key: 'x password="hunter2-hunter2"'}})
    body, (problem,) = parse_connector("orders", model)
    assert isinstance(body.config[key], Secret)
    assert (problem.path, problem.diagnostic.code) == (("config", key), LITERAL_SECRET)
    assert problem.diagnostic.severity is Severity.WARNING
    assert "hunter2" not in problem.diagnostic.detail + repr(body)


def test_placeholders_of_connect_are_not_secret() -> None:
    config = {
        "db.password": "${vault:secret/db:password}",
        "sasl.jaas.config": 'Login required username="joe" password="${file:/etc/secrets:joe}";',
    }
    body, problems = parse(config=config)
    assert problems == []
    assert body.config == config


def test_body_survives_plain_data() -> None:
    body, _ = parse(
        connect="eu",
        tasksMax=2,
        state="PAUSED",
        needs=["Topic/a"],
        ignore=["x"],
        restartFailed=True,
        deleteOffsets=True,
        lifecycle={"preventDestroy": True, "adopt": True},
        config={"a": "1"},
    )
    assert bind_connector(json.loads(json.dumps(dump_connector(body)))) == body
