"""Locate the files that manifests name, and decide whether they are inside a folder."""

import os
from pathlib import Path

from yaml.nodes import Node


def locate_file(written: str, node: Node) -> str:
    """Return the location of a file.

    written: the path in the manifest. node: a node of the manifest, with the location of the manifest.
    """
    folder = os.path.dirname(node.start_mark.name)  # noqa: PTH120  # keeps relative paths short
    return os.path.normpath(os.path.join(folder, written))  # noqa: PTH118


def is_in_folder(location: str, folder: Path) -> bool:
    """Return whether a file is below a folder, but not in a ``.git`` folder. Symbolic links are followed."""
    if "\0" in location:  # no file has such a name, and Python raises ValueError
        return False
    real_path = Path(os.path.realpath(location))
    return real_path.is_relative_to(os.path.realpath(folder)) and ".git" not in real_path.parts
