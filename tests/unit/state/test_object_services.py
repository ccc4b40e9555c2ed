"""The URLs of the three services, and the contracts with the clients of Google and Azure."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.core.storage.location import parse_state_location
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from kdeclare.state_storage.object_settings import ObjectSettings, build_settings
from tests.azurite import KEY as AZURITE_KEY
from tests.azurite import create_container, run_azurite
from tests.conditional_objects import KEY, ConditionalObjectsContract
from tests.gcs_server import BUCKET, run_gcs_server
from tests.state_stores import StateStoreContract
from tests.unit.state.conftest import SECRET_KEY
from tests.unit.state.test_object_storage import open_url

ANONYMOUS_ACCOUNT = json.dumps(
    {"private_key": "", "private_key_id": "", "client_email": "", "disable_oauth": True}
)


@pytest.fixture
def gcs(credentials: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a state in a bucket of a server with Google's XML API."""
    monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", ANONYMOUS_ACCOUNT)
    with run_gcs_server() as url:
        yield f"gs://{BUCKET}/team?endpoint={url}"


class TestGoogle(ConditionalObjectsContract):
    """Google's updates name a generation, not an ETag."""

    @pytest.fixture
    def open_objects(self, gcs: str) -> Callable[[], ConditionalObjects]:
        return lambda: open_url(gcs)


class TestStoreOnGoogle(StateStoreContract):
    @pytest.fixture
    def store(self, gcs: str) -> Iterator[StateStore]:
        store = SharedStore(lambda: open_url(gcs), LeaseTiming(3.0))
        yield store
        store.close()


def test_missing_google_bucket_is_reported(gcs: str) -> None:
    objects = open_url(gcs.replace(f"gs://{BUCKET}/", "gs://another-bucket/"))
    for request in (
        lambda: objects.get(KEY),
        lambda: objects.create(KEY, b"x"),
        lambda: objects.list_keys(""),
    ):
        with pytest.raises(KdeclareError, match="The bucket 'another-bucket' does not exist"):
            request()


@pytest.fixture(scope="session")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if shutil.which("azurite-blob") is None:
        pytest.skip("needs Azurite (npm install --global azurite)")
    with run_azurite(tmp_path_factory.mktemp("azurite")) as url:
        yield url


