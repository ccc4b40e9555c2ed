"""The location of a state: a local folder, or the URL of remote storage that a team shares."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kdeclare.core.storage.location import build_location_error
from kdeclare.engine.state.port import is_folder_name

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SHARED_SCHEME = re.compile(_SCHEME.pattern + "//")
_LOCATION_HINT = "Specify a folder, or file:///absolute/folder."


def resolve_folder(location: str | Path, project: str, env: str) -> Path:
    """Return the folder of a project's store in an environment. Raises the same errors as `open_store`."""
    folder = parse_folder(str(location))
    for subject, name in (("project", project), ("environment", env)):
        if not is_folder_name(name):
            raise build_location_error(
                f"The {subject} name '{name}' cannot be the name of a folder.",
                "Choose a name without slashes that does not start with a dot.",
            )
    return folder / project / env


def find_shared_scheme(location: str) -> str | None:
    """Return the URL scheme of remote storage that a team shares, in lower case; None for a local folder."""
    scheme = _SHARED_SCHEME.match(location)
    return None if scheme is None or scheme[1].lower() == "file" else scheme[1].lower()


def identify_state(location: str, project: str, env: str) -> str:
    """Return a string that identifies a state: locations with equal strings certainly hold the same state.

    Raises KdeclareError for a ``file:`` URL, project or environment that cannot be a folder.
    """
    if find_shared_scheme(location) is not None:
        return f"{location} {project}/{env}"
    return str(resolve_folder(location, project, env).resolve())


def parse_folder(location: str) -> Path:
    """Return the folder that a path or a ``file`` URI names. Raises KdeclareError for all other URIs."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        if not location:
            raise build_location_error("The state's location is empty.", _LOCATION_HINT)
        return Path(location)
    if scheme[1].lower() != "file":
        raise build_location_error(
            f"'{location}': state stores of type '{scheme[1]}' are not supported.", _LOCATION_HINT
        )
    url = urlsplit(location)
    if url.netloc not in ("", "localhost") or not url.path:
        raise build_location_error(f"'{location}' does not name a folder on this machine.", _LOCATION_HINT)
    return Path(unquote(url.path))
