"""A project in one of its environments, and the schema that editors use."""

import pickle
from pathlib import Path

import jsonschema
import pytest
import yaml

from kdeclare.core.diagnostics import KdeclareError, SourcePosition
from kdeclare.engine.state.location import resolve_folder
from kdeclare.manifests.editor_schema import build_json_schema
from kdeclare.manifests.project import Project, open_project
from tests.unit.manifests.small_kinds import KINDS, RULES

HEAD = "{apiVersion: kdeclare/v1, kind: Project, metadata: {name: p}, "

POLICIES = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec:
  policies:
    - name: names
      class: policies.naming:Names
      config:
        max: 48
        ratio: 0.5
        configs: {retention.ms: 1000, cleanup.policy: [compact]}
        labels: {tier: 1.10}
        secret: ${env.PW}
    - name: sizes
      class: kdeclare.policy.rules:PartitionBounds
      severity: warn
      actions: [CREATE]
      selector: {topics: ['/a.*/', b], labels: {tier: 1}}
"""

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec:
  manifests: [topics, more/brokers.yaml]
  state: STATE
  defaultEnvironment: dev
  environments:
    dev:
      bootstrapServers: 127.0.0.1:19092
      clientConfig: {security.protocol: PLAINTEXT, a: 30_000ms, retries: 3, sasl.password: "${env.PW}"}
      variables: {retention: 604800000, "on": yes please}
      overlays: [overlays/dev]
    prod:
      bootstrapServers: "${env.PROD_SERVERS}"
      clientConfigFile: prod.properties
      overlays: [overlays/prod, overlays/dev]
"""


def open_project_file(folder: Path, env: str | None = None, state: str = "state") -> Project:
    path = folder / "kdeclare.yaml"
    path.write_text(PROJECT.replace("STATE", state))
    return open_project(path, env, {"PW": "hunter2"} if env != "prod" else {"PROD_SERVERS": "a:1,b:2"})


def test_open_project_uses_default_environment(tmp_path: Path) -> None:
    project = open_project_file(tmp_path)
    assert (project.name, project.folder) == ("payments", tmp_path)
    assert project.manifests == (tmp_path / "topics", tmp_path / "more/brokers.yaml")
    assert project.state == str(tmp_path / "state")
    assert project.all_overlays == (tmp_path / "overlays/dev", tmp_path / "overlays/prod")
    dev = project.environment
    assert (dev.name, dev.bootstrap_servers) == ("dev", "127.0.0.1:19092")
    assert dev.client_config == {
        "security.protocol": "PLAINTEXT",
        "a": "30_000ms",
        "retries": "3",
        "sasl.password": "hunter2",
    }
    assert dev.variables["retention"][:2] == (604800000, "604800000")
    assert dev.variables["on"][:2] == ("yes please", "yes please")
    assert dev.overlays == (tmp_path / "overlays/dev",)
    assert "hunter2" not in repr(project)


def test_open_project_resolves_only_references_of_environment(tmp_path: Path) -> None:
    prod = open_project_file(tmp_path, "prod").environment
    assert (prod.name, prod.bootstrap_servers) == ("prod", "a:1,b:2")
    assert prod.client_config_file == tmp_path / "prod.properties"


@pytest.mark.parametrize("env", ["dev", "prod"])
def test_open_project_offline_resolves_no_connection_references(tmp_path: Path, env: str) -> None:
    """A job that only reads manifests, such as one for a fork, has no secrets."""
    path = tmp_path / "kdeclare.yaml"
    path.write_text(PROJECT.replace("STATE", "${env.STATE}"))
    found = open_project(path, env, {}, offline=True)
    assert (found.name, found.manifests) == (
        "payments",
        (tmp_path / "topics", tmp_path / "more/brokers.yaml"),
    )
    assert found.environment.overlays[0] == tmp_path / f"overlays/{env}"
    assert found.environment.client_config == {}
    with pytest.raises(KdeclareError, match=r"PW|PROD_SERVERS"):
        open_project(path, env, {})


@pytest.mark.parametrize("uri", ["kafka://a:1/topic", "file:///var/state"])
def test_open_project_accepts_state_uri(tmp_path: Path, uri: str) -> None:
    assert open_project_file(tmp_path, state=uri).state == uri


def test_open_project_without_file_is_named_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    project = open_project(None, None, {})
    assert (project.name, project.environment.name, project.file) == ("default", "default", None)
    with pytest.raises(KdeclareError, match="no environment 'prod'"):
        open_project(None, "prod", {})


def test_open_project_reads_policies(tmp_path: Path) -> None:
    (tmp_path / "kdeclare.yaml").write_text(POLICIES)
    first, second = open_project(tmp_path / "kdeclare.yaml", None, {"PW": "hunter2"}).policies
    assert (first.name, first.class_name, first.severity) == ("names", "policies.naming:Names", "deny")
    assert (first.actions, first.topics, first.labels) == (("CREATE", "MODIFY", "DELETE"), (), {})
    assert first.config == {
        "max": 48,
        "ratio": 0.5,
        "configs": {"retention.ms": 1000, "cleanup.policy": ["compact"]},
        "labels": {"tier": "1.10"},
        "secret": "hunter2",
    }
    assert "hunter2" not in repr(first)
    assert (second.severity, second.actions, second.config) == ("warn", ("CREATE",), {})
    assert (second.topics, second.labels) == (("/a.*/", "b"), {"tier": "1"})


