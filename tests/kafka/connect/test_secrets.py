"""A placeholder leads a worker to a secret: no response, status or log of the worker may repeat it."""

import json
import re
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.java import find_java
from kdeclare.sandbox.connect_jars import ConnectJars
from tests.kafka.connect.asking import KEY_PASSWORD, KEYSTORE, KEYSTORE_PASSWORD, PATH, TRUSTSTORE
from tests.kafka.connect.certificates import PASSWORD
from tests.kafka.connect.test_damaged import write_record
from tests.kafka.connect.workers import Worker, Workshop, run_workers, wait_for_result

pytestmark = pytest.mark.kafka

_TLS = "listeners.https.ssl."
_KEYS = [
    KEYSTORE,
    KEYSTORE_PASSWORD,
    f"{_TLS}keystore.type",
    KEY_PASSWORD,
    TRUSTSTORE,
    f"{_TLS}truststore.password",
    f"{_TLS}truststore.type",
    f"{_TLS}enabled.protocols",
    f"{_TLS}cipher.suites",
    f"{_TLS}client.auth",
]
_PROVIDER = """
package io.example;

import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.config.ConfigData;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.provider.ConfigProvider;

public class Talkative implements ConfigProvider {
    private Object token;

    @Override public void configure(Map<String, ?> params) {
        token = params.get("token");
        if (params.containsKey("fail")) {
            throw new IllegalArgumentException("cannot log in with " + token);
        }
    }
    @Override public ConfigData get(String path) {
        throw (ConfigException) new ConfigException("cannot log in with " + token)
                .initCause(new IllegalStateException("wrong token " + token));
    }
    @Override public ConfigData get(String path, Set<String> keys) { return get(path); }
    @Override public void close() { }
}
"""
_SECRETS = {
    "plain": "pl41n-s3cret",
    "with-nul": "n0l-s3cret\\u0000-and-more",
    "listed": "TLSv1.3,l1sted-s3cret",
    "pattern": "(p4ttern-s3cret",
    "placeholder": "${file:s3cret-in-braces:x}",
    # a secret that is a folder's path, and one that is a key store with another password
    "folder": "{folder}/f0lder-s3cret",
    "store": "{folder}/st0re-s3cret.jks",
}
# A setting that Connect does not know and ignores: the targets of this worker's placeholders.
_FILE = "kdeclare.test.placeholders"
# texts that must not appear anywhere; the token is a parameter of a config provider
_NEVER = re.compile(r"s3cret|t0ken-of-the-provider")


