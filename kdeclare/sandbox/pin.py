"""Update the recorded hashes after the pinned version of Kafka or of the schema registry has changed.

``python -m kdeclare.sandbox.pin`` resolves the jars with the Ivy jar in PySpark. It writes their paths in a
Maven repository and their hashes to ``jars.json``, ``connect_jars.json`` and ``registry/archive.json``.
"""

import json
import os
from pathlib import Path

from kdeclare import java
from kdeclare.http.download import hash_file
from kdeclare.sandbox import connect_jars, ivy, jars
from kdeclare.sandbox.registry import archive


def find_repository_path(file: Path, cache: Path) -> str:
    """For a file in Ivy's cache, return the path of the same file in a Maven repository.

    The folders of the cache are ORGANISATION/NAME/TYPE, and the file is NAME-REVISION[-CLASSIFIER].EXTENSION.
    """
    organisation, name, *_ = file.relative_to(cache).parts
    revision = file.name.removeprefix(f"{name}-").removesuffix(".jar").removesuffix(".tar.gz")
    return "/".join([*organisation.split("."), name, revision.removesuffix("-all"), file.name])


def pin() -> None:
    """Resolve the jars and write their hashes. Review the changes to the files before you commit them."""
    for jars_module in (jars, connect_jars, archive):
        folder = jars.get_cache_folder(os.environ) / "ivy"
        paths = ivy.resolve(java.find_java(), jars_module.DEPENDENCIES, folder)
        pins = {find_repository_path(p, folder / "cache"): hash_file(p) for p in paths}
        jars_module.PINS.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    pin()