def test_policy_entry_knows_positions_of_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "kdeclare.yaml"
    path.write_text(POLICIES)
    first, second = open_project(path, None, {"PW": "hunter2"}).policies
    file = str(path)
    assert first.where() == SourcePosition(file, 6, 7)
    assert first.where(("config", "max")) == SourcePosition(file, 9, 14)
    assert first.where(("config", "max"), key=True) == SourcePosition(file, 9, 9)
    assert first.where(("config", "configs", "cleanup.policy", 0)) == SourcePosition(file, 11, 56)
    assert first.where(("config", "gone", "max"), key=True) == SourcePosition(file, 9, 9)
    assert second.where(("config", "max")) == SourcePosition(file, 14, 7)
    assert second.where(("selector", "topics", 1)) == SourcePosition(file, 18, 36)
    assert pickle.loads(pickle.dumps(second)).where(("class",)) == second.where(("class",))


def test_variables_outside_environments_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "kdeclare.yaml"
    path.write_text(POLICIES.replace("env.PW", "var.pw"))
    with pytest.raises(KdeclareError) as failure:
        open_project(path, None, {})
    assert [d.place for d in failure.value.diagnostics] == [SourcePosition(str(path), 13, 17)]


@pytest.mark.parametrize("make", [lambda p: None, Path.mkdir, lambda p: p.write_bytes(b"\xff"), Path.touch])
def test_open_project_rejects_unreadable_file(tmp_path: Path, make: object) -> None:
    path = tmp_path / "kdeclare.yaml"
    make(path)  # type: ignore[operator]
    with pytest.raises(KdeclareError) as failure:
        open_project(path, None, {})
    assert failure.value.diagnostics[0].code in ("unreadable-file", "not-utf8", "bad-project")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (PROJECT.replace("STATE", "state"), True),
        (PROJECT.replace("STATE", "state").replace("variables", "variable"), False),
        ("{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: a}, spec: {partitions: 3}}", True),
        ("{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: 1}, spec: {partitions: '${var.n}'}}", True),
        ("{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: a}, spec: {partitions: three}}", False),
        ("{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: a}, spec: {partition: 3}}", False),
        ("{apiVersion: kdeclare/v1, kind: Topik, metadata: {name: a}, spec: {partitions: 3}}", False),
        ("{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: a, labels: {a: 1}}, spec: {}}", True),
        ("{apiVersion: kdeclare/v1, kind: Rule, metadata: {name: a}, spec: {rule: a}}", True),
        ("{apiVersion: kdeclare/v1, kind: Rule, metadata: {name: a}, spec: {}}", False),
        (HEAD + "spec: {policies: [{name: a, class: 'a:B', config: {a: 1}}]}}", True),
        (HEAD + "spec: {policies: [{name: a, class: 'a:B', selector: {labels: {a: 1}}}]}}", True),
        (HEAD + "spec: {policies: [{name: a, class: 'a:B', actions: []}]}}", False),
    ],
)
def test_project_schema_agrees_with_reader(text: str, valid: bool) -> None:
    schema = build_json_schema({**KINDS, **RULES})
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid(yaml.safe_load(text)) is valid


@pytest.mark.parametrize("name", ["..", ".hidden", "a/b", "a\\b", "../../x"])
def test_project_name_unusable_as_folder_is_rejected(tmp_path: Path, name: str) -> None:
    """Names that a store refuses are reported when the file is read, for every environment."""
    file = tmp_path / "kdeclare.yaml"
    with pytest.raises(KdeclareError, match="cannot be the name of a folder"):
        resolve_folder(tmp_path, name, "default")
    file.write_text(
        f"apiVersion: kdeclare/v1\nkind: Project\nmetadata: {{name: '{name}'}}\n"
        f"spec:\n  defaultEnvironment: good\n  environments:\n    good: {{}}\n    '{name}': {{}}\n"
    )
    with pytest.raises(KdeclareError) as caught:
        open_project(file, None, {})
    said = [(d.code, d.place, d.subject) for d in caught.value.diagnostics]
    assert said == [
        ("illegal-name", SourcePosition(str(file), 3, 18), name),
        ("illegal-name", SourcePosition(str(file), 8, 5), name),
    ]


def test_project_name_from_reference_is_validated(tmp_path: Path) -> None:
    file = tmp_path / "kdeclare.yaml"
    file.write_text(
        'apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: "${file.names/project}"}\nspec: {}\n'
    )
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / "project").write_text("payments")
    assert open_project(file, None, {}).name == "payments"
    (tmp_path / "names" / "project").write_text("../payments")
    with pytest.raises(KdeclareError) as caught:
        open_project(file, None, {})
    assert [(d.code, d.place) for d in caught.value.diagnostics] == [
        ("illegal-name", SourcePosition(str(file), 3, 18))
    ]
