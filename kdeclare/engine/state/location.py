"""From what a person wrote as the state's location to the store."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.engine.state.local import LocalStore
from kdeclare.engine.state.names import is_folder_name
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.problems import bad_location

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HINT = "Give a folder, or file:///absolute/folder."


def open_store(location: str | Path, project: str, env: str) -> StateStore:
    """The store of one project in one environment; nothing is read or created yet.

    location: a folder, or ``file:`` with one. Raises KdeclareError for any other scheme, and for a
    project or environment name that cannot be a folder's.
    """
    return LocalStore(folder_of(location, project, env))


def folder_of(location: str | Path, project: str, env: str) -> Path:
    """Where the store of one project in one environment is. Raises KdeclareError as `open_store` does."""
    folder = _folder(str(location))
    for what, name in (("project", project), ("environment", env)):
        if not is_folder_name(name):
            raise bad_location(
                f"The {what} name '{name}' cannot be the name of a folder.",
                "Give it another name: no slashes, and no dot in front.",
            )
    return folder / project / env


def _folder(location: str) -> Path:
    scheme = _SCHEME.match(location)
    if scheme is None:
        if not location:
            raise bad_location("The state's location is empty.", _HINT)
        return Path(location)
    if scheme[1].lower() != "file":
        raise bad_location(f"'{location}': a store of the kind '{scheme[1]}' is not available.", _HINT)
    parts = urlsplit(location)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise bad_location(f"'{location}' names no folder on this machine.", _HINT)
    return Path(unquote(parts.path))
