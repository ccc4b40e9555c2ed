# ruff: noqa: PTH112, PTH118
# This module uses os.path, like `files`.
"""Find the files and folders that match a path pattern, such as ``manifests/**/topics-*.yaml``.

``*``, ``?`` and ``[…]`` match within a name, and ``**`` matches any number of folders. Names that begin with
a dot match only a pattern that begins with a dot. Unlike `glob`, this module does not follow links
to parent folders.
"""

import os
import re
from collections.abc import Iterator
from fnmatch import translate

_WILDCARD = re.compile(r"[*?\[]")
_ANY_FOLDERS = "**"


def is_path_pattern(path: str) -> bool:
    """Return whether a path contains a wildcard, and is not itself the path of an existing file or folder."""
    return _WILDCARD.search(path) is not None and not os.path.lexists(path)


def expand_path_pattern(pattern: str) -> list[str]:
    """Return the files and folders that match a pattern, sorted. Unreadable folders have no matches."""
    parts = os.path.normpath(pattern).split(os.sep)  # noqa: PTH206
    start = os.sep if parts[0] == "" else ""
    return sorted(set(_match_parts(start, [part for part in parts if part], ())))


def _match_parts(folder: str, parts: list[str], parent_folders: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths below a folder that match the parts of a pattern.

    parent_folders: the real paths of the folders in which ``**`` is being searched.
    """
    part, rest = parts[0], parts[1:]
    if part == _ANY_FOLDERS:
        if rest:
            yield from _match_parts(folder, rest, parent_folders)
        real_path = os.path.realpath(folder or ".")
        if real_path in parent_folders:
            return
        for name in _list_names(folder):
            path = os.path.join(folder, name)
            if name.startswith("."):
                continue
            if os.path.isdir(path):
                yield from _match_parts(path, parts, (*parent_folders, real_path))
            elif not rest:
                yield path
        return
    for path in _match_name(folder, part):
        if not rest:
            yield path
        elif os.path.isdir(path):
            yield from _match_parts(path, rest, parent_folders)


def _match_name(folder: str, part: str) -> Iterator[str]:
    if _WILDCARD.search(part) is None:
        path = os.path.join(folder, part)
        if os.path.lexists(path):
            yield path
        return
    name_pattern = re.compile(translate(part))
    for name in _list_names(folder):
        if name_pattern.match(name) and (part.startswith(".") or not name.startswith(".")):
            yield os.path.join(folder, name)


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder or "."))  # noqa: PTH208
    except OSError:
        return []
