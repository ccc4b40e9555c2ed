"""Fleet files: their content and their diagnostics."""

from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest
import yaml

from kdeclare.app.authoring.schema import build_manifest_schema, list_schema_kinds
from kdeclare.core.diagnostics import KdeclareError, SourcePosition
from kdeclare.manifests.fleet import Fleet, open_fleet, select_clusters

HEAD = "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: production}\nspec:\n"

FLEET = (
    HEAD
    + """\
  maxConcurrentClusters: 4
  rollout: {canary: {tier: 1.10}, batchSize: 5, maxFailures: 2}
  clusters:
    - {name: eu-1, labels: {region: eu, tier: 1.10}, project: payments/kdeclare.yaml, env: eu-1}
    - name: us-1
      project: payments/kdeclare.yaml
      labels: {region: us}
      bootstrapServers: us:9092
      state: file:///var/state
    - name: lab
      bootstrapServers: 127.0.0.1:19092
      clientConfig: {sasl.password: "${env.PW}", retries: 3}
      manifests: [manifests, more.yaml]
      overlays: [overlays/lab]
      variables: {retention: 3600000, labels: {a: 1}}
      selector: {team: 1.0}
      state: states
"""
)


def open_text(folder: Path, text: str = FLEET, environ: Mapping[str, str] | None = None) -> Fleet:
    (folder / "fleet.yaml").write_text(text)
    return open_fleet(folder / "fleet.yaml", {"PW": "hunter2"} if environ is None else environ)


def read_problems(folder: Path, text: str) -> list[str]:
    with pytest.raises(KdeclareError) as failure:
        open_text(folder, text)
    return [
        f"{d.place.line}:{d.place.column} {d.code}: {d.detail} {d.hint}".strip()
        for d in failure.value.diagnostics
        if d.place is not None
    ]


def test_open_fleet_reads_all_fields(tmp_path: Path) -> None:
    fleet = open_text(tmp_path)
    assert (fleet.name, fleet.folder, fleet.max_concurrent) == ("production", tmp_path, 4)
    rollout = fleet.rollout
    assert (rollout.canary, rollout.batch_size, rollout.max_failures) == ({"tier": "1.10"}, 5, 2)
    eu, us, lab = fleet.clusters
    assert (eu.name, eu.project, eu.env) == ("eu-1", tmp_path / "payments/kdeclare.yaml", "eu-1")
    assert eu.labels == {"region": "eu", "tier": "1.10"}
    assert (eu.bootstrap_servers, eu.client_config, eu.state, eu.selector) == (None, None, None, {})
    assert eu.source == SourcePosition(str(tmp_path / "fleet.yaml"), 8, 14)
    assert (us.env, us.bootstrap_servers, us.state) == (None, "us:9092", "file:///var/state")
    assert (lab.project, lab.bootstrap_servers) == (None, "127.0.0.1:19092")
    assert lab.client_config == {"sasl.password": "hunter2", "retries": "3"}
    assert lab.manifests == (tmp_path / "manifests", tmp_path / "more.yaml")
    assert lab.overlays == fleet.all_overlays == (tmp_path / "overlays/lab",)
    assert lab.variables["labels"].value == {"a": "1"}
    assert (lab.selector, lab.state) == ({"team": "1.0"}, str(tmp_path / "states"))
    assert "hunter2" not in repr(fleet)


