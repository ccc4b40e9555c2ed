"""`RestRegistry` against a stub: requests, responses of other products than Apicurio, and failures."""

from collections.abc import Callable, Iterator

import pytest

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.providers.schema_registry.client import port
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    CompatibilityResult,
    Mode,
    Registration,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SubjectLevel,
    SubjectVersion,
)
from kdeclare.providers.schema_registry.client.responses import MAX_MESSAGE_CHARS
from kdeclare.providers.schema_registry.client.rest import RestRegistry
from tests.conftest import free_port
from tests.unit.schema_registry.registry_stub import RegistryStub, open_registry, run_registry_stub

NONE, BACKWARD, FULL = CompatibilityLevel.NONE, CompatibilityLevel.BACKWARD, CompatibilityLevel.FULL
AVRO = SchemaContent(SchemaType.AVRO, '"string"')
VERSION: dict[str, JsonValue] = {"subject": "s", "version": 3, "id": 7, "schema": '"string"'}
LATEST = "GET /subjects/s/versions/latest"


@pytest.fixture
def stub() -> Iterator[RegistryStub]:
    """A running stub."""
    with run_registry_stub() as running:
        yield running


@pytest.fixture
def registry(stub: RegistryStub) -> Iterator[RestRegistry]:
    """A client of the stub, without retries."""
    opened = open_registry(stub.url)
    yield opened
    opened.close()


def catch_fault(call: Callable[[], object]) -> Fault:
    """Return the Fault that a call raises."""
    with pytest.raises(Fault) as raised:
        call()
    return raised.value


def add_level(stub: RegistryStub, level: str) -> None:
    """Answer with a global level."""
    stub.answer("GET /config", 200, {"compatibilityLevel": level})


# --- identity


def test_identify_combines_ids_of_cluster_and_registry(stub: RegistryStub, registry: RestRegistry) -> None:
    clusters = {"kafka-cluster": "abc", "schema-registry-cluster": "schema-registry"}
    stub.answer("GET /v1/metadata/id", 200, {"id": "", "scope": {"path": [], "clusters": clusters}})
    stub.answer("GET /v1/metadata/version", 200, {"version": "8.0.0", "commitId": "1"})
    add_level(stub, "BACKWARD")
    stub.answer("GET /mode", 200, {"mode": "READONLY"})
    stub.fail("GET /config/kdeclare-probe-of-an-absent-subject", 404, 40408)
    info = registry.identify()
    assert (info.id, info.version) == ("abc/schema-registry", "8.0.0")
    assert (info.level, info.mode) == (BACKWARD, Mode.READONLY)
    assert info.distinguishes_own_levels


def test_identify_probes_existing_subjects_for_own_levels(stub: RegistryStub, registry: RestRegistry) -> None:
    add_level(stub, "BACKWARD")
    stub.answer("GET /subjects", 200, ["b", "a"])
    stub.fail("GET /config/kdeclare-probe-of-an-absent-subject", 404, 40401)
    stub.answer("GET /config/a", 200, {"compatibilityLevel": "BACKWARD"})
    stub.fail("GET /config/b", 404, 40408)
    info = registry.identify()
    assert (info.id, info.version, info.mode) == (None, "", None)
    assert info.distinguishes_own_levels


def test_identify_reports_registry_that_does_not_distinguish_levels(
    stub: RegistryStub, registry: RestRegistry
) -> None:
    add_level(stub, "NONE")
    stub.answer("GET /subjects", 200, ["a"])
    stub.fail("GET /config/kdeclare-probe-of-an-absent-subject", 404, 40401)
    stub.answer("GET /config/a", 200, {"compatibilityLevel": "NONE"})
    stub.answer("GET /mode", 204)
    info = registry.identify()
    assert not info.distinguishes_own_levels
    assert info.mode is None


