"""Credentials for S3: keys whose permissions a server checks, and roles of CI jobs and machines."""

import json
import re
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.storage.conditional_objects import ConditionalObjects
from tests.conditional_objects import KEY
from tests.object_servers import ProxiedRequest, create_bucket, run_proxy, run_s3_server, send
from tests.unit.state.test_object_storage import open_url

TOKEN = "a-web-identity-token-that-no-message-contains"
DOCUMENTED = ("s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject")


@pytest.fixture(scope="module")
def checking_server() -> Iterator[tuple[str, str, str]]:
    """A server that checks signatures and permissions, with the id and the secret of the user's only key."""
    with run_s3_server() as url:
        create_bucket(url, "bucket")
        manage_user(url, "CreateUser")
        answer = manage_user(url, "CreateAccessKey")
        key_id, secret = (
            re.search("<AccessKeyId>(.*?)<", answer),
            re.search("<SecretAccessKey>(.*?)<", answer),
        )
        assert key_id
        assert secret
        yield url, key_id[1], secret[1]


def manage_user(url: str, action: str, **parameters: str) -> str:
    """Send a request to the server's IAM, which checks nothing until `check_requests`."""
    send(url, "POST", "/moto-api/reset-auth", b"inf")
    body = urlencode({"Action": action, "UserName": "ci", "Version": "2010-05-08", **parameters})
    return send(url, "POST", "/", body.encode(), service="iam").decode()


@pytest.fixture
def user(checking_server: tuple[str, str, str], credentials: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of the server. The environment has the key of the user."""
    url, key_id, secret = checking_server
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    return url


def open_with_permissions(url: str, *actions: str) -> ConditionalObjects:
    """Grant the user these actions, and open the bucket."""
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    manage_user(url, "PutUserPolicy", PolicyName="state", PolicyDocument=policy)
    send(url, "POST", "/moto-api/reset-auth", b"0")
    return open_url(f"s3://bucket?endpoint={url}")


def get_diagnostic(caught: pytest.ExceptionInfo[KdeclareError]) -> Diagnostic:
    (diagnostic,) = caught.value.diagnostics
    assert TOKEN not in f"{diagnostic}"
    return diagnostic


@pytest.mark.slow
def test_documented_permissions_are_sufficient(user: str) -> None:
    objects = open_with_permissions(user, *DOCUMENTED)
    version = objects.create(KEY, b"first")
    objects.replace(KEY, b"second", version)
    assert objects.get(KEY) is not None
    assert objects.list_keys("") == (KEY,)
    objects.delete([KEY])
    assert objects.list_keys("") == ()


@pytest.mark.parametrize("missing", DOCUMENTED)
def test_missing_permission_is_named(user: str, missing: str) -> None:
    objects = open_with_permissions(user, *(action for action in DOCUMENTED if action != missing))
    requests: dict[str, Callable[[], object]] = {
        "s3:ListBucket": lambda: objects.list_keys(""),
        "s3:GetObject": lambda: objects.get(KEY),
        "s3:PutObject": lambda: objects.create(KEY, b"x"),
        "s3:DeleteObject": lambda: objects.delete([KEY]),
    }
    with pytest.raises(KdeclareError) as caught:
        requests[missing]()
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-no-access"
    assert "AccessDenied" in diagnostic.detail
    assert missing in diagnostic.hint


@pytest.mark.parametrize(
    ("variable", "reason"),
    [("AWS_SECRET_ACCESS_KEY", "SignatureDoesNotMatch"), ("AWS_ACCESS_KEY_ID", "InvalidAccessKeyId")],
)
def test_wrong_key_is_reported(
    user: str, monkeypatch: pytest.MonkeyPatch, variable: str, reason: str
) -> None:
    monkeypatch.setenv(variable, "WRONGWRONGWRONGWRONG")
    with pytest.raises(KdeclareError) as caught:
        open_with_permissions(user, *DOCUMENTED).get(KEY)
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-no-access"
    assert reason in diagnostic.detail
    assert variable in diagnostic.hint


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate for 127.0.0.1 and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    folder = tmp_path_factory.mktemp("certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key -out cert -subj /CN=local"
    extensions = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:127.0.0.1")
    subprocess.run([*command.split(), *extensions], cwd=folder, check=True, capture_output=True)
    return folder


@contextmanager
def run_token_exchange(
    folder: Path,
    server: str,
    on_request: Callable[[ProxiedRequest], object],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    """Run the service that exchanges identity tokens. The client uses it only with TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    with run_proxy(server, on_request, context) as url:
        monkeypatch.setenv("SSL_CERT_FILE", str(folder / "cert"))
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", url)
        yield


@pytest.fixture
def token_file(bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the identity token of a CI job or a pod, instead of a key."""
    file = tmp_path / "token"
    file.write_text(TOKEN)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(file))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/ci")
    return file


def test_identity_token_is_exchanged(
    s3_server: str, bucket: str, token_file: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queries: list[str] = []

    def exchange(request: ProxiedRequest) -> None:
        queries.append(urlsplit(request.path).query)
        request.respond(200, send(s3_server, "POST", "/", queries[-1].encode(), service="sts"))

    with run_token_exchange(certificate, s3_server, exchange, monkeypatch):
        objects = open_url(f"s3://{bucket}?endpoint={s3_server}")
        objects.create(KEY, b"x")
        assert objects.get(KEY) is not None
    (query,) = queries
    assert f"WebIdentityToken={TOKEN}" in query


def test_refused_identity_token_is_reported(
    s3_server: str, bucket: str, token_file: Path, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(request: ProxiedRequest) -> None:
        assert TOKEN in request.path
        request.respond(403, b"<Error><Code>AccessDenied</Code><Message>Not this role</Message></Error>")

    with run_token_exchange(certificate, s3_server, refuse, monkeypatch):
        objects = open_url(f"s3://{bucket}?endpoint={s3_server}")
        with pytest.raises(KdeclareError) as caught:
            objects.get(KEY)
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-no-access"
    assert "AccessDenied: Not this role" in diagnostic.detail
    assert "AWS_ROLE_ARN" in diagnostic.hint


def test_missing_token_file_is_reported(s3_server: str, bucket: str, token_file: Path) -> None:
    token_file.unlink()
    with pytest.raises(KdeclareError) as caught:
        open_url(f"s3://{bucket}?endpoint={s3_server}").get(KEY)
    diagnostic = get_diagnostic(caught)
    assert diagnostic.code == "state-no-access"
    assert str(token_file) in diagnostic.detail


def test_role_of_machine_is_used(s3_server: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", s3_server)
    open_url(f"s3://{bucket}?endpoint={s3_server}").create(KEY, b"x")
