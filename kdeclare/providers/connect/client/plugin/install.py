"""Putting the plug-in where a worker finds it."""

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kdeclare.providers.connect.client.plugin.build import EXTENSION, build, jar_name, unusable
from kdeclare.sandbox.jars import Progress, silent

ADMINS_FILE = "kdeclare.worker.config.admins.file"
OPEN = "kdeclare.worker.config.open"
ADMINS_EXAMPLE = "/etc/connect/kdeclare-admins.properties"


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


def install(plugin_path: Path, progress: Progress = silent) -> Installed:
    """Build the plug-in and put it into a folder of ``plugin.path``, which is made.

    Jars of other versions go, since a worker takes one of them and says which only in its log. Raise
    KdeclareError as ``build`` does, ``plugin-folder`` for this folder too.
    """
    folder = plugin_path.expanduser().absolute()
    with tempfile.TemporaryDirectory() as scratch:
        made = build(Path(scratch), progress)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            aside = folder / f"{jar_name()}.new"
            shutil.copyfile(made, aside)
            # In one step: a worker that is starting reads the old jar or the new one.
            jar = aside.replace(folder / jar_name())
            others = tuple(sorted(p for p in folder.glob("kdeclare-connect-*.jar") if p != jar))
            for other in others:
                other.unlink()
        except OSError as problem:
            raise unusable(folder, problem) from problem
    return Installed(jar, others)
