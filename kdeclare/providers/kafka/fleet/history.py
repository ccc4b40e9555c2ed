"""The field paths and field names of topics and broker configs in the history of a fleet."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import JsonObject, JsonValue

_KEY_PROPERTIES = ("type", "sensitive", "read_only")
"""The properties of a config entry that never change for a key."""


def flatten_body(body: JsonObject) -> Mapping[str, JsonValue]:
    """Return the fields of a body by path. Plans and findings use the same paths.

    Examples: ``configs.retention.ms``, ``partitions``, ``assignments.3`` (the replicas of partition 3),
        ``moves.3`` (the in-flight reassignment of partition 3), ``id``. Any other path consists of the keys
        that lead to the field.
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
    """Split a JSON object into fields, by path.

    The value of ``main_field`` is stored under the path of the object itself. The other values are stored
    under paths below it. A value without ``main_field`` is not split.
    """
    if not isinstance(item, dict) or main_field not in item:
        return {path: item}
    other_fields = {
        f"{path}.{name}": value for name, value in item.items() if name not in (main_field, *_KEY_PROPERTIES)
    }
    return {path: item[main_field]} | other_fields


def name_topic_field(path: str) -> str | None:
    """Return the display name of a topic field, or None if the field has no display name."""
    if path == "id":
        return "topic id (re-created)"
    section, _, number = path.partition(".")
    label = {"assignments": "replicas", "moves": "reassignment"}.get(section)
    return f"{label} of partition {number}" if label else None
