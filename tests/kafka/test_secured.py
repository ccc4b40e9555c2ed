"""Secured brokers: every way to authenticate, and the errors of failed attempts."""

import json
import os
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdeclare import sandbox as kafka_sandbox
from kdeclare.cli.main import main
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client import KafkaCluster, connect, read_properties
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, NewTopic
from kdeclare.report.doctor import build_doctor_schemas
from kdeclare.sandbox import SandboxSettings, broker_properties, certificates, security
from kdeclare.sandbox.layout import SecurityFiles, resolve_layout
from kdeclare.sandbox.security import ADMIN, MECHANISMS, READER, get_password
from kdeclare.sandbox.settings import HOST
from tests.beds import all_created
from tests.conftest import free_port
from tests.polling import wait_for
from tests.token_providers import build_token, install_token_provider, write_token_command
from tests.unit.report.golden_files import check_golden
from tests.unit.test_kafka_oauth import run_endpoint

pytestmark = pytest.mark.kafka

_MODULES = dict.fromkeys(MECHANISMS, "scram.ScramLoginModule") | {"PLAIN": "plain.PlainLoginModule"}
_BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_TOPIC = "there"
_TIME_OUT_S = 300.0
_AT_MOST_S = 120.0
"""How long a failure may take: clearly less than the time-out of requests."""

_REAUTH_MS = 2000
"""The milliseconds after which clients with a token must authenticate again (KIP-368)."""

_IN_A_ROW = 4
"""Connections after which each of the two network threads of a sandbox listener has accepted one."""


@dataclass(frozen=True)
class SecuredBrokers:
    """Running secured brokers."""

    settings: SandboxSettings
    files: SecurityFiles

    def at(self, protocol: str) -> str:
        """Return the addresses for a security protocol."""
        return f"{HOST}:{self.settings.get_listener_port(1, protocol)}"

    def properties(
        self, protocol: str, mechanism: str | None = None, user: str = ADMIN, secret: str | None = None
    ) -> dict[str, str]:
        """Return client properties."""
        found = {"bootstrap.servers": self.at(protocol), "security.protocol": protocol}
        if protocol.endswith("SSL"):
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.files.authority_pem)}
        if mechanism is not None:
            found["sasl.mechanism"] = mechanism
            found["sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.{_MODULES[mechanism]} required "
                f'username="{user}" password="{secret or get_password(user)}";'
            )
        return found

    def admin(self) -> KafkaCluster:
        """A client with all permissions."""
        return connect("", read_properties(self.files.client(ADMIN)))


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str
    seconds: float


@dataclass
class CommandRunner:
    """Commands in a project, with client properties."""

    folder: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, properties: Mapping[str, str] | Path, *arguments: str) -> Ran:
        file = properties if isinstance(properties, Path) else self.folder / "client.properties"
        if not isinstance(properties, Path):
            file.write_text(broker_properties.render(dict(properties)))
        self.capsys.readouterr()
        begun = time.monotonic()
        code = main([*arguments, "--command-config", os.fspath(file), "--timeout", str(_TIME_OUT_S)])
        shown = self.capsys.readouterr()
        assert "Traceback" not in shown.err
        for user in (ADMIN, READER):
            assert get_password(user) not in shown.out + shown.err
        return Ran(code, shown.out, shown.err, time.monotonic() - begun)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBrokers]:
    """One broker with a topic that anonymous clients may describe.

    Over SASL_PLAINTEXT it also accepts unsigned tokens.
    """
    settings = SandboxSettings(
        tmp_path_factory.mktemp("secured"), 1, 1, free_port(1, secure=True), secure=True
    )
    usual = security.broker_properties

    def with_tokens(files: SecurityFiles) -> dict[str, str]:
        return usual(files) | {
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
            "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{_BEARER} required;",
            "listener.name.sasl_plaintext.oauthbearer.connections.max.reauth.ms": f"{_REAUTH_MS}",
        }

    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(security, "broker_properties", with_tokens)
            kafka_sandbox.start(settings, print)
        made = SecuredBrokers(settings, resolve_layout(settings.folder).security)
        cluster = made.admin()
        try:
            assert all_created(cluster.create_topics([NewTopic(_TOPIC, 1, 1, None, {})]))
        finally:
            cluster.close()
        grant_read_permissions(made)
        yield made
    finally:
        kafka_sandbox.reset(settings.folder)


