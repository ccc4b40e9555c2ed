"""Compiling the plug-in against the jars of the Connect that kdeclare runs."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.sandbox.connect_jars import ConnectJars, connect_jars
from kdeclare.sandbox.jars import Progress, silent
from kdeclare.sandbox.java import find_java, major_version
from kdeclare.version import VERSION

EXTENSION = "io.kdeclare.connect.WorkerConfigExtension"
"""The class that a worker names in ``rest.extension.classes``."""

SOURCES = Path(__file__).with_name("java")

# What Connect 4 itself runs on.
_RELEASE = "17"
_SERVICE = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"
_MANIFEST = "META-INF/MANIFEST.MF"
_SOURCES_ATTRIBUTE = "Kdeclare-Sources"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_TIMEOUT_SECONDS = 300
_HINT = f"Install a JDK, version {_RELEASE} or later, and put its javac on PATH or set JAVA_HOME."


def jar_name() -> str:
    """The file name of the plug-in of this version."""
    return f"kdeclare-connect-{VERSION}.jar"


def build(out: Path, progress: Progress = silent, environment: Mapping[str, str] | None = None) -> Path:
    """Compile the plug-in into a jar in the folder ``out``, which is made, and return the jar's path.

    A jar there that was made from the same sources is left as it is. Equal sources and an equal
    compiler make equal jars. Raise KdeclareError ``javac-missing``, ``plugin-build``, ``plugin-folder``,
    or what Java and Connect's jars raise.
    """
    environment = os.environ if environment is None else environment
    jar = out / jar_name()
    made_from = _fingerprint()
    if _made_from(jar) == made_from:
        return jar
    javac = find_javac(environment)
    jars = connect_jars(progress, environment)
    progress(f"compiling {jar.name} against Kafka Connect {jars.version}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as classes:
            compile_sources(javac, jars, Path(classes))
            aside = jar.with_name(jar.name + ".new")
            _pack(Path(classes), aside, made_from)
        aside.replace(jar)
    except OSError as problem:
        raise unusable(out, problem) from problem
    return jar


def find_javac(environment: Mapping[str, str], java: str | None = None) -> str:
    """The path of a ``javac`` of version 17 or later. Raise KdeclareError ``javac-missing``.

    Beside the ``java`` that is found for Kafka, else on PATH: a runtime alone has none.
    java: that one, where it has been found already.
    """
    beside = Path(java or find_java(environment)).resolve().with_name("javac")
    javac = str(beside) if os.access(beside, os.X_OK) else shutil.which("javac", path=environment.get("PATH"))
    if javac is None:
        raise _no_compiler("There is no javac beside java or on PATH: this is a Java runtime, not a JDK.")
    try:
        done = subprocess.run([javac, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _no_compiler(f"{javac} does not run ({problem}).") from problem
    found = re.search(r"javac (\S+)", done.stdout + done.stderr)
    version = major_version(f'version "{found.group(1)}"') if found else None
    if version is None or version < int(_RELEASE):
        raise _no_compiler(f"{javac} is of version {version or 'unknown'}.")
    return javac


def compile_sources(javac: str, jars: ConnectJars, into: Path, *options: str) -> None:
    """Compile all sources into a folder. Raise KdeclareError ``plugin-build``."""
    command = [javac, "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none", *options]
    command += ["-d", str(into), *map(str, _sources())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "CLASSPATH": jars.classpath},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise _failed(jars, f"javac did not end within {_TIMEOUT_SECONDS} s.") from problem
    if done.returncode != 0:
        raise _failed(jars, (done.stdout + done.stderr).strip())


def unusable(folder: Path, problem: OSError) -> KdeclareError:
    """The error of a folder that the plug-in cannot be put into."""
    return KdeclareError(
        error(
            "plugin-folder",
            "The plug-in's folder cannot be used",
            f"{folder} cannot be used: {problem.strerror or problem}.",
            hint="Name a folder that you can write to.",
        )
    )


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def _fingerprint() -> str:
    digest = hashlib.sha256(VERSION.encode())
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:32]  # a line of a manifest holds 72 bytes


def _made_from(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as content:
            manifest = content.read(_MANIFEST).decode()
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError):
        return None
    found = re.search(rf"^{_SOURCES_ATTRIBUTE}: ([0-9a-f]+)", manifest, re.MULTILINE)
    return found.group(1) if found else None


def _pack(classes: Path, jar: Path, made_from: str) -> None:
    manifest = (
        "Manifest-Version: 1.0\n"
        "Implementation-Title: kdeclare-connect\n"
        f"Implementation-Version: {VERSION}\n"
        f"{_SOURCES_ATTRIBUTE}: {made_from}\n\n"
    )
    entries = {_MANIFEST: manifest.encode(), _SERVICE: f"{EXTENSION}\n".encode()}
    for path in sorted(classes.rglob("*.class")):
        entries[path.relative_to(classes).as_posix()] = path.read_bytes()
    with zipfile.ZipFile(jar, "w") as content:
        for name, data in entries.items():
            content.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


def _failed(jars: ConnectJars, said: str) -> KdeclareError:
    return KdeclareError(
        error(
            "plugin-build",
            "The plug-in could not be compiled",
            f"It does not compile against Kafka Connect {jars.version}:\n{said}",
            hint="It needs Kafka 4.0 or later: unset KAFKA_HOME to compile against the pinned release.",
        )
    )


def _no_compiler(detail: str) -> KdeclareError:
    return KdeclareError(error("javac-missing", "A Java compiler was not found", detail, hint=_HINT))
