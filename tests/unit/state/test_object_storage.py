"""States in object storage: the contracts on a server with the protocol of S3, and its conditional writes."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ListsProjects, ObjectConflict
from kdeclare.core.storage.location import parse_state_location
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.state_storage.object_client import MAX_OBJECT_BYTES
from kdeclare.state_storage.object_storage import open_storage
from tests.conditional_objects import KEY, ConditionalObjectsContract
from tests.object_servers import ProxiedRequest, create_bucket, run_proxy, send
from tests.state_stores import FIRST, StateStoreContract
from tests.unit.state.conftest import SECRET_KEY, build_context


def open_url(url: str, timeout_s: float = 10.0, environment: str = "prod") -> ConditionalObjects:
    return open_storage(parse_state_location(url, "payments", environment), build_context(timeout_s))


def get_diagnostic(caught: pytest.ExceptionInfo[KdeclareError]) -> Diagnostic:
    (diagnostic,) = caught.value.diagnostics
    assert SECRET_KEY not in f"{diagnostic}"
    return diagnostic


class TestS3(ConditionalObjectsContract):
    @pytest.fixture
    def open_objects(self, s3_server: str, bucket: str) -> Callable[[], ConditionalObjects]:
        return lambda: open_url(f"s3://{bucket}/team/kdeclare?endpoint={s3_server}")


class TestVersionedS3(ConditionalObjectsContract):
    """A bucket that keeps earlier versions."""

    @pytest.fixture
    def open_objects(self, s3_server: str, bucket: str) -> Callable[[], ConditionalObjects]:
        body = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        send(s3_server, "PUT", f"/{bucket}?versioning", body)
        return lambda: open_url(f"s3://{bucket}?endpoint={s3_server}")


class TestStoreInS3(StateStoreContract):
    @pytest.fixture
    def store(self, s3_server: str, bucket: str) -> Iterator[StateStore]:
        url = f"s3://{bucket}/team?endpoint={s3_server}"
        store = SharedStore(lambda: open_url(url), LeaseTiming(3.0))
        yield store
        store.close()


def test_projects_and_environments_are_apart(s3_server: str, bucket: str) -> None:
    url = f"s3://{bucket}/team?endpoint={s3_server}"
    production, staging, production_2 = (
        open_url(url, environment=name) for name in ("prod", "test", "prod2")
    )
    production.create("state.json", b"production")
    production_2.create("plans/r1.json", b"production 2")
    assert staging.get("state.json") is None
    assert production.list_keys("") == ("state.json",)
    assert production.get_location("state.json") == f"s3://{bucket}/team/payments/prod/state.json"


@pytest.mark.parametrize("path", ["", "/team/kdeclare"])
def test_projects_are_listed(s3_server: str, bucket: str, path: str) -> None:
    url = f"s3://{bucket}{path}?endpoint={s3_server}"
    objects = open_url(url)
    assert isinstance(objects, ListsProjects)
    assert objects.list_projects() == ()
    for environment in ("prod", "eu 1"):
        open_url(url, environment=environment).create("state.json", b"x")
    open_storage(parse_state_location(url, "billing", "prod"), build_context(10.0)).create("lease.json", b"x")
    assert objects.list_projects() == (("billing", "prod"), ("payments", "eu 1"), ("payments", "prod"))


@pytest.mark.parametrize("name", ["eu 1", "grün", "50%", "a+b", "x~(1)&="])
def test_unusual_environment_names_are_stored(s3_server: str, bucket: str, name: str) -> None:
    objects = open_url(f"s3://{bucket}?endpoint={s3_server}", environment=name)
    version = objects.create("plans/r1.json", b"x")
    objects.replace("plans/r1.json", b"y", version)
    assert objects.list_keys("plans/") == ("plans/r1.json",)
    objects.delete(["plans/r1.json"])
    assert objects.list_keys("") == ()


@pytest.mark.slow
@pytest.mark.thorough
def test_more_objects_than_one_response_lists_are_listed_and_deleted(s3_server: str, bucket: str) -> None:
    for number in range(1100):
        send(s3_server, "PUT", f"/{bucket}/payments/prod/plans/{number:04}", b"x")
    objects = open_url(f"s3://{bucket}?endpoint={s3_server}")
    keys = objects.list_keys("plans/1")
    assert keys == tuple(f"plans/{number}" for number in range(1000, 1100))
    assert len(objects.list_keys("plans/")) == 1100
    objects.delete(keys)
    assert len(objects.list_keys("plans/")) == 1000


def test_object_has_readable_content_after_first_line(s3_server: str, bucket: str) -> None:
    open_url(f"s3://{bucket}?endpoint={s3_server}").create("state.json", b'{"serial": 1}\n')
    content = send(s3_server, "GET", f"/{bucket}/payments/prod/state.json")
    first_line, _, rest = content.partition(b"\n")
    assert first_line.startswith(b"kdeclare-object ")
    assert rest == b'{"serial": 1}\n'


def test_object_of_another_program_is_refused(s3_server: str, bucket: str) -> None:
    send(s3_server, "PUT", f"/{bucket}/payments/prod/state.json", b'{"serial": 1}\n')
    objects = open_url(f"s3://{bucket}?endpoint={s3_server}")
    with pytest.raises(KdeclareError) as caught:
        objects.get("state.json")
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-corrupt"
    assert f"s3://{bucket}/payments/prod/state.json" in diagnostic.detail


def test_object_above_limit_is_refused(s3_server: str, bucket: str) -> None:
    objects = open_url(f"s3://{bucket}?endpoint={s3_server}")
    with pytest.raises(ValueError, match="bytes"):
        objects.create(KEY, bytes(MAX_OBJECT_BYTES + 1))
    assert objects.list_keys("") == ()


COUNT = """
import sys
from kdeclare.core.storage.conditional_objects import ObjectConflict
from tests.unit.state.test_object_storage import open_url
objects = open_url(sys.argv[1])
written = 0
while written < 10:
    stored = objects.get("counter")
    try:
        objects.replace("counter", b"%d" % (int(stored.data) + 1), stored.version)
        written += 1
    except ObjectConflict:
        pass
