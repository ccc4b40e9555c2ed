"""Client properties files with references to the environment, files and commands."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kdeclare.app.connections import ProjectReferences
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.providers.kafka.client.properties import build_client_arguments
from kdeclare.providers.kafka.connection import read_client_config


def written(folder: Path, **properties: str) -> Path:
    """Write a properties file; ``_`` in names becomes a dot, and backslashes are doubled."""
    path = folder / "client.properties"
    lines = (
        f"{name.replace('_', '.')}={value}\n".replace("\\", "\\\\") for name, value in properties.items()
    )
    path.write_text("".join(lines))
    return path


def read(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that the client receives."""
    return read_client_config(path, ProjectReferences(Path("nowhere"), environ), environ)


def failure(path: Path) -> Diagnostic:
    with pytest.raises(KdeclareError) as raised:
        read(path, {"SECRET": "s3cret"})
    (found,) = raised.value.diagnostics
    assert "s3cret" not in f"{found}"
    return found


def test_environment_files_and_commands(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from a file\n")
    path = written(
        tmp_path,
        a="<${env.NAME}>",
        b="${file.password}",
        c="${command." + sys.executable + " -c 'print(6*7)'}",
        d="${file:/kafkas:own} ${unknown} $ {",
    )
    assert read(path, {"NAME": "${env.NAME}"}) == {
        "a": "<${env.NAME}>",
        "b": "from a file",
        "c": "42",
        "d": "${file:/kafkas:own} ${unknown} $ {",
    }


@pytest.mark.parametrize("secret", ['"', "'", "\\", '\\"; x="', "a b;c", "é"])
def test_a_secret_arrives_whole_whatever_is_in_it(tmp_path: Path, secret: str) -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    path = written(
        tmp_path,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_jaas_config=f'{module} required username="u" password="${{env.SECRET}}";',
    )
    arguments, _ = build_client_arguments(read(path, {"SECRET": secret}))
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
def test_a_reference_that_leads_nowhere(tmp_path: Path, value: str, code: str, words: list[str]) -> None:
    path = written(tmp_path, ssl_key_password=value)
    found = failure(path)
    assert found.code == code
    for word in [str(path), "ssl.key.password", *words]:
        assert word in f"{found.detail} {found.hint}"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("${command.awk '{print $1}' s3cret}", ["'${command.'", "Put the command into a script"]),
        ("${command.touch ran} ${command.}", ["'${command.'"]),
        ("${command.echo ${env.SECRET}}", ["'${command.'"]),
        ("${file.}", ["'${file.'", "with a name that contains no braces"]),
        ("${file.s3cret", ["'${file.'"]),
        ("${env.}", ["'${env.'"]),
    ],
)
def test_what_begins_like_a_reference_is_never_sent_as_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path, ssl_key_password=value)
    found = failure(path)
    assert found.code == "bad-reference"
    for word in [str(path), "ssl.key.password", *words]:
        assert word in f"{found.detail} {found.hint}"
    assert list(tmp_path.iterdir()) == [path], "no command was run"


def test_a_secret_that_looks_like_a_reference_is_one_secret(tmp_path: Path) -> None:
    path = written(tmp_path, ssl_key_password="${env.SECRET}")
    assert read(path, {"SECRET": "${command.x"}) == {"ssl.key.password": "${command.x"}