def install_provider(jars: ConnectJars, plugins: Path, scratch: Path) -> None:
    """Put a config provider that repeats its parameters in its errors into a plug-in folder."""
    source = scratch / "Talkative.java"
    source.write_text(_PROVIDER)
    javac = Path(find_java()).resolve().with_name("javac")
    command = [str(javac), "-proc:none", "-cp", jars.classpath, "-d", str(scratch), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    plugins.mkdir(exist_ok=True)
    with zipfile.ZipFile(plugins / "talkative.jar", "w") as jar:
        jar.write(scratch / "io/example/Talkative.class", "io/example/Talkative.class")
        service = "META-INF/services/org.apache.kafka.common.config.provider.ConfigProvider"
        jar.writestr(service, "io.example.Talkative\n")


@pytest.fixture(scope="module")
def keeper(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker where every key can be overridden, with providers that fail with detailed errors."""
    folder = tmp_path_factory.mktemp("hidden")
    install_provider(workshop.jars, workshop.plugins / "talkative", folder)
    lines = [f"{name}={value.replace('{folder}', str(folder))}\n" for name, value in _SECRETS.items()]
    (folder / "placeholders.properties").write_text("".join(lines))
    (folder / "f0lder-s3cret").mkdir()
    (folder / "st0re-s3cret.jks").write_bytes(workshop.certificates.odd.read_bytes())
    properties = {
        "kdeclare.worker.config.whitelist": ",".join(_KEYS),
        # Connect creates these providers when it starts, and would not start if one of them failed.
        "config.providers": "file,env,loud",
        "config.providers.loud.class": "io.example.Talkative",
        "config.providers.loud.param.token": "t0ken-of-the-provider",
        "config.providers.broken.class": "io.example.Talkative",
        "config.providers.broken.param.fail": "1",
        "config.providers.broken.param.token": "t0ken-of-the-provider",
    }
    worker = workshop.worker("keeper", "keeper", properties)
    worker.properties[_FILE] = str(folder / "placeholders.properties")
    with run_workers([worker]):
        yield worker


def build_placeholder(worker: Worker, secret: str) -> str:
    """Return a placeholder for one of the secrets."""
    return f"${{file:{worker.properties[_FILE]}:{secret}}}"


def find_leaks(text: str) -> list[str]:
    """Return the lines that contain a secret."""
    return [line for line in text.splitlines() if _NEVER.search(line)]


@pytest.mark.parametrize("key", _KEYS)
@pytest.mark.parametrize("secret", _SECRETS)
def test_responses_contain_no_resolved_placeholder(keeper: Worker, key: str, secret: str) -> None:
    placeholder = build_placeholder(keeper, secret)
    before = len(keeper.read_log())
    validated = keeper.ask.validate({key: placeholder})
    assert validated.status == 200, validated.text
    assert find_leaks(validated.text) == []
    assert not validated.body["valid"]
    (named,) = validated.body["errors"]
    assert named in (*_KEYS, ""), validated.text  # if the password does not open a store, its key
    patched = keeper.ask.patch({key: placeholder})
    assert patched.status == 400, patched.text
    assert find_leaks(patched.text + keeper.read_log()[before:]) == []


def test_error_names_key_and_placeholder(keeper: Worker) -> None:
    placeholder = build_placeholder(keeper, "plain")
    answer = keeper.ask.validate({KEYSTORE: placeholder})
    assert answer.body["errors"] == {KEYSTORE: [f"There is no file {placeholder} on this worker."]}


@pytest.mark.parametrize("key", _KEYS)
def test_status_and_log_contain_no_resolved_placeholder(keeper: Worker, workshop: Workshop, key: str) -> None:
    before = len(keeper.read_log())
    for secret in _SECRETS:
        raw = {key: build_placeholder(keeper, secret)}
        write_record(workshop, "keeper-config", json.dumps({"version": 0, "properties": raw}).encode())
        wait_for_result(lambda: keeper.ask.status()["overrides"] != [key] and keeper.ask.overrides() == raw)  # noqa: B023
        refused = wait_for_result(lambda: keeper.ask.status()["error"])
        assert refused["message"]
        assert find_leaks(keeper.ask("GET", f"{PATH}/status").text) == []
    write_record(workshop, "keeper-config", None)
    wait_for_result(lambda: keeper.ask.status()["error"] is None)
    assert find_leaks(keeper.read_log()[before:]) == []


@pytest.mark.parametrize("provider", ["loud", "broken"])
def test_errors_of_config_providers_are_not_repeated(keeper: Worker, provider: str) -> None:
    before = len(keeper.read_log())
    for ask in (keeper.ask.validate, keeper.ask.patch):
        answer = ask({KEYSTORE_PASSWORD: f"${{{provider}:path:key}}"})
        assert find_leaks(answer.text) == []
        assert provider in answer.text
        assert f"${{{provider}:path:key}}" in answer.text
    assert find_leaks(keeper.read_log()[before:]) == []


def test_log_contains_no_path_of_accepted_key_store(
    keeper: Worker, workshop: Workshop, tmp_path: Path
) -> None:
    """Jetty's own log line about a certificate names the file from which it was read."""
    store = tmp_path / "a-s3cret-path.p12"
    store.write_bytes(workshop.certificates.store("a").read_bytes())
    secrets = tmp_path / "paths.properties"
    secrets.write_text(f"path={store}\npassword={PASSWORD}\n")
    before = len(keeper.read_log())
    changes = {KEYSTORE: f"${{file:{secrets}:path}}", KEYSTORE_PASSWORD: f"${{file:{secrets}:password}}"}
    assert keeper.ask.patch(changes).status == 200
    assert keeper.ask.read_served_sha256() == workshop.certificates.sha256["a"]
    assert keeper.ask.patch(dict.fromkeys(changes)).status == 200
    assert find_leaks(keeper.read_log()[before:]) == []
