"""What ``plugin.path`` holds: Kafka's FileStream connectors, kdeclare's plug-in, what people put there."""

import os
import shutil
import zipfile
from pathlib import Path

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.sandbox.connect_jars import ConnectJars
from kdeclare.sandbox.folder_lock import hold_lock
from kdeclare.sandbox.jars import Progress, get_cache_folder

_EXTENSIONS = "META-INF/services/org.apache.kafka.connect.rest.ConnectRestExtension"


def install(folder: Path, jars: ConnectJars, progress: Progress) -> None:
    """Put the FileStream connectors and kdeclare's own plug-in into the folder, for this version alone.

    Without a Java compiler the plug-in is left out. Raise KdeclareError ``plugin-build``,
    ``plugin-folder``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replace_jar(folder, "connect-file-*.jar", jars.file_connectors)
    plugin_jar = _build_plugin(progress)
    if plugin_jar is not None:
        replace_jar(folder, "kdeclare-connect-*.jar", plugin_jar)


def replace_jar(folder: Path, pattern: str, jar: Path) -> None:
    """Copy the jar into the folder, in the place of what matches the pattern there."""
    temporary_jar = folder / f"{jar.name}.new"
    shutil.copyfile(jar, temporary_jar)
    for old_jar in folder.glob(pattern):
        if old_jar.name != jar.name:
            old_jar.unlink()
    # Never written into: a worker that runs may have it open.
    temporary_jar.replace(folder / jar.name)


def find_extensions(folder: Path) -> tuple[str, ...]:
    """The classes of all REST extensions that jars in the folder offer, by name.

    A jar offers them as Java's ServiceLoader wants it. What is no jar offers nothing here; the worker
    has its own words for it.
    """
    class_names: set[str] = set()
    for jar in filter(zipfile.is_zipfile, folder.glob("*.jar")):
        with zipfile.ZipFile(jar) as jar_file:
            if _EXTENSIONS in jar_file.namelist():
                lines = jar_file.read(_EXTENSIONS).decode("utf-8").splitlines()
                class_names |= {name for line in lines if (name := line.partition("#")[0].strip())}
    return tuple(sorted(class_names))


def _build_plugin(progress: Progress) -> Path | None:
    """The plug-in from the user's cache, compiled anew if its sources are others by now."""
    from kdeclare.sandbox.connect_jars import build  # no sandbox without workers needs it

    cache = get_cache_folder(os.environ).with_name("connect-plugin")
    cache.mkdir(parents=True, exist_ok=True)
    with hold_lock(
        cache / ".lock", lambda: progress("waiting for another command that compiles the plug-in")
    ):
        try:
            return build(cache, progress)
        except KdeclareError as problem:
            if any(found.code != "javac-missing" for found in problem.diagnostics):
                raise
            progress("leaving kdeclare's plug-in for Connect workers out: there is no Java compiler")
            return None
