"""Files in folders from which another process removes files at the same time."""

import os
from collections.abc import Iterator
from pathlib import Path


def list_folders(folder: Path) -> Iterator[Path]:
    """Yield all folders in a folder. Folders that are removed are left out, unlike in `Path.rglob`."""
    for parent, names, _ in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def read_files(folder: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield all files in a folder with their contents. Files that are removed meanwhile are left out."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            try:
                if path.is_file():
                    yield path, path.read_bytes()
            except FileNotFoundError:
                continue
