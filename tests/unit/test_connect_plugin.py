"""Building and installing the workers' plug-in, with a fake compiler and Connect."""

import zipfile
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.providers.connect.client.plugin import jar as plugin
from kdeclare.providers.connect.client.plugin.jar import EXTENSION, get_jar_name
from kdeclare.sandbox import connect_jars
from tests.unit.test_sandbox_jars import create_connect_home, create_java_home

_JAVA = """echo 'openjdk version "21"' >&2"""


def catch_build_error(environment: dict[str, str], out: Path) -> Diagnostic:
    """Return the only diagnostic of a failed build."""
    with pytest.raises(KdeclareError) as failed:
        connect_jars.build(out, environment=environment)
    (only,) = failed.value.diagnostics
    return only


def install_fake_compiler(folder: Path, script: str) -> dict[str, str]:
    """Return an environment whose javac is this shell script, with Connect jars to compile against."""
    environment = create_java_home(folder / "jdk", _JAVA)
    javac = folder / "jdk" / "bin" / "javac"
    javac.write_text(f"#!/bin/sh\nif [ \"$1\" = -version ]; then echo 'javac 21.0.1'; exit; fi\n{script}\n")
    javac.chmod(0o755)
    (folder / "kafka").mkdir()
    home = create_connect_home(folder / "kafka", "connect-runtime-4.1.0.jar", "connect-file-4.1.0.jar")
    return {**environment, **home}


def test_build_without_compiler_is_rejected_with_hint(tmp_path: Path) -> None:
    environment = {**create_java_home(tmp_path, _JAVA), "PATH": str(tmp_path)}
    only = catch_build_error(environment, tmp_path / "out")
    assert only.code == "javac-missing"
    assert "The installed Java is a runtime, not a JDK" in only.detail
    assert "JDK, version 17" in only.hint


def test_build_rejects_old_compiler(tmp_path: Path) -> None:
    environment = create_java_home(tmp_path, _JAVA)
    (tmp_path / "bin" / "javac").write_text("#!/bin/sh\necho 'javac 11.0.2' >&2\n")
    (tmp_path / "bin" / "javac").chmod(0o755)
    only = catch_build_error(environment, tmp_path / "out")
    assert only.code == "javac-missing"
    assert "javac has version 11." in only.detail


def test_build_reports_compiler_output(tmp_path: Path) -> None:
    environment = install_fake_compiler(tmp_path, "echo 'error: package x does not exist'; exit 1")
    only = catch_build_error(environment, tmp_path / "out")
    assert only.code == "plugin-build"
    assert only.detail == (
        "The plug-in does not compile against Kafka Connect 4.1.0:\nerror: package x does not exist"
    )
    assert not list((tmp_path / "out").iterdir())


def test_build_reports_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = install_fake_compiler(tmp_path, "exit 0")
    only = catch_build_error(environment, tmp_path / "file" / "out")
    assert only.code == "plugin-folder"
    assert str(tmp_path / "file" / "out") in only.detail


def test_jar_contains_service_and_version_and_is_built_once(tmp_path: Path) -> None:
    environment = install_fake_compiler(tmp_path, "exit 0")
    said: list[str] = []
    jar = connect_jars.build(tmp_path / "out", said.append, environment)
    assert (jar.name, len(said)) == (get_jar_name(), 1)
    with zipfile.ZipFile(jar) as content:
        service = content.read("META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension")
        manifest = content.read("META-INF/MANIFEST.MF").decode()
    assert service.decode().strip() == EXTENSION
    assert "Implementation-Version: 0.2.0\n" in manifest
    assert all(len(line) <= 72 for line in manifest.splitlines())
    before = jar.read_bytes()
    assert connect_jars.build(tmp_path / "out", said.append, environment) == jar
    assert len(said) == 1
    jar.write_bytes(b"half a jar")
    connect_jars.build(tmp_path / "out", said.append, environment)
    assert jar.read_bytes() == before


def test_released_jar_needs_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = install_fake_compiler(tmp_path, "exit 0")
    released_jar = connect_jars.build(tmp_path / "released", environment=environment)
    monkeypatch.setattr(plugin, "RELEASED_JARS", released_jar.parent)
    jar = connect_jars.build(tmp_path / "out", environment={"PATH": ""})
    assert jar.read_bytes() == released_jar.read_bytes()
    monkeypatch.setattr(plugin, "_hash_sources", lambda: "0" * 32)  # a jar from other sources is not used
    assert catch_build_error({"PATH": ""}, tmp_path / "out").code == "java-missing"


def test_install_replaces_other_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build_fake_jar(out: Path, _: object) -> Path:
        (out / get_jar_name()).write_bytes(b"new")
        return out / get_jar_name()

    monkeypatch.setattr(connect_jars, "build", build_fake_jar)
    folder = tmp_path / "plugins"
    folder.mkdir()
    for name in ("kdeclare-connect-0.0.9.jar", get_jar_name(), "other.jar"):
        (folder / name).write_bytes(b"old")
    done = connect_jars.install(folder)
    assert done.jar.read_bytes() == b"new"
    assert [path.name for path in done.removed] == ["kdeclare-connect-0.0.9.jar"]
    assert sorted(p.name for p in folder.iterdir()) == sorted([get_jar_name(), "other.jar"])
    assert done.worker_lines == (
        f"plugin.path={folder}",
        "rest.extension.classes=io.kdeclare.connect.WorkerConfigExtension",
        "kdeclare.worker.config.admins.file=/etc/connect/kdeclare-admins.properties",
    )
    (tmp_path / "file").touch()
    with pytest.raises(KdeclareError) as failed:
        connect_jars.install(tmp_path / "file" / "plugins")
    assert failed.value.diagnostics[0].code == "plugin-folder"
