"""Logins with Kerberos: a real KDC, and a broker that authenticates clients with Java's Krb5LoginModule."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.cli.main import main
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import KafkaCluster, connect, read_properties
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxSettings, broker_properties, security
from kdeclare.sandbox.layout import SecurityFiles, resolve_layout
from kdeclare.sandbox.security import ADMIN
from kdeclare.sandbox.settings import HOST
from tests.beds import all_created
from tests.conftest import free_port
from tests.kafka.kdc import Kdc, find_missing_part, run_kdc
from tests.polling import wait_for

MISSING = find_missing_part()
pytestmark = [pytest.mark.kafka, pytest.mark.skipif(MISSING is not None, reason=str(MISSING))]

TOPIC = "kerberos-topic"
USER = "team"
REAUTH_MS = 2000
_MODULE = "com.sun.security.auth.module.Krb5LoginModule"


class Kerberized:
    """A broker with Kerberos on the listener SASL_PLAINTEXT, and its KDC."""

    def __init__(self, settings: SandboxSettings, kdc: Kdc) -> None:
        self.settings, self.kdc = settings, kdc
        self.keytab = kdc.folder / f"{USER}.keytab"

    def properties(self, jaas_options: str | None = None) -> dict[str, str]:
        """Return client properties. jaas_options: the options of the JAAS line, or None for no such line."""
        port = self.settings.get_listener_port(1, "SASL_PLAINTEXT")
        found = {
            "bootstrap.servers": f"{HOST}:{port}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
        }
        if jaas_options is not None:
            found["sasl.jaas.config"] = f"{_MODULE} required {jaas_options};"
        return found

    def keytab_properties(self) -> dict[str, str]:
        """Return client properties that name a keytab, as Kafka's own tools need it."""
        return self.properties(f'useKeyTab=true storeKey=true keyTab="{self.keytab}" principal="{USER}"')


@pytest.fixture(scope="module")
def kerberized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberized]:
    """One broker with a topic that only ``User:team`` and the administrator may describe."""
    folder = tmp_path_factory.mktemp("kerberos")
    settings = SandboxSettings(folder / "broker", 1, 1, free_port(1, secure=True), secure=True)
    (folder / "kdc").mkdir()
    usual = security.broker_properties
    with run_kdc(folder / "kdc") as kdc:
        broker_key = kdc.create_keytab(f"kafka/{HOST}")
        kdc.create_keytab(USER)

        def with_kerberos(files: SecurityFiles) -> dict[str, str]:
            listener = "listener.name.sasl_plaintext"
            login = f'{_MODULE} required useKeyTab=true storeKey=true keyTab="{broker_key}"'
            return usual(files) | {
                f"{listener}.sasl.enabled.mechanisms": "GSSAPI,PLAIN",
                f"{listener}.sasl.kerberos.service.name": "kafka",
                f"{listener}.gssapi.sasl.jaas.config": f'{login} principal="kafka/{HOST}";',
                f"{listener}.gssapi.connections.max.reauth.ms": f"{REAUTH_MS}",
            }

        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={kdc.client_conf}")
                patch.setattr(security, "broker_properties", with_kerberos)
                kafka_sandbox.start(settings, print)
            grant_access(settings)
            yield Kerberized(settings, kdc)
        finally:
            kafka_sandbox.reset(settings.folder)


def grant_access(settings: SandboxSettings) -> None:
    cluster = connect("", read_properties(resolve_layout(settings.folder).security.client(ADMIN)))
    try:
        assert all_created(cluster.create_topics([NewTopic(TOPIC, 1, 1, None, {})]))
        rights = [f"ALLOW User:{USER} {op} topic:{TOPIC} from *" for op in ("DESCRIBE", "DESCRIBE_CONFIGS")]
        assert set(cluster.create_acls([parse_binding(text) for text in rights]).values()) == {None}
    finally:
        cluster.close()


@pytest.fixture(autouse=True)
def without_tickets(kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let kdeclare use the KDC. Neither tickets nor keys are in the default places."""
    for name, value in kerberized.kdc.environ.items():
        monkeypatch.setenv(name, value)


def expect_topics(properties: Mapping[str, str]) -> KafkaCluster:
    """Return a client that sees exactly the topic of the user. The grant can arrive late."""
    cluster = connect("", properties, timeout_s=300, request_timeout_s=300)
    wait_for(lambda: list(cluster.topics()) == [TOPIC], 90)
    return cluster


def read_error(properties: Mapping[str, str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the error of a command in an empty project, on one line."""
    (folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec: {}\n"
    )
    file = folder / "client.properties"
    file.write_text(broker_properties.render(dict(properties)))
    code = main(["topic", "list", "--command-config", str(file), "--timeout", "300"])
    text = " ".join(capsys.readouterr().err.split())
    assert (code, "Traceback" in text) == (1, False)
    return text


def test_client_logs_in_with_keytab_of_the_jaas_line_and_again(kerberized: Kerberized) -> None:
    cluster = expect_topics(kerberized.keytab_properties())
    try:
        assert cluster.describe().sasl_mechanism == "GSSAPI"
        end = time.monotonic() + 3 * REAUTH_MS / 1000
        while time.monotonic() < end:
            assert list(cluster.topics()) == [TOPIC]
            time.sleep(0.2)
    finally:
        cluster.close()


def test_client_logs_in_with_keytab_of_the_environment(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{kerberized.keytab}")
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")
    expect_topics(kerberized.properties()).close()


@pytest.mark.parametrize("is_named", [True, False])
def test_client_logs_in_with_a_ticket(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_named: bool
) -> None:
    cache = tmp_path / "tickets"
    kerberized.kdc.log_in(USER, kerberized.keytab, cache)
    if is_named:
        expect_topics(kerberized.properties(f'useTicketCache=true ticketCache="{cache}"')).close()
    else:
        monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
        expect_topics(kerberized.properties()).close()


def test_same_properties_work_with_kafkas_own_tool(
    kerberized: Kerberized, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(broker_properties.render(kerberized.keytab_properties()))
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{HOST} {HOST}\n")  # otherwise, Java asks for a ticket for kafka/localhost
    options = f"-Djava.security.krb5.conf={kerberized.kdc.client_conf} -Djdk.net.hosts.file={hosts}"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", options)
    server = kerberized.properties()["bootstrap.servers"]
    done = kafka_sandbox.run_kafka_tool(
        "org.apache.kafka.tools.TopicCommand",
        *("--list", "--bootstrap-server", server, "--command-config", str(file)),
    )
    assert (done.returncode, done.stdout.split()) == (0, [TOPIC]), done.stderr


def test_failed_logins_are_explained(
    kerberized: Kerberized,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    text = read_error(kerberized.properties(), tmp_path, capsys)
    assert f"authentication failed: Kerberos service kafka@{HOST}: " in text
    assert "Check the ticket with klist" in text
    wrong_service = kerberized.keytab_properties() | {"sasl.kerberos.service.name": "other"}
    text = read_error(wrong_service, tmp_path, capsys)
    assert f"Kerberos service other@{HOST}: Server other/{HOST}@SHOP.TEST not found" in text
    missing_keytab = kerberized.properties(f'useKeyTab=true keyTab="{tmp_path}/none"')
    assert "none does not exist" in read_error(missing_keytab, tmp_path, capsys)
