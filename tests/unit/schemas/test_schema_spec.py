"""Manifests of schemas: mistakes are found offline, with positions in the manifest or in the file."""

import pickle
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kdeclare.app.plan import CHECKS
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.fleet_capabilities import decode_body, encode_body
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import open_project
from kdeclare.providers.schema_registry.client.port import CompatibilityLevel, SchemaType
from kdeclare.providers.schema_registry.schema.spec import DeclaredLevel, DeclaredReference, SchemaBody

ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]}'


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifests").mkdir()
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\nspec:\n"
        "  environments: {lab: {bootstrapServers: 'a:1', variables: {ns: shop}}}\n"
    )


def load(spec: str, name: str = "order-value", environ: Mapping[str, str] | None = None) -> LoadedManifests:
    """Load a manifest. spec: the lines of the spec, which start at line 5."""
    indented = "".join(f"  {line}\n" for line in spec.strip("\n").split("\n"))
    Path("manifests/order.yaml").write_text(
        f"apiVersion: kdeclare/v1\nkind: Schema\nmetadata: {{name: {name}}}\nspec:\n{indented}"
    )
    project = open_project(Path("kdeclare.yaml"), None, environ or {})
    return load_project_manifests(project, (), KINDS, environ or {}, CHECKS)


def load_body(spec: str) -> SchemaBody:
    loaded = load(spec)
    assert loaded.diagnostics == ()
    (item,) = loaded.desired
    return item.get_body(SchemaBody)


def list_problems(spec: str, name: str = "order-value") -> list[tuple[str, str]]:
    return [(d.code, str(d.place)) for d in load(spec, name).diagnostics]


def test_file_is_registered_unchanged() -> None:
    Path("manifests/order.avsc").write_text(f"{ORDER}\n")
    body = load_body("file: order.avsc")
    assert body == SchemaBody(None, "order-value", SchemaType.AVRO, f"{ORDER}\n", file="manifests/order.avsc")


def test_mapping_becomes_json_in_the_same_order() -> None:
    body = load_body(
        "registry: main\nsubject: other\nschema:\n  type: record\n  namespace: '${var.ns}'\n  name: Order\n"
        "  fields:\n    - {type: long, name: size, default: 0}\n"
        "    - {name: price, type: double, default: 1.5, doc: Päckchen}"
    )
    assert (body.registry, body.subject) == ("main", "other")
    assert body.text == (
        '{"type": "record", "namespace": "shop", "name": "Order", "fields": [{"type": "long", "name": '
        '"size", "default": 0}, {"name": "price", "type": "double", "default": 1.5, "doc": "Päckchen"}]}'
    )


def test_text_and_options_are_read() -> None:
    body = load_body(
        'type: PROTOBUF\nschema: |\n  syntax = "proto3";\n  import "item.proto";\n  message Order {}\n'
        "references: [{name: item.proto, subject: item}, {name: b.proto, subject: b, version: 3}]\n"
        "compatibility: null\nonDelete: hard\nlifecycle: {preventDestroy: true, adopt: true}"
    )
    assert body.text == 'syntax = "proto3";\nimport "item.proto";\nmessage Order {}\n'
    assert body.references == (DeclaredReference("item.proto", "item"), DeclaredReference("b.proto", "b", 3))
    assert body.compatibility == DeclaredLevel(None)
    assert (body.on_delete, body.prevent_destroy, body.adopt) == ("hard", True, True)


@pytest.mark.parametrize(
    "spec",
    [
        "schema: '\"string\"'",
        "schema: ['null', string]",
        f"schema: '{ORDER}'\ncompatibility: FULL_TRANSITIVE\nonDelete: keep\nregistry: eu",
        f"schema: '{ORDER}'\nreferences: [{{name: a, subject: b}}]\ncompatibility: null",
    ],
)
def test_body_survives_conversion(spec: str) -> None:
    loaded = load(spec)
    assert loaded.diagnostics == ()
    (item,) = loaded.desired
    assert decode_body("Schema", encode_body(item)) == item.body
    assert pickle.loads(pickle.dumps(item)) == item


