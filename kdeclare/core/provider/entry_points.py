"""The entry points through which installed Python packages contribute providers, commands and options.

kdeclare reads the entry points directly from the folders of the packages. With `importlib.metadata`, this
would take a tenth of the run time of ``--help``. kdeclare uses `importlib.metadata` only if packages can be
installed outside plain folders.
"""

import importlib
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import field
from functools import cache, reduce
from importlib.machinery import PathFinder

from kdeclare.core.frozen_dataclass import dataclass

_GROUP_PREFIX = "kdeclare."
"""The prefix of the entry point groups that are read."""

_FOLDERS = (".dist-info", ".egg-info")
_SEPARATORS = re.compile("[-_.]+")


@dataclass(frozen=True, slots=True)
class InstalledEntryPoint:
    """One entry point of an installed package. The object that it refers to is not imported yet.

    value: ``module:attribute``. distribution, version: the Python package that contributes the entry point;
        empty if the package has no metadata. Two packages can contribute the same entry point.
    """

    group: str
    name: str
    value: str
    distribution: str = field(default="", compare=False)
    version: str = field(default="", compare=False)

    @property
    def origin(self) -> str:
        """The Python package of the entry point, for messages; ``value`` if the package is unknown."""
        if not self.distribution:
            return self.value
        return f"the package {self.distribution} {self.version}"

    def load(self) -> object:
        """Import and return the object that the entry point refers to.

        Raises any exception that the import raises.
        """
        module, _, attributes = self.value.partition("[")[0].partition(":")
        names = [name for name in attributes.strip().split(".") if name]
        return reduce(getattr, names, importlib.import_module(module.strip()))


def find_entry_points(group: str) -> tuple[InstalledEntryPoint, ...]:
    """Find the entry points of a group, without importing them.

    If several Python packages have the same name, only the first package on the import path is used.
    """
    return tuple(point for point in find_all() if point.group == group)


def find_all() -> tuple[InstalledEntryPoint, ...]:
    """Find the entry points of all groups that kdeclare defines, without importing them."""
    return _read_path(tuple(sys.path))


@cache
def _read_path(path: tuple[str, ...]) -> tuple[InstalledEntryPoint, ...]:
    return tuple(_read_folders(path) if _is_plain_path(path) else _read_importlib_metadata())


def _is_plain_path(path: tuple[str, ...]) -> bool:
    other_finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in other_finders):
        return False
    return all(
        not entry.endswith(".egg") and (os.path.isdir(entry or ".") or not os.path.exists(entry))  # noqa: PTH110, PTH112
        for entry in path
    )


def _read_importlib_metadata() -> Iterator[InstalledEntryPoint]:
    from importlib.metadata import entry_points

    points = entry_points()
    for group in points.groups:
        if group.startswith(_GROUP_PREFIX):
            for point in points.select(group=group):
                name, version = (point.dist.name, point.dist.version) if point.dist else ("", "")
                yield InstalledEntryPoint(group, point.name, point.value, name, version)


def _read_folders(path: tuple[str, ...]) -> Iterator[InstalledEntryPoint]:
    seen_distributions: set[str] = set()
    for folder in path:
        for name in _list_metadata(folder or "."):
            distribution = _SEPARATORS.sub("_", name.rpartition(".")[0].partition("-")[0]).lower()
            if distribution not in seen_distributions:
                seen_distributions.add(distribution)
                yield from _read_distribution(f"{folder or '.'}/{name}")


def _list_metadata(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.lower().endswith(_FOLDERS)]  # noqa: PTH208
    except OSError:  # Python also treats a folder that it cannot list as empty
        return []


def _read_distribution(folder: str) -> Iterator[InstalledEntryPoint]:
    text = _read_text(f"{folder}/entry_points.txt")
    if f"[{_GROUP_PREFIX}" not in text:
        return
    headers = _read_text(f"{folder}/METADATA") or _read_text(f"{folder}/PKG-INFO")
    headers_by_name = dict(line.partition(": ")[::2] for line in headers.partition("\n\n")[0].splitlines())
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            group = line[1:-1]
        elif line and not line.startswith("#") and group.startswith(_GROUP_PREFIX):
            name, _, value = line.partition("=")
            distribution, version = headers_by_name.get("Name", ""), headers_by_name.get("Version", "")
            yield InstalledEntryPoint(group, name.strip(), value.strip(), distribution, version)


def _read_text(file: str) -> str:
    try:
        with open(file, encoding="utf-8") as stream:  # noqa: PTH123  five times faster, for hundreds of files
            return stream.read()
    except OSError:  # most packages have no such file
        return ""