def test_open_fleet_has_defaults(tmp_path: Path) -> None:
    fleet = open_text(tmp_path, HEAD + "  clusters: [{name: a, bootstrapServers: 'a:1'}]\n")
    assert fleet.max_concurrent == 16
    assert (fleet.rollout.canary, fleet.rollout.batch_size, fleet.rollout.max_failures) == ({}, None, 0)
    assert fleet.clusters[0].manifests == ()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (
            "  clusters: []",
            [
                "5:13 no-clusters: 'spec.clusters' is empty; a fleet needs at least one cluster. "
                "Add a cluster to 'spec.clusters'.",
            ],
        ),
        ("  {}", ["5:3 missing-field: 'spec' needs a field 'clusters'."]),
        (
            "  cluster: [{name: a, project: p}]",
            [
                "5:3 missing-field: 'spec' needs a field 'clusters'.",
                "5:3 unknown-field: There is no field 'cluster' in 'spec'. Did you mean 'clusters'?",
            ],
        ),
        (
            "  clusters: [{name: a, projekt: p.yaml, project: p}]",
            [
                "5:24 unknown-field: There is no field 'projekt' in 'spec.clusters[0]'. "
                "Did you mean 'project'?"
            ],
        ),
        (
            "  maxConcurrentClusters: 0\n  clusters: [{name: a, project: p}]",
            ["5:26 bad-value: 'spec.maxConcurrentClusters' must be at least 1, not 0."],
        ),
        (
            "  clusters:\n    - {name: a, project: p}\n    - {name: b, project: p}\n"
            "    - {name: a, project: q}",
            [
                "8:14 duplicate-cluster: The cluster at {file}:6:14 is also named 'a'. "
                "Give each cluster a unique name."
            ],
        ),
        (
            "  clusters: [{name: a, labels: {tier: gold}, project: p}]\n  rollout: {canary: {teir: gold}}",
            ["6:22 unknown-label: No cluster of the fleet has a label 'teir'. Did you mean 'tier'?"],
        ),
        (
            "  clusters: [{name: a, labels: {tier: canary}, project: p}]\n  rollout: {canary: {tier: canry}}",
            ["6:22 unknown-label: No cluster of the fleet has the label tier=canry. Did you mean 'canary'?"],
        ),
        (
            "  clusters: [{name: a, labels: {x: 1}, project: p}, {name: b, labels: {z: 1}, project: p}]\n"
            "  rollout: {canary: {x: 1, z: 1}}",
            [
                "6:21 unknown-label: No cluster of the fleet has all of the labels x=1, z=1. Check the "
                "labels of the clusters in 'spec.clusters'."
            ],
        ),
        (
            "  clusters:\n    - name: a\n      project: p\n      manifests: []\n      variables: {}\n"
            "      overlays: [o]",
            [
                f"{line}:7 conflicting-fields: 'a' has a project, which defines '{field}', so this field is "
                f"not allowed here. Move '{field}' to the project file, or remove 'project'."
                for line, field in ((8, "manifests"), (9, "variables"), (10, "overlays"))
            ],
        ),
        (
            "  clusters: [{name: a, env: dev, bootstrapServers: 'a:1'}, {name: b}]",
            [
                "5:24 conflicting-fields: 'a' has 'env' but no 'project' that could define the environment. "
                "Add 'project', or remove 'env'.",
                "5:60 missing-field: 'b' needs 'project' or 'bootstrapServers'. Add 'project' with the path "
                "of a project file, or 'bootstrapServers' with the brokers.",
            ],
        ),
        (
            "  clusters: [{name: a, project: p, clientConfig: {a: b}, clientConfigFile: c}]",
            [
                "5:58 conflicting-fields: 'a' has both 'clientConfig' and 'clientConfigFile', but only one "
                "is "
                "allowed. Put all properties into one of the two fields."
            ],
        ),
        (
            "  clusters: [{name: a, project: p, state: '${var.x}'}]",
            [
                "5:43 undefined-variable: '${var.x}' refers to a variable, but this file cannot use "
                "variables. "
                "Use ${env.NAME} or ${file.PATH} instead."
            ],
        ),
    ],
)
def test_open_fleet_reports_mistakes_with_position(tmp_path: Path, spec: str, words: list[str]) -> None:
    file = str(tmp_path / "fleet.yaml")
    assert read_problems(tmp_path, HEAD + spec + "\n") == [word.replace("{file}", file) for word in words]


@pytest.mark.parametrize("name", ["a/b", "a\\b", ".a", "", " ", "x" * 201, '"a\\nb"'])
def test_cluster_name_must_be_usable_as_file_name(tmp_path: Path, name: str) -> None:
    text = name if name.startswith('"') else f"'{name}'"
    (problem,) = read_problems(tmp_path, HEAD + f"  clusters: [{{name: {text}, project: p}}]\n")
    assert problem.startswith("5:21 illegal-name: ")


