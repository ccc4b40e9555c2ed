"""The schema for editors: descriptions of every field and config key, and the allowed values."""

from typing import Any

import jsonschema
import pytest

from kdeclare.app.authoring.schema import build_manifest_schema, build_overlay_file_schema, list_overlay_kinds
from kdeclare.manifests.field_docs import FIELD_DOCS
from kdeclare.providers.kafka.config.catalog import load_catalog
from kdeclare.providers.kafka.config.catalog.key_docs import load_meanings
from kdeclare.providers.kafka.ids import ConfigScope

SCHEMA = build_manifest_schema(None)
MODELS = {name: model["properties"] for name, model in SCHEMA["$defs"].items() if "properties" in model}


@pytest.mark.parametrize("model", MODELS)
def test_every_schema_field_has_description(model: str) -> None:
    silent = [name for name, field in MODELS[model].items() if not field.get("description")]
    assert silent == [], "describe the field in the model or in manifests/field_docs.py"


def test_field_docs_describe_only_existing_fields() -> None:
    assert FIELD_DOCS.keys() <= MODELS.keys()
    for model, fields in FIELD_DOCS.items():
        assert fields.keys() <= MODELS[model].keys(), model


def get_config_keys(spec: str) -> dict[str, Any]:
    """Return the config keys in the schema of a spec."""
    found: dict[str, Any] = MODELS[spec]["configs"]["anyOf"][0]["properties"]
    return found


def test_config_key_description_has_meaning_type_and_default() -> None:
    said = get_config_keys("TopicSpec")["retention.ms"]["description"]
    assert said.startswith("Milliseconds that a topic with the delete policy keeps data; -1 for no limit.")
    assert said.endswith("\n\nLONG, default `604800000`.")
    assert get_config_keys("BrokerConfigSpec")["log.cleaner.threads"]["description"].endswith(
        "INT, default `1`.\n\n"
        "Applies to the whole cluster; declare the key in the BrokerConfig cluster-default."
    )


@pytest.mark.parametrize("scope", ConfigScope)
def test_config_meanings_cover_exactly_declarable_keys(scope: ConfigScope) -> None:
    declarable = {key for key, info in load_catalog(scope).keys.items() if info.mode != "read-only"}
    assert load_meanings(scope).keys() == declarable, "describe the key in meanings.json"
    assert [
        key for key, text in load_meanings(scope).items() if not text.endswith(".") or len(text) > 250
    ] == []


@pytest.mark.parametrize("unit", ["bytes", "ms", "seconds"])
def test_config_meaning_names_unit_of_key(unit: str) -> None:
    word = "milliseconds" if unit == "ms" else unit
    measured = [
        (k, t) for scope in ConfigScope for k, t in load_meanings(scope).items() if k.endswith(f".{unit}")
    ]
    assert len(measured) > 1
    assert [key for key, text in measured if word not in text.lower()] == []


def test_schema_omits_read_only_broker_configs() -> None:
    offered = get_config_keys("BrokerConfigSpec")
    assert "log.retention.ms" in offered
    assert "log.dirs" not in offered


VALUES = [
    ({"cleanup.policy": ["compact"]}, True),
    ({"cleanup.policy": "compact,delete"}, True),
    ({"cleanup.policy": {"append": ["compact"]}}, True),
    ({"cleanup.policy": {"append": "compact", "subtract": None}}, True),
    ({"cleanup.policy": {"add": ["compact"]}}, False),
    ({"retention.ms": 1000, "compression.type": "zstd", "preallocate": True}, True),
    ({"retention.ms": "${var.retention}", "preallocate": "${var.early}", "flush.ms": None}, True),
    ({"retention.ms": [1000]}, False),
    ({"compression.type": "${env.COMPRESSION}", "some.key.of.tomorrow": 1}, True),
]


@pytest.mark.parametrize(("values", "valid"), VALUES)
def test_schema_accepts_same_config_values_as_validate(values: dict[str, Any], valid: bool) -> None:
    document = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": {"name": "orders"}}
    document["spec"] = {"partitions": 1, "configs": values}
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(document) is valid