@pytest.fixture
def container(
    azurite: str, credentials: None, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> str:
    """The URL of a state in an empty container of Azurite."""
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", AZURITE_KEY)
    name = f"c{abs(hash(request.node.nodeid))}"
    create_container(azurite, name)
    return f"az://{name}/team?account=devstoreaccount1&endpoint={azurite}"


class TestAzure(ConditionalObjectsContract):
    @pytest.fixture
    def open_objects(self, container: str) -> Callable[[], ConditionalObjects]:
        return lambda: open_url(container)


class TestStoreOnAzure(StateStoreContract):
    @pytest.fixture
    def store(self, container: str) -> Iterator[StateStore]:
        store = SharedStore(lambda: open_url(container), LeaseTiming(3.0))
        yield store
        store.close()


def test_azure_reports_missing_container_and_wrong_key(
    container: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = container.partition("/team")[0].removeprefix("az://")
    with pytest.raises(KdeclareError, match="The container 'unknown' does not exist"):
        open_url(container.replace(name, "unknown")).get(KEY)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "QUJD")
    with pytest.raises(KdeclareError) as caught:
        open_url(container).create(KEY, b"x")
    assert caught.value.diagnostics[0].code == "state-no-access"
    assert "QUJD" not in f"{caught.value.diagnostics}"


def test_azure_signature_is_not_shown(credentials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shared access signature is part of each URL that the client requests."""
    monkeypatch.setenv("AZURE_STORAGE_SAS_KEY", f"sv=2022-11-02&sp=rwdl&sig={SECRET_KEY}")
    objects = open_url("az://container?account=account&endpoint=http://127.0.0.1:1/account", timeout_s=0.4)
    with pytest.raises(KdeclareError, match="Connection refused") as caught:
        objects.get(KEY)
    assert SECRET_KEY not in f"{caught.value.diagnostics}"


# --- URLs and settings


def settings_of(url: str, **environ: str) -> ObjectSettings:
    return build_settings(parse_state_location(url, "payments", "prod"), environ)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("s3://b1/", ObjectSettings("s3", "b1", "payments/prod")),
        (
            "s3://b1/a/b/?region=eu-central-1&lease=30",
            ObjectSettings("s3", "b1", "a/b/payments/prod", region="eu-central-1"),
        ),
        (
            "s3://b1?endpoint=https://minio.example.com:9000",
            ObjectSettings("s3", "b1", "payments/prod", endpoint="https://minio.example.com:9000"),
        ),
        (
            "s3://b1?endpoint=http://[::1]:9000",
            ObjectSettings("s3", "b1", "payments/prod", endpoint="http://[::1]:9000", is_plain_http=True),
        ),
        (
            "s3://b1?endpoint=http://minio:9000&allow_http=true",
            ObjectSettings("s3", "b1", "payments/prod", endpoint="http://minio:9000", is_plain_http=True),
        ),
        ("gs://my.bucket_1/a", ObjectSettings("gs", "my.bucket_1", "a/payments/prod")),
        ("az://c1?account=x", ObjectSettings("az", "c1", "payments/prod", account="x")),
    ],
)
def test_url_is_parsed(url: str, expected: ObjectSettings) -> None:
    assert settings_of(url) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("s3:///team", "does not name a bucket"),
        ("s3://bucket:80/team", "does not name a bucket"),
        ("s3://me@bucket/team", "does not name a bucket"),
        ("az:///team", "does not name a container"),
        ("az://container/team", "does not name the storage account"),
        ("s3://bucket/a//b", "has a part that is empty"),
        ("s3://bucket/a/../b", "has a part that is empty"),
        ("s3://bucket?acount=x", "has an unknown option 'acount'"),
        ("gs://bucket?region=eu", "has an unknown option 'region'"),
        ("s3://bucket?endpoint=minio:9000", "is not a URL"),
        ("s3://bucket?endpoint=http://[minio", "is not a URL"),
        ("s3://bucket?endpoint=https://me:geheim@minio", "contains a password"),
        ("s3://bucket?endpoint=http://minio:9000", "does not use TLS"),
        ("s3://bucket?endpoint=http://127.0.0.1.example.com", "does not use TLS"),
        ("s3://bucket?endpoint=http://minio:9000&allow_http=false", "does not use TLS"),
        ("s3://bucket?endpoint=http://minio:9000&allow_http=maybe", "'allow_http' is not a boolean"),
    ],
)
def test_wrong_url_is_refused(url: str, reason: str) -> None:
    with pytest.raises(KdeclareError) as caught:
        settings_of(url)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "state-location"
    assert reason in diagnostic.detail
    assert diagnostic.hint
    assert "geheim" not in f"{diagnostic}"


def test_environment_variables_complete_url() -> None:
    assert settings_of("az://container", AZURE_STORAGE_ACCOUNT_NAME="x").account == "x"
    assert settings_of("s3://bucket", AWS_ENDPOINT_URL="https://x").endpoint == "https://x"
    with pytest.raises(KdeclareError, match="does not use TLS"):
        settings_of("s3://bucket", AWS_ENDPOINT_URL="http://minio:9000")


def test_unusable_credentials_are_reported(
    credentials: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "account.json"
    for content in (None, f"{{{SECRET_KEY}"):
        if content is not None:
            file.write_text(content)
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        with pytest.raises(KdeclareError) as caught:
            open_url("gs://bucket").get(KEY)
        (diagnostic,) = caught.value.diagnostics
        assert diagnostic.code == "state-location"
        assert SECRET_KEY not in f"{diagnostic}"
        assert "GOOGLE_APPLICATION_CREDENTIALS" in diagnostic.hint


# --- the client library


def test_missing_library_is_reported(credentials: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tuple(sys.modules):
        if name.partition(".")[0] == "obstore" or name == "kdeclare.state_storage.object_client":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(KdeclareError) as caught:
        open_url("s3://bucket")
    assert "pip install 'kdeclare[object-storage]'" in caught.value.diagnostics[0].hint


def test_library_is_imported_when_storage_is_opened() -> None:
    code = (
        "import sys, kdeclare.state_storage.object_storage; print([n for n in sys.modules if 'obstore' in n])"
    )
    started_at = time.monotonic()
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
    assert time.monotonic() - started_at < 30
