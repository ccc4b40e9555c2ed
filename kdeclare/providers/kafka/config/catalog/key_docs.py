"""What editors show about config keys: meanings, and the few words that a value can be.

No broker tells them, so they are written down here, for those who type; Kafka itself judges what is typed.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from pydantic.json_schema import JsonSchemaValue

from kdeclare.providers.kafka.config.catalog import Catalog, KeyInfo, load_catalog
from kdeclare.providers.kafka.ids import ConfigScope

_CLEANUP = ("delete", "compact")
_COMPRESSION = ("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_TIMESTAMP = ("CreateTime", "LogAppendTime")
_TLS = ("TLSv1.2", "TLSv1.3")

_CHOICES: Mapping[str, tuple[str, ...]] = {
    "cleanup.policy": _CLEANUP,
    "compression.type": _COMPRESSION,
    "log.cleanup.policy": _CLEANUP,
    "log.message.timestamp.type": _TIMESTAMP,
    "message.timestamp.type": _TIMESTAMP,
    "sasl.enabled.mechanisms": ("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    "ssl.client.auth": ("required", "requested", "none"),
    "ssl.enabled.protocols": _TLS,
    "ssl.keystore.type": _STORE_TYPES,
    "ssl.protocol": _TLS,
    "ssl.truststore.type": _STORE_TYPES,
}
_LISTENER_PREFIXED = tuple(f".{key}" for key in _CHOICES if key.startswith(("sasl.", "ssl.")))


def list_choices(catalog: Catalog, key: str) -> tuple[str, ...]:
    """The values that a key can have, as words; of a list, its elements. Nothing where they are not few."""
    info = catalog.get(key)
    if info is None:
        return ()
    if info.type == "BOOLEAN":
        return ("true", "false")
    base_key = next((end[1:] for end in _LISTENER_PREFIXED if key.endswith(end)), key)
    return _CHOICES.get(base_key, ())


_READ_ONLY = "read-only"
_SCALAR: JsonSchemaValue = {"type": ["string", "number", "boolean", "null"]}
_MODE_NOTES = {
    "topic": "",
    "cluster-wide": "Of the whole cluster: belongs in cluster-default.",
    "per-broker": "Of one broker: belongs under a broker's id.",
    "per-listener": "Of one listener of one broker: written listener.name.NAME.KEY, under a broker's id.",
}


def make_schema_extra(scope: ConfigScope) -> Callable[[JsonSchemaValue], None]:
    """For ``json_schema_extra`` of a mapping of configs: adds a property for each key that can be declared.

    Other keys stay allowed, as a newer broker may have some. Nothing is read before a schema is asked for.
    """

    def add(schema: JsonSchemaValue) -> None:
        catalog = load_catalog(scope)
        schema["properties"] = {
            key: {"description": render_key_docs(catalog, key), **_build_value_schema(catalog, key)}
            for key, info in sorted(catalog.keys.items())
            if info.mode != _READ_ONLY
        }

    return add


def render_key_docs(catalog: Catalog, key: str) -> str:
    """What a key means, its type and default, and where it belongs.

    Raises KeyError for a key that cannot be declared.
    """
    info = catalog.keys[key]
    default = "no default" if info.default is None else f"default `{info.default}`"
    type_note = f"{info.type}, {default if info.default != '' else 'empty by default'}."
    return "\n\n".join(
        text for text in (load_meanings(catalog.scope)[key], type_note, _MODE_NOTES[info.mode]) if text
    )


def _build_value_schema(catalog: Catalog, key: str) -> JsonSchemaValue:
    info = catalog.keys[key]
    choices = _list_schema_choices(catalog, key, info)
    if not info.is_list:
        return {"anyOf": [{"enum": choices}, _SCALAR]} if choices else _SCALAR
    element: JsonSchemaValue = {"anyOf": [{"enum": choices}, _SCALAR]} if choices else _SCALAR
    elements: JsonSchemaValue = {"anyOf": [{"type": "array", "items": element}, {"type": ["string", "null"]}]}
    parts = {
        "append": {"description": "Elements that must be in it; others are left alone.", **elements},
        "subtract": {"description": "Elements that must not be in it.", **elements},
    }
    patch = {"type": "object", "properties": parts, "additionalProperties": False}
    return {"anyOf": [{"type": "array", "items": element}, patch, _SCALAR]}


def _list_schema_choices(catalog: Catalog, key: str, info: KeyInfo) -> list[str | bool]:
    """The values to choose from, as YAML has them."""
    return [True, False] if info.type == "BOOLEAN" else list(list_choices(catalog, key))


@cache
def load_meanings(scope: ConfigScope) -> Mapping[str, str]:
    """A sentence or two about each key of a scope that can be declared; read once."""
    meanings_by_scope: dict[str, dict[str, str]] = json.loads(
        files(__package__).joinpath("meanings.json").read_text()
    )
    return meanings_by_scope[scope.lower()]
