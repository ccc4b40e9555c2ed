"""Finding Java and Kafka's jars, without a real one of either."""

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from xml.etree import ElementTree

import pytest
from packageurl import PackageURL
from packageurl.contrib import purl2url

from kdeclare import java
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.http import download
from kdeclare.sandbox import connect_jars, ivy, jars
from kdeclare.sandbox.registry import archive
from tests.http_servers import serve
from tests.ports import reserve_port


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version "21-ea"', 21),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_parse_major_version_of_java(text: str, version: int | None) -> None:
    assert java.parse_major_version(text) == version


def create_java_home(folder: Path, script: str) -> dict[str, str]:
    """Create a JAVA_HOME whose java is this shell script."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def catch_java_error(environment: dict[str, str]) -> tuple[str, str]:
    """Return the code and detail of the only diagnostic."""
    with pytest.raises(KdeclareError) as failed:
        java.find_java(environment)
    (only,) = failed.value.diagnostics
    assert "17" in only.hint
    return only.code, only.detail


def test_find_java_returns_usable_java(tmp_path: Path) -> None:
    environment = create_java_home(tmp_path, """echo 'openjdk version "21.0.1"' >&2""")
    assert java.find_java(environment) == str(tmp_path / "bin" / "java")


def test_find_java_rejects_old_java(tmp_path: Path) -> None:
    code, detail = catch_java_error(create_java_home(tmp_path, """echo 'openjdk version "11.0.2"' >&2"""))
    assert code == "java-too-old"
    assert "is Java 11" in detail


def test_find_java_reports_where_it_searched(tmp_path: Path) -> None:
    assert catch_java_error({"PATH": str(tmp_path)}) == (
        "java-missing",
        "There is no java on PATH, and JAVA_HOME is not set.",
    )
    assert "JAVA_HOME is" in catch_java_error({"JAVA_HOME": str(tmp_path)})[1]


def test_find_java_treats_stub_as_missing(tmp_path: Path) -> None:
    assert catch_java_error(
        create_java_home(tmp_path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")
    )[0] == ("java-missing")


def test_ivy_jar_is_found_in_pyspark() -> None:
    assert re.fullmatch(r"ivy-[\d.]+\.jar", ivy.get_ivy_jar().name)


def test_ivy_file_lists_dependencies() -> None:
    root = ElementTree.fromstring(
        ivy.render_ivy_file(
            [ivy.Dependency("o", "a&b", "1"), ivy.Dependency("o", "c", "2", transitive=False)]
        )
    )
    assert [(d.get("name"), d.get("rev"), d.get("conf")) for d in root.iter("dependency")] == [
        ("a&b", "1", "default->default"),
        ("c", "2", "default->master"),
    ]


def test_settings_without_poms_have_default_repository() -> None:
    root = ElementTree.fromstring(ivy.render_settings_without_poms())
    assert [dict(r.items()) for r in root.iter("ibiblio")] == [
        {"name": "repository", "m2compatible": "true", "usepoms": "false"}
    ]


def test_ivy_file_names_file_with_classifier() -> None:
    dependency = ivy.Dependency("o", "a", "1", transitive=False, classifier="all", extension="tar.gz")
    root = ElementTree.fromstring(ivy.render_ivy_file([dependency]))
    (only,) = root.iter("dependency")
    assert (only.get("conf"), only.get("transitive")) == ("default->default", "false")
    (artifact,) = root.iter("artifact")
    assert dict(artifact.items()) == {
        "name": "a",
        "type": "tar.gz",
        "ext": "tar.gz",
        "{http://ant.apache.org/ivy/maven}classifier": "all",
    }


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("x\n\tHost repo.example not found. url=https://repo.example/a\n", "unknown host repo.example"),
        (
            "\tServer access error at url http://h/x (java.net.ConnectException: Connection refused)\n",
            "Connection refused: http://h/x",
        ),
        ("\t:: org.a#b;1: not found\n", "org.a#b;1: not found"),
        ("Exception in thread main java.lang.Oops\n", "java.lang.Oops"),
        ("all well", ""),
    ],
)
def test_failure_reason_is_found_in_ivy_output(log: str, expected: str) -> None:
    assert ivy.find_failure_reason(log) == expected


def test_missing_ivy_settings_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError) as failed:
        ivy.resolve("java", [], tmp_path, {ivy.SETTINGS_VARIABLE: str(tmp_path / "no.xml")})
    assert failed.value.diagnostics[0].code == "ivy-settings"


def test_pins_are_hashes_for_pinned_kafka() -> None:
    pins = jars.read_pins()
    version = jars.KAFKA_VERSION
    assert f"org/apache/kafka/kafka_2.13/{version}/kafka_2.13-{version}.jar" in pins
    assert all(re.fullmatch(r"[0-9a-f]{64}", h) for h in pins.values())


def test_find_altered_reports_changed_missing_and_extra_jars(tmp_path: Path) -> None:
    good, bad, extra = (tmp_path / f"{n}.jar" for n in ("good", "bad", "extra"))
    for path in (good, bad, extra):
        path.write_bytes(path.name.encode())
    pins = {p.name: hashlib.sha256(p.name.encode()).hexdigest() for p in (good, bad)}
    assert jars.find_altered([good, bad], pins) == ()
    bad.write_bytes(b"something else")
    assert jars.find_altered([good, bad, extra], pins) == ("bad.jar", "extra.jar")
    assert jars.find_altered([good], pins) == ("bad.jar",)
    good.unlink()
    assert jars.find_altered([good, bad], pins) == ("bad.jar", "good.jar")


@pytest.fixture
def offline_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return an environment with an empty cache, and with a default repository that cannot be reached."""
    repository = f"http://127.0.0.1:{reserve_port()}/maven"
    monkeypatch.setattr(purl2url, "DEFAULT_MAVEN_REPOSITORY", repository)
    monkeypatch.setattr(download, "_PAUSE_S", 0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return {jars.CACHE_VARIABLE: str(tmp_path / "cache"), "PATH": ""}


def catch_jars_error(environment: Mapping[str, str]) -> Diagnostic:
    """Return the only diagnostic of the error about Kafka's jars."""
    with pytest.raises(KdeclareError) as failed:
        jars.kafka_jars(environment=environment)
    (only,) = failed.value.diagnostics
    return only


def test_jars_without_network_and_cache_give_hint(offline_environment: dict[str, str]) -> None:
    only = catch_jars_error(offline_environment)
    assert only.code == "jars-unavailable"
    assert f"(Connection refused: {purl2url.DEFAULT_MAVEN_REPOSITORY}/" in only.detail
    for name in (jars.HOME_VARIABLE, jars.MIRROR_VARIABLE, ivy.SETTINGS_VARIABLE):
        assert name in only.hint


def test_ivy_settings_replace_default_repository(tmp_path: Path) -> None:
    script = (
        """if [ "$1" = -version ]; then echo 'openjdk version "17"' >&2; exit; fi\n"""
        """echo '	Host repo.example not found. url=x'; exit 1"""
    )
    (tmp_path / "ivysettings.xml").touch()
    environment = {
        **create_java_home(tmp_path / "java", script),
        jars.CACHE_VARIABLE: str(tmp_path / "cache"),
        ivy.SETTINGS_VARIABLE: str(tmp_path / "ivysettings.xml"),
    }
    only = catch_jars_error(environment)
    assert only.code == "jars-unavailable"
    assert only.detail.endswith("could not be downloaded (unknown host repo.example).")
    assert "ivy.log" in only.hint


def test_cached_jars_require_neither_network_nor_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {jars.CACHE_VARIABLE: str(tmp_path)}
    jar = tmp_path / "kafka" / "a.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"a")
    monkeypatch.setattr(jars, "read_pins", lambda: {"a.jar": hashlib.sha256(b"a").hexdigest()})
    (tmp_path / "kafka" / f"kafka-{jars.KAFKA_VERSION}.json").write_text(json.dumps([str(jar)]))
    assert jars.kafka_jars(environment=environment).classpath == str(jar)


def test_changed_cached_jar_is_downloaded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offline_environment: dict[str, str]
) -> None:
    jar = tmp_path / "cache" / "kafka" / "a.jar"
    jar.parent.mkdir(parents=True)
    jar.write_bytes(b"changed")
    (jar.parent / f"kafka-{jars.KAFKA_VERSION}.json").write_text(json.dumps([str(jar)]))
    monkeypatch.setattr(jars, "read_pins", lambda: {"a.jar": hashlib.sha256(b"a").hexdigest()})
    assert catch_jars_error(offline_environment).code == "jars-unavailable"
    assert not jar.exists()


