"""Spec fields whose scalars are strings exactly as written in the manifest, not values parsed by YAML."""

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kdeclare.core.frozen_dataclass import dataclass

_SCALARS = ["string", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class RawText:
    """Annotates a field whose scalars, at any depth, are strings exactly as written.

    For example, 1.10 stays ``1.10`` instead of becoming 1.1, and true is a string. Null stays null. For the
    settings of most systems, use ``properties: Annotated[dict[str, str], RawText(may_be_secret=True)]``.

    may_be_secret: whether messages must not repeat the values, because some values are secrets.
    """

    may_be_secret: bool = False

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return a schema for editors that accepts numbers and Booleans in addition to strings."""
        return _allow_scalars(handler(schema))


def _allow_scalars(schema: JsonSchemaValue) -> JsonSchemaValue:
    widened = dict(schema)
    if widened.get("type") == "string" and "enum" not in widened and "const" not in widened:
        widened["type"] = _SCALARS
    for part in ("additionalProperties", "items"):
        if isinstance(widened.get(part), dict):
            widened[part] = _allow_scalars(widened[part])
    if "anyOf" in widened:
        widened["anyOf"] = [_allow_scalars(option) for option in widened["anyOf"]]
    return widened
