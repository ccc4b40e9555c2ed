"""Kafka client properties: reading files, and the resulting client arguments."""

import ssl
import sys
import tempfile
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client.properties import build_client_arguments, read_properties
from tests.pems import pems

__all__ = ["pems"]

PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="s3cret";'
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required username=ann password='s\\'3';"


def catch_error_text(properties: dict[str, str]) -> str:
    """Return the error's detail and hint, and check that they contain no secret."""
    with pytest.raises(KdeclareError) as raised:
        build_client_arguments(properties)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == "client-properties"
    assert "s3cret" not in f"{diagnostic}"
    return f"{diagnostic.detail} {diagnostic.hint}"


def test_read_properties_parses_like_java(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes(
        b"# comment\n! comment\r\n"
        b"  client.id = kd\n"
        b"a:1\n"
        b"b 2\n"
        b"empty\n"
        b"also.empty=\n"
        b"long=one,\\\n    two,\\\n  three\n"
        b"escaped\\=key=tab\\tu\\u00e9 end \n"
        b"backslash=C:\\\\dir\\\\\n"
        b"latin=\xe9\n"
        b"twice=1\ntwice=2\n"
        b"not.a.comment=x # y\n"
        b"last=eof"
    )
    assert read_properties(path) == {
        "client.id": "kd",
        "a": "1",
        "b": "2",
        "empty": "",
        "also.empty": "",
        "long": "one,two,three",
        "escaped=key": "tab\tué end ",
        "backslash": "C:\\dir\\",
        "latin": "é",
        "twice": "2",
        "not.a.comment": "x # y",
        "last": "eof",
    }


def test_read_properties_names_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match=r"nothing\.properties: No such file"):
        read_properties(tmp_path / "nothing.properties")


def test_plain_properties_become_client_arguments() -> None:
    arguments, warnings = build_client_arguments(
        {"bootstrap.servers": "a:1", "client.id": "x", "request.timeout.ms": "1500", "retries": "3"}
    )
    assert arguments == {"security_protocol": "PLAINTEXT", "client_id": "x", "request_timeout_ms": 1500}
    assert warnings == ()


def test_unused_properties_give_one_warning() -> None:
    _, warnings = build_client_arguments({"acks": "all", "group.id": "g"})
    (only,) = warnings
    assert only.code == "unused-client-property"
    assert "acks, group.id" in only.detail
    _, [only] = build_client_arguments({"security.protocol": "SSL", "ssl.truststore.loaction": "x"})
    assert "ssl.truststore.loaction" in only.detail


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"request.timeout.ms": "soon"}, ["request.timeout.ms", "'soon'", "whole number"]),
        ({"client.dns.lookup": "foo"}, ["client.dns.lookup", "'foo'", "use_all_dns_ips"]),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "é"},
            ["ssl.truststore.certificates", "not in PEM format"],
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": "é", "ssl.keystore.certificate.chain": "x"},
            ["ssl.keystore.key", "not in PEM format"],
        ),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.key": "-----BEGIN é",
                "ssl.keystore.certificate.chain": "é",
            },
            ["ssl.keystore.certificate.chain", "not in PEM format"],
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.key": "x"},
            ["ssl.keystore.key: this property requires ssl.keystore.certificate.chain, which is missing"],
        ),
        (
            {"security.protocol": "SSL", "ssl.keystore.certificate.chain": "x"},
            ["ssl.keystore.certificate.chain: this property requires ssl.keystore.key, which is missing"],
        ),
        ({"security.protocol": "TLS"}, ["security.protocol", "'TLS'", "SASL_SSL"]),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "NTLM"}, ["NTLM", "SCRAM-SHA-512", "GSSAPI"]),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}, ["sasl.kerberos.service.name"]),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI", "sasl.jaas.config": PLAIN},
            ["PlainLoginModule cannot be used with GSSAPI", "Krb5LoginModule"],
        ),
        ({"security.protocol": "SASL_PLAINTEXT"}, ["sasl.mechanism", "GSSAPI"]),
        (
            {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            ["sasl.jaas.config", "missing", "PlainLoginModule required"],
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": PLAIN.rstrip(";"),
            },
            ["sasl.jaas.config", "form", "semicolon"],
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-256",
                "sasl.jaas.config": PLAIN,
            },
            ["PlainLoginModule", "cannot be used with SCRAM-SHA-256"],
        ),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": PLAIN.replace("username", "user"),
            },
            ["the value has no username"],
        ),
        ({"config.providers": "file"}, ["config.providers"]),
        (
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.jaas.config": PLAIN,
                "sasl.login.callback.handler.class": "x.Y",
            },
            ["sasl.login.callback.handler.class", "x.Y"],
        ),
        ({"sasl.login.class": "x.Y"}, ["sasl.login.class"]),
        ({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "ldap"}, ["'ldap'", "https"]),
        ({"security.protocol": "SSL", "ssl.cipher.suites": "X"}, ["ssl.cipher.suites"]),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/no/such/file"},
            ["ssl.truststore.location", "/no/such/file"],
        ),
        ({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1"}, ["ssl.enabled.protocols"]),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": "-----BEGIN é"},
            ["ssl.truststore.certificates", "no readable certificates"],
        ),
    ],
)
def test_unsupported_properties_are_rejected(properties: dict[str, str], words: list[str]) -> None:
    text = catch_error_text(properties)
    for word in words:
        assert word in text


def test_plain_and_scram_logins_become_client_arguments() -> None:
    arguments, _ = build_client_arguments(
        {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN}
    )
    assert arguments == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "ann",
        "sasl_plain_password": "s3cret",
    }
    arguments, _ = build_client_arguments(
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": SCRAM}
    )
    assert arguments["sasl_plain_password"] == "s'3"


