"""Which kinds have configs of Kafka's, and of which scope."""

from functools import cache
from typing import Protocol, runtime_checkable

from kdeclare.core.registry import KINDS
from kdeclare.providers.kafka.ids import ConfigScope


@runtime_checkable
class HasConfigs(Protocol):
    """A kind whose resources have ``configs``."""

    config_scope: ConfigScope


def find_config_scope(kind: str) -> ConfigScope | None:
    """Return the scope of a kind's configs; None where it has none, or is not known."""
    return _config_scope(KINDS.get(kind))


@cache  # checks of protocols are slow, and a plan makes thousands of them
def _config_scope(kind: object) -> ConfigScope | None:
    return kind.config_scope if isinstance(kind, HasConfigs) else None
