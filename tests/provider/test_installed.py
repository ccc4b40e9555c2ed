"""Every command on the resources of an installed provider, by the command line of its environment.

Crashes at every position of the journal and time-outs of every request are in the contract suite, which runs
here as its author runs it.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kdeclare_flags.service import FlagService

from tests.provider.conftest import EXAMPLE
from tests.provider.installed import Project, install, run
from tests.startup_cache import spark_variables
from tests.unit.docs.written import list_code_blocks
from tests.waiting import run_server

pytestmark = pytest.mark.slow
SECRETS = {"WEB_TOKEN": "web-secret-1234567", "NEW_TOKEN": "new-secret-1234567"}


@pytest.fixture(scope="module")
def bin_(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment's commands."""
    return install(tmp_path_factory)


@pytest.fixture(scope="module")
def running(bin_: Path) -> Iterator[tuple[str, ...]]:
    """The command line of the environment's kdeclare, which is already running."""
    with run_server(python=str(bin_ / "python")) as line:
        yield tuple(line.split())


@pytest.fixture
def kdeclare(bin_: Path, running: tuple[str, ...], tmp_path: Path) -> Project:
    """A project with a flag and a client of it, and nothing of Kafka."""
    project = Project(bin_, tmp_path, SECRETS, running)
    lab = {"providers": {"flags": {"file": "flags.db"}}}
    project.write("kdeclare.yaml", "Project", "shop", environments={"lab": lab})
    project.flag("dark-mode", 10, description="Night")
    project.client()
    FlagService(tmp_path / "flags.db").create()
    return project


def read_flags(project: Project) -> dict[str, object]:
    """The flags of the service, with their rollouts."""
    objects = FlagService(project.folder / "flags.db").read().objects
    return {id_.name: fields["rollout"] for id_, fields in objects.items() if id_.kind == "Flag"}


def change_object(project: Project, name: str, **fields: object) -> None:
    """Another client changes an object."""
    with closing(sqlite3.connect(project.folder / "flags.db")) as file, file:
        file.execute("UPDATE objects SET body = ? WHERE name = ?", (json.dumps(fields), name))


def test_installed_provider_is_listed_and_has_schema(kdeclare: Project) -> None:
    kdeclare = kdeclare.separate
    assert "kdeclare-flags (kdeclare_flags.provider:PROVIDER)" in kdeclare("providers")
    assert "Valid: 2 resources" in kdeclare("validate")
    kdeclare.write("manifests/dark-mode.yaml", "Flag", "dark-mode", rolout=10)
    refused = kdeclare("validate", code=1)
    assert "manifests/dark-mode.yaml:6:3 · Flag/dark-mode" in refused
    assert "Did you mean 'rollout'?" in refused
    schema = json.loads(kdeclare("schema", "--kind", "Flag"))
    assert schema["$defs"]["Flag"]["properties"]["apiVersion"]["const"] == "flags.example/v1"
    assert schema["$defs"]["FlagSpec"]["properties"]["rollout"]["description"]


def test_plan_is_rendered_in_every_format(kdeclare: Project) -> None:
    for form in ("text", "json", "markdown", "sarif", "html"):
        text = kdeclare("plan", "--format", form)
        assert form == "sarif" or "dark-mode" in text
        assert not [value for value in SECRETS.values() if value in text]
    text = kdeclare("show-manifest", "FlagClient/web")
    assert text.splitlines()[1] == "apiVersion: flags.example/v1"


def test_saved_plan_is_stale_per_field(kdeclare: Project) -> None:
    kdeclare("plan", "--out", "first.plan")
    kdeclare("apply", "first.plan", "--yes")
    assert read_flags(kdeclare) == {"dark-mode": 10}
    kdeclare.flag("dark-mode", 20, description="Night")
    kdeclare.flag("search", 1)
    kdeclare("plan", "--out", "second.plan")
    change_object(kdeclare, "dark-mode", rollout=10, description="Other")  # not what the plan is about
    change_object(kdeclare, "dark-mode", rollout=77, description="Night")
    stale = kdeclare("apply", "second.plan", "--yes", code=4)
    assert "Flag/dark-mode rollout was 10 when the plan was made, but is now 77." in stale
    kdeclare("apply", "second.plan", "--yes", "--skip-stale", code=5)
    assert read_flags(kdeclare) == {"dark-mode": 77, "search": 1}


