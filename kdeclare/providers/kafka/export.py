"""Live configs as lines of a manifest."""

from collections.abc import Mapping, Sequence

from kdeclare.core.jsontypes import Json
from kdeclare.core.manifest_text import scalar
from kdeclare.core.secrets import SHOWN
from kdeclare.providers.kafka.config.config_diff import ConfigSide, override


def config_lines(side: ConfigSide, keys: Sequence[str]) -> list[str]:
    """``configs:`` with the overrides of ``keys``; a sensitive one becomes a comment."""
    return value_lines({key: value for key in keys if (value := override(side, key)) is not None})


def value_lines(values: Mapping[str, Json]) -> list[str]:
    """``configs:`` with values as plans write them; none at all without any."""
    lines: list[str] = []
    for key, value in values.items():
        if value == SHOWN:
            lines.append(f"  # {key} is set, and Kafka shows it to nobody: ${{env.NAME}} would declare it")
        elif isinstance(value, list):
            lines.append(f"  {key}: [{', '.join(scalar(e) for e in value)}]")
        else:
            lines.append(f"  {key}: {scalar(value)}")
    if not lines:
        return []
    declares = any(not line.lstrip().startswith("#") for line in lines)
    return ["configs:" if declares else "configs: {}", *lines]
