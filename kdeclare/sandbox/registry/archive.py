"""Find and unpack the archive of Apicurio Registry. The archive is pinned and cached like Kafka's jars."""

import os
import shutil
import tarfile
from collections.abc import Mapping
from pathlib import Path

from kdeclare.sandbox import ivy
from kdeclare.sandbox.jars import PinnedJars, Progress, ignore_progress, read_pins, resolve_pinned_jars

# Later versions need Java 21.
APICURIO_VERSION = "3.0.9"

DEPENDENCIES = (
    ivy.Dependency(
        "io.apicurio",
        "apicurio-registry-app",
        APICURIO_VERSION,
        transitive=False,
        classifier="all",
        extension="tar.gz",
    ),
)

# The file with the SHA-256 of the archive by file name; written by pin.py.
PINS = Path(__file__).with_name("archive.json")

RUNNER = f"apicurio-registry-app-{APICURIO_VERSION}-runner.jar"

# The file in the unpacked folder that says which archive was unpacked completely.
_COMPLETE = ".complete"


def resolve_archive(
    progress: Progress = ignore_progress, environment: Mapping[str, str] | None = None
) -> Path:
    """Return the path of the archive. Download the archive if it is not in the cache.

    Raises KdeclareError ``jars-unavailable``, ``jars-altered``, ``cache-folder``, or an error of Java or Ivy.
    """
    label = f"Apicurio Registry {APICURIO_VERSION}"
    pinned_jars = PinnedJars(
        f"apicurio-registry-{APICURIO_VERSION}",
        label,
        "109 MB",
        DEPENDENCIES,
        read_pins(PINS),
        is_part_of_kafka=False,
    )
    return resolve_pinned_jars(pinned_jars, progress, os.environ if environment is None else environment)[0]


def install_archive(archive: Path, folder: Path) -> None:
    """Unpack the archive into ``folder`` and delete other content, unless the archive is already unpacked."""
    complete = folder / _COMPLETE
    if complete.exists() and complete.read_text("utf-8") == archive.name:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    complete.write_text(archive.name, "utf-8")
