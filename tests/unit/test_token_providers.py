"""Tokens for OAUTHBEARER from commands, installed token providers, and the signer of Amazon MSK."""

import base64
import sys
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.secrets import secret_command
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.oauth import TokenProvider
from kdeclare.providers.kafka.client.properties import build_client_arguments
from kdeclare.providers.kafka.client.tokens.msk_iam import find_region
from kdeclare.providers.kafka.client.tokens.token import DEFAULT_LIFETIME_S, parse_token, read_jwt_lifetime_s
from tests.token_providers import build_token, install_token_provider, write_token_command

BASE = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
JAAS = "software.amazon.msk.auth.iam.IAMLoginModule required"


def build_provider(**properties: str) -> TokenProvider:
    arguments, warnings = build_client_arguments(BASE | _rename(properties))
    assert warnings == ()
    provider = arguments["sasl_oauth_token_provider"]
    assert isinstance(provider, TokenProvider)
    return provider


def _rename(properties: Mapping[str, str]) -> dict[str, str]:
    return {f"kdeclare.token.{name.replace('_', '.')}": value for name, value in properties.items()}


def catch_error(**properties: str) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        connect("127.0.0.1:1", BASE | _rename(properties))
    (found,) = raised.value.diagnostics
    assert found.hint
    return found


def test_command_prints_a_token_that_is_reused_until_it_expires(tmp_path: Path) -> None:
    line, runs = write_token_command(tmp_path, "ci", 3600)
    provider = build_provider(command=line)
    assert not runs.exists(), "the command runs only when kdeclare connects"
    token = provider.token()
    assert (token, provider.token()) == (token, token)
    assert runs.read_text() == "."
    lifetime_s = read_jwt_lifetime_s(token)
    assert lifetime_s is not None
    assert 0 < lifetime_s <= 3600
    provider._fresh_until = 0
    provider.token()
    assert runs.read_text() == ".."


def test_command_inherits_environment_without_secrets_of_kdeclare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDECLARE_SECRET_KEY", "own")
    monkeypatch.setenv("CLIENT_SECRET", "for-the-command")
    program = tmp_path / "p.py"
    program.write_text(
        "import os\nprint(os.environ['CLIENT_SECRET'], os.environ.get('KDECLARE_SECRET_KEY', ''))"
    )
    assert build_provider(command=f"{sys.executable} {program}").token() == "for-the-command"


@pytest.mark.parametrize(
    ("output", "token", "lifetime_s"),
    [
        ("opaque\n", "opaque", DEFAULT_LIFETIME_S),
        ('{"access_token": "t", "expires_in": 60}', "t", 60),
        ('{"access_token": "t", "expires_in": "90"}', "t", 90),
        ('{"access_token": "t"}', "t", DEFAULT_LIFETIME_S),
        ("a.b.c", "a.b.c", DEFAULT_LIFETIME_S),
        ("e30.e30.", "e30.e30.", DEFAULT_LIFETIME_S),
    ],
)
def test_output_of_a_command_is_parsed(output: str, token: str, lifetime_s: float) -> None:
    assert parse_token(output) == (token, lifetime_s)


def test_expired_token_has_no_lifetime() -> None:
    token = build_token("x", -60)
    assert parse_token(token) == (token, 0)


def test_lifetime_of_a_token_in_a_document_is_read_from_the_token() -> None:
    token = build_token("x", 100)
    assert 0 < parse_token(f'{{"access_token": "{token}"}}').lifetime_s <= 100


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("", "the output is empty"),
        ("print('s3cret s3cret')", "neither one token nor JSON"),
        ('print(\'{"token": "s3cret"}\')', "not JSON with an access_token"),
        ("print('{\"access_token\": 5}')", "empty or not a string"),
        ("print('s3cret'); raise SystemExit(3)", "exited with status 3"),
        ("print('s3cret'); import time; time.sleep(60)", "did not finish within 1 s"),
        ("import sys; sys.stdout.buffer.write(bytes([255]))", "not UTF-8 text"),
        ("print('s3cret' * 200_000)", "longer than"),
    ],
)
def test_command_without_a_token_is_reported_without_its_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, words: str
) -> None:
    if "sleep" in program:
        monkeypatch.setattr(secret_command, "SECRET_COMMAND_TIMEOUT_S", 1.0)
    (tmp_path / "p.py").write_text(program)
    found = catch_error(command=f"{sys.executable} {tmp_path / 'p.py'}")
    assert found.code == "no-token"
    assert words in found.detail
    assert "s3cret" not in f"{found}"


def test_missing_command_is_reported() -> None:
    assert "no such file or directory" in catch_error(command="/no/such/command").detail


