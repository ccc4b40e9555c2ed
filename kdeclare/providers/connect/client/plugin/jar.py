"""The jar of the workers' plug-in: made from its sources, and put where workers find it."""

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
from kdeclare.core.frozen import dataclass
from kdeclare.version import VERSION

Progress = Callable[[str], None]
"""Is told what takes its time."""

EXTENSION = "io.kdeclare.connect.WorkerConfigExtension"
"""The class that a worker names in ``rest.extension.classes``."""

ADMINS_FILE = "kdeclare.worker.config.admins.file"
OPEN = "kdeclare.worker.config.open"
ADMINS_EXAMPLE = "/etc/connect/kdeclare-admins.properties"

SOURCES = Path(__file__).with_name("java")

# What Connect 4 itself runs on.
_RELEASE = "17"
_SERVICE = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"
_MANIFEST = "META-INF/MANIFEST.MF"
_SOURCES_ATTRIBUTE = "Kdeclare-Sources"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Installed:
    """A plug-in that was installed, and the jars of other versions that were removed for it."""

    jar: Path
    removed: tuple[Path, ...]

    @property
    def worker_lines(self) -> tuple[str, str, str]:
        """What the worker's configuration has to say. Without the last line the plug-in admits nobody."""
        return (
            f"plugin.path={self.jar.parent}",
            f"rest.extension.classes={EXTENSION}",
            f"{ADMINS_FILE}={ADMINS_EXAMPLE}",
        )


def jar_name() -> str:
    """The file name of the plug-in of this version."""
    return f"kdeclare-connect-{VERSION}.jar"


@dataclass(frozen=True, slots=True)
class Compiler:
    """What the plug-in is compiled with: a ``javac``, and the jars of a Kafka Connect of a version."""

    javac: str
    classpath: str
    version: str


def build(out: Path, find_compiler: Callable[[], Compiler], progress: Progress) -> Path:
    """Compile the plug-in into a jar in the folder ``out``, which is made, and return the jar's path.

    A jar there that was made from the same sources is left as it is, and no compiler is looked for. Equal
    sources and an equal compiler make equal jars. Raise KdeclareError ``plugin-build``, ``plugin-folder``, or
    what finding a compiler raises.
    """
    jar = out / jar_name()
    made_from = _fingerprint()
    if _made_from(jar) == made_from:
        return jar
    compiler = find_compiler()
    progress(f"compiling {jar.name} against Kafka Connect {compiler.version}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as classes:
            compile_sources(compiler, Path(classes))
            aside = jar.with_name(jar.name + ".new")
            _pack(Path(classes), aside, made_from)
        aside.replace(jar)
    except OSError as problem:
        raise _unusable(out, problem) from problem
    return jar


def install(folder: Path, jar: Path) -> Installed:
    """Put a jar of the plug-in into a folder of ``plugin.path``, which is made.

    Jars of other versions go, since a worker takes one of them and says which only in its log. Raise
    KdeclareError ``plugin-folder``.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        aside = folder / f"{jar_name()}.new"
        shutil.copyfile(jar, aside)
        # In one step: a worker that is starting reads the old jar or the new one.
        placed = aside.replace(folder / jar_name())
        others = tuple(sorted(p for p in folder.glob("kdeclare-connect-*.jar") if p != placed))
        for other in others:
            other.unlink()
    except OSError as problem:
        raise _unusable(folder, problem) from problem
    return Installed(placed, others)


def compile_sources(compiler: Compiler, into: Path, *options: str) -> None:
    """Compile all sources into a folder. Raise KdeclareError ``plugin-build``."""
    command = [compiler.javac, "--release", _RELEASE, "-encoding", "UTF-8", "-proc:none", *options]
    command += ["-d", str(into), *map(str, _sources())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "CLASSPATH": compiler.classpath},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as problem:
        raise _failed(compiler, f"javac did not end within {_TIMEOUT_SECONDS} s.") from problem
    if done.returncode != 0:
        raise _failed(compiler, (done.stdout + done.stderr).strip())


def _unusable(folder: Path, problem: OSError) -> KdeclareError:
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


def _failed(compiler: Compiler, said: str) -> KdeclareError:
    return KdeclareError(
        error(
            "plugin-build",
            "The plug-in could not be compiled",
            f"It does not compile against Kafka Connect {compiler.version}:\n{said}",
            hint="It needs Kafka 4.0 or later: unset KAFKA_HOME to compile against the pinned release.",
        )
    )
