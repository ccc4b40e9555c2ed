"""Which parts of a command line may be recorded."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.cli import command
from kdeclare.cli.console import Console
from kdeclare.cli.interactive.session import is_secret_line
from kdeclare.cli.invocation import Invocation
from kdeclare.cli.main import main
from kdeclare.cli.options.option_groups import OutputOptions
from kdeclare.cli.redaction import has_secret, redact_arguments
from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.provider.installed_providers import load_providers
from kdeclare.core.provider.provider import Provider, TypedSetting
from kdeclare.providers.kafka.commands.completion import split_settings
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.ids import ConfigScope
from tests.loaded_providers import replace_load_providers

SECRET_KEYS = sorted(key for key, info in load_catalog(ConfigScope.BROKER).keys.items() if info.is_secret)
OPTIONS = ("--config", "--add-config", "--append-config", "--subtract-config")


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("retention.ms=1", "retention.ms=1"),
        ("cleanup.policy=[compact,delete],retention.ms=1", "cleanup.policy=[compact,delete],retention.ms=1"),
        ("ssl.keystore.password=hunter2", "ssl.keystore.password=(sensitive)"),
        (
            "retention.ms=1,ssl.key.password=a=b,min.insync.replicas=2",
            "retention.ms=1,ssl.key.password=(sensitive),min.insync.replicas=2",
        ),
        ("ssl.key.password=[a,b],retention.ms=1", "ssl.key.password=(sensitive),retention.ms=1"),
        ("ssl.key.password=a,b,retention.ms=1", "ssl.key.password=(sensitive),retention.ms=1"),
        ("ssl.key.password=${env.SECRET}", "ssl.key.password=${env.SECRET}"),
        ("ssl.key.password=[${file.key}]", "ssl.key.password=[${file.key}]"),
        ("ssl.key.password=a${env.SECRET}", "ssl.key.password=(sensitive)"),
        ("listener.name.x.ssl.key.password=a", "listener.name.x.ssl.key.password=(sensitive)"),
        ("a.plugin.of.mine=a", "a.plugin.of.mine=(sensitive)"),
        ("producer_byte_rate=1024,request_percentage=5", "producer_byte_rate=1024,request_percentage=5"),
        ("SCRAM-SHA-256=[iterations=8192,password=x]", "SCRAM-SHA-256=[iterations=8192,password=(sensitive)"),
        ("SCRAM-SHA-256=[password=x,y=z]", "SCRAM-SHA-256=(sensitive),y=(sensitive)"),
        ("SCRAM-SHA-256=[password=${env.P}]", "SCRAM-SHA-256=[password=${env.P}]"),
        (
            "SCRAM-SHA-256=[iterations=8192,password=${file.a/b}],SCRAM-SHA-512=[password=x]",
            "SCRAM-SHA-256=[iterations=8192,password=${file.a/b}],SCRAM-SHA-512=(sensitive)",
        ),
        ("SCRAM-SHA-256=[password=${env.P}x]", "SCRAM-SHA-256=(sensitive)"),
        ("SCRAM-SHA-256=hunter2", "SCRAM-SHA-256=(sensitive)"),
        ("retention.ms", "retention.ms"),
        ("", ""),
    ],
)
@pytest.mark.parametrize("option", OPTIONS)
def test_redact_arguments_masks_secret_setting_values(option: str, typed: str, kept: str) -> None:
    rest = ["topic", "alter", "--topic", "orders"]
    assert redact_arguments([*rest, option, typed, "--yes"]) == [*rest, option, kept, "--yes"]
    assert redact_arguments([*rest, f"{option}={typed}", "--yes"]) == [*rest, f"{option}={kept}", "--yes"]
    assert has_secret([option, typed]) == (typed != kept)


def test_redact_arguments_checks_only_option_values() -> None:
    line = ["plan", "--target", "ssl.key.password=x", "--config", "a.b=c", "ssl.key.password=x"]
    assert redact_arguments(line) == [*line[:4], "a.b=(sensitive)", line[5]]
    assert redact_arguments(["--config"]) == ["--config"]


def test_redact_arguments_masks_spark_settings_by_name() -> None:
    line = ["fleet", "--conf", "spark.executor.memory=4g", "--conf", "spark.hadoop.fs.s3a.secret.key=x"]
    assert redact_arguments(line) == [*line[:4], "spark.hadoop.fs.s3a.secret.key=(sensitive)"]
    assert redact_arguments(["--conf=a.password=x"]) == ["--conf=a.password=(sensitive)"]


def test_redact_arguments_masks_token_of_spark_server() -> None:
    hidden = "sc://host:15002/;use_ssl=true;token=(sensitive)"
    address = hidden.replace("(sensitive)", "tick%3D")
    assert redact_arguments(["fleet", "--master", address, "-q"]) == ["fleet", "--master", hidden, "-q"]
    assert redact_arguments([f"--master={address};user_id=me"]) == [f"--master={hidden};user_id=me"]
    assert redact_arguments(["--conf", f"spark.remote={address}"]) == ["--conf", f"spark.remote={hidden}"]
    assert has_secret(["--master", address])


_SECRETS = st.text(alphabet=string.ascii_uppercase, min_size=6).map(lambda text: f"~{text}~")


@given(
    st.sampled_from(OPTIONS),
    st.lists(st.tuples(st.sampled_from([*SECRET_KEYS, "retention.ms", "x"]), _SECRETS), min_size=1),
    st.sampled_from(["{}={}", "{}=[{}]", "{}=a,{}", "{}=a=b{}", "{}=]{}", "{}=[{}"]),
)
def test_redact_arguments_masks_secrets_in_any_list_form(
    option: str, pairs: list[tuple[str, str]], form: str
) -> None:
    text = ",".join(form.format(key, value) for key, value in pairs if key != "retention.ms")
    for line in ([option, text], [f"{option}={text}"]):
        assert "~" not in "".join(redact_arguments(line))


@given(st.text(alphabet="ab=,[]"))
def test_split_settings_keeps_all_text(text: str) -> None:
    assert ",".join(split_settings(text)) == text


def test_commands_receive_redacted_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = list[str]()

    def record_command_line(line: Invocation, talk: OutputOptions, output: str) -> Console:
        heard.append(line.command_line)
        return Console(talk, output, line.command_line)

    monkeypatch.setattr(command, "_console", record_command_line)
    assert main(["schema", "--kind", "Nothing"]) == 64
    assert main(["show", "--", "--config=ssl.key.password=hunter2"]) == 1
    assert heard == [
        "kdeclare schema --kind Nothing",
        "kdeclare show -- '--config=ssl.key.password=(sensitive)'",
    ]


def test_redact_arguments_masks_worker_config_arguments() -> None:
    password = "listeners.https.ssl.keystore.password"
    line = [
        "connect",
        "worker-config",
        "patch",
        f"{password}=geheim",
        "listeners.https.ssl.keystore.type=JKS",
    ]
    assert redact_arguments(line) == [*line[:3], f"{password}=(sensitive)", line[4]]
    for value in ("${file:/etc/secrets:keystore}", "${env.STORE}"):
        assert redact_arguments([*line[:3], f"{password}={value}"])[3] == f"{password}={value}"


@pytest.mark.parametrize("program", [[], ["kdeclare"]])
def test_redact_arguments_ignores_program_name(program: list[str]) -> None:
    line = [*program, "connect", "worker-config", "patch"]
    assert redact_arguments([*line, "some.password=x"]) == [*line, "some.password=(sensitive)"]
    assert is_secret_line(" ".join([*line, "some.password=x"]))


def test_redact_arguments_keeps_arguments_of_other_commands() -> None:
    line = ["plan", "--selector", "some.password=x", "a=b.yaml"]
    assert redact_arguments(line) == line


@pytest.mark.parametrize("option", ["--password", "--api-token", "--client-secret"])
def test_redact_arguments_masks_options_by_name(option: str) -> None:
    assert redact_arguments(["shelf", option, "a,b=c"]) == ["shelf", option, "(sensitive)"]
    assert redact_arguments(["shelf", f"{option}=x"]) == ["shelf", f"{option}=(sensitive)"]
    for kept in ("${env.NAME}", "${file.PATH}"):
        assert redact_arguments(["shelf", option, kept]) == ["shelf", option, kept]
    assert redact_arguments(["shelf", f"{option}-file", "x"]) == ["shelf", f"{option}-file", "x"]


def is_secret_setting(setting: TypedSetting) -> bool | None:
    return {"isbn": False, "code": True}.get(setting.key)


def test_redact_arguments_asks_installed_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = Provider("library", (), (), is_secret_setting=is_secret_setting)
    replace_load_providers(monkeypatch, lambda: (*load_providers(), theirs))
    line = ["shelf", "--config", "isbn=1,code=2,retention.ms=3,other=4"]
    hidden = "isbn=1,code=(sensitive),retention.ms=3,other=(sensitive)"
    assert redact_arguments(line) == [*line[:2], hidden]
    assert redact_arguments(["shelf", "code=2", "isbn=1"]) == ["shelf", "code=(sensitive)", "isbn=1"]


def test_redact_arguments_masks_all_settings_without_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_broken() -> tuple[Provider, ...]:
        raise KdeclareError(error("provider-broken", "Provider cannot be loaded"))

    replace_load_providers(monkeypatch, raise_broken)
    line = ["topic", "alter", "--config", "retention.ms=1"]
    assert redact_arguments(line) == [*line[:3], "retention.ms=(sensitive)"]
    assert redact_arguments(["shelf", "code=2"]) == ["shelf", "code=(sensitive)"]
