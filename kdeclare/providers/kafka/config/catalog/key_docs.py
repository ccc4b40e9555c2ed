"""Descriptions and allowed values of config keys, for editors.

Brokers do not report allowed values, so this module contains them. kdeclare does not check values against
them; Kafka does.
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
    "share.auto.offset.reset": ("earliest", "latest"),
    "share.isolation.level": ("read_committed", "read_uncommitted"),
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
    """Return the allowed values of a key or of its list elements.

    The result is empty if the values are not listed in this module.
    """
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
    "group": "",
    "client-metrics": "",
    "cluster-wide": "Applies to the whole cluster; declare the key in the BrokerConfig cluster-default.",
    "per-broker": "Applies to one broker; declare the key in a BrokerConfig whose name is a broker id.",
    "per-listener": "Applies to one listener of one broker; declare listener.name.NAME.KEY in a BrokerConfig "
    "whose name is a broker id.",
}


def make_schema_extra(scope: ConfigScope) -> Callable[[JsonSchemaValue], None]:
    """Return a ``json_schema_extra`` hook that adds a property for each known config key.

    The schema allows other keys too, because newer brokers can have more keys. The catalog is read only when
    a schema is built.
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
    """Return the description, type and default of a key, and where the key can be declared.

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
    if not info.can_be_patched:
        return {"anyOf": [{"type": "array", "items": element}, _SCALAR]}
    parts = {
        "append": {
            "description": "Elements that the list must contain; other elements are left unchanged.",
            **elements,
        },
        "subtract": {"description": "Elements that the list must not contain.", **elements},
    }
    patch = {"type": "object", "properties": parts, "additionalProperties": False}
    return {"anyOf": [{"type": "array", "items": element}, patch, _SCALAR]}


def _list_schema_choices(catalog: Catalog, key: str, info: KeyInfo) -> list[str | bool]:
    """Return the allowed values of a key, with the types that they have in YAML."""
    return [True, False] if info.type == "BOOLEAN" else list(list_choices(catalog, key))


@cache
def load_meanings(scope: ConfigScope) -> Mapping[str, str]:
    """Return a short description of each key that can be declared in a scope. The file is read only once."""
    meanings_by_scope: dict[str, dict[str, str]] = json.loads(
        files(__package__).joinpath("meanings.json").read_text()
    )
    return meanings_by_scope[scope.lower()]
