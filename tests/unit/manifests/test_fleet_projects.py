"""The projects of a fleet's clusters: how they are built, and all their problems in one report."""

from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.manifests.fleet import open_cluster_project, open_fleet, validate_fleet
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import Project
from tests.unit.manifests.small_kinds import KINDS

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec:
  environments:
    eu:
      bootstrapServers: eu:9092
      clientConfigFile: eu.properties
      variables: {count: 3}
    us: {bootstrapServers: "${env.US}"}
"""
TOPIC = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: %s}\nspec: {partitions: '${var.count}'}\n"


@pytest.fixture
def fleet_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "payments/kdeclare.yaml": PROJECT,
        "payments/eu.properties": "a=b",
        "payments/manifests/a.yaml": TOPIC % "a",
        "topics/b.yaml": TOPIC % "b",
        "topics/over/b.yaml": TOPIC % "b",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_fleet_file(clusters: str) -> Path:
    path = Path("fleet.yaml")
    path.write_text(
        f"apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {{name: f}}\nspec:\n  clusters:\n{clusters}"
    )
    return path


def open_projects(clusters: str, **environ: str) -> list[Project]:
    fleet = open_fleet(write_fleet_file(clusters), environ)
    return [open_cluster_project(entry, fleet, environ) for entry in fleet.clusters]


def find_problems(clusters: str, **environ: str) -> list[str]:
    fleet = open_fleet(write_fleet_file(clusters), environ)
    with pytest.raises(KdeclareError) as failure:
        validate_fleet(fleet, environ)
    return [f"{d.place} {d.code}: {d.detail} {d.hint}".strip() for d in failure.value.diagnostics]


def test_cluster_project_uses_its_environment(fleet_folder: Path) -> None:
    eu, us = open_projects(
        "    - {name: a, project: payments/kdeclare.yaml, env: eu}\n"
        "    - {name: b, project: payments/kdeclare.yaml, env: us}\n",
        US="us:1",
    )
    assert (eu.name, eu.environment.name, eu.environment.bootstrap_servers) == ("payments", "eu", "eu:9092")
    assert eu.environment.client_config_file == Path("payments/eu.properties")
    assert eu.state == "payments/state"
    assert us.environment.bootstrap_servers == "us:1"


def test_cluster_entry_overrides_project_settings(fleet_folder: Path) -> None:
    (one, other) = open_projects(
        "    - {name: a, project: payments/kdeclare.yaml, env: eu, bootstrapServers: 'x:1', state: mine,"
        " clientConfig: {c: d}}\n"
        "    - {name: b, project: payments/kdeclare.yaml, env: eu, clientConfigFile: other.properties}\n"
    )
    assert (one.environment.bootstrap_servers, one.state) == ("x:1", "mine")
    assert (one.environment.client_config, one.environment.client_config_file) == ({"c": "d"}, None)
    assert other.environment.client_config_file == Path("other.properties")
    assert other.environment.bootstrap_servers == "eu:9092"


def test_cluster_entry_without_project_file_defines_project(fleet_folder: Path) -> None:
    (project, nothing) = open_projects(
        "    - {name: lab, bootstrapServers: 'a:1', manifests: [topics], overlays: [topics/over],"
        " variables: {count: 7}}\n"
        "    - {name: bare, bootstrapServers: 'a:2'}\n"
    )
    assert (project.name, project.environment.name, project.state) == ("lab", "default", "state")
    loaded = load_project_manifests(project, None, KINDS, {})
    assert [str(item.id) for item in loaded.desired] == ["Topic/b"]
    assert not loaded.diagnostics
    assert load_project_manifests(nothing, None, KINDS, {}).desired == ()


def test_overlays_of_one_cluster_are_not_manifests_of_another(fleet_folder: Path) -> None:
    _, plain = open_projects(
        "    - {name: a, bootstrapServers: 'a:1', manifests: [topics], overlays: [topics/over],"
        " variables: {count: 1}}\n"
        "    - {name: b, bootstrapServers: 'a:2', manifests: [topics], variables: {count: 1}}\n"
    )
    assert not load_project_manifests(plain, None, KINDS, {}).diagnostics


def test_clusters_with_same_state_are_rejected(fleet_folder: Path) -> None:
    one = "    - {name: a, project: payments/kdeclare.yaml, env: eu}\n"
    own = "    - {name: b, project: payments/kdeclare.yaml, env: eu, state: mine}\n"
    other = "    - {name: c, project: ./payments/kdeclare.yaml, env: eu, bootstrapServers: 'x:1'}\n"
    fleet = open_fleet(write_fleet_file(one + own), {})
    validate_fleet(fleet, {})
    assert find_problems(one + own + other) == [
        "fleet.yaml:8:14 duplicate-state: 'c' has the same state as 'a' at fleet.yaml:6:14: both use the "
        "project payments in the environment eu. Give each cluster its own environment in the project file, "
        "or its own 'state' here."
    ]


def test_validate_fleet_reports_all_problems(fleet_folder: Path) -> None:
    Path("broken.yaml").write_text(PROJECT.replace("environments", "enviroments"))
    Path("lacking.yaml").write_text(
        PROJECT.replace("spec:\n", "spec:\n  manifests: [gone]\n").replace("eu.prop", "none.prop")
    )
    found = find_problems(
        "    - {name: a, project: none/kdeclare.yaml}\n"
        "    - {name: b, project: payments/kdeclare.yaml, env: eur}\n"
        "    - {name: c, project: payments/kdeclare.yaml}\n"
        "    - {name: d, project: broken.yaml}\n"
        "    - {name: e, project: broken.yaml}\n"
        "    - {name: f, project: lacking.yaml, env: eu}\n"
        "    - {name: g, bootstrapServers: 'a:1', manifests: [topics, no/where]}\n"
        "    - {name: h, bootstrapServers: '${env.NOWHERE}', clientConfigFile: no.properties}\n"
        "    - {name: i, project: payments/kdeclare.yaml, env: us}\n"
    )
    assert found == [
        "broken.yaml:5:3 unknown-field: There is no field 'enviroments' in 'spec'. "
        "Did you mean 'environments'?",
        "fleet.yaml:6:26 unreadable-file: 'none/kdeclare.yaml' cannot be read: no such file or directory. "
        "Correct the path; it is relative to the fleet file's folder.",
        "fleet.yaml:7:55 unknown-environment: The project has no environment 'eur'; it has eu, us. "
        "Did you mean 'eu'?",
        "fleet.yaml:11:14 no-such-path: 'none.properties' does not exist. Correct the path, or create the "
        "file or folder.",
        "fleet.yaml:12:62 no-such-path: 'no/where' does not exist. Correct the path, or create the file or "
        "folder.",
        "fleet.yaml:13:35 undefined-variable: The environment variable 'NOWHERE' is not set. "
        "Set it before running kdeclare.",
        "lacking.yaml:5:15 no-such-path: 'gone' does not exist. Correct the path, or create the file or "
        "folder.",
        "payments/kdeclare.yaml:5:3 unknown-environment: The project has the environments eu, us, and none "
        "of them is the default. Set 'defaultEnvironment' in this file, or 'env' of 'c' at fleet.yaml:8:14.",
        "payments/kdeclare.yaml:10:28 undefined-variable: The environment variable 'US' is not set. "
        "Set it before running kdeclare.",
    ]


def test_validate_fleet_accepts_valid_fleet(fleet_folder: Path) -> None:
    fleet = open_fleet(write_fleet_file("    - {name: a, project: payments/kdeclare.yaml, env: eu}\n"), {})
    validate_fleet(fleet, {})


def test_validate_fleet_reads_project_file_once(fleet_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = "    - {{name: c{0}, project: payments/kdeclare.yaml, env: eu, state: s{0}}}\n"
    entries = [entry.format(n) for n in range(50)]
    fleet = open_fleet(write_fleet_file("".join(entries)), {})
    read: list[str] = []
    plain = Path.read_bytes

    def record_read(path: Path) -> bytes:
        read.append(path.name)
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", record_read)
    validate_fleet(fleet, {})
    assert read == ["kdeclare.yaml"]
