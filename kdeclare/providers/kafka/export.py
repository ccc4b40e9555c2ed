"""Live configs as lines of a manifest, and what imports leave out of them."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kdeclare.core.capabilities import LeftOut
from kdeclare.core.jsontypes import Json
from kdeclare.core.manifest_text import scalar
from kdeclare.core.secrets import SHOWN
from kdeclare.providers.kafka.config.config_diff import NEVER_RESET, ConfigSide, override
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.operations.alter_configs import own_source


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


def count_configs_left_out(live: KafkaState, held: Collection[str] = ()) -> tuple[LeftOut, ...]:
    """Count the overrides that are in no manifest.

    held: keys that the cluster itself holds, where they are cluster-wide.
    """
    counts: Counter[str] = Counter()
    for entity, entries in live.configs.items():
        for key, entry in entries.items():
            if entry.source is not own_source(entity):
                continue
            if key in NEVER_RESET:
                counts["throttle"] += 1
            elif key in held and not entity.name:
                counts["held"] += 1
            elif entry.sensitive or entry.value is None:
                counts["hidden"] += 1
    return (
        LeftOut(counts["throttle"], "throttle", "throttles", "which moves bring with them"),
        LeftOut(counts["hidden"], "secret", "secrets", "which Kafka shows to nobody; comments say which"),
        LeftOut(
            counts["held"], "cluster-wide config", "cluster-wide configs", "which the cluster itself holds"
        ),
    )