"""


@pytest.mark.slow
def test_no_update_of_racing_processes_is_lost(s3_server: str, bucket: str) -> None:
    url = f"s3://{bucket}?endpoint={s3_server}"
    objects = open_url(url)
    objects.create("counter", b"0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNT, url]) for _ in range(3)]
    assert [process.wait(timeout=300) for process in processes] == [0, 0, 0]
    stored = objects.get("counter")
    assert stored is not None
    assert stored.data == b"30"


# --- a server that loses responses, or ignores conditions


@pytest.mark.parametrize("lost_count", [1, 2])
def test_write_with_lost_responses_takes_effect_once(s3_server: str, bucket: str, lost_count: int) -> None:
    methods: list[str] = []

    def lose_responses(request: ProxiedRequest) -> None:
        methods.append(request.method)
        if request.method == "PUT" and methods.count("PUT") <= lost_count:
            request.forward(answer=False)
            request.drop()
        else:
            request.forward()

    with run_proxy(s3_server, lose_responses) as proxy:
        objects = open_url(f"s3://{bucket}?endpoint={proxy}")
        first = objects.create(KEY, b"first")
        methods.clear()
        second = objects.replace(KEY, b"second", first)
        assert methods.count("PUT") > lost_count
        stored = objects.get(KEY)
        assert stored is not None
        assert (stored.data, stored.version) == (b"second", second)
        with pytest.raises(ObjectConflict):
            objects.create(KEY, b"third")


def test_write_without_response_is_repeated_after_timeout(s3_server: str, bucket: str) -> None:
    """The client library does not repeat a conditional write after a timeout."""
    put_count = 0

    def stall_once(request: ProxiedRequest) -> None:
        nonlocal put_count
        put_count += request.method == "PUT"
        if request.method == "PUT" and put_count == 1:
            request.forward(answer=False)
            stalled.wait(60)
        else:
            request.forward()

    stalled = threading.Event()
    with run_proxy(s3_server, stall_once) as proxy:
        version = open_url(f"s3://{bucket}?endpoint={proxy}", timeout_s=2.0).create(KEY, b"first")
        stalled.set()
    stored = open_url(f"s3://{bucket}?endpoint={s3_server}").get(KEY)
    assert stored is not None
    assert (stored.data, stored.version, put_count) == (b"first", version, 2)


def test_conflict_after_lost_response_is_reported(s3_server: str, bucket: str) -> None:
    """Another process replaces the object between the two requests."""
    direct = open_url(f"s3://{bucket}?endpoint={s3_server}")
    first = direct.create(KEY, b"first")
    put_count = 0

    def replace_before_repetition(request: ProxiedRequest) -> None:
        nonlocal put_count
        put_count += request.method == "PUT"
        if request.method == "PUT" and put_count == 1:
            direct.replace(KEY, b"other", first)
            request.forward(answer=False)
            request.drop()
        else:
            request.forward()

    with run_proxy(s3_server, replace_before_repetition) as proxy, pytest.raises(ObjectConflict):
        open_url(f"s3://{bucket}?endpoint={proxy}").replace(KEY, b"mine", first)
    stored = direct.get(KEY)
    assert stored is not None
    assert stored.data == b"other"


def test_run_with_lost_responses_is_recorded_once(s3_server: str, bucket: str) -> None:
    """Responses to every third write are lost: lease, plan, parts, journal and state."""
    put_count = 0

    def lose_every_third(request: ProxiedRequest) -> None:
        nonlocal put_count
        put_count += request.method == "PUT"
        is_lost = request.method == "PUT" and put_count % 3 == 1
        request.forward(answer=not is_lost)
        if is_lost:
            request.drop()

    plan = "".join(f'{{"line": "{number:0100}"}}\n' for number in range(12_000))
    with run_proxy(s3_server, lose_every_third) as proxy:
        store = SharedStore(lambda: open_url(f"s3://{bucket}?endpoint={proxy}"), LeaseTiming(10.0))
        with store.lock("kdeclare apply"), store.begin_run("r1", plan) as journal:
            for number in range(5):
                journal.append(number)
            store.write(FIRST)
    reader = SharedStore(lambda: open_url(f"s3://{bucket}?endpoint={s3_server}"))
    assert reader.runs() == ("r1",)
    assert reader.read_plan_text("r1") == plan
    assert reader.entries("r1") == (0, 1, 2, 3, 4)
    assert reader.read() == FIRST
    assert reader.read_holder() is None


def test_deletion_with_lost_response_is_repeated(s3_server: str, bucket: str) -> None:
    delete_count = 0

    def lose_first(request: ProxiedRequest) -> None:
        nonlocal delete_count
        delete_count += request.method == "DELETE"
        is_lost = request.method == "DELETE" and delete_count == 1
        request.forward(answer=not is_lost)
        if is_lost:
            request.drop()

    with run_proxy(s3_server, lose_first) as proxy:
        objects = open_url(f"s3://{bucket}?endpoint={proxy}")
        objects.create(KEY, b"x")
        objects.delete([KEY])
        assert objects.list_keys("") == ()


def test_server_that_ignores_conditions_is_refused_at_first_lock(s3_server: str, bucket: str) -> None:
    with run_proxy(s3_server, lambda request: request.forward(ignore_conditions=True)) as proxy:
        store = SharedStore(lambda: open_url(f"s3://{bucket}?endpoint={proxy}"), LeaseTiming(3.0))
        with pytest.raises(KdeclareError) as caught, store.lock("kdeclare apply"):
            pytest.fail("locked")
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-storage-unsafe"
    assert f"s3://{bucket}/payments/prod/" in diagnostic.detail


def test_server_without_conditional_writes_is_refused_at_first_lock(s3_server: str, bucket: str) -> None:
    """Some servers respond that they do not implement the header."""

    def refuse_conditions(request: ProxiedRequest) -> None:
        if request.method == "PUT":
            request.respond(501, b"<Error><Code>NotImplemented</Code><Message>A header</Message></Error>")
        else:
            request.forward()

    with run_proxy(s3_server, refuse_conditions) as proxy:
        url = f"s3://{bucket}?endpoint={proxy}"
        store = SharedStore(lambda: open_url(url, timeout_s=0.5), LeaseTiming(3.0))
        with pytest.raises(KdeclareError) as caught, store.lock("kdeclare apply"):
            pytest.fail("locked")
    assert get_diagnostic(caught).code == "state-storage-unsafe"


def test_server_without_etags_is_refused(s3_server: str, credentials: None) -> None:
    with run_proxy(s3_server, lambda request: request.respond(200)) as proxy:
        objects = open_url(f"s3://bucket?endpoint={proxy}")
        with pytest.raises(KdeclareError, match=r"the response cannot be used: .*ETag") as caught:
            objects.create(KEY, b"x")
    assert get_diagnostic(caught).code == "state-storage"


def test_environment_variable_names_endpoint(
    s3_server: str, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_server)
    open_url(f"s3://{bucket}").create(KEY, b"x")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    assert open_url(f"s3://{bucket}?endpoint={s3_server}").get(KEY) is not None


def test_bucket_is_not_created(s3_server: str, credentials: None) -> None:
    objects = open_url(f"s3://unknown-bucket?endpoint={s3_server}")
    for request in (
        lambda: objects.get(KEY),
        lambda: objects.create(KEY, b"x"),
        lambda: objects.list_keys(""),
    ):
        with pytest.raises(KdeclareError, match="'unknown-bucket' does not exist") as caught:
            request()
        assert get_diagnostic(caught).code == "state-location"


def test_deleted_bucket_is_no_conflict(s3_server: str, credentials: None) -> None:
    create_bucket(s3_server, "deleted-bucket")
    objects = open_url(f"s3://deleted-bucket?endpoint={s3_server}")
    version = objects.create(KEY, b"x")
    objects.delete([KEY])
    send(s3_server, "DELETE", "/deleted-bucket")
    for request in (lambda: objects.replace(KEY, b"y", version), lambda: objects.delete([KEY])):
        with pytest.raises(KdeclareError, match="'deleted-bucket' does not exist"):
            request()
