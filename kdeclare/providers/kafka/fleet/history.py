"""How histories of snapshots show topics and the configs of brokers."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import JsonObject, JsonValue

_ABOUT = ("type", "sensitive", "read_only")
"""Parts of a config entry that say of its key what never changes."""


def flatten_body(body: JsonObject) -> Mapping[str, JsonValue]:
    """Return the fields of a body by the paths that plans and findings have for them.

    ``configs.retention.ms``, ``partitions``, ``assignments.3`` (the replicas of partition 3), ``moves.3``
    (its move), ``id``, or what else leads there.
    """
    flat: dict[str, JsonValue] = {}
    for key, value in body.items():
        if key == "partitions" and isinstance(value, list):
            flat["partitions"] = len(value)
            for number, partition in enumerate(value):
                flat |= _split(f"assignments.{number}", partition, "replicas")
        elif isinstance(value, dict):
            for name, item in value.items():
                flat |= _split(f"{key}.{name}", item, "value")
        else:
            flat[key] = value
    return flat


def _split(path: str, item: JsonValue, main: str) -> dict[str, JsonValue]:
    """An item as it is, or its main part under the path itself and the others beneath it."""
    if not isinstance(item, dict) or main not in item:
        return {path: item}
    others = {f"{path}.{name}": value for name, value in item.items() if name not in (main, *_ABOUT)}
    return {path: item[main]} | others


def name_topic_field(path: str) -> str | None:
    """Return what people call a field of a topic, where that is not its path."""
    if path == "id":
        return "topic id (created anew)"
    start, _, rest = path.partition(".")
    of = {"assignments": "replicas", "moves": "move"}.get(start)
    return f"{of} of partition {rest}" if of else None