def test_installed_token_provider_gets_options_and_servers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = 'return Token(f\'{request.options["audience"]}/{",".join(request.servers)}\', 60.0)'
    install_token_provider(tmp_path, "corp", body)
    monkeypatch.syspath_prepend(str(tmp_path))
    properties = _rename({"provider": "corp", "provider_audience": "kafka"})
    arguments, _ = build_client_arguments(BASE | properties | {"bootstrap.servers": "a:1, b:2"})
    assert arguments["sasl_oauth_token_provider"].token() == "kafka/a:1,b:2"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "raise RuntimeError('the identity provider is down')",
            "RuntimeError: the identity provider is down.",
        ),
        ("return 'text'", "did not return a token"),
        ("return Token('', 60.0)", "did not return a token"),
    ],
)
def test_failing_token_provider_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    name = f"failing{abs(hash(body))}"  # modules stay imported
    install_token_provider(tmp_path, name, body)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = catch_error(provider=name)
    assert (found.code, words in found.detail) == ("no-token", True), found


def test_unknown_token_provider_is_reported_with_installed_names() -> None:
    found = catch_error(provider="msk")
    assert (found.code, "'msk'" in found.detail, "msk-iam" in found.hint) == ("client-properties", True, True)


def test_only_one_source_of_tokens_is_allowed() -> None:
    found = catch_error(command="x", provider="msk-iam")
    assert "kdeclare.token.command is also set" in found.detail


@pytest.fixture
def aws_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials in environment variables. AWS tools find no other credentials and no region."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        "[ops]\naws_access_key_id = AKIDOPS\naws_secret_access_key = s3cret-ops\n"
    )


MSK_SERVERS = "b-1.shop.abc123.c2.kafka.eu-west-1.amazonaws.com:9098"


@pytest.mark.parametrize(
    ("properties", "key"),
    [
        (_rename({"provider": "msk-iam"}) | {"sasl.mechanism": "OAUTHBEARER"}, "AKIDEXAMPLE"),
        (
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": f"{JAAS};",
                "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            },
            "AKIDEXAMPLE",
        ),
        (
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": f'{JAAS} awsProfileName="ops";',
                "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            },
            "AKIDOPS",
        ),
        (
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
                'required awsProfileName="ops";',
                "sasl.login.callback.handler.class": "software.amazon.msk.auth.iam."
                "IAMOAuthBearerLoginCallbackHandler",
            },
            "AKIDOPS",
        ),
    ],
)
@pytest.mark.usefixtures("aws_keys")
def test_msk_token_is_signed_for_the_region_of_the_brokers(properties: dict[str, str], key: str) -> None:
    given = {"security.protocol": "SASL_PLAINTEXT", "bootstrap.servers": MSK_SERVERS, **properties}
    arguments, warnings = build_client_arguments(given)
    assert (arguments["sasl_mechanism"], warnings) == ("OAUTHBEARER", ())
    token = arguments["sasl_oauth_token_provider"].token()
    url = urllib.parse.urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    query = urllib.parse.parse_qs(url.query)
    assert url.hostname == "kafka.eu-west-1.amazonaws.com"
    assert query["Action"] == ["kafka-cluster:Connect"]
    assert query["X-Amz-Credential"][0].startswith(f"{key}/")
    assert "/eu-west-1/kafka-cluster/" in query["X-Amz-Credential"][0]
    assert "s3cret" not in token


@pytest.mark.parametrize(
    ("options", "servers", "environ", "region"),
    [
        ({"region": "us-east-2"}, (MSK_SERVERS,), {}, "us-east-2"),
        ({}, ("boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098",), {"AWS_REGION": "x"}, "us-east-1"),
        ({}, ("b-1.x.kafka.cn-north-1.amazonaws.com.cn:9098",), {}, "cn-north-1"),
        ({}, ("127.0.0.1:9098",), {"AWS_DEFAULT_REGION": "eu-north-1"}, "eu-north-1"),
    ],
)
def test_region_is_found(
    options: dict[str, str], servers: tuple[str, ...], environ: dict[str, str], region: str
) -> None:
    assert find_region(options, servers, environ) == region


@pytest.mark.usefixtures("aws_keys")
def test_missing_region_and_unknown_option_are_reported() -> None:
    assert "kdeclare.token.provider.region" in catch_error(provider="msk-iam").detail
    assert "kdeclare.token.provider.rgion" in catch_error(provider="msk-iam", provider_rgion="x").detail


@pytest.mark.usefixtures("aws_keys")
def test_missing_aws_credentials_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    found = catch_error(provider="msk-iam", provider_region="eu-west-1")
    assert (found.code, "token provider 'msk-iam'" in found.detail) == ("no-token", True), found


def test_missing_extra_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    found = catch_error(provider="msk-iam")
    assert found.code == "extra-missing"
    assert found.hint == "Install it with `pip install 'kdeclare[msk-iam]'`."