@pytest.mark.parametrize(
    "text",
    ["", "- a", "kind: [", "a: b\n---\nc: d", HEAD.replace("Fleet", "Project") + "  clusters: []"],
)
def test_open_fleet_rejects_other_files(tmp_path: Path, text: str) -> None:
    assert read_problems(tmp_path, text)


def test_open_fleet_rejects_missing_file(tmp_path: Path) -> None:
    with pytest.raises(KdeclareError, match=r"'.*none.yaml' cannot be read: no such file"):
        open_fleet(tmp_path / "none.yaml", {})


def test_unresolved_reference_affects_only_its_cluster(tmp_path: Path) -> None:
    fleet = open_text(tmp_path, environ={})
    eu, us, lab = fleet.clusters
    assert not eu.unresolved
    assert not us.unresolved
    (problem,) = lab.unresolved
    assert (problem.code, problem.subject) == ("undefined-variable", "PW")
    assert problem.place == SourcePosition(str(tmp_path / "fleet.yaml"), 16, 37)
    assert (lab.name, lab.labels) == ("lab", {})


def test_unresolved_reference_outside_clusters_is_rejected(tmp_path: Path) -> None:
    text = FLEET.replace("batchSize: 5", "batchSize: '${env.N}'")
    (problem,) = read_problems(tmp_path, text)
    assert problem.startswith("6:46 undefined-variable: The environment variable 'N' is not set.")


def test_select_clusters_by_name_and_label(tmp_path: Path) -> None:
    fleet = open_text(tmp_path)

    def select_names(*wanted: str, **selector: str) -> list[str]:
        return [entry.name for entry in select_clusters(fleet, wanted, selector).clusters]

    assert select_names() == ["eu-1", "us-1", "lab"]
    assert select_names("lab", "eu-1") == ["eu-1", "lab"]
    assert select_names(region="us") == ["us-1"]
    assert select_names("eu-1", region="eu") == ["eu-1"]


@pytest.mark.parametrize(
    ("names", "selector", "words"),
    [
        (["eu1"], {}, "has no cluster 'eu1'. Did you mean 'eu-1'?"),
        (["zzz"], {}, "has no cluster 'zzz'. Use one of eu-1, us-1, lab."),
        ([], {"regoin": "eu"}, "has a label 'regoin'. Did you mean 'region'?"),
        ([], {"tier": "1.1"}, "has the label tier=1.1. Did you mean '1.10'?"),
        ([], {"region": "asia"}, "has the label region=asia. Use one of eu, us."),
        (["eu-1"], {"region": "us"}, "None of the clusters eu-1 has all of the labels region=us."),
        (
            [],
            {"region": "us", "tier": "1.10"},
            "No cluster of the fleet has all of the labels region=us, tier=1.10. Check the labels of the "
            "clusters in 'spec.clusters'.",
        ),
    ],
)
def test_select_clusters_rejects_unknown_names_and_labels(
    tmp_path: Path, names: list[str], selector: dict[str, str], words: str
) -> None:
    with pytest.raises(KdeclareError) as failure:
        select_clusters(open_text(tmp_path), names, selector)
    (problem,) = failure.value.diagnostics
    assert f"{problem.detail} {problem.hint}".strip().endswith(words)


@pytest.mark.slow
def test_fleet_schema_agrees_with_reader(tmp_path: Path) -> None:
    assert "Fleet" in list_schema_kinds()
    for kind in (None, "Fleet"):
        schema = build_manifest_schema(kind)
        validator = jsonschema.Draft202012Validator(schema)
        validator.check_schema(schema)
        assert validator.is_valid(yaml.safe_load(FLEET))
        assert not validator.is_valid(yaml.safe_load(FLEET.replace("project:", "projekt:")))
        assert not validator.is_valid(yaml.safe_load(HEAD + "  clusters: []"))
    assert not jsonschema.Draft202012Validator(build_manifest_schema("Project")).is_valid(
        yaml.safe_load(FLEET)
    )
