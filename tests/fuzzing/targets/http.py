"""Answers of Connect workers and of schema registries, and the error responses of both."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress

from kdeclare.core.live.faults import Fault
from kdeclare.providers.connect.client import connector_responses, responses
from kdeclare.providers.schema_registry.client import responses as registry_responses
from tests.fuzzing.mutations import mutate_json
from tests.fuzzing.target import Target

_INVALID = "Invalid value vvv for configuration password: x"
_CONFIG = {"connector.class": "X", "password": "${file:/x:y}", "tasks.max": "1"}

_WORKER_PARSERS: tuple[Callable[[bytes], object], ...] = (
    responses.parse_overrides,
    responses.parse_status,
    responses.parse_validation,
    responses.parse_error_message,
    connector_responses.parse_cluster_info,
    connector_responses.parse_names,
    connector_responses.parse_list,
    lambda body: connector_responses.parse_connector(body, body),
    lambda body: connector_responses.parse_connector(body, None),
    connector_responses.parse_plugins,
    lambda body: connector_responses.parse_validation(body, _CONFIG),
    connector_responses.parse_offsets,
)
_REGISTRY_PARSERS: tuple[Callable[[bytes], object], ...] = (
    registry_responses.parse_names,
    registry_responses.parse_numbers,
    registry_responses.parse_schema,
    registry_responses.parse_schemas,
    registry_responses.parse_registration,
    registry_responses.parse_compatibility,
    registry_responses.parse_level,
    registry_responses.parse_mode,
    registry_responses.parse_subject_versions,
    registry_responses.parse_id,
    registry_responses.parse_product_version,
)


def read_worker_answer(data: bytes) -> None:
    """Read one body as the answer to each request to a worker."""
    _read_with_each(_WORKER_PARSERS, data)


def read_registry_answer(data: bytes) -> None:
    """Read one body as the answer to each request to a registry."""
    _read_with_each(_REGISTRY_PARSERS, data)


def _read_with_each(parsers: Sequence[Callable[[bytes], object]], data: bytes) -> None:
    for parse in parsers:
        with suppress(Fault):
            repr(parse(data))


def make_worker_answers() -> Sequence[bytes]:
    """Return answers in the formats of the REST API and of kdeclare's plugin."""
    certificate = {
        "sha256": "ab",
        "subject": "CN=w",
        "issuer": "CN=ca",
        "not_before": "2026-01-01T00:00:00Z",
        "not_after": "2027-01-01T00:00:00+01:00",
    }
    status: dict[str, object] = {
        "name": "c",
        "connector": {"state": "RUNNING", "worker_id": "w:8083"},
        "type": "source",
    }
    status["tasks"] = [{"id": 0, "state": "FAILED", "worker_id": "w", "trace": "x: y\n at z"}]
    info = {"name": "c", "config": _CONFIG, "tasks": [{"connector": "c", "task": 0}], "type": "source"}
    validation = {
        "name": "X",
        "error_count": 1,
        "groups": [],
        "configs": [
            {
                "definition": {"name": "password", "type": "PASSWORD", "required": True},
                "value": {"name": "password", "value": "v" * 9, "errors": [_INVALID]},
            }
        ],
    }  # fmt: skip
    plugin = {
        "worker_id": "w:8083",
        "leader": True,
        "plugin_version": "0.2",
        "mode": "open",
        "seen": {"offset": 3},
        "applied": {"offset": 3, "at": "2026-01-01T00:00:00Z", "sha256": "ab"},
        "error": {"offset": 2, "at": "2026-01-01T00:00:00Z", "message": "no"},
        "overrides": {"a": "b"},
        "whitelist": ["a"],
        "listeners": [{"name": "REST", "port": 8443, "certificate": certificate}],
    }
    documents = [
        plugin,
        info | status,
        info,
        {"c": {"info": info, "status": status}},
        validation,
        {"valid": False, "errors": {"a": ["b"]}},
        {"version": "4.3.1", "commit": "x", "kafka_cluster_id": "y"},
        [{"class": "X", "type": "source", "version": "1"}],
        {"offsets": [{"partition": {"p": 0}, "offset": {"o": 3}}]},
        {"error_code": 409, "message": "m"},
        ["a", "b"],
    ]
    return [json.dumps(document).encode() for document in documents]


def make_registry_answers() -> Sequence[bytes]:
    """Return answers in the format of a schema registry."""
    schema = {
        "subject": "s",
        "version": 1,
        "id": 3,
        "schemaType": "JSON",
        "schema": '{"type":"object"}',
        "references": [{"name": "n", "subject": "t", "version": 1}],
        "metadata": {"tags": {"a": ["b"]}, "properties": {"c": "d"}, "sensitive": ["c"]},
        "ruleSet": {"domainRules": []},
    }
    documents = [
        schema,
        [schema],
        ["s"],
        [1, 2],
        {"id": 3},
        {"is_compatible": False, "messages": ["m"]},
        {"compatibilityLevel": "FULL"},
        {"mode": "READWRITE"},
        [{"subject": "s", "version": 1}],
        {"scope": {"path": [], "clusters": {"kafka-cluster": "k", "schema-registry-cluster": "r"}}, "id": ""},
        {"version": "8.0.0", "commitId": "x"},
    ]
    return [json.dumps(document).encode() for document in documents]


TARGETS = (
    Target("worker-answer", read_worker_answer, make_worker_answers, mutate_json),
    Target("registry-answer", read_registry_answer, make_registry_answers, mutate_json),
)
