"""Placeholders of Kafka's config providers in client properties."""

from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client import connect
from kdeclare.providers.kafka.client.properties import resolve_config_providers

PACKAGE = "org.apache.kafka.common.config.provider."


def declare_providers(**kinds: str) -> dict[str, str]:
    classes = {f"config.providers.{name}.class": f"{PACKAGE}{kind}" for name, kind in kinds.items()}
    return {"config.providers": ", ".join(kinds), **classes}


ALL = declare_providers(env="EnvVarConfigProvider", file="FileConfigProvider", dir="DirectoryConfigProvider")


def test_placeholders_are_resolved_by_their_providers(tmp_path: Path) -> None:
    (tmp_path / "secrets.properties").write_text("key=from a file\n")
    (tmp_path / "password").write_text("from a folder")
    given = {
        "a": "<${env:NAME}>",
        "b": f"${{file:{tmp_path}/secrets.properties:key}}",
        "c": f"${{dir:{tmp_path}:password}}",
        "d": "${vault:path:key} ${env.NAME}",
    }
    assert resolve_config_providers(ALL | given, {"NAME": "${env:NAME}"}) == {
        "a": "<${env:NAME}>",
        "b": "from a file",
        "c": "from a folder",
        "d": "${vault:path:key} ${env.NAME}",
    }


def test_placeholders_without_providers_are_kept() -> None:
    assert resolve_config_providers({"a": "${env:NAME}"}, {"NAME": "x"}) == {"a": "${env:NAME}"}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        (ALL | {"x": "${env:NONE}"}, ["x: ${env:NONE}", "the value does not exist"]),
        (ALL | {"x": "${file:/no/such:key}"}, ["x: ${file:/no/such:key}", "No such file"]),
        (ALL | {"x": "${dir:/etc:../passwd}"}, ["the value does not exist"]),
        ({"config.providers": "env"}, ["config.providers.env.class", "missing", "EnvVarConfigProvider"]),
        (
            {"config.providers": "v", "config.providers.v.class": "com.example.FileConfigProvider"},
            ["does not support the provider 'com.example.FileConfigProvider'"],
        ),
    ],
)
def test_unresolvable_placeholder_is_reported(properties: dict[str, str], words: list[str]) -> None:
    with pytest.raises(KdeclareError) as raised:
        resolve_config_providers(properties, {})
    (found,) = raised.value.diagnostics
    for word in words:
        assert word in f"{found.detail} {found.hint}"


@pytest.mark.parametrize("placeholder", ["${dir:FOLDER:binary}", "${dir:FOLDER\0:x}", "${file:FOLDER\0:x}"])
def test_placeholder_for_binary_value_is_rejected(tmp_path: Path, placeholder: str) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(
        KdeclareError,
        match=r"x: .*: (the path or the value is not valid text|the value does not exist|No such file)",
    ):
        resolve_config_providers(ALL | {"x": placeholder.replace("FOLDER", str(tmp_path))}, {})


def test_bootstrap_servers_may_be_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "127.0.0.1:1")
    with pytest.raises(KdeclareError, match=r"127\.0\.0\.1:1: connection refused"):
        connect("", ALL | {"bootstrap.servers": "${env:BROKERS}"}, timeout_s=2.0)


def test_invalid_address_from_placeholder_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKERS", "b:9092, s3cret")
    with pytest.raises(KdeclareError) as raised:
        connect("", ALL | {"bootstrap.servers": "${env:BROKERS}"})
    (found,) = raised.value.diagnostics
    assert found.code == "bootstrap-servers"
    assert (
        found.detail
        == "Address 2 of bootstrap.servers in the client properties is not of the form host:port."
    )
    assert "s3cret" not in str(found)
