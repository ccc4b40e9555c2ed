"""What the workers' ``plugin.path`` holds: Kafka's FileStream connectors, and what people put there."""

import shutil
import zipfile
from pathlib import Path

from kdeclare.cluster.sandbox.connect_jars import ConnectJars

_EXTENSIONS = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"


def install(folder: Path, jars: ConnectJars) -> None:
    """Put the FileStream connectors into the folder, for these workers' version alone."""
    folder.mkdir(parents=True, exist_ok=True)
    place(folder, "connect-file-*.jar", jars.file_connectors)


def place(folder: Path, pattern: str, jar: Path) -> None:
    """Copy the jar into the folder, in the place of what matches the pattern there."""
    unfinished = folder / f"{jar.name}.new"
    shutil.copyfile(jar, unfinished)
    for earlier in folder.glob(pattern):
        if earlier.name != jar.name:
            earlier.unlink()
    # Never written into: a worker that runs may have it open.
    unfinished.replace(folder / jar.name)


def extensions(folder: Path) -> tuple[str, ...]:
    """The classes of all REST extensions that jars in the folder offer, by name.

    A jar offers them as Java's ServiceLoader wants it.
    """
    named: set[str] = set()
    for jar in folder.glob("*.jar"):
        with zipfile.ZipFile(jar) as content:
            if _EXTENSIONS in content.namelist():
                lines = content.read(_EXTENSIONS).decode("utf-8").splitlines()
                named |= {name for line in lines if (name := line.partition("#")[0].strip())}
    return tuple(sorted(named))
