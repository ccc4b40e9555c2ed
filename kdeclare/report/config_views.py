"""What ``config describe`` shows, as plain data. The use-cases fill it."""

from collections.abc import Mapping
from dataclasses import dataclass

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import ConfigEntry


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """Keys of one resource, sorted."""

    resource: ConfigResource
    entries: Mapping[str, ConfigEntry]


@dataclass(frozen=True, slots=True)
class ConfigsView:
    """Configs of several resources.

    everything: also what is not set on the resource itself was asked for.
    diagnostics: what could not be read.
    """

    cluster: str
    resources: tuple[ResourceConfigs, ...]
    everything: bool = False
    diagnostics: tuple[Diagnostic, ...] = ()
