"""Copy the FileStream connectors and kdeclare's plug-in to the plug-in folder of Connect workers."""

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
    """Copy the FileStream connectors and kdeclare's plug-in into ``folder``, and delete other versions.

    If there is no Java compiler, kdeclare's plug-in is omitted. Raises KdeclareError ``plugin-build`` or
    ``plugin-folder``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replace_jar(folder, "connect-file-*.jar", jars.file_connectors)
    plugin_jar = _build_plugin(progress)
    if plugin_jar is not None:
        replace_jar(folder, "kdeclare-connect-*.jar", plugin_jar)


def replace_jar(folder: Path, pattern: str, jar: Path) -> None:
    """Copy a jar into the folder, and delete other jars whose names match the pattern."""
    temporary_jar = folder / f"{jar.name}.new"
    shutil.copyfile(jar, temporary_jar)
    for old_jar in folder.glob(pattern):
        if old_jar.name != jar.name:
            old_jar.unlink()
    # The jar is replaced, not overwritten, because a running worker may have opened it.
    temporary_jar.replace(folder / jar.name)


def find_extensions(folder: Path) -> tuple[str, ...]:
    """Return the sorted class names of the REST extensions that the jars in a folder declare.

    Files that are not jars are ignored, because the worker reports them.
    """
    class_names: set[str] = set()
    for jar in filter(zipfile.is_zipfile, folder.glob("*.jar")):
        with zipfile.ZipFile(jar) as jar_file:
            if _EXTENSIONS in jar_file.namelist():
                lines = jar_file.read(_EXTENSIONS).decode("utf-8").splitlines()
                class_names |= {name for line in lines if (name := line.partition("#")[0].strip())}
    return tuple(sorted(class_names))


def _build_plugin(progress: Progress) -> Path | None:
    """Return the jar of kdeclare's plug-in in the user's cache; None if there is no Java compiler.

    The plug-in is compiled if it is not in the cache, or if its source files have changed.
    """
    from kdeclare.sandbox.connect_jars import build  # needed only by sandboxes with workers

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
            progress("omitting kdeclare's plug-in for Connect workers, because there is no Java compiler")
            return None
