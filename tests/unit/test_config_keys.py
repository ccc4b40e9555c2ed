"""Validation of prefixed broker config keys and of broker names."""

import pytest

from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import (
    encode_body,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, narrow
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK, Secret
from kdeclare.manifests.editing.documents import FileEdit
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody
from kdeclare.providers.kafka.ids import ConfigScope, parse_broker_id
from kdeclare.report.manifest.manifest_diff import render_manifest_diff

BROKER_KEYS = load_catalog(ConfigScope.BROKER)
JAAS = "listener.name.external.scram-sha-256.sasl.jaas.config"
LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required password=hunter2;"


@pytest.mark.parametrize(
    ("key", "type_name"),
    [
        (JAAS, "PASSWORD"),
        ("listener.name.sasl_ssl.plain.sasl.jaas.config", "PASSWORD"),
        ("listener.name.a.gssapi.sasl.jaas.config", "PASSWORD"),
        ("listener.name.a.plain.sasl.server.callback.handler.class", "CLASS"),
        ("listener.name.a.oauthbearer.sasl.login.callback.handler.class", "CLASS"),
        ("listener.name.a.oauthbearer.sasl.login.class", "CLASS"),
        ("listener.name.a.oauthbearer.connections.max.reauth.ms", "LONG"),
        ("listener.name.a.oauthbearer.sasl.oauthbearer.jwks.endpoint.url", "STRING"),
        ("listener.name.a.sasl.enabled.mechanisms", "LIST"),
        ("listener.name.a.sasl.jaas.config", "PASSWORD"),
        ("listener.name.a.ssl.keystore.password", "PASSWORD"),
        ("listener.name.a.ssl.principal.mapping.rules", "STRING"),
        ("listener.name.a.principal.builder.class", "CLASS"),
        ("listener.name.a.connections.max.reauth.ms", "LONG"),
    ],
)
def test_documented_prefixed_key_is_per_broker(key: str, type_name: str) -> None:
    info = BROKER_KEYS.get(key)
    assert info is not None
    assert (info.type, info.mode) == (type_name, "per-broker")


@pytest.mark.parametrize("key", ["max.connections", "max.connection.creation.rate", "num.network.threads"])
def test_connection_limits_of_listener_are_cluster_wide(key: str) -> None:
    info = BROKER_KEYS.get(f"listener.name.internal.{key}")
    assert info is not None
    assert info.mode == "cluster-wide"


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        # Kafka stores these but never reads them.
        ("listener.name.a.log.retention.ms", "Did you mean 'log.retention.ms'?"),
        ("listener.name.A.ssl.client.auth", "Did you mean 'listener.name.a.ssl.client.auth'?"),
        (
            "listener.name.a.SCRAM-SHA-256.sasl.jaas.config",
            "'listener.name.a.scram-sha-256.sasl.jaas.config'?",
        ),
        ("listener.name.a.plain.sasl.jaas.confg", "Did you mean 'listener.name.a.plain.sasl.jaas.config'?"),
        ("listener.name.a.ssl.keystore.pasword", "Did you mean 'listener.name.a.ssl.keystore.password'?"),
        ("listener.name.a.plain.ssl.client.auth", "Did you mean 'listener.name.a.ssl.client.auth'?"),
        ("listener.name.a.plain.sasl.enabled.mechanisms", "'listener.name.a.sasl.enabled.mechanisms'?"),
        ("listener.name.sasl.jaas.config", "sasl.jaas.config"),
    ],
)
def test_unknown_prefixed_key_is_reported_with_suggestion(key: str, hint: str) -> None:
    kind = KINDS["BrokerConfig"]
    assert BROKER_KEYS.get(key) is None
    _, problems = kind.parse("1", kind.spec.model_validate({"configs": {key: "1"}}))
    (wrong,) = [problem.diagnostic for problem in problems]
    assert wrong.code == "unknown-config"
    assert hint in wrong.hint


def test_literal_login_of_mechanism_is_secret() -> None:
    kind = KINDS["BrokerConfig"]
    body, problems = kind.parse("1", kind.spec.model_validate({"configs": {JAAS: LOGIN}}))
    assert isinstance(narrow(body, ConfigsBody).configs[JAAS], Secret)
    assert [problem.diagnostic.code for problem in problems] == ["literal-secret"]
    assert "hunter2" not in str(problems)
    assert "hunter2" not in str(encode_body(DesiredResource(ResourceId("BrokerConfig", "1"), body)))


@pytest.mark.parametrize("key", [JAAS, JAAS.upper(), "listener.name.EXTERNAL.plain.sasl.jaas.config"])
def test_manifest_diff_hides_login_of_mechanism(key: str) -> None:
    text = f"  configs:\n    {key}: {LOGIN}\n".encode()
    shown = render_manifest_diff([FileEdit("broker.yaml", None, text)])
    assert "hunter2" not in shown
    assert f"{key}: {SENSITIVE_MASK}" in shown


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("1", 1), ("2147483647", 2147483647), ("20", 20)])
def test_parse_broker_id_returns_number(text: str, number: int) -> None:
    assert parse_broker_id(text) == number


NO_IDS = ["²", "٣", "1²", "01", "-1", "+1", " 1", "1_0", "", "2147483648", "9" * 5000, "one"]


@pytest.mark.parametrize("name", NO_IDS)
def test_broker_config_name_must_be_broker_id(name: str) -> None:
    assert parse_broker_id(name) is None
    kind = KINDS["BrokerConfig"]
    _, problems = kind.parse(name, kind.spec.model_validate({}))
    assert [problem.diagnostic.code for problem in problems] == ["illegal-broker-name"]