def grant_read_permissions(secured: SecuredBrokers) -> None:
    """Grant anonymous clients the same read permissions as the reader."""
    done = kafka_sandbox.run_kafka_tool(
        "org.apache.kafka.tools.AclCommand",
        *("--bootstrap-server", secured.at("SASL_SSL"), "--command-config", str(secured.files.client(ADMIN))),
        *("--add", "--force", "--allow-principal", "User:ANONYMOUS", "--topic", "*", "--cluster"),
        *("--operation", "Describe", "--operation", "DescribeConfigs"),
    )
    assert done.returncode == 0, done.stderr


@pytest.fixture
def run_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> CommandRunner:
    """A project that declares a missing topic."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec: {}\n"
    )
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "orders.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders}\n"
        "spec: {partitions: 1, replicationFactor: 1}\n"
    )
    return CommandRunner(tmp_path, capsys)


def expect_list_and_plan(typed: CommandRunner, properties: Mapping[str, str] | Path) -> None:
    ran = typed(properties, "topic", "list")
    assert (ran.code, _TOPIC in ran.out) == (0, True), ran
    ran = typed(properties, "plan", "--no-preflight")
    assert (ran.code, "+ Topic/orders" in ran.out) == (0, True), ran


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        ("PLAINTEXT", None),
        ("SSL", None),
        *((protocol, name) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for name in MECHANISMS),
    ],
)
def test_client_connects_with_each_protocol_and_mechanism(
    secured: SecuredBrokers, run_command: CommandRunner, protocol: str, mechanism: str | None
) -> None:
    expect_list_and_plan(run_command, secured.properties(protocol, mechanism))


@pytest.mark.parametrize("user", [ADMIN, READER])
def test_client_files_of_the_sandbox_work(
    secured: SecuredBrokers, run_command: CommandRunner, user: str
) -> None:
    expect_list_and_plan(run_command, secured.files.client(user))


def test_client_connects_with_pkcs12_stores(secured: SecuredBrokers, run_command: CommandRunner) -> None:
    stores = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(secured.files.truststore),
        "ssl.truststore.password": certificates.KEYSTORE_PASSWORD,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(secured.files.keystore),
        "ssl.keystore.password": certificates.KEYSTORE_PASSWORD,
    }
    expect_list_and_plan(run_command, secured.properties("SSL") | stores)
    # clients authenticated as a broker may create topics, anonymous ones may not
    assert run_command(secured.properties("SSL") | stores, "plan").code == 0
    ran = run_command(secured.properties("SSL"), "plan")
    assert (ran.code, "needs Create on topic orders or on the cluster" in ran.out) == (0, True), ran


def test_client_connects_with_oauth_client_credentials(
    secured: SecuredBrokers, run_command: CommandRunner
) -> None:
    with run_endpoint() as at:
        at.answer = {"access_token": build_token(ADMIN, 60), "expires_in": 60}
        login = {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": at.url,
            "sasl.jaas.config": f'{_BEARER} required clientId="ci" clientSecret="{get_password(ADMIN)}";',
        }
        expect_list_and_plan(run_command, secured.properties("SASL_PLAINTEXT") | login)
        assert (
            run_command(secured.properties("SASL_PLAINTEXT") | login, "plan").code == 0
        )  # as an administrator
        at.answer = {"access_token": build_token(ADMIN, -60)}
        ran = run_command(secured.properties("SASL_PLAINTEXT") | login, "plan")
        assert (ran.code, "authentication failed" in ran.err) == (1, True), ran


def test_client_connects_with_token_from_command_file_and_installed_provider(
    secured: SecuredBrokers, run_command: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    login = secured.properties("SASL_PLAINTEXT") | {"sasl.mechanism": "OAUTHBEARER"}
    folder = run_command.folder
    line, _ = write_token_command(folder, ADMIN, 60)
    (folder / "token").write_text(build_token(ADMIN, 60))
    install_token_provider(folder / "site", "corp", f"return Token(build_token({ADMIN!r}, 60), 60.0)")
    monkeypatch.syspath_prepend(str(folder / "site"))
    for source in (
        {"kdeclare.token.command": line},
        {"sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri()},
        {"kdeclare.token.provider": "corp"},
    ):
        expect_list_and_plan(run_command, login | source)
    (folder / "token").write_text(build_token(ADMIN, -60))
    expired = {"sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri()}
    ran = run_command(login | expired, "plan")
    assert (ran.code, "authentication failed" in ran.err) == (1, True), ran


def test_client_authenticates_again_with_a_new_token(secured: SecuredBrokers, tmp_path: Path) -> None:
    """The broker closes a connection at the first request after the limit, and `connect` does not retry."""
    line, runs = write_token_command(tmp_path, ADMIN, 15)
    login = {"sasl.mechanism": "OAUTHBEARER", "kdeclare.token.command": line}
    cluster = connect(secured.at("SASL_PLAINTEXT"), secured.properties("SASL_PLAINTEXT") | login)
    try:

        def has_run_three_times() -> bool:
            assert cluster.describe().brokers
            return len(runs.read_text()) >= 3

        wait_for(has_run_three_times, _AT_MOST_S, every=0.1)
    finally:
        cluster.close()


def test_token_command_is_refused_in_project_file_and_with_references(
    secured: SecuredBrokers, run_command: CommandRunner
) -> None:
    login = secured.properties("SASL_PLAINTEXT") | {"sasl.mechanism": "OAUTHBEARER"}
    ran = run_command(login | {"kdeclare.token.command": "get-token ${env.HOME}"}, "plan")
    assert (ran.code, "the command contains a reference" in ran.err) == (1, True), ran
    (run_command.folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {environments: {lab: {bootstrapServers: 'localhost:1', "
        "clientConfig: {kdeclare.token.command: touch made}}}}\n"
    )
    ran = run_command(login, "plan")
    assert (ran.code, "allowed only in client properties files" in " ".join(ran.err.split())) == (1, True), (
        ran
    )
    assert not (run_command.folder / "made").exists()


def test_client_connects_with_referenced_secrets(
    secured: SecuredBrokers, run_command: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", get_password(ADMIN))
    (run_command.folder / "password").write_text(get_password(ADMIN) + "\n")
    for secret in ("${env.KAFKA_PASSWORD}", "${file.password}", "${command.printenv KAFKA_PASSWORD}"):
        expect_list_and_plan(run_command, secured.properties("SASL_SSL", "SCRAM-SHA-512", secret=secret))


def test_verbose_log_contains_no_password(secured: SecuredBrokers, run_command: CommandRunner) -> None:
    ran = run_command(secured.properties("SASL_SSL", "PLAIN"), "topic", "list", "-v")
    assert "Connected" in ran.err  # -v logs something


@pytest.mark.parametrize(
    ("declares_topic", "lacking"),
    [
        (True, {"Create declared topics", "Alter topic configs"}),
        (
            False,
            {
                "Create topics",
                "Alter the cluster",
                "Alter broker configs",
                "Alter topic configs",
                "Add partitions",
                "Delete topics",
            },
        ),
    ],
)
def test_doctor_reports_missing_permissions(
    secured: SecuredBrokers, run_command: CommandRunner, declares_topic: bool, lacking: set[str]
) -> None:
    if not declares_topic:
        (run_command.folder / "manifests" / "orders.yaml").unlink()
    validator = Draft202012Validator(build_doctor_schemas()["doctor"])
    stands = {}
    for user in (ADMIN, READER):
        ran = run_command(secured.files.client(user), "doctor", "--format", "json")
        assert ran.code == 0, ran
        validator.validate(document := json.loads(ran.out))
        stands[user] = {check["name"]: check["standing"] for check in document["checks"]}
        assert stands[user]["Broker 1"] == "ok"
        assert bool(document["manifests"]) == (declares_topic and user == READER)
    assert {name for name, standing in stands[READER].items() if standing == "warning"} == lacking
    assert {stands[ADMIN][name] for name in lacking} == {"ok"}
    features = ["Incremental config changes", "Replication factor guard", "Disk capacity"]
    assert [stands[ADMIN][name] for name in features] == ["ok"] * 3
    ran = run_command(secured.properties("SASL_SSL", "PLAIN", secret="wrong"), "doctor")
    assert (ran.code, "authentication failed" in ran.out, ran.seconds < _AT_MOST_S) == (1, True, True), ran


# failures


def test_connection_failures_are_explained_in_one_sentence(
    secured: SecuredBrokers, run_command: CommandRunner
) -> None:
    other = SecurityFiles(run_command.folder / "other")
    certificates.create_authority(other)
    scram, plain = (
        secured.properties("SASL_SSL", mechanism, secret="wrong") for mechanism in ("SCRAM-SHA-512", "PLAIN")
    )
    good = secured.properties("SASL_SSL", "SCRAM-SHA-512")
    cases = {
        "a wrong password (SCRAM)": scram,
        "a wrong password (PLAIN)": plain,
        "an authority that signed nothing": good | {"ssl.truststore.location": str(other.authority_pem)},
        "no authority at all": {k: v for k, v in good.items() if not k.startswith("ssl.")},
        "a mechanism that is not offered": good | _build_token_properties(run_command.folder),
        "TLS without a login": good | {"security.protocol": "SSL"},
        "neither TLS nor a login": good | {"security.protocol": "PLAINTEXT"},
        "a login without TLS": good | {"security.protocol": "SASL_PLAINTEXT"},
        "a port where nobody listens": good | {"bootstrap.servers": f"{HOST}:1"},
    }
    said = []
    for name, properties in cases.items():
        ran = run_command(properties, "plan")
        assert (ran.code, ran.out, ran.seconds < _AT_MOST_S) == (1, "", True), ran
        said.append(f"# {name}\n{ran.err}")
    check_golden("secured", "\n".join(said).replace(secured.at("SASL_SSL"), "broker:9093"))


def _build_token_properties(folder: Path) -> dict[str, str]:
    (folder / "token").write_text("e30.e30.")
    return {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": (folder / "token").as_uri(),
        "sasl.jaas.config": "",
    }


def test_missing_permission_is_explained_in_one_sentence(
    secured: SecuredBrokers, run_command: CommandRunner
) -> None:
    ran = run_command(secured.files.client(READER), "apply", "--yes")
    assert (ran.code, ran.seconds < _AT_MOST_S) == (5, True), ran
    check_golden("secured-not-permitted", ran.out.partition("Summary")[0].partition("\n")[2])


def test_plan_without_describe_permission_is_blocked(
    secured: SecuredBrokers, run_command: CommandRunner
) -> None:
    store = run_command.folder / "nobody.p12"
    certificates.issue_keystore(secured.files, store, "nobody")
    keys = {
        "ssl.keystore.location": str(store),
        "ssl.keystore.password": certificates.KEYSTORE_PASSWORD,
    }
    ran = run_command(secured.properties("SSL") | keys, "plan")
    assert (ran.code, ran.seconds < _AT_MOST_S) == (3, True), ran
    assert "1 to create" not in ran.out
    check_golden("secured-sees-nothing", ran.out.partition("\n")[2])


def test_expired_certificate_is_reported(secured: SecuredBrokers, run_command: CommandRunner) -> None:
    expired = run_command.folder / "expired.p12"
    certificates.issue_keystore(secured.files, expired, "broker", 1, days_ago=10)
    key = "listener.name.sasl_ssl.ssl.keystore.location"
    cluster = connect("", secured.properties("SASL_PLAINTEXT", "PLAIN"))
    broker = ConfigResource(ConfigScope.BROKER, "1")

    def alter(op: FieldOp, value: str | None) -> None:
        assert cluster.alter_configs([ConfigAlteration(broker, (ConfigOp(key, op, value),))]) == {
            broker: None
        }

    properties = secured.properties("SASL_SSL", "SCRAM-SHA-256")
    try:
        alter(FieldOp.SET, str(expired))
        # each network thread loads it on its own, and connections alternate between them
        wait_for(lambda: all(_has_expired_certificate(secured) for _ in range(_IN_A_ROW)), 90, every=0.1)
        ran = run_command(properties, "plan", "--no-preflight")
        assert (ran.code, ran.out, ran.seconds < _AT_MOST_S) == (1, "", True), ran
        check_golden("secured-expired", ran.err.replace(secured.at("SASL_SSL"), "broker:9093"))
    finally:
        alter(FieldOp.DELETE, None)
        cluster.close()
    wait_for(lambda: run_command(properties, "plan", "--no-preflight").code == 0, 90, every=0.1)


def _has_expired_certificate(secured: SecuredBrokers) -> bool:
    """Check with OpenSSL only; in the meantime, each connection of a plan may see either certificate."""
    context = ssl.create_default_context(cafile=secured.files.authority_pem)
    host, _, port = secured.at("SASL_SSL").rpartition(":")
    try:
        with (
            socket.create_connection((host, int(port))) as plain,
            context.wrap_socket(plain, server_hostname=host),
        ):
            return False
    except ssl.SSLCertVerificationError as exc:
        return "expired" in exc.verify_message
