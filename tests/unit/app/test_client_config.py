"""Client properties files with references to the environment, files and commands."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdeclare.app.connections import ProjectReferences
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.providers.kafka.client.properties import build_client_arguments
from kdeclare.providers.kafka.connection import read_client_config


def write_properties(folder: Path, **properties: str) -> Path:
    """Write a properties file; ``_`` in names becomes a dot, and backslashes are doubled."""
    path = folder / "client.properties"
    lines = (
        f"{name.replace('_', '.')}={value}\n".replace("\\", "\\\\") for name, value in properties.items()
    )
    path.write_text("".join(lines))
    return path


def read_properties(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the client receives."""
    return read_client_config(path, ProjectReferences(Path("nowhere"), environ), environ)


def read_failure(path: Path) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        read_properties(path, {"SECRET": "s3cret"})
    (found,) = raised.value.diagnostics
    assert "s3cret" not in f"{found}"
    return found


def test_client_config_resolves_env_file_and_command_references(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    path = write_properties(
        tmp_path,
        a="<${env.NAME}>",
        b="${file.password}",
        c="${command." + sys.executable + " -c 'print(6*7)'}",
        d="${file:/kafkas:own} ${unknown} $ {",
    )
    assert read_properties(path, {"NAME": "${env.NAME}"}) == {
        "a": "<${env.NAME}>",
        "b": "from a file",
        "c": "42",
        "d": "${file:/kafkas:own} ${unknown} $ {",
    }


@pytest.mark.parametrize("secret", ['"', "'", "\\", '\\"; x="', "a b;c", "é"])
def test_client_config_passes_secret_with_special_characters_unchanged(tmp_path: Path, secret: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    path = write_properties(
        tmp_path,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{module} required username="u" password="${{env.SECRET}}";',
    )
    arguments, _ = build_client_arguments(read_properties(path, {"SECRET": secret}))
    assert arguments["sasl_plain_password"] == secret


@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        ("${env.SECRE}", "undefined-variable", ["SECRE", "ssl.key.password"]),
        ("${file.nothing}", "unreadable-reference", ["${file.nothing}", "folder of the client properties"]),
        ("${command.no-such-command x}", "command-failed", ["no-such-command x", "no such file"]),
        ("${command.sh -c 'echo s3cr''et; exit 3'}", "command-failed", ["exited with status 3"]),
        ("${command.echo 'x}", "command-failed", ["no closing quotation"]),
        ("${command. }", "command-failed", ["the command is empty"]),
    ],
)
def test_client_config_reports_unresolvable_reference(
    tmp_path: Path, value: str, code: str, words: list[str]
) -> None:
    path = write_properties(tmp_path, ssl_key_password=value)
    found = read_failure(path)
    assert found.code == code
    for word in [str(path), "ssl.key.password", *words]:
        assert word in f"{found.detail} {found.hint}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${command.awk '{print $1}' s3cret}", ["'${command.'", "put it into a script"]),
        ("${command.touch ran} ${command.}", ["'${command.'"]),
        ("${command.echo ${env.SECRET}}", ["'${command.'"]),
        ("${file.}", ["'${file.'", "with a name that contains no braces"]),
        ("${file.s3cret", ["'${file.'"]),
        ("${env.}", ["'${env.'"]),
    ],
)
def test_client_config_rejects_malformed_reference_as_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_properties(tmp_path, ssl_key_password=value)
    found = read_failure(path)
    assert found.code == "bad-reference"
    for word in [str(path), "ssl.key.password", *words]:
        assert word in f"{found.detail} {found.hint}"
    assert list(tmp_path.iterdir()) == [path], "no command was run"


def test_client_config_does_not_resolve_references_inside_secrets(tmp_path: Path) -> None:
    path = write_properties(tmp_path, ssl_key_password="${env.SECRET}")
    assert read_properties(path, {"SECRET": "${command.x"}) == {"ssl.key.password": "${command.x"}