def test_runs_are_listed_rolled_back_and_cleaned_up(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    kdeclare.flag("dark-mode", 20, description="Day")
    kdeclare.client("${env.NEW_TOKEN}")
    kdeclare("apply", "--yes")
    assert "Idle." in kdeclare("status")
    runs = json.loads(kdeclare("history", "--format", "json"))["runs"]
    assert len(runs) == 3, "two of them, and one that cleaned up the old token"
    assert "Flag/dark-mode" in kdeclare("history", runs[-1]["run_id"])
    change_object(kdeclare, "dark-mode", rollout=77, description="Day")
    conflict = kdeclare("rollback", "--yes", code=5)
    assert (
        "Flag/dark-mode: rollout was changed after the run, so the rollback leaves it unchanged." in conflict
    )
    assert read_flags(kdeclare) == {"dark-mode": 77}
    assert not [p for p in kdeclare.folder.rglob("*") if p.is_file() and p.suffix != ".db" and _has_secret(p)]


def _has_secret(file: Path) -> bool:
    return any(value.encode() in file.read_bytes() for value in SECRETS.values())


def test_import_writes_manifests_that_change_nothing(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    shutil.rmtree(kdeclare.folder / "manifests")
    kdeclare("import", "--out", "manifests")
    texts = [path.read_text() for path in (kdeclare.folder / "manifests").rglob("*.yaml")]
    assert sorted(text.splitlines()[1] for text in texts) == ["kind: Flag", "kind: FlagClient"]
    assert "No changes." in kdeclare("plan")


def test_target_selector_orphans_and_prevent_destroy(kdeclare: Project) -> None:
    search = kdeclare.flag("search", 1)
    search.write_text(search.read_text().replace("name: search", "name: search\n  labels: {team: find}"))
    assert "1 to create" in kdeclare("plan", "--target", "Flag/search")
    assert "1 to create" in kdeclare("plan", "--selector", "team=find")
    kdeclare.flag("keep", 1, lifecycle={"preventDestroy": True})
    kdeclare("apply", "--yes")
    (kdeclare.folder / "manifests" / "search.yaml").unlink()
    assert "1 orphan: owned, but no longer declared" in kdeclare("plan")
    (kdeclare.folder / "manifests" / "keep.yaml").unlink()
    assert "Flag/keep must not be deleted" in kdeclare("apply", "--yes", "--allow-deletes", code=3)
    assert read_flags(kdeclare) == {"dark-mode": 10, "keep": 1}


RULE = """
apiVersion: kdeclare/v1
kind: Policy
metadata: {name: careful}
spec:
  actions: [CREATE, MODIFY]
  selector: {kind: Flag}
  rule: after.rollout <= 50
  message: Not more than half of the users at once.
"""


def test_policies_evaluate_plans_and_live_objects(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    (kdeclare.folder / "manifests" / "careful.yaml").write_text(RULE)
    kdeclare.flag("dark-mode", 60, description="Night")
    assert "Not more than half of the users at once." in kdeclare("apply", "--yes", code=3)
    assert read_flags(kdeclare) == {"dark-mode": 10}
    change_object(kdeclare, "dark-mode", rollout=77)
    assert "dark-mode" in kdeclare("policy", "check", "--live", code=3)


def test_doctor_and_completion_include_provider(kdeclare: Project) -> None:
    kdeclare = kdeclare.separate
    examined = kdeclare("doctor")
    assert "Flags\n  ok       Connection" in examined
    assert "ok       Objects" in examined
    assert "Cluster" not in examined, "the project has nothing of Kafka"
    typed = {"_KDECLARE_COMPLETE": "complete_bash", "COMP_WORDS": "kdeclare fl", "COMP_CWORD": "1"}
    assert sorted(kdeclare(environ=typed).split()) == ["flag", "fleet"]
    (kdeclare.folder / "flags.db").unlink()
    assert "unable to open database file" in kdeclare("doctor", code=1)


SCRIPT = """
from pathlib import Path

from kdeclare.api import ApplyOptions, PlanScope, WorkspaceOptions, apply_manifests, make_plan, open_workspace

workspace = open_workspace(WorkspaceOptions(project=Path("kdeclare.yaml"), env="lab"))
for change in make_plan(workspace).plan.changes:
    print(change.action, change.id)
result = apply_manifests(workspace, (), PlanScope(), ApplyOptions("a program"))
print("complete" if result.complete else "partial")
"""


def test_library_plans_and_applies(kdeclare: Project) -> None:
    lines = kdeclare.python("-c", SCRIPT).splitlines()
    assert lines == ["create Flag/dark-mode", "create FlagClient/web", "complete"]


def test_ad_hoc_command_changes_system_and_manifest(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    manifest = kdeclare.folder / "manifests" / "dark-mode.yaml"
    manifest.write_text(manifest.read_text().replace("10", "10  # in percent"))
    assert "altered" in kdeclare("flag", "set", "dark-mode", "25", "--yes", "--write-manifest")
    assert read_flags(kdeclare) == {"dark-mode": 25}
    assert "rollout: 25  # in percent" in manifest.read_text()
    kdeclare("flag", "set", "search", "5", "--yes", "--write-manifest")
    assert "rollout: 5" in (kdeclare.folder / "manifests" / "search.yaml").read_text()
    kdeclare("apply", "--yes", "--quiet")
    assert "No changes." in kdeclare("plan")


@pytest.mark.spark
@pytest.mark.thorough
def test_fleet_is_audited_on_spark(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    change_object(kdeclare, "dark-mode", rollout=77, description="Night")
    clusters = [{"name": "eu-1", "project": "kdeclare.yaml", "env": "lab"}]
    kdeclare.write("fleet.yaml", "Fleet", "shop", clusters=clusters)
    kdeclare("fleet", "snapshot", "fleet.yaml", "--out", "snapshots", "--engine", "local")
    audit = ("fleet", "audit", "fleet.yaml", "--out", "audits", "--snapshot", "snapshots", "--format", "json")
    spark = ("--master", "local[1]", "--quiet")
    document = json.loads(kdeclare(*audit, *spark, environ=spark_variables()))
    assert document["found"] == {"changed": 1}
    assert document["heat"] == [{"cluster": "eu-1", "path": "rollout", "count": 1}]
    assert not [path for path in kdeclare.folder.rglob("*.parquet") if _has_secret(path)]


def test_readme_commands_of_example_succeed(bin_: Path, tmp_path: Path) -> None:
    (commands,) = (text for language, text in list_code_blocks(EXAMPLE / "README.md") if language == "sh")
    install_line, *lines = commands.splitlines()
    assert install_line == "pip install ."
    for name in ("kdeclare.yaml", "manifests"):
        copy = shutil.copytree if (EXAMPLE / name).is_dir() else shutil.copy
        copy(EXAMPLE / name, tmp_path / name)
    path = f"{bin_}{os.pathsep}{os.environ['PATH']}"
    output = run("bash", "-euc", "\n".join(lines), folder=tmp_path, environ={"PATH": path})
    assert "flags.example/v1" in output
    assert "2 to create" in output
    assert "2 to delete" in output


def test_contract_suite_of_example_passes(kdeclare: Project) -> None:
    shutil.copy(EXAMPLE / "test_flags_contract.py", kdeclare.folder)
    kdeclare.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_flags_contract.py")


def test_kafka_connection_is_required_once_topic_is_declared(kdeclare: Project) -> None:
    kdeclare("apply", "--yes")
    kdeclare.write("manifests/orders.yaml", "Topic", "orders", partitions=1)
    assert "No cluster to connect to" in kdeclare("plan", code=1)
    assert "No changes." in kdeclare("plan", "--target", "Flag/dark-mode")
    assert "No cluster to connect to" in kdeclare("topic", "list", code=1)


def test_state_of_another_service_is_refused(kdeclare: Project) -> None:
    kdeclare("plan", "--out", "first.plan")
    kdeclare("apply", "--yes")
    (kdeclare.folder / "flags.db").unlink()
    FlagService(kdeclare.folder / "flags.db").create()
    for command in (("plan",), ("apply", "first.plan", "--yes"), ("rollback", "--yes")):
        assert "Connected to a different cluster" in kdeclare(*command, code=1)
