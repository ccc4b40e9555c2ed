"""`RestConnectCluster` with stubs of workers: the requests, failover, and the meaning of error responses."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client import connectors_port as port
from kdeclare.providers.connect.client.connectors_port import (
    ClusterInfo,
    ConfigDefinition,
    ConnectCluster,
    ConnectorOffset,
    LiveConnector,
    PluginClass,
    TargetState,
    TaskStatus,
    find_class,
)
from kdeclare.providers.connect.client.connectors_rest import RestConnectCluster, open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.connect.client.port import (
    BAD_ANSWER,
    LOST,
    NOT_AUTHORIZED,
    NOT_READY,
    UNREACHABLE,
)
from kdeclare.providers.connect.testing import MemoryConnectCluster
from tests.unit.connect.https_stub import Stub, run_http_stub

CONFIG = {"connector.class": "FileStreamSink", "topics": "orders"}
LIST = "/connectors?expand=info&expand=status"
RUNNING = {"state": "RUNNING", "worker_id": "w1:8083", "version": "4.3.1"}
DOWN = "http://127.0.0.1:1"


def build_info(name: str, **config: Any) -> dict[str, Any]:
    return {
        "name": name,
        "config": {"name": name, **CONFIG, **config},
        "tasks": [{"connector": name, "task": 0}],
        "type": "sink",
    }


def build_status(name: str, *tasks: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "connector": RUNNING, "tasks": list(tasks), "type": "sink"}


def build_error(code: int, message: str) -> tuple[int, dict[str, Any]]:
    return code, {"error_code": code, "message": message}


def list_requests(stub: Stub) -> list[tuple[str, str]]:
    return [(one.method, one.path) for one in stub.asked]


def expect_fault(send: Callable[[], object]) -> Fault:
    with pytest.raises(Fault) as caught:
        send()
    return caught.value


@pytest.fixture
def stub() -> Iterator[Stub]:
    with run_http_stub() as running:
        yield running


@pytest.fixture
def second() -> Iterator[Stub]:
    with run_http_stub() as running:
        yield running


@pytest.fixture
def cluster(stub: Stub) -> Iterator[RestConnectCluster]:
    opened = open_rest_cluster(HttpTarget((stub.url,)), 5.0)
    yield opened
    opened.close()
    opened.close()


def test_worker_identifies_its_kafka_cluster(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["GET", "/"] = 200, {"version": "4.3.1", "commit": "ab", "kafka_cluster_id": "k1"}
    assert cluster.identify() == ClusterInfo("4.3.1", "k1", "ab")


def test_list_includes_connectors_without_a_status(stub: Stub, cluster: ConnectCluster) -> None:
    task = {"id": 0, **RUNNING}
    stub.answers["GET", LIST] = 200, {"a": {"info": build_info("a"), "status": build_status("a", task)}}
    stub.answers["GET", "/connectors"] = 200, ["a", "new", "gone", "not/addressable"]
    stub.answers["GET", "/connectors/new"] = 200, build_info("new")
    stub.answers["GET", "/connectors/new/status"] = build_error(404, "No status found for connector new")
    stub.answers["GET", "/connectors/gone"] = build_error(404, "Connector gone not found")
    assert cluster.list_connectors() == {
        "a": LiveConnector(
            "a",
            "sink",
            {"name": "a", **CONFIG},
            "RUNNING",
            "w1:8083",
            tasks=(TaskStatus(0, "RUNNING", "w1:8083"),),
        ),
        "new": LiveConnector("new", "sink", {"name": "new", **CONFIG}),
    }


def test_missing_connector_is_none(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["GET", "/connectors/a"] = build_error(404, "Connector a not found")
    assert cluster.describe_connector("a") is None


@pytest.mark.parametrize("answer", [build_error(404, "HTTP 404 Not Found"), (404, b"<html>not found</html>")])
def test_other_server_does_not_make_connectors_missing(
    stub: Stub, cluster: ConnectCluster, answer: tuple[int, Any]
) -> None:
    stub.answers["GET", "/connectors/a"] = answer
    fault = expect_fault(lambda: cluster.describe_connector("a"))
    assert fault.error == BAD_ANSWER
    assert stub.url in fault.message


def test_names_are_quoted(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["PUT", "/connectors/a%20%3F%C3%BC%23/pause"] = 202, b""
    cluster.set_state("a ?ü#", TargetState.PAUSED)
    assert len(stub.asked) == 1


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a%2Fb"])
def test_unaddressable_names_are_not_sent(stub: Stub, cluster: ConnectCluster, name: str) -> None:
    for send in (
        lambda: cluster.describe_connector(name),
        lambda: cluster.create_connector(name, CONFIG),
        lambda: cluster.delete_connector(name),
    ):
        assert expect_fault(send).error == port.INVALID_CONNECTOR
    assert stub.asked == []


def test_create_sends_name_config_and_initial_state(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["POST", "/connectors"] = 201, build_info("a")
    cluster.create_connector("a", CONFIG, TargetState.STOPPED)
    cluster.create_connector("a", CONFIG)
    bodies = [json.loads(one.body) for one in stub.asked]
    assert bodies[0] == {"name": "a", "config": {**CONFIG, "name": "a"}, "initial_state": "STOPPED"}
    assert bodies[1] == {"name": "a", "config": {**CONFIG, "name": "a"}}


@pytest.mark.parametrize(("status", "is_created"), [(201, True), (200, False)])
def test_replaced_config_tells_whether_it_created_the_connector(
    stub: Stub, cluster: ConnectCluster, status: int, is_created: bool
) -> None:
    stub.answers["PUT", "/connectors/a/config"] = status, build_info("a")
    assert cluster.replace_config("a", CONFIG) is is_created
    assert json.loads(stub.asked[0].body) == {**CONFIG, "name": "a"}


def test_states_restarts_deletions_and_offsets_have_their_requests(
    stub: Stub, cluster: ConnectCluster
) -> None:
    offsets = {"offsets": [{"partition": {"filename": "f"}, "offset": {"position": 7}}]}
    reset = ConnectorOffset({"filename": "f"}, None)
    requests = {
        ("PUT", "/connectors/a/pause"): (202, b""),
        ("PUT", "/connectors/a/stop"): (204, b""),
        ("PUT", "/connectors/a/resume"): (202, b""),
        ("POST", "/connectors/a/restart?includeTasks=true&onlyFailed=false"): (202, build_status("a")),
        ("GET", "/connectors/a/offsets"): (200, offsets),
        ("PATCH", "/connectors/a/offsets"): (200, {"message": "done"}),
        ("DELETE", "/connectors/a/offsets"): (200, {"message": "done"}),
        ("DELETE", "/connectors/a"): (204, b""),
    }
    stub.answers.update(requests)
    cluster.set_state("a", TargetState.PAUSED)
    cluster.set_state("a", TargetState.STOPPED)
    cluster.set_state("a", TargetState.RUNNING)
    cluster.restart_connector("a", include_tasks=True, only_failed=False)
    assert cluster.read_offsets("a") == (ConnectorOffset({"filename": "f"}, {"position": 7}),)
    cluster.alter_offsets("a", (reset,))
    cluster.delete_offsets("a")
    cluster.delete_connector("a")
    assert list_requests(stub) == list(requests)
    altered = json.loads(stub.asked[5].body)
    assert altered == {"offsets": [{"partition": {"filename": "f"}, "offset": None}]}


REBALANCE = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
EXPECTED_REBALANCE = "Request cannot be completed because a rebalance is expected"
FORWARD = "IO Error trying to forward REST request"
TIMEOUT = "Request timed out. The worker is currently reading to the end of the config topic"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "message", "code", "kind"),
    [
        (400, "Connector configuration is invalid", port.INVALID_CONNECTOR, FaultKind.REFUSED),
        (401, "User cannot access the resource.", NOT_AUTHORIZED, FaultKind.REFUSED),
        (403, "Forbidden", NOT_AUTHORIZED, FaultKind.REFUSED),
        (404, "Connector a not found", port.CONNECTOR_MISSING, FaultKind.REFUSED),
        (409, REBALANCE, NOT_READY, FaultKind.RETRIABLE),
        (409, "Connector a already exists", port.CONNECTOR_EXISTS, FaultKind.REFUSED),
        (500, TIMEOUT, port.TIMED_OUT, FaultKind.UNKNOWN),
        (500, "Failed to write to the config topic", port.SERVER_ERROR, FaultKind.UNKNOWN),
        (500, "org.a.B$CException: x.DError: Failed", port.SERVER_ERROR, FaultKind.UNKNOWN),
        (
            500,
            "…tasks haven't stopped completely yet… can be safely retried.",
            NOT_READY,
            FaultKind.RETRIABLE,
        ),
        (500, EXPECTED_REBALANCE, NOT_READY, FaultKind.RETRIABLE),
        (500, f"{FORWARD}: java.net.ConnectException: Connection refused", NOT_READY, FaultKind.RETRIABLE),
        (500, f"{FORWARD}: java.net.SocketException: reset", port.SERVER_ERROR, FaultKind.UNKNOWN),
        (502, "Bad Gateway", LOST, FaultKind.UNKNOWN),
        (503, "Service Unavailable", LOST, FaultKind.UNKNOWN),
    ],
)
def test_error_responses_of_changes_have_codes_and_kinds(
    stub: Stub, cluster: ConnectCluster, status: int, message: str, code: str, kind: FaultKind
) -> None:
    stub.answers["DELETE", "/connectors/a"] = build_error(status, message)
    fault = expect_fault(lambda: cluster.delete_connector("a"))
    assert (fault.error, fault.kind) == (code, kind)
    assert message.rpartition(": ")[2] in fault.message
    assert "org.a" not in fault.message
    assert len(stub.asked) == 1


def test_offsets_of_a_running_connector_have_their_own_code(stub: Stub, cluster: ConnectCluster) -> None:
    message = "Connectors must be in the STOPPED state before their offsets can be modified."
    stub.answers["DELETE", "/connectors/a/offsets"] = build_error(400, message)
    assert expect_fault(lambda: cluster.delete_offsets("a")).error == port.NOT_STOPPED


def test_failed_read_is_retriable(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["GET", "/"] = build_error(500, TIMEOUT)
    fault = expect_fault(cluster.identify)
    assert (fault.error, fault.kind) == (port.TIMED_OUT, FaultKind.RETRIABLE)


@pytest.mark.parametrize("body", [b"<html></html>", b"[]", b'{"version": 4}', b""])
def test_response_of_another_server_is_rejected(stub: Stub, cluster: ConnectCluster, body: bytes) -> None:
    stub.answers["GET", "/"] = 200, body
    assert expect_fault(cluster.identify).error == BAD_ANSWER


def test_change_without_response_is_unknown_and_not_sent_again(stub: Stub, second: Stub) -> None:
    stub.silence_s = 0.0
    cluster = open_rest_cluster(HttpTarget((stub.url, second.url)), 5.0)
    fault = expect_fault(lambda: cluster.delete_connector("a"))
    assert (fault.error, fault.kind) == (LOST, FaultKind.UNKNOWN)
    assert list_requests(stub) == [("DELETE", "/connectors/a")]
    assert second.asked == []


def test_read_without_response_is_sent_to_the_next_worker(stub: Stub, second: Stub) -> None:
    stub.silence_s = 0.0
    second.answers["GET", "/connectors/a/offsets"] = 200, {"offsets": []}
    cluster = open_rest_cluster(HttpTarget((stub.url, second.url)), 5.0)
    assert cluster.read_offsets("a") == ()
    assert (len(stub.asked), len(second.asked)) == (1, 1)
    assert cluster.read_offsets("a") == ()
    assert (len(stub.asked), len(second.asked)) == (1, 2), "the worker that responded is asked first"


def test_validation_without_response_is_not_repeated(stub: Stub, second: Stub) -> None:
    stub.silence_s = 0.0
    cluster = open_rest_cluster(HttpTarget((stub.url, second.url)), 5.0)
    fault = expect_fault(lambda: cluster.validate_config("a", CONFIG))
    assert (fault.error, fault.kind) == (LOST, FaultKind.RETRIABLE)
    assert second.asked == []


def test_change_that_an_unreachable_worker_did_not_get_is_sent_to_the_next(stub: Stub, second: Stub) -> None:
    stub.answers["DELETE", "/connectors/a"] = 204, b""
    cluster = open_rest_cluster(HttpTarget((DOWN, stub.url, second.url)), 5.0)
    cluster.delete_connector("a")
    assert list_requests(stub) == [("DELETE", "/connectors/a")]
    assert second.asked == []


def test_unreachable_cluster_is_refused_with_the_url(stub: Stub) -> None:
    cluster = open_rest_cluster(HttpTarget((DOWN,)), 5.0)
    fault = expect_fault(lambda: cluster.delete_connector("a"))
    assert (fault.error, fault.kind) == (UNREACHABLE, FaultKind.REFUSED)
    assert DOWN in fault.message


def test_plugins_are_listed_and_found_by_alias(stub: Stub, cluster: ConnectCluster) -> None:
    file = {"class": "org.apache.kafka.connect.file.FileStreamSinkConnector", "type": "sink", "version": "4"}
    stub.answers["GET", "/connector-plugins"] = 200, [file, {"class": "a.Copy", "type": "source"}]
    plugins = cluster.list_plugins()
    assert plugins == (PluginClass(file["class"], "sink", "4"), PluginClass("a.Copy", "source"))
    for name in (file["class"], "FileStreamSinkConnector", "FileStreamSink"):
        assert find_class(plugins, name) == file["class"]
    assert find_class(plugins, "Copy") == "a.Copy"
    assert find_class(plugins, "FileStream") is None


def test_alias_of_two_classes_denotes_none() -> None:
    plugins = [PluginClass("a.CopyConnector", "sink"), PluginClass("b.Copy", "sink")]
    assert find_class(plugins, "Copy") is None
    assert find_class(plugins, "CopyConnector") == "a.CopyConnector"
    assert find_class(plugins, "b.Copy") == "b.Copy"
    two_versions = [PluginClass("a.Copy", "sink", "1"), PluginClass("a.Copy", "sink", "2")]
    assert find_class(two_versions, "Copy") == "a.Copy"


SECRET, PLACEHOLDER = "resolved-s3cret", "${file:/etc/secrets.properties:path}"
VALIDATE = ("PUT", "/connector-plugins/FileStreamSink/config/validate")
PLACED = {**CONFIG, "file": PLACEHOLDER}


def build_validation(key: str, value: str | None, *errors: str) -> dict[str, Any]:
    definition = {"name": key, "type": "STRING", "required": True, "default_value": None, "order": 1}
    return {"definition": definition, "value": {"name": key, "value": value, "errors": list(errors)}}


def answer_validation(stub: Stub, *keys: dict[str, Any]) -> None:
    stub.answers[VALIDATE] = 200, {"name": "x", "error_count": 1, "groups": [], "configs": list(keys)}


def test_validation_keeps_no_resolved_values(stub: Stub, cluster: ConnectCluster) -> None:
    answer_validation(
        stub,
        build_validation("file", SECRET, f"Invalid value {SECRET} for configuration file: no"),
        build_validation("topics", "orders"),
        {
            "definition": None,
            "value": {"name": "other", "value": None, "errors": [f"{SECRET} is not a directory"]},
        },
    )
    validation = cluster.validate_config("a", PLACED)
    assert SECRET not in repr(validation)
    assert validation.errors == {
        "file": (f"Invalid value {PLACEHOLDER} for configuration file: no",),
        "other": (f"{PLACEHOLDER} is not a directory",),
    }
    assert validation.definitions == {
        key: ConfigDefinition(key, "STRING", required=True) for key in ("file", "topics")
    }
    assert json.loads(stub.asked[0].body)["name"] == "a"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "Invalid value {} for configuration file: Class {} could not be found.",
            f"Invalid value {PLACEHOLDER} for configuration file: Class {PLACEHOLDER} could not be found.",
        ),
        (
            "Invalid value null for configuration file: must be non-null",
            "Invalid value null for configuration file: must be non-null",
        ),
        ("{} is too long", f"The worker rejects the value of {PLACEHOLDER}."),
    ],
)
def test_value_that_the_worker_cannot_parse_is_not_shown(
    stub: Stub, cluster: ConnectCluster, message: str, shown: str
) -> None:
    answer_validation(stub, build_validation("file", None, message.format(SECRET, SECRET)))
    assert cluster.validate_config("a", PLACED).errors == {"file": (shown,)}


def test_short_resolved_value_is_replaced_for_its_own_key_only(stub: Stub, cluster: ConnectCluster) -> None:
    answer_validation(
        stub, build_validation("file", "5", "5 is bad"), build_validation("topics", "a", "15 is bad")
    )
    errors = cluster.validate_config("a", PLACED).errors
    assert errors == {"file": (f"{PLACEHOLDER} is bad",), "topics": ("15 is bad",)}


def test_literal_values_stay_in_messages(stub: Stub, cluster: ConnectCluster) -> None:
    message = "Invalid value x for configuration topics: no"
    answer_validation(stub, build_validation("topics", None, message))
    for config in (CONFIG, PLACED):
        assert cluster.validate_config("a", config).errors == {"topics": (message,)}


def test_failed_validation_is_an_invalid_config_without_resolved_values(
    stub: Stub, cluster: ConnectCluster
) -> None:
    exception = "org.apache.kafka.common.config.ConfigException: "
    message = f"{exception}Invalid value {SECRET} for configuration max.poll.records: Not a number"
    stub.answers[VALIDATE] = build_error(500, message)
    fault = expect_fault(
        lambda: cluster.validate_config("a", {**CONFIG, "consumer.override.max.poll.records": PLACEHOLDER})
    )
    assert (fault.error, fault.kind) == (port.INVALID_CONNECTOR, FaultKind.REFUSED)
    assert fault.message == f"Invalid value {PLACEHOLDER} for configuration max.poll.records: Not a number"


def test_unknown_class_is_explained_without_details_of_other_plugins(
    stub: Stub, cluster: ConnectCluster
) -> None:
    plugin = "PluginDesc{klass=class a.B, name='a.B', version='4', location='file:/plugins/b.jar'}"
    stub.answers["POST", "/connectors"] = build_error(400, f"No class X, available connectors are: {plugin}")
    fault = expect_fault(lambda: cluster.create_connector("a", CONFIG))
    assert fault.message == "No class X, available connectors are: a.B"


@pytest.mark.parametrize("send", ["create_connector", "replace_config"])
def test_rejected_config_with_placeholders_is_explained_by_a_validation(
    stub: Stub, cluster: RestConnectCluster, send: str
) -> None:
    rejection = build_error(400, f"Connector configuration is invalid: {SECRET}")
    stub.answers["POST", "/connectors"] = stub.answers["PUT", "/connectors/a/config"] = rejection
    answer_validation(
        stub, build_validation("file", SECRET, f"Invalid value {SECRET} for configuration file: no")
    )
    fault = expect_fault(lambda: getattr(cluster, send)("a", PLACED))
    assert (fault.error, fault.kind) == (port.INVALID_CONNECTOR, FaultKind.REFUSED)
    assert fault.message == f"Invalid value {PLACEHOLDER} for configuration file: no"


def test_rejected_config_without_placeholders_is_not_validated(stub: Stub, cluster: ConnectCluster) -> None:
    message = "Connector configuration is invalid and contains the following 1 error(s):\nTopic is empty"
    pointer = "\nYou can also find the above list of errors at the endpoint `/connector-plugins/…`"
    stub.answers["POST", "/connectors"] = build_error(400, message + pointer)
    fault = expect_fault(lambda: cluster.create_connector("a", CONFIG))
    assert (fault.error, fault.message) == (port.INVALID_CONNECTOR, message)
    assert len(stub.asked) == 1


UNREADABLE = "Could not read properties from file /etc/secrets.properties"


@pytest.mark.parametrize(
    ("validation", "code", "kind"),
    [
        (f"org.x.ConfigException: {UNREADABLE}", port.INVALID_CONNECTOR, FaultKind.REFUSED),
        ("org.x.ConfigException: Another failure", port.SERVER_ERROR, FaultKind.UNKNOWN),
    ],
)
def test_failed_change_is_refused_only_if_the_validation_fails_alike(
    stub: Stub, cluster: ConnectCluster, validation: str, code: str, kind: FaultKind
) -> None:
    stub.answers["POST", "/connectors"] = build_error(500, UNREADABLE)
    stub.answers[VALIDATE] = build_error(500, validation)
    fault = expect_fault(lambda: cluster.create_connector("a", PLACED))
    assert (fault.error, fault.kind) == (code, kind)
    assert UNREADABLE in fault.message


def test_failed_change_of_a_valid_config_is_unknown(stub: Stub, cluster: ConnectCluster) -> None:
    stub.answers["POST", "/connectors"] = build_error(500, "Failed to write")
    answer_validation(stub, build_validation("file", SECRET))
    fault = expect_fault(lambda: cluster.create_connector("a", PLACED))
    assert (fault.error, fault.kind) == (port.SERVER_ERROR, FaultKind.UNKNOWN)


def test_trace_is_one_line_without_secrets(stub: Stub, cluster: ConnectCluster) -> None:
    SCRUBBER.register("known-s3cret")
    trace = "ConnectException: jdbc:x?user=u&password=literal-s3cret and known-s3cret\n\tat a.B.start\n"
    failed = {"id": 0, **RUNNING, "state": "FAILED", "trace": trace}
    stub.answers["GET", "/connectors/a"] = 200, build_info("a", **{"db.password": "literal-s3cret"})
    stub.answers["GET", "/connectors/a/status"] = 200, build_status("a", failed)
    connector = cluster.describe_connector("a")
    assert connector is not None
    expected = "ConnectException: jdbc:x?user=u&password=(sensitive) and (sensitive)"
    assert connector.tasks == (TaskStatus(0, "FAILED", "w1:8083", expected),)
    assert "s3cret" not in repr(connector)


def test_trace_contains_placeholder_instead_of_its_value(stub: Stub, cluster: ConnectCluster) -> None:
    """The client of a task validates its overrides when the task starts, and quotes the resolved value."""
    trace = "org.x.ConfigException: Invalid value r3solved for configuration acks: String must be one of: all"
    failed = {"id": 0, **RUNNING, "state": "FAILED", "trace": f"{trace}\n\tat a.B.start\n"}
    config = {"producer.override.acks": "${file:/s:acks}"}
    stub.answers["GET", "/connectors/a"] = 200, build_info("a", **config)
    stub.answers["GET", "/connectors/a/status"] = 200, build_status("a", failed)
    connector = cluster.describe_connector("a")
    assert connector is not None
    assert [task.trace for task in connector.tasks] == [trace.replace("r3solved", "${file:/s:acks}")]
    assert "r3solved" not in repr(connector)


def test_tasks_are_in_order_and_null_values_are_unset(stub: Stub, cluster: ConnectCluster) -> None:
    tasks = [{"id": n, **RUNNING} for n in (10, 2, 0)]
    stub.answers["GET", "/connectors/a"] = 200, build_info("a", file=None)
    stub.answers["GET", "/connectors/a/status"] = 200, build_status("a", *tasks)
    connector = cluster.describe_connector("a")
    assert connector is not None
    assert [task.id for task in connector.tasks] == [0, 2, 10]
    assert connector.config == {"name": "a", **CONFIG}


def test_rebalance_is_retried_and_a_lost_response_is_not() -> None:
    memory = MemoryConnectCluster()
    delays: list[float] = []
    cluster = RetryingConnectCluster(memory, RetryPolicy(attempts=4, sleep=delays.append))
    memory.rebalances = 3
    cluster.create_connector("a", CONFIG)
    assert (len(delays), memory.rebalances) == (3, 0)
    memory.faults.time_out(after_effect=True, method="set_state")
    assert expect_fault(lambda: cluster.set_state("a", TargetState.PAUSED)).kind is FaultKind.UNKNOWN
    assert memory.requests().count("PUT /connectors/a/pause") == 1
    memory.rebalances = 4
    assert expect_fault(lambda: cluster.delete_connector("a")).error == NOT_READY


def test_read_is_retried_only_during_a_rebalance() -> None:
    memory = MemoryConnectCluster()
    delays: list[float] = []
    cluster = RetryingConnectCluster(memory, RetryPolicy(attempts=4, sleep=delays.append))
    for nth in (1, 2):
        memory.faults.fail(
            Fault(NOT_READY, REBALANCE, FaultKind.RETRIABLE), nth=nth, method="list_connectors"
        )
    assert cluster.list_connectors() == {}
    assert len(delays) == 2
    memory.faults.fail(Fault(LOST, "", FaultKind.RETRIABLE), method="describe_connector")
    assert expect_fault(lambda: cluster.describe_connector("a")).error == LOST
    assert len(delays) == 2
