"""What executors on other machines need of this one beside the files of projects: kdeclare itself."""

import io
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from pyspark.sql import SparkSession

from kdeclare.version import VERSION

_PACKAGE = "kdeclare"
_LEFT_OUT = ("__pycache__",)
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip can hold: the same package is the same bytes."""


def ship_package(spark: SparkSession) -> None:
    """Have tasks on other machines run this very kdeclare, whatever is installed there."""
    context = spark.sparkContext
    # Executors fetch it from there for as long as the session lives; the folder goes with it.
    file = Path(context._temp_dir) / f"{_PACKAGE}.zip"
    file.write_bytes(package_zip())
    context.addPyFile(str(file))


def package_zip() -> bytes:
    """kdeclare with its data as a zip that Python imports from: always the same bytes for the same files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, file in _files(files(_PACKAGE), PurePosixPath(_PACKAGE)):
            entry = zipfile.ZipInfo(str(path), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
        for name, text in _metadata().items():
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}-{VERSION}.dist-info/{name}", _EPOCH), text)
    return buffer.getvalue()


def _metadata() -> Mapping[str, str]:
    """What the tasks find kdeclare's own providers by."""
    installed = distribution(_PACKAGE)
    entry_points = installed.read_text("entry_points.txt") or ""
    # the version that the driver's providers are known by, see `use_providers`
    metadata = f"Metadata-Version: 2.1\nName: {_PACKAGE}\nVersion: {installed.version}\n"
    return {"METADATA": metadata, "entry_points.txt": entry_points}


def _files(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for item in sorted(folder.iterdir(), key=lambda item: item.name):
        if item.name in _LEFT_OUT:
            continue
        if item.is_dir():
            yield from _files(item, path / item.name)
        else:
            yield path / item.name, item
