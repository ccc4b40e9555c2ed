"""Update ``jars.json`` and ``connect_jars.json`` after changing the pinned version of Kafka.

``python -m kdeclare.sandbox.pin`` resolves the jars and writes their hashes to these files.
"""

import json
import os

from kdeclare import java
from kdeclare.sandbox import connect_jars, ivy, jars


def pin() -> None:
    """Resolve the jars and write their hashes. Review the changes to the files before you commit them."""
    for jars_module in (jars, connect_jars):
        folder = jars.get_cache_folder(os.environ) / "ivy"
        paths = ivy.resolve(java.find_java(), jars_module.DEPENDENCIES, folder)
        pins = {p.name: jars.hash_file(p) for p in paths}
        jars_module.PINS.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    pin()
