"""How histories of snapshots show topics and the configs of brokers."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import JsonObject, JsonValue

_KEY_PROPERTIES = ("type", "sensitive", "read_only")
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
                flat |= _split_item(f"assignments.{number}", partition, "replicas")
        elif isinstance(value, dict):
            for name, item in value.items():
                flat |= _split_item(f"{key}.{name}", item, "value")
        else:
            flat[key] = value
    return flat


def _split_item(path: str, item: JsonValue, main_field: str) -> dict[str, JsonValue]:
    """An item as it is, or its main part under the path itself and the others beneath it."""
    if not isinstance(item, dict) or main_field not in item:
        return {path: item}
    other_fields = {
        f"{path}.{name}": value for name, value in item.items() if name not in (main_field, *_KEY_PROPERTIES)
    }
    return {path: item[main_field]} | other_fields


def name_topic_field(path: str) -> str | None:
    """Return what people call a field of a topic, where that is not its path."""
    if path == "id":
        return "topic id (created anew)"
    section, _, number = path.partition(".")
    label = {"assignments": "replicas", "moves": "move"}.get(section)
    return f"{label} of partition {number}" if label else None
