"""Build the jar of the Connect plug-in from its sources, and install the jar for workers."""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.version import VERSION

Progress = Callable[[str], None]
"""A function that is called with a description of each slow step."""

EXTENSION = "io.kdeclare.connect.WorkerConfigExtension"
"""The class name of the plug-in, for the worker setting ``rest.extension.classes``."""

ADMINS_FILE = "kdeclare.worker.config.admins.file"
PLUGIN_OPEN = "kdeclare.worker.config.open"
ADMINS_EXAMPLE = "/etc/connect/kdeclare-admins.properties"

SOURCES = Path(__file__).with_name("java")

RELEASED_JARS = Path(__file__).with_name("released")
"""The folder with the compiled plug-in. It is only in released packages, see scripts/release.py."""

# The Java release that Connect 4 requires.
_RELEASE = "17"
_SERVICE = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"
_MANIFEST = "META-INF/MANIFEST.MF"
_SOURCES_ATTRIBUTE = "Kdeclare-Sources"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class InstalledPlugin:
    """The jar of the installed plug-in, and the jars of other versions that the installation removed."""

    jar: Path
    removed: tuple[Path, ...]

    @property
    def worker_lines(self) -> tuple[str, str, str]:
        """The lines to add to the configuration of a worker.

        The last line sets the file that lists administrators.
        """
        return (
            f"plugin.path={self.jar.parent}",
            f"rest.extension.classes={EXTENSION}",
            f"{ADMINS_FILE}={ADMINS_EXAMPLE}",
        )


def get_jar_name() -> str:
    """Return the file name of the plug-in's jar for this version of kdeclare."""
    return f"kdeclare-connect-{VERSION}.jar"


@dataclass(frozen=True, slots=True)
class Compiler:
    """The tools that compile the plug-in: ``javac``, and the jars of a Kafka Connect version."""

    javac: str
    classpath: str
    version: str


def build(out: Path, find_compiler: Callable[[], Compiler], progress: Progress) -> Path:
    """Write the plug-in's jar to the folder ``out``, and return the path of the jar.

    The folder is created if it does not exist. The plug-in is compiled only if neither ``out`` nor this
    package contains a jar that was built from the same sources. The same sources and the same compiler
    produce identical jars. Raises KdeclareError ``plugin-build`` or ``plugin-folder``, and all errors of
    ``find_compiler``.
    """
    jar = out / get_jar_name()
    sources_hash = _hash_sources()
    if _read_sources_hash(jar) == sources_hash:
        return jar
    released_jar = RELEASED_JARS / jar.name
    if _read_sources_hash(released_jar) == sources_hash:
        _copy_jar(released_jar, out)
        return jar
    compiler = find_compiler()
    progress(f"compiling {jar.name} against Kafka Connect {compiler.version}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as classes_folder:
            compile_sources(compiler, Path(classes_folder))
            temporary_jar = jar.with_name(jar.name + ".new")
            _write_jar(Path(classes_folder), temporary_jar, sources_hash)
        temporary_jar.replace(jar)
    except OSError as problem:
        raise _build_folder_error(out, problem) from problem
    return jar


def install(folder: Path, jar: Path) -> InstalledPlugin:
    """Copy a jar of the plug-in to a folder of ``plugin.path``. The folder is created if it does not exist.

    Jars of other versions of the plug-in are removed, because a worker loads only one jar, and only its log
    shows which version it loaded. Raises KdeclareError ``plugin-folder``.
    """
    installed_jar = _copy_jar(jar, folder)
    try:
        other_versions = tuple(sorted(p for p in folder.glob("kdeclare-connect-*.jar") if p != installed_jar))
        for other_jar in other_versions:
            other_jar.unlink()
    except OSError as problem:
        raise _build_folder_error(folder, problem) from problem
    return InstalledPlugin(installed_jar, other_versions)


def _copy_jar(jar: Path, folder: Path) -> Path:
    """Copy a jar of this version to a folder. Raises KdeclareError ``plugin-folder``."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary_jar = folder / f"{get_jar_name()}.new"
        shutil.copyfile(jar, temporary_jar)
        # Replace the jar atomically, so that a starting worker reads either the old jar or the new jar.
        return temporary_jar.replace(folder / get_jar_name())
    except OSError as problem:
        raise _build_folder_error(folder, problem) from problem


def compile_sources(compiler: Compiler, classes_folder: Path, *options: str) -> None:
    """Compile all sources into a folder. Raises KdeclareError ``plugin-build``."""
    command = [compiler.javac, "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none", *options]
    command += ["-d", str(classes_folder), *map(str, _list_sources())]
    try:
        completed = subprocess.run(
            command,
            env={**build_child_environ(os.environ), "CLASSPATH": compiler.classpath},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        reason = f"javac did not finish within {_TIMEOUT_SECONDS} s."
        raise _build_compile_error(compiler, reason) from problem
    if completed.returncode != 0:
        raise _build_compile_error(compiler, (completed.stdout + completed.stderr).strip())


def _build_folder_error(folder: Path, problem: OSError) -> KdeclareError:
    """Return the error about a folder to which the plug-in cannot be written."""
    return KdeclareError(
        error(
            "plugin-folder",
            "The folder for the plug-in cannot be used",
            f"{folder} cannot be used: {problem.strerror or problem}.",
            hint="Specify a folder that you can write to.",
        )
    )


def _list_sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.java"))


def _hash_sources() -> str:
    digest = hashlib.sha256(VERSION.encode())
    for source in _list_sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:32]  # a manifest line is limited to 72 bytes


def _read_sources_hash(jar: Path) -> str | None:
    try:
        with zipfile.ZipFile(jar) as content:
            manifest = content.read(_MANIFEST).decode()
    except (OSError, KeyError, zipfile.BadZipFile, UnicodeDecodeError):
        return None
    match = re.search(rf"^{_SOURCES_ATTRIBUTE}: ([0-9a-f]+)", manifest, re.MULTILINE)
    return match.group(1) if match else None


def _write_jar(classes_folder: Path, jar: Path, sources_hash: str) -> None:
    manifest = (
        "Manifest-Version: 1.0\n"
        "Implementation-Title: kdeclare-connect\n"
        f"Implementation-Version: {VERSION}\n"
        f"{_SOURCES_ATTRIBUTE}: {sources_hash}\n\n"
    )
    entries = {_MANIFEST: manifest.encode(), _SERVICE: f"{EXTENSION}\n".encode()}
    for path in sorted(classes_folder.rglob("*.class")):
        entries[path.relative_to(classes_folder).as_posix()] = path.read_bytes()
    with zipfile.ZipFile(jar, "w") as content:
        for name, data in entries.items():
            content.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


def _build_compile_error(compiler: Compiler, output: str) -> KdeclareError:
    return KdeclareError(
        error(
            "plugin-build",
            "The plug-in could not be compiled",
            f"The plug-in does not compile against Kafka Connect {compiler.version}:\n{output}",
            hint="Use Kafka 4.0 or later, or unset KAFKA_HOME to compile against the pinned release.",
        )
    )
