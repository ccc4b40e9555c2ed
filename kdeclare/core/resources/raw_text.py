"""Fields of specs whose scalars are read as the text that the manifest has, not as what YAML makes of it."""

from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kdeclare.core.frozen_dataclass import dataclass

_SCALARS = ["string", "number", "boolean"]


@dataclass(frozen=True, slots=True)
class RawText:
    """Marks a field whose scalars stay text as written, at any depth: 1.10 is not 1.1, and true is a text.

    ``properties: Annotated[dict[str, str], RawText(may_be_secret=True)]`` is what settings of another system
    usually are. Null stays null.

    may_be_secret: whether no message may repeat a value, because some of them are secrets.
    """

    may_be_secret: bool = False

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema for editors, in which a number or a truth value may stand for its text."""
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