@contextmanager
def serve_mirror(content: Mapping[str, bytes]) -> Iterator[str]:
    """Serve files by their paths in a Maven repository, and yield the URL of the repository."""

    class Handler(BaseHTTPRequestHandler):
        def respond(self) -> None:
            data = content.get(self.path.removeprefix("/maven/"))
            if data is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Keep the output of tests clean."""

    with serve(Handler, ("GET",)) as url:
        yield f"{url}/maven"


@pytest.mark.parametrize("is_default", [True, False], ids=["default", "mirror"])
@pytest.mark.parametrize("damage", ["", "altered", "missing"])
def test_repository_needs_neither_java_nor_pyspark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, *, is_default: bool
) -> None:
    content = {"org/a/1/a-1.jar": b"a", "org/b/2/b-2.jar": b"b"}
    pins = {path: hashlib.sha256(data).hexdigest() for path, data in content.items()}
    monkeypatch.setattr(jars, "read_pins", lambda: pins)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    if damage == "altered":
        content["org/a/1/a-1.jar"] = b"x"
    elif damage == "missing":
        del content["org/a/1/a-1.jar"]
    reports: list[str] = []
    with serve_mirror(content) as url:
        environment = {jars.CACHE_VARIABLE: str(tmp_path), "PATH": ""}
        if is_default:
            monkeypatch.setattr(purl2url, "DEFAULT_MAVEN_REPOSITORY", url)
        else:
            environment[jars.MIRROR_VARIABLE] = url
        if not damage:
            paths = jars.kafka_jars(reports.append, environment).paths
            assert [path.read_bytes() for path in paths] == [b"a", b"b"]
            assert reports == [f"downloading Kafka {jars.KAFKA_VERSION} (2 jars, 46 MB, only the first time)"]
            assert jars.kafka_jars(reports.append, {**environment, jars.MIRROR_VARIABLE: ""}).paths == paths
            return
        only = catch_jars_error(environment)
        expected = {
            "altered": ("jars-altered", "were deleted: a-1.jar."),
            "missing": ("jars-unavailable", f"(HTTP status 404: {url}/org/a/1/a-1.jar)."),
        }
        assert (only.code, only.detail.endswith(expected[damage][1])) == (expected[damage][0], True)


def test_ivy_settings_without_pyspark_name_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    environment = {jars.CACHE_VARIABLE: str(tmp_path), ivy.SETTINGS_VARIABLE: "ivysettings.xml", "PATH": ""}
    only = catch_jars_error(environment)
    assert only.code == "ivy-missing"
    assert only.hint.startswith(
        f"Unset {ivy.SETTINGS_VARIABLE}, or set {jars.MIRROR_VARIABLE} to the URL of a Maven repository"
    )


@pytest.mark.parametrize(
    "file", [jars.PINS, connect_jars.PINS, archive.PINS], ids=["brokers", "workers", "registry"]
)
def test_pinned_paths_are_those_of_default_repository(file: Path) -> None:
    repository = jars.get_default_repository()
    for path in jars.read_pins(file):
        *group, name, version, file_name = path.split("/")
        rest = file_name.removeprefix(f"{name}-{version}")
        classifier, extension = rest.split(".", 1)
        qualifiers = {"classifier": classifier.removeprefix("-"), "type": extension}
        purl = PackageURL("maven", ".".join(group), name, version, qualifiers)
        url = purl2url.get_download_url(purl.to_string())  # type: ignore[no-untyped-call]
        assert url == f"{repository}/{path}"


def test_installed_kafka_is_used(tmp_path: Path) -> None:
    (tmp_path / "libs").mkdir()
    for name in ("kafka_2.13-4.1.0.jar", "kafka-clients-4.1.0.jar"):
        (tmp_path / "libs" / name).touch()
    found = jars.kafka_jars(environment={jars.HOME_VARIABLE: str(tmp_path)})
    assert found.version == "4.1.0"
    assert len(found.paths) == 2


@pytest.mark.parametrize("name", ["kafka_2.13-3.9.1.jar", "other.jar"])
def test_unusable_kafka_home_is_rejected(tmp_path: Path, name: str) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / name).touch()
    assert catch_jars_error({jars.HOME_VARIABLE: str(tmp_path)}).code == "kafka-home"


def test_unwritable_cache_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert catch_jars_error({jars.CACHE_VARIABLE: str(tmp_path / "file")}).code == "cache-folder"


def create_connect_home(folder: Path, *names: str) -> dict[str, str]:
    """Create a KAFKA_HOME of Kafka 4.1.0 that also has these jars."""
    (folder / "libs").mkdir()
    for name in ("kafka_2.13-4.1.0.jar", *names):
        (folder / "libs" / name).touch()
    return {jars.HOME_VARIABLE: str(folder)}


def test_file_connectors_of_installed_kafka_are_separate(tmp_path: Path) -> None:
    home = create_connect_home(tmp_path, "connect-runtime-4.1.0.jar", "connect-file-4.1.0.jar")
    found = connect_jars.resolve_connect_jars(environment=home)
    assert (found.version, found.file_connectors.name) == ("4.1.0", "connect-file-4.1.0.jar")
    assert found.file_connectors not in found.paths
    assert len(found.paths) == 2


def test_installed_kafka_without_connect_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError) as failed:
        connect_jars.resolve_connect_jars(environment=create_connect_home(tmp_path, "connect-file-4.1.0.jar"))
    (only,) = failed.value.diagnostics
    assert only.code == "kafka-home"
    assert "does not include the jars of Kafka Connect" in only.detail


def test_connect_pins_agree_with_broker_pins() -> None:
    brokers, workers = jars.read_pins(), jars.read_pins(connect_jars.PINS)
    version = jars.KAFKA_VERSION
    assert f"org/apache/kafka/connect-runtime/{version}/connect-runtime-{version}.jar" in workers
    shared = set(brokers) & set(workers)
    assert f"org/apache/kafka/kafka-clients/{version}/kafka-clients-{version}.jar" in shared
    assert {name: brokers[name] for name in shared} == {name: workers[name] for name in shared}
