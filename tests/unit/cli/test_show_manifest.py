"""The source of each field is shown, and the fields together are the planned resource."""

import json

import pytest
import yaml
from jsonschema import Draft202012Validator

from kdeclare.app.authoring.show_manifest import show_manifest
from kdeclare.core.documents import dump_document
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.report.manifest.effective_manifest import build_manifest_schemas, render_manifest_text
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_golden, check_schema

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec:
  defaultEnvironment: production
  environments:
    staging: {variables: {retention: 3600000}}
    production:
      variables: {retention: 604800000, partitions: 6}
      overlays: [overlays/production]
"""
ORDERS = """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders, labels: {team: checkout}}
spec:
  replicationFactor: 2
  configs:
    retention.ms: ${var.retention}
    cleanup.policy: {append: [compact], subtract: [delete]}
    max.message.bytes: null
"""
OVERLAY = "{kind: Topic, metadata: {name: orders}, spec: {replicationFactor: 3}}\n"
BROKER = """\
apiVersion: kdeclare/v1
kind: BrokerConfig
metadata: {name: "1"}
spec:
  configs:
    listener.name.out.ssl.keystore.password: hunter2
    listener.name.out.ssl.key.password: ${env.KEY}
    log.cleaner.threads: ${env.THREADS}
"""
MOVE = """\
apiVersion: kdeclare/v1
kind: Reassignment
metadata: {name: move}
spec:
  partitions: [{topic: orders, partition: 0, replicas: [1, 2, 3]}]
  throttle: 50MiB/s
"""
DEFAULTS = """\
apiVersion: kdeclare/v1
kind: Defaults
metadata: {name: checkout}
spec:
  kind: Topic
  selector: {labels: {team: checkout}}
  priority: 1
  defaults:
    partitions: ${var.partitions}
    configs: {min.insync.replicas: 2}
---
apiVersion: kdeclare/v1
kind: Defaults
metadata: {name: everything}
spec:
  kind: Topic
  defaults:
    replicationFactor: 1
    configs: {min.insync.replicas: 1}
    lifecycle: {preventDestroy: true}