def test_jks_store_is_rejected_with_hint(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed")
    text = catch_error_text({"security.protocol": "SSL", "ssl.truststore.location": str(store)})
    for word in (
        "trust.jks is a JKS store",
        f"keytool -importkeystore -srckeystore {store} -destkeystore {tmp_path}/trust.p12",
        "ssl.truststore.type=PKCS12",
    ):
        assert word in text


def make_ssl_context(properties: dict[str, str]) -> ssl.SSLContext:
    arguments, _ = build_client_arguments({"security.protocol": "SSL", **properties})
    made = arguments["ssl_context"]
    assert isinstance(made, ssl.SSLContext)
    return made


def test_tls_context_checks_certificate_and_host_name_by_default() -> None:
    assert make_ssl_context({}).check_hostname
    assert make_ssl_context({}).verify_mode is ssl.CERT_REQUIRED
    lax = make_ssl_context({"ssl.endpoint.identification.algorithm": "", "ssl.enabled.protocols": "TLSv1.3"})
    assert not lax.check_hostname
    assert lax.verify_mode is ssl.CERT_REQUIRED
    assert lax.minimum_version is ssl.TLSVersion.TLSv1_3


def test_pem_files_and_text_are_loaded(pems: Path) -> None:
    cert = str(pems / "cert")
    assert make_ssl_context({"ssl.truststore.location": cert}).cert_store_stats()["x509"] == 1
    one_line = " ".join((pems / "cert").read_text().split("\n"))
    assert make_ssl_context({"ssl.truststore.certificates": one_line}).cert_store_stats()["x509"] == 1
    make_ssl_context({"ssl.truststore.location": cert, "ssl.keystore.location": str(pems / "store-key")})
    locked = {
        "ssl.keystore.key": " ".join((pems / "locked").read_text().split("\n")),
        "ssl.keystore.certificate.chain": one_line,
    }
    make_ssl_context({**locked, "ssl.key.password": "secret"})
    assert "ssl.keystore.key" in catch_error_text(
        {"security.protocol": "SSL", **locked, "ssl.key.password": "wrong"}
    )
    text = catch_error_text({"security.protocol": "SSL", "ssl.keystore.location": str(pems / "store-locked")})
    assert "ssl.key.password is correct" in text


def test_pem_comments_may_contain_non_ascii_text(pems: Path, tmp_path: Path) -> None:
    said, cert, key = (
        "# Zertifikat für Jürgen — 証明書\n",
        (pems / "cert").read_text(),
        (pems / "key").read_text(),
    )
    trust = tmp_path / "trust"
    trust.write_text(said + cert + said, "utf-8")
    assert make_ssl_context({"ssl.truststore.location": str(trust)}).cert_store_stats()["x509"] == 1
    assert (
        make_ssl_context({"ssl.truststore.certificates": said + cert + said}).cert_store_stats()["x509"] == 1
    )
    store = tmp_path / "store"
    store.write_text(said + key + said + cert, "utf-8")
    make_ssl_context({"ssl.keystore.location": str(store)})
    make_ssl_context({"ssl.keystore.key": said + key, "ssl.keystore.certificate.chain": said + cert})


def test_pkcs12_stores_are_loaded(pems: Path) -> None:
    trust = {"ssl.truststore.location": str(pems / "store.p12"), "ssl.truststore.password": "secret"}
    assert make_ssl_context(trust).cert_store_stats()["x509"] == 1
    key = {"ssl.keystore.location": str(pems / "store.p12"), "ssl.keystore.type": "PKCS12"}
    make_ssl_context({**key, "ssl.keystore.password": "secret"})
    for password, word in (("wrong", "the password is wrong"), (None, "the password is missing")):
        given = {**key, "ssl.keystore.password": password} if password else key
        text = catch_error_text({"security.protocol": "SSL", **given})
        assert "ssl.keystore.password" in text
        assert word in text
        assert str(password) not in text.replace(word, "")


def test_stores_of_other_formats_are_rejected(pems: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    (tmp_path / "jceks").write_bytes(b"\xce\xce\xce\xce\x00")
    for file, word in (("text", "neither PEM nor PKCS12"), ("jceks", "JCEKS store")):
        assert word in catch_error_text(
            {"security.protocol": "SSL", "ssl.keystore.location": str(tmp_path / file)}
        )
    bare = {"ssl.keystore.location": str(pems / "bare.p12"), "ssl.keystore.password": "secret"}
    assert "does not contain both a private key" in catch_error_text({"security.protocol": "SSL", **bare})


def test_private_key_leaves_no_temporary_file(
    pems: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = {"ssl.keystore.location": str(pems / "store.p12"), "ssl.keystore.password": "secret"}
    make_ssl_context(store)
    assert list(tmp_path.iterdir()) == []


KERBEROS = {
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "GSSAPI",
    "sasl.kerberos.service.name": "kafka",
}


def test_missing_extra_for_kerberos_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(KdeclareError) as raised:
        build_client_arguments(KERBEROS)
    (found,) = raised.value.diagnostics
    assert found.code == "extra-missing"
    assert found.detail == "Logins with Kerberos need the Python package 'gssapi', which is not installed."
    assert found.hint == "Install it with `pip install 'kdeclare[kerberos]'`."


def test_missing_kerberos_library_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "gssapi.py").write_text("raise ImportError('libgssapi_krb5.so.2: no such file')")
    monkeypatch.delitem(sys.modules, "gssapi", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(KdeclareError, match=r"cannot be loaded: libgssapi_krb5\.so\.2"):
        build_client_arguments(KERBEROS)