def test_level_that_is_not_declared_is_not_managed() -> None:
    assert load_body(f"schema: '{ORDER}'").compatibility is None
    level = load_body(f"schema: '{ORDER}'\ncompatibility: FULL").compatibility
    assert level == DeclaredLevel(CompatibilityLevel.FULL)


@pytest.mark.parametrize(
    ("spec", "problems"),
    [
        ("type: AVRO", [("schema-source", "manifests/order.yaml:5:3")]),
        (f"file: x.avsc\nschema: '{ORDER}'", [("schema-source", "manifests/order.yaml:6:11")]),
        ("type: PROTOBUF\nschema: {a: 1}", [("schema-source", "manifests/order.yaml:6:11")]),
        ("type: XML\nschema: '\"int\"'", [("bad-value", "manifests/order.yaml:5:9")]),
        (f"schema: '{ORDER}'\ncompatibility: SOME", [("bad-value", "manifests/order.yaml:6:18")]),
        (f"schema: '{ORDER}'\ncompatability: FULL", [("unknown-field", "manifests/order.yaml:6:3")]),
        (
            f"schema: '{ORDER}'\nreferences: [{{name: a, subject: order-value}}]",
            [("reference-to-itself", "manifests/order.yaml:6:35")],
        ),
        (
            f"schema: '{ORDER}'\nreferences: [{{name: a, subject: b}}, {{name: a, subject: c}}]",
            [("duplicate-reference", "manifests/order.yaml:6:46")],
        ),
        (
            f"schema: '{ORDER}'\nreferences: [{{name: a, subject: b, version: 0}}]",
            [("bad-value", "manifests/order.yaml:6:47")],
        ),
    ],
)
def test_mistakes_have_positions(spec: str, problems: list[tuple[str, str]]) -> None:
    Path("manifests/x.avsc").write_text(ORDER)
    assert list_problems(spec) == problems


def test_invalid_schema_has_position_in_the_file() -> None:
    Path("manifests/order.avsc").write_text('{\n  "type": "array",\n  "items": "strin"\n}\n')
    assert list_problems("file: order.avsc") == [("invalid-schema", "manifests/order.avsc:3:12")]
    Path("manifests/order.avsc").write_text('{\n  "type": "record",,\n}\n')
    assert list_problems("file: order.avsc") == [("invalid-schema", "manifests/order.avsc:2:20")]
    Path("manifests/order.proto").write_text('syntax = "proto3";\n\nmessage Order {\n  string id = ;\n}\n')
    ((code, place),) = list_problems("type: PROTOBUF\nfile: order.proto")
    assert (code, place.rsplit(":", 1)[0]) == ("invalid-schema", "manifests/order.proto:4")


def test_invalid_schema_has_position_in_the_manifest() -> None:
    mapping = "schema:\n  type: record\n  name: Order\n  fields:\n    - {name: id, type: strin}"
    assert list_problems(mapping) == [("invalid-schema", "manifests/order.yaml:9:26")]
    block = 'schema: |\n  {\n    "type": "strin"\n  }'
    assert list_problems(block) == [("invalid-schema", "manifests/order.yaml:7:15")]


def test_missing_file_is_reported_at_the_field() -> None:
    assert list_problems("file: gone.avsc") == [("unreadable-file", "manifests/order.yaml:5:9")]


def test_subject_outside_the_scope_of_the_project_is_refused() -> None:
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {scope: {Schema: ['/order-.*/']}}\n"
    )
    assert list_problems(f"schema: '{ORDER}'") == []
    codes = [code for code, _ in list_problems(f"schema: '{ORDER}'\nsubject: payment-value")]
    assert codes == ["out-of-scope"]


def write_topic(name: str) -> None:
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": {"partitions": 1},
    }
    Path("manifests/topic.yaml").write_text(yaml.safe_dump(document))


def test_schema_without_topic_is_a_warning() -> None:
    spec = f"schema: '{ORDER}'"
    assert list_problems(spec) == []  # a project without topics declares them elsewhere
    write_topic("orders")
    (problem,) = load(spec).diagnostics
    assert (problem.code, problem.is_error) == ("schema-without-topic", False)
    assert problem.hint == "Did you mean 'orders'?"
    assert list_problems(spec, "order") == []
    assert list_problems(spec, "orders-key") == []