"""


@pytest.fixture
def payments_project(kdeclare: CommandLine) -> CommandLine:
    """A project with all possible sources of fields."""
    files = {
        "kdeclare.yaml": PROJECT,
        "manifests/orders.yaml": ORDERS,
        "manifests/broker.yaml": BROKER,
        "manifests/move.yaml": MOVE,
        "manifests/defaults.yaml": DEFAULTS,
        "overlays/production/orders.yaml": OVERLAY,
    }
    for name, text in files.items():
        path = kdeclare.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    kdeclare.monkeypatch.setenv("KEY", "the value of KEY")
    kdeclare.monkeypatch.setenv("THREADS", "3")
    return kdeclare


@pytest.mark.parametrize("resource", ["Topic/orders", "BrokerConfig/1", "Reassignment/move"])
def test_show_manifest_prints_every_field_with_source(payments_project: CommandLine, resource: str) -> None:
    ran = payments_project("show-manifest", resource)
    assert (ran.code, ran.err) == (0, "")
    check_golden(f"show-manifest-{resource.partition('/')[0]}", ran.out)


def test_show_manifest_json_fits_schema(payments_project: CommandLine) -> None:
    for name, schema in build_manifest_schemas().items():
        check_schema(name, schema)
    document = json.loads(payments_project("show-manifest", "Topic/orders", "--format", "json").out)
    Draft202012Validator(build_manifest_schemas()["show-manifest"]).validate(document)
    fields = {".".join(item["path"]): item for item in document["fields"]}
    factor = fields["spec.replicationFactor"]
    assert (factor["value"], factor["by"]["origin"]) == (3, "overlay")
    assert [(said["origin"], said["defaults"]) for said in factor["over"]] == [
        ("manifest", None),
        ("defaults", "everything"),
    ]
    [variable] = fields["spec.configs.retention.ms"]["references"]
    assert variable == {"name": "var.retention", "place": {"file": "kdeclare.yaml", "line": 9, "column": 19}}


def test_show_manifest_positions_point_to_fields(payments_project: CommandLine) -> None:
    document = json.loads(payments_project("show-manifest", "Topic/orders", "--format", "json").out)
    for item in document["fields"]:
        for said in (item["by"], *item["over"]):
            line = (
                (payments_project.folder / said["place"]["file"])
                .read_text()
                .splitlines()[said["place"]["line"] - 1]
            )
            assert line[said["place"]["column"] - 1 :].startswith(item["path"][-1])


@pytest.mark.parametrize("output", ["text", "json"])
def test_show_manifest_hides_secret_values(payments_project: CommandLine, output: str) -> None:
    out = payments_project("show-manifest", "BrokerConfig/1", "--format", output).out
    assert "hunter2" not in out
    assert "the value of KEY" not in out
    assert "${env.KEY}" in out


def test_show_manifest_shows_resolved_numbers(payments_project: CommandLine) -> None:
    text = ORDERS.replace("replicationFactor: 2", "partitions: ${env.THREADS}")
    (payments_project.folder / "manifests/orders.yaml").write_text(text)
    document = json.loads(payments_project("show-manifest", "Topic/orders", "--format", "json").out)
    [field] = [item for item in document["fields"] if item["path"] == ["spec", "partitions"]]
    assert (field["value"], field["by_reference"]) == (3, False)
    assert field["references"] == [{"name": "env.THREADS", "place": None}]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_show_manifest_fits_terminal_width(payments_project: CommandLine, width: int) -> None:
    manifest = show_manifest(None, None, ResourceId("Topic", "orders"), {})
    text = render_manifest_text(manifest, width)
    assert max(map(len, text.splitlines())) <= max(width, 58)  # its heading is one line
    assert yaml.safe_load(text) == yaml.safe_load(render_manifest_text(manifest)), "comments alone give way"


def test_show_manifest_reports_missing_variable_of_defaults(payments_project: CommandLine) -> None:
    ran = payments_project("show-manifest", "Topic/orders", "--env", "staging")
    assert ran.code == 1
    assert "no variable 'partitions'" in ran.err
    assert "manifests/defaults.yaml:9:17" in ran.err


def test_show_manifest_suggests_name_for_unknown_resource(payments_project: CommandLine) -> None:
    ran = payments_project("show-manifest", "Topic/ordres")
    assert ran.code == 1
    assert "Did you mean Topic/orders?" in ran.err
    assert payments_project("show-manifest", "Topik/orders").code == 64
    assert payments_project("show-manifest", "orders").code == 64


def test_show_manifest_reports_manifest_errors(payments_project: CommandLine) -> None:
    (payments_project.folder / "manifests/orders.yaml").write_text(
        ORDERS.replace("cleanup.policy", "cleanup.polcy")
    )
    ran = payments_project("show-manifest", "Topic/orders")
    assert ran.code == 1
    assert "Did you mean 'cleanup.policy'?" in ran.err


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        (
            "overlays/production/orders.yaml",
            "{kind: Topic, metadata: {name: orders}, spec: {",
            "YAML syntax error",
        ),
        (
            "overlays/production/orders.yaml",
            "{kind: Topic, spec: {partitions: 9}}",
            "Overlay does not name a resource",
        ),
        (
            "manifests/defaults.yaml",
            DEFAULTS.replace("{name: checkout}", "{}"),
            "'metadata' needs a field 'name'",
        ),
    ],
)
def test_show_manifest_reports_ambiguous_documents(
    payments_project: CommandLine, file: str, text: str, said: str
) -> None:
    (payments_project.folder / file).write_text(text)
    ran = payments_project("show-manifest", "Topic/orders")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


@pytest.mark.parametrize("key", ["0", "0x0", "+0"])
def test_show_manifest_accepts_numeric_keys_in_any_spelling(payments_project: CommandLine, key: str) -> None:
    manifest = ORDERS.replace("replicationFactor: 2", f"assignments: {{{key}: [1, 2]}}")
    (payments_project.folder / "manifests/orders.yaml").write_text(manifest)
    (payments_project.folder / "overlays/production/orders.yaml").unlink()
    ran = payments_project("show-manifest", "Topic/orders")
    assert (ran.code, ran.err) == (0, "")
    assert yaml.safe_load(ran.out)["spec"]["assignments"] == {0: [1, 2]}


def test_show_manifest_needs_project(payments_project: CommandLine) -> None:
    (payments_project.folder / "kdeclare.yaml").unlink()
    assert (
        "There is no 'kdeclare.yaml' in this folder." in payments_project("show-manifest", "Topic/orders").err
    )


def test_show_manifest_document_is_plain_data(payments_project: CommandLine) -> None:
    manifest = show_manifest(None, None, ResourceId("Reassignment", "move"), {})
    assert json.loads(json.dumps(dump_document(manifest))) == dump_document(manifest)
    assert set(KINDS) >= {manifest.resource.kind}