def test_identify_of_other_server_fails(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("GET /config", 404, b"<html>")
    fault = catch_fault(registry.identify)
    assert (fault.error, fault.kind) == (port.NOT_A_REGISTRY, FaultKind.REFUSED)
    assert "HTTP 404" in fault.message


# --- requests


def test_subject_is_escaped(stub: RegistryStub, registry: RestRegistry) -> None:
    assert catch_fault(lambda: registry.read_version("a/b ä?#%", 2)).error == port.NOT_A_REGISTRY
    assert stub.requests == ["GET /subjects/a%2Fb%20%C3%A4%3F%23%25/versions/2"]


def test_content_is_sent_with_type_and_references(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("POST /subjects/s/versions", 200, {"id": 7, "version": 3})
    content = SchemaContent(SchemaType.PROTOBUF, "message A {}", (SchemaReference("b.proto", "b", 2),))
    assert registry.register("s", content) == Registration(7, 3)
    assert registry.register("s", AVRO) == Registration(7, 3)
    assert [one.body for one in stub.received] == [
        {
            "schema": "message A {}",
            "schemaType": "PROTOBUF",
            "references": [{"name": "b.proto", "subject": "b", "version": 2}],
        },
        {"schema": '"string"'},
    ]
    assert stub.received[0].headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"
    assert stub.received[0].headers["Accept"].startswith("application/vnd.schemaregistry.v1+json")


def test_registration_without_version_in_response_is_looked_up(
    stub: RegistryStub, registry: RestRegistry
) -> None:
    stub.answer("POST /subjects/s/versions", 200, {"id": 7})
    stub.answer("POST /subjects/s", 200, VERSION)
    assert registry.register("s", AVRO) == Registration(7, 3)


def test_registration_succeeds_even_if_look_up_fails(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("POST /subjects/s/versions", 200, {"id": 7})
    stub.answer("POST /subjects/s", 500)
    assert registry.register("s", AVRO) == Registration(7, None)


def test_look_up_keeps_type_and_references_that_response_lacks(
    stub: RegistryStub, registry: RestRegistry
) -> None:
    stub.answer("POST /subjects/s", 200, VERSION)
    content = SchemaContent(SchemaType.JSON, "{}", (SchemaReference("b", "b", 2),))
    found = registry.find_version("s", content)
    assert found is not None
    assert (found.content.type, found.content.references) == (SchemaType.JSON, content.references)


def test_look_up_can_include_deleted_versions(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.fail("POST /subjects/s?deleted=true", 404, 40403)
    assert registry.find_version("s", AVRO, include_deleted=True) is None


@pytest.mark.parametrize("body", [{**VERSION, "references": None}, {**VERSION, "schemaType": "AVRO"}])
def test_version_is_parsed(stub: RegistryStub, registry: RestRegistry, body: JsonValue) -> None:
    stub.answer(LATEST, 200, body)
    found = registry.read_version("s")
    assert found is not None
    assert (found.version, found.id, found.content) == (3, 7, AVRO)


# --- lists


def test_lists_are_read_page_by_page(stub: RegistryStub, registry: RestRegistry) -> None:
    names = [f"s{number}" for number in range(2500)]
    stub.answer("GET /subjects?limit=1000", 200, names[:1000])
    stub.answer("GET /subjects?limit=1000&offset=1000", 200, names[1000:2000])
    stub.answer("GET /subjects?limit=1000&offset=2000", 200, names[2000:])
    assert registry.list_subjects() == frozenset(names)
    assert len(stub.received) == 3


@pytest.mark.parametrize(("count", "requests"), [(999, 1), (1000, 2), (1001, 1)])
def test_list_without_pages_ends(
    stub: RegistryStub, registry: RestRegistry, count: int, requests: int
) -> None:
    names = [f"s{number}" for number in range(count)]
    stub.answer("GET /subjects", 200, names)
    assert registry.list_subjects(include_deleted=True) == frozenset(names)
    assert len(stub.received) == requests
    assert stub.requests[0] == "GET /subjects?deleted=true&limit=1000"


def test_latest_versions_are_listed(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("GET /schemas?latestOnly=true&limit=1000", 200, [VERSION, {**VERSION, "subject": "t"}])
    latest = registry.list_latest()
    assert latest is not None
    assert {name: schema.version for name, schema in latest.items()} == {"s": 3, "t": 3}


def test_latest_versions_are_not_listed_if_not_supported(registry: RestRegistry) -> None:
    assert registry.list_latest() is None


def test_referrers_are_resolved_from_ids(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("GET /subjects/s/versions/1/referencedby", 200, [4, 5])
    stub.answer("GET /schemas/ids/4/versions", 200, [{"subject": "b", "version": 2}])
    answer: JsonValue = [{"subject": "a", "version": 1}, {"subject": "b", "version": 2}]
    stub.answer("GET /schemas/ids/5/versions", 200, answer)
    assert registry.list_referrers("s", 1) == (SubjectVersion("a", 1), SubjectVersion("b", 2))


# --- levels and modes


def test_missing_own_level_is_recognized(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.fail("GET /config/s", 404, 40408)
    stub.answer("GET /config/t", 200, {"compatibilityLevel": "FULL"})
    assert registry.read_level("s", global_level=FULL) == SubjectLevel(FULL, None)
    # From now on, it is known that this registry distinguishes own levels.
    assert registry.read_level("t", global_level=FULL) == SubjectLevel(FULL, FULL)
    assert stub.requests == ["GET /config/s", "GET /config/t"]


def test_level_without_compatibility_means_no_own_level(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("GET /config/s", 200, {"normalize": True})
    assert registry.read_level("s", global_level=FULL) == SubjectLevel(FULL, None)


def test_reported_level_that_is_not_effective_is_no_own_level(
    stub: RegistryStub, registry: RestRegistry
) -> None:
    stub.answer("GET /config/s", 200, {"compatibilityLevel": "NONE"})
    stub.answer("GET /config/s?defaultToGlobal=true", 200, {"compatibilityLevel": "FULL"})
    assert registry.read_level("s", global_level=FULL) == SubjectLevel(FULL, None)


def test_own_level_needs_one_request(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("GET /config/s", 200, {"compatibilityLevel": "BACKWARD"})
    assert registry.read_level("s", global_level=FULL) == SubjectLevel(BACKWARD, BACKWARD)
    assert stub.requests == ["GET /config/s"]


def test_level_is_set_and_deleted(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.answer("PUT /config", 200, {"compatibility": "FULL"})
    stub.answer("PUT /config/s", 200, {"compatibility": "NONE"})
    stub.fail("DELETE /config/s", 404, 40401)
    registry.set_level(None, FULL)
    registry.set_level("s", NONE)
    registry.delete_level("s")
    assert [one.body for one in stub.received] == [{"compatibility": "FULL"}, {"compatibility": "NONE"}, None]


def test_unknown_level_is_not_understood(stub: RegistryStub, registry: RestRegistry) -> None:
    add_level(stub, "SIDEWAYS")
    fault = catch_fault(registry.read_global_level)
    assert (fault.error, fault.kind) == (port.BAD_RESPONSE, FaultKind.REFUSED)


def test_mode_of_subject_falls_back_to_global_mode(stub: RegistryStub, registry: RestRegistry) -> None:
    stub.fail("GET /mode/s", 404, 40401)
    stub.answer("GET /mode", 200, {"mode": "IMPORT"})
    mode = registry.read_mode("s")
    assert mode is Mode.IMPORT
    assert not mode.permits_registration
    assert stub.requests == ["GET /mode/s?defaultToGlobal=true", "GET /mode"]


# --- compatibility


@pytest.mark.parametrize(
    ("level", "requests"),
    [
        (BACKWARD, ["/versions/latest"]),
        (CompatibilityLevel.BACKWARD_TRANSITIVE, ["/versions", "/versions/latest"]),
    ],
)
def test_check_uses_latest_version_if_general_check_is_not_supported(
    stub: RegistryStub, registry: RestRegistry, level: CompatibilityLevel, requests: list[str]
) -> None:
    answer: JsonValue = {"is_compatible": False, "messages": ["the field a is missing"]}
    stub.answer("POST /compatibility/subjects/s/versions/latest?verbose=true", 200, answer)
    result = registry.check_compatibility("s", AVRO, level=level)
    assert result == CompatibilityResult(False, ("the field a is missing",))
    assert stub.requests == [f"POST /compatibility/subjects/s{path}?verbose=true" for path in requests]


@pytest.mark.parametrize("error_code", [40401, 40402])
def test_check_without_versions_is_not_checked(
    stub: RegistryStub, registry: RestRegistry, error_code: int
) -> None:
    stub.fail("POST /compatibility/subjects/s/versions/latest", 404, error_code)
    assert not registry.check_compatibility("s", AVRO, level=FULL).is_checked


# --- errors


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "error_code", "error"),
    [
        (404, 40401, port.SUBJECT_NOT_FOUND),
        (404, 40402, port.VERSION_NOT_FOUND),
        (404, 40404, port.SUBJECT_SOFT_DELETED),
        (404, 40405, port.SUBJECT_NOT_SOFT_DELETED),
        (404, 40406, port.VERSION_SOFT_DELETED),
        (404, 40407, port.VERSION_NOT_SOFT_DELETED),
        (409, 40407, port.VERSION_NOT_SOFT_DELETED),
        (409, 409, port.INCOMPATIBLE),
        (409, 40901, port.INCOMPATIBLE),
        (422, 42201, port.INVALID_SCHEMA),
        (422, 42202, port.INVALID_VERSION),
        (422, 42203, port.INVALID_LEVEL),
        (422, 42205, port.NOT_PERMITTED),
        (422, 42206, port.REFERENCE_EXISTS),
        (422, 42208, port.INVALID_SUBJECT),
        (422, 42209, port.SCHEMA_TOO_LARGE),
        (422, 44302, port.REJECTED),
        (400, 400, port.REJECTED),
        (401, 40101, port.NOT_AUTHORIZED),
        (403, 40301, port.NOT_AUTHORIZED),
        (302, 0, port.REJECTED),
    ],
)
def test_error_code_decides(
    stub: RegistryStub, registry: RestRegistry, status: int, error_code: int, error: str
) -> None:
    stub.fail("DELETE /subjects/s/versions/1", status, error_code, "the reason")
    fault = catch_fault(lambda: registry.delete_version("s", 1))
    assert (fault.error, fault.message, fault.kind) == (error, "the reason", FaultKind.REFUSED)
    assert fault.error in port.ERRORS


def test_message_has_no_java_class_and_is_shortened(stub: RegistryStub, registry: RestRegistry) -> None:
    message = "io.x.rules.RuleViolationException: Incompatible artifact"
    stub.fail("POST /subjects/s/versions", 409, 409, message)
    assert catch_fault(lambda: registry.register("s", AVRO)).message == "Incompatible artifact"
    stub.fail("POST /subjects/t/versions", 409, 409, "x" * 5000)
    message = catch_fault(lambda: registry.register("t", AVRO)).message
    assert message == "x" * MAX_MESSAGE_CHARS + "…"


@pytest.mark.parametrize("status", [None, 500, 502, 503])
def test_failed_change_is_unknown_and_failed_read_is_retriable(
    stub: RegistryStub, registry: RestRegistry, status: int | None
) -> None:
    stub.answer("POST /subjects/s/versions", status)
    stub.answer("POST /subjects/s", status)
    stub.answer(LATEST, status)
    fault = catch_fault(lambda: registry.register("s", AVRO))
    assert (fault.error, fault.kind) == (port.LOST, FaultKind.UNKNOWN)
    for read in (lambda: registry.read_version("s"), lambda: registry.find_version("s", AVRO)):
        fault = catch_fault(read)
        assert (fault.error, fault.kind) == (port.LOST, FaultKind.RETRIABLE)


def test_response_to_change_that_is_not_understood_is_unknown(
    stub: RegistryStub, registry: RestRegistry
) -> None:
    stub.answer("POST /subjects/s/versions", 200, b"<html>")
    fault = catch_fault(lambda: registry.register("s", AVRO))
    assert (fault.error, fault.kind) == (port.BAD_RESPONSE, FaultKind.UNKNOWN)
    stub.answer("DELETE /subjects/s", 200, {"deleted": 1})
    fault = catch_fault(lambda: registry.delete_subject("s"))
    assert (fault.error, fault.kind) == (port.BAD_RESPONSE, FaultKind.UNKNOWN)


@pytest.mark.parametrize(
    ("status", "error_code", "error"), [(429, 429, port.THROTTLED), (500, 50004, port.NO_LEADER)]
)
def test_change_without_effect_is_sent_again(
    stub: RegistryStub, status: int, error_code: int, error: str
) -> None:
    stub.fail("DELETE /subjects/s/versions/1", status, error_code)
    stub.answer("DELETE /subjects/s/versions/1", 200, 1)
    fault = catch_fault(lambda: open_registry(stub.url).delete_version("s", 1))
    assert (fault.error, fault.kind) == (error, FaultKind.RETRIABLE)
    open_registry(stub.url, attempts=2).delete_version("s", 1)


def test_lost_read_is_sent_again_but_lost_change_is_not(stub: RegistryStub) -> None:
    stub.answer(LATEST, None)
    stub.answer(LATEST, 200, VERSION)
    stub.answer("POST /subjects/s/versions", None)
    registry = open_registry(stub.url, attempts=3)
    assert registry.read_version("s") is not None
    assert catch_fault(lambda: registry.register("s", AVRO)).kind is FaultKind.UNKNOWN
    assert stub.requests.count("POST /subjects/s/versions") == 1


def test_next_url_is_used_if_first_is_unreachable(stub: RegistryStub) -> None:
    closed = f"http://127.0.0.1:{free_port(1)}"
    stub.answer("POST /subjects/s/versions", 200, {"id": 7, "version": 3})
    assert open_registry(closed, f"{stub.url}/").register("s", AVRO) == Registration(7, 3)
    fault = catch_fault(lambda: open_registry(closed).register("s", AVRO))
    assert (fault.error, fault.kind) == (port.UNREACHABLE, FaultKind.REFUSED)


def test_lost_change_is_not_sent_to_next_url(stub: RegistryStub) -> None:
    with run_registry_stub() as second:
        stub.answer("DELETE /subjects/s/versions/1", None)
        registry = open_registry(stub.url, second.url)
        assert catch_fault(lambda: registry.delete_version("s", 1)).kind is FaultKind.UNKNOWN
        assert not second.requests
        stub.answer(LATEST, None)
        second.answer(LATEST, 200, VERSION)
        assert registry.read_version("s") is not None


def test_secret_in_message_is_scrubbed(stub: RegistryStub) -> None:
    stub.fail("GET /config", 401, 40101, "no user with password s3cr3t-value")
    headers = (("Authorization", "Basic s3cr3t-value"),)
    fault = catch_fault(open_registry(stub.url, headers=headers).read_global_level)
    assert stub.received[0].headers["Authorization"] == "Basic s3cr3t-value"
    assert "s3cr3t-value" not in fault.message
    assert SCRUBBER.scrub("s3cr3t-value") != "s3cr3t-value"
