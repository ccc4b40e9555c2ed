"""The URL of a shared state, and the entry points of the storage backends for such URLs."""

from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.connection import References, Target
from kdeclare.core.storage.conditional_objects import ConditionalObjects

STATE_STORES = "kdeclare.state_stores"
"""The entry point group of storage backends. The name of an entry point is the scheme of its URLs."""


@dataclass(frozen=True, slots=True)
class StateLocation:
    """A parsed URL such as ``s3://bucket/folder?region=eu-central-1``.

    host: the part after ``//``, such as a bucket or a topic. path: the path after the host, without slashes
        at either end. options: the query of the URL.
    project, environment: the names of the project and the environment. Their objects are separate from the
        objects of other projects and environments at the same URL.
    """

    url: str
    scheme: str
    host: str
    path: str
    project: str
    environment: str
    options: Mapping[str, str] = field(default_factory=dict)

    def check_options(self, *known: str) -> None:
        """Raise KdeclareError if the query of the URL contains an option that is not in ``known``."""
        for name in self.options:
            if name not in known:
                allowed = f"Known options are {', '.join(sorted(known))}." if known else "Remove the query."
                raise build_location_error(f"'{self.url}' has an unknown option '{name}'.", allowed)

    def get_number(self, name: str) -> float | None:
        """Return the value of a numeric option; None if it is not given. Raises KdeclareError."""
        text = self.options.get(name)
        if text is None:
            return None
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < float("inf"):
            raise build_location_error(
                f"'{self.url}': '{name}' is not a positive number.", f"Write, for example, {name}=60."
            )
        return value


def parse_state_location(url: str, project: str, environment: str) -> StateLocation:
    """Parse the URL of a shared state. Raises KdeclareError for a URL with a password or a fragment."""
    parts = urlsplit(url)
    if parts.password is not None or parts.fragment:
        raise build_location_error(
            "The state's location contains a password or a fragment.",
            "Pass credentials in environment variables; docs/state.md lists them.",
        )
    return StateLocation(
        url=url,
        scheme=parts.scheme.lower(),
        host=parts.netloc,
        path=unquote(parts.path).strip("/"),
        project=project,
        environment=environment,
        options=dict(parse_qsl(parts.query, keep_blank_values=True)),
    )


@dataclass(frozen=True, slots=True)
class StorageContext:
    """The data that a storage backend can use in addition to the URL.

    folder: the folder of the project file. environ: the environment variables of the process.
    timeout_s: how long to wait for a response, in seconds.
    find_target: returns the target of a provider's connection in this environment, by provider name. Raises
        KdeclareError if the environment does not configure the connection.
    """

    folder: Path
    environ: Mapping[str, str] = field(repr=False)
    references: References = field(repr=False)
    timeout_s: float
    find_target: Callable[[str], Target] = field(repr=False)


class OpenStorage(Protocol):
    """The function that an entry point in the group `STATE_STORES` refers to."""

    def __call__(self, location: StateLocation, context: StorageContext) -> ConditionalObjects:
        """Open the storage. Raises KdeclareError.

        If writes to the storage could be lost, refuse it with an error that contains the reason and a remedy.
        """


def build_location_error(detail: str, hint: str) -> KdeclareError:
    """Return the error about a location that cannot be used to store a state."""
    return KdeclareError(error("state-location", "The state's location cannot be used", detail, hint=hint))