def test_schema_lists_allowed_config_values() -> None:
    offered = get_config_keys("TopicSpec")
    assert {"enum": [True, False]} in offered["preallocate"]["anyOf"]
    assert "zstd" in offered["compression.type"]["anyOf"][0]["enum"]
    assert offered["cleanup.policy"]["anyOf"][0]["items"]["anyOf"][0]["enum"] == ["delete", "compact"]


def test_schema_of_one_kind_has_same_descriptions() -> None:
    assert build_manifest_schema("Topic")["$defs"]["TopicSpec"] == SCHEMA["$defs"]["TopicSpec"]


@pytest.mark.slow
def test_overlay_schema_requires_only_kind_and_name() -> None:
    """The overlay of docs/environments.md, and the fields that a merge adds to it."""
    whole: dict[str, Any] = {"kind": "Topic", "metadata": {"name": "orders"}, "spec": {"partitions": 48}}
    assert is_valid_overlay(whole)
    assert is_valid_overlay(whole | {"apiVersion": "kdeclare/v1"})
    assert is_valid_overlay({"kind": "Topic", "metadata": {"name": "orders", "labels": {"tier": "gold"}}})
    connect = {"kind": "ConnectWorkerConfig", "metadata": {"name": "c"}, "spec": {"config": {"a.b": "c"}}}
    assert is_valid_overlay(connect)
    assert not is_valid_overlay(whole | {"apiVersion": "kdeclare/v2"})
    assert not is_valid_overlay(whole | {"spec": {"partitoins": 48}})
    assert not is_valid_overlay({key: whole[key] for key in ("metadata", "spec")})
    assert not is_valid_overlay(whole | {"metadata": {"labels": {"tier": "gold"}}})


def test_overlay_schema_requires_complete_list_elements() -> None:
    move = {"topic": "orders", "partition": 0, "replicas": [1, 2]}
    drain = {"kind": "Reassignment", "metadata": {"name": "drain"}}
    assert is_valid_overlay(drain | {"spec": {"partitions": [move], "placement": {"racks": ["a"]}}})
    assert not is_valid_overlay(drain | {"spec": {"partitions": [{"topic": "orders", "partition": 0}]}})


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Defaults", "Policy", "PolicyTest", "Project", "Fleet"])
def test_overlay_schema_rejects_kinds_without_overlays(kind: str) -> None:
    assert not is_valid_overlay({"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": "x"}})


def is_valid_overlay(document: dict[str, Any]) -> bool:
    """Return whether the overlay is valid by the schema of overlays and by that of its kind."""
    schemas = [
        build_overlay_file_schema(None),
        *map(build_overlay_file_schema, {document.get("kind")} & {*list_overlay_kinds()}),
    ]
    said = {jsonschema.Draft202012Validator(schema).is_valid(document) for schema in schemas}
    assert len(said) == 1
    return said.pop()


def test_each_schema_has_its_own_id() -> None:
    assert {
        schema["$id"]
        for kind in (None, "Topic", "Acl")
        for schema in (build_manifest_schema(kind), build_overlay_file_schema(kind))
    } == {
        f"urn:kdeclare:{documents}:v1{kind}"
        for documents in ("manifest", "overlay")
        for kind in ("", ":Topic", ":Acl")
    }


def test_references_are_resolved_within_schema_with_id() -> None:
    manifest = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": {"name": "orders"}, "spec": {}}
    for kind in (None, "Topic"):
        validator = jsonschema.Draft202012Validator(build_manifest_schema(kind))
        assert validator.is_valid({**manifest, "spec": {"partitions": 3}})
        assert not validator.is_valid({**manifest, "spec": {"partitions": []}})


def test_schema_accepts_for_each_in_manifests_of_resources_only() -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    head = {"apiVersion": "kdeclare/v1", "metadata": {"name": "${each.key}"}}
    spec = {"partitions": "${each.value.partitions}", "configs": "${each.value.configs}"}
    for source in (["a"], {"a": {"partitions": 1}}, "topics.yaml", "${var.topics}"):
        assert validator.is_valid({**head, "kind": "Topic", "forEach": source, "spec": spec})
    assert not validator.is_valid({**head, "kind": "Topic", "forEach": 1, "spec": spec})
    defaults = {"kind": "Topic", "defaults": {}}
    assert validator.is_valid({**head, "kind": "Defaults", "spec": defaults})
    assert not validator.is_valid({**head, "kind": "Defaults", "forEach": ["a"], "spec": defaults})
