# ruff: noqa: PTH119, PTH122, PTH123
# This module uses os.path, like `files`, because it is called for the files of large folders.
"""Decide which files in a folder are manifests, from their names and from the beginning of their contents."""

import os
import re
from collections.abc import Sequence
from functools import cache

from kdeclare.core.diagnostics import Diagnostic, SourcePosition, warning
from kdeclare.core.provider.registry import list_api_versions

YAML_SUFFIXES = (".yaml", ".yml")
JSON_SUFFIX = ".json"
_HEAD = 1 << 16
"""The number of bytes at the beginning of a file that are searched for an ``apiVersion``."""
_TEXT_SUFFIXES = frozenset(
    {
        ".md",
        ".markdown",
        ".rst",
        ".adoc",
        ".txt",
        ".html",
        ".pdf",
        ".py",
        ".sh",
        ".go",
        ".java",
        ".swp",
        ".swo",
    }
)
"""The suffixes of files that can quote manifests (documentation, programs), and of swap files of editors."""


def is_json_manifest(path: str) -> bool:
    """Return whether a JSON file contains an ``apiVersion`` of kdeclare or of an installed provider.

    Folders with manifests often contain other JSON files, too, such as dashboards and record schemas.
    """
    return _find_json_version().search(_read_head(path)) is not None


def find_ignored_manifest(path: str) -> Diagnostic | None:
    """Return a warning if a file that is not loaded looks like a manifest; otherwise None.

    Backup files of editors (``orders.yaml~``), documentation and programs are not reported.
    """
    name = os.path.basename(path)
    if name.startswith("#") or name.endswith("~") or os.path.splitext(name)[1].lower() in _TEXT_SUFFIXES:
        return None
    head = _read_head(path)
    if _find_yaml_version().search(head) is None and _find_json_version().search(head) is None:
        return None
    return warning(
        "manifest-ignored",
        "File is not loaded",
        f"'{path}' looks like a manifest, but only files named *.yaml, *.yml or *.json are loaded from "
        "folders.",
        hint="Rename the file to *.yaml to load it. To keep it without this warning, start its name with a "
        "dot, or move it out of the folder.",
        place=SourcePosition(path, 1, 1),
    )


def _read_head(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(_HEAD)
    except OSError:
        return b""


def _find_json_version() -> re.Pattern[bytes]:
    return _compile(r'"apiVersion"\s*:\s*"(?:{})/', list_api_versions())


def _find_yaml_version() -> re.Pattern[bytes]:
    return _compile(r"""^apiVersion\s*:\s*["']?(?:{})/""", list_api_versions())


@cache
def _compile(pattern: str, versions: Sequence[str]) -> re.Pattern[bytes]:
    groups = sorted({re.escape(version.partition("/")[0]) for version in versions})
    return re.compile(pattern.format("|".join(groups)).encode(), re.MULTILINE)
