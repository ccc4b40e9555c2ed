"""Names of projects and environments, which become folders of a state."""

import re

_BAD_IN_NAME = re.compile(r"[/\\\x00-\x1f]")


def is_folder_name(name: str) -> bool:
    """Whether a state can be kept in a folder of that name: no slashes, and no dot in front."""
    return bool(name) and not name.startswith(".") and not _BAD_IN_NAME.search(name)
