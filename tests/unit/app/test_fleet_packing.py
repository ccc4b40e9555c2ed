"""The files of a fleet are packed on the driver and used on other machines."""

import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.archive import TaskNeeds, pack
from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.cluster_rows import read_declared
from kdeclare.cli.main import main
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.plans.state import State
from kdeclare.engine.state.local_store import open_store
from kdeclare.fleet.spark.tasks import build_package_zip
from kdeclare.manifests.fleet import open_fleet
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.polling import wait_for

FILES = {
    "ops/fleet.yaml": """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: f}
spec:
  reportUrl: https://ci.example/${env.OTHER}
  notifications:
    - name: platform
      url: ${env.HOOK}
      format: slack
      headers: {X-Tier: "${env.TIER}", X-Key: "${file.hook.txt}"}
  clusters:
    - {name: eu-1, labels: {tier: "${env.TIER}"}, project: ../payments/kdeclare.yaml, env: eu}
    - name: lab
      bootstrapServers: 127.0.0.1:1
      clientConfig: {ssl.truststore.location: certs/ca.pem}
      manifests: [lab]
      state: ABSOLUTE
    - {name: gone, project: none.yaml}
""",
    "ops/hook.txt": "secret",
    "ops/lab/a.yaml": "{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: lab}, spec: {partitions: 1}}",
    "payments/kdeclare.yaml": """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec:
  policies: [{name: naming, class: "rules.naming:Names"}]
  environments:
    eu:
      bootstrapServers: x:1
      clientConfigFile: eu.properties
      overlays: [overlays/eu]
      variables: {owner: "${file.owner.txt}", pw: "${env.PW}", more: "${env.MISSING}"}
""",
    "payments/owner.txt": "alice",
    "payments/eu.properties": "ssl.keystore.location=certs/key.pem\nssl.truststore.location=/etc/ca.pem\n"
    "ssl.keystore.password=${file.store.txt}\nssl.key.password=${env.KEY}\n",
    "payments/store.txt": "sesame",
    "payments/rules/naming.py": "from kdeclare.policy import TopicActionsPolicy\n\n\n"
    "class Names(TopicActionsPolicy):\n    def validate(self, request):\n        pass\n",
    "payments/rules/words.txt": "",
    "payments/rules/__pycache__/naming.pyc": "",
    "payments/rules/deep/er/more.py": "",
    "payments/rules/deep/notes.txt": "",
    "payments/.venv/lib/other.py": "",
    "payments/env/pyvenv.cfg": "",
    "payments/env/site.py": "",
    "payments/notes.txt": "",
    "payments/manifests/a.yaml": """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders}
spec: {partitions: 1, configs: {owner: "${var.owner}"}}
""",
    "payments/manifests/notes.md": "",
    "payments/overlays/eu/a.yaml": """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders}
spec: {partitions: 2}
""",
    "work/certs/ca.pem": "ca",
    "work/certs/key.pem": "key",
}
LAST_RUN = "20260102T000000Z-abcd"
ENVIRON = {
    "TIER": "gold",
    "PW": "hunter2",
    "KEY": "k",
    "HOME": "/root",
    "OTHER": "secret",
    "HOOK": "https://x/y",
}


@pytest.fixture
def driver_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "driver"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("ABSOLUTE", str(root / "states")).replace("MISSING", "PW"))
    for location, project, env in (("payments/state", "payments", "eu"), ("states", "lab", "default")):
        store = open_store(root / location, project, env)
        with store.lock("test"):
            store.write(State("l", 1, "id-1", {"Topic/old": TopicRecord()}))
            store.begin_run("20260101T000000Z-abcd", "{}").close()
            store.begin_run(LAST_RUN, "{}").close()
    monkeypatch.chdir(root / "work")
    return root


FLEET = Path("../ops/fleet.yaml")


def pack_fleet(needs: TaskNeeds = TaskNeeds.PLAN) -> bytes:
    return pack(open_fleet(FLEET, ENVIRON), ENVIRON, needs=needs)


def list_names(archive: bytes) -> set[str]:
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        return set(zipped.namelist())


def test_archive_contains_all_files_that_tasks_read(driver_folder: Path) -> None:
    archive = pack_fleet()
    files = {
        "ops/fleet.yaml",
        "ops/lab/a.yaml",
        "payments/kdeclare.yaml",
        "payments/owner.txt",
        "payments/eu.properties",
        "payments/store.txt",
        "payments/rules/naming.py",
        "payments/rules/words.txt",
        "payments/rules/deep/er/more.py",
        "payments/manifests/a.yaml",
        "payments/overlays/eu/a.yaml",
        "payments/state/payments/eu/state.json",
        f"payments/state/payments/eu/runs/{LAST_RUN}/plan.json",
        f"payments/state/payments/eu/runs/{LAST_RUN}/journal.jsonl",
        "states/lab/default/state.json",
        f"states/lab/default/runs/{LAST_RUN}/plan.json",
        f"states/lab/default/runs/{LAST_RUN}/journal.jsonl",
        "work/certs/ca.pem",
        "work/certs/key.pem",
    }
    assert list_names(archive) == {"environ.json", "files/work/", *(f"files/{name}" for name in files)}
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        contents = json.loads(zipped.read("environ.json"))
    assert contents == {
        "cwd": "work",
        "driver": str(driver_folder / "work"),
        "variables": {"TIER": "gold", "PW": "hunter2", "KEY": "k"},
    }


def test_archive_contains_files_of_for_each(driver_folder: Path) -> None:
    """These are files with items, what they reference, and the files that generated manifests name."""
    folder = driver_folder / "payments"
    (folder / "items.json").write_text('{"a": {"secret": "${env.OTHER}"}, "b": {}}')
    for name in ("a", "b", "c"):
        (folder / f"{name}.avsc").write_text('"string"')
    text = 'apiVersion: kdeclare/v1\nkind: Schema\nforEach: ../items.json\nmetadata: {name: "${each.key}"}\n'
    (folder / "manifests" / "each.yaml").write_text(text + 'spec: {file: "../${each.key}.avsc"}\n')
    before = {"files/payments/" + name for name in ("items.json", "a.avsc", "b.avsc")}
    archive = pack_fleet()
    assert before <= list_names(archive)
    assert "files/payments/c.avsc" not in list_names(archive)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        assert json.loads(zipped.read("environ.json"))["variables"]["OTHER"] == "secret"


def test_archive_contains_no_secrets_of_notifications(driver_folder: Path) -> None:
    """Neither a comment nor an alias changes which references tasks resolve."""
    file = driver_folder / "ops" / "fleet.yaml"
    text = file.read_text().replace("url: ${env.HOOK}", "url: ${env.HOOK}  # ${env.HOOK}, ${file.hook.txt}")
    more = "X-Again: &tier '${env.TIER}', X-Third: *tier, X-Tier:"
    file.write_text(text.replace("X-Tier:", more))
    archive = pack_fleet()
    assert "files/ops/hook.txt" not in list_names(archive)
    with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
        variables = json.loads(zipped.read("environ.json"))["variables"]
    assert variables == {"TIER": "gold", "PW": "hunter2", "KEY": "k"}


def test_archive_contains_references_of_aliases(driver_folder: Path) -> None:
    file = driver_folder / "ops" / "fleet.yaml"
    text = file.read_text().replace('X-Tier: "${env.TIER}"', 'X-Tier: &tier "${env.TIER}"')
    file.write_text(text.replace('labels: {tier: "${env.TIER}"}', "labels: {tier: *tier}"))
    with zipfile.ZipFile(io.BytesIO(pack_fleet())) as zipped:
        assert json.loads(zipped.read("environ.json"))["variables"]["TIER"] == "gold"


STATES = {"payments/state/payments/eu", "states/lab/default"}
CONNECTIONS = {
    "ops/fleet.yaml",
    "payments/kdeclare.yaml",
    "payments/owner.txt",
    "payments/eu.properties",
    "payments/store.txt",
    "work/certs/ca.pem",
    "work/certs/key.pem",
}


def test_archive_for_snapshot_contains_only_connections(driver_folder: Path) -> None:
    names = list_names(pack_fleet(TaskNeeds.LIVE))
    assert names == {"environ.json", "files/work/", *(f"files/{name}" for name in CONNECTIONS)}


def test_archive_for_audit_contains_no_runs(driver_folder: Path) -> None:
    names = list_names(pack_fleet(TaskNeeds.DECLARED))
    assert {f"files/{state}/state.json" for state in STATES} < names
    assert not [name for name in names if "/runs/" in name]


def test_archive_for_plan_contains_last_plan_only_if_it_matters(
    driver_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finished run whose results are in the state has only its journal, once its writes are visible."""
    project = (
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: lab}\n"
        "spec: {environments: {default: {bootstrapServers: 'x:1'}}}\n"
    )
    (driver_folder / "kdeclare.yaml").write_text(project)
    (driver_folder / "manifests").mkdir()
    (driver_folder / "manifests" / "a.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders}\nspec: {partitions: 1}\n"
    )
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: MemoryCluster({1: "a"}))
    fleet = driver_folder / "fleet.yaml"
    fleet.write_text(
        "apiVersion: kdeclare/v1\nkind: Fleet\nmetadata: {name: f}\n"
        "spec: {clusters: [{name: lab, project: kdeclare.yaml, env: default}]}\n"
    )
    assert (
        main(["apply", "--yes", "--project", str(driver_folder / "kdeclare.yaml"), "--env", "default"]) == 0
    )

    def list_run_files() -> set[str]:
        names = list_names(pack(open_fleet(fleet, ENVIRON), ENVIRON))
        return {name.rpartition("/")[2] for name in names if "/runs/" in name}

    assert list_run_files() >= {"plan.json", "journal.jsonl"}
    monkeypatch.setattr("kdeclare.app.fleet.archive.VISIBLE_WITHIN_S", -1.0)
    assert "plan.json" not in list_run_files()
    assert "journal.jsonl" in list_run_files()
    states = driver_folder.glob("**/lab/default/state.json")
    (state,) = (file for file in states if "states" not in file.parts)
    document = json.loads(state.read_text())
    assert document["serial"] > 0
    state.write_text(json.dumps(document | {"lineage": "another"}))
    assert "plan.json" in list_run_files(), "the state does not include the run"


def test_archive_contains_files_that_manifests_name(driver_folder: Path) -> None:
    manifests = driver_folder / "payments" / "manifests"
    (manifests / "order.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Schema\nmetadata: {name: order}\n"
        "spec: {file: ../schemas/order.avsc}\n"
    )
    (driver_folder / "payments" / "schemas").mkdir()
    (driver_folder / "payments" / "schemas" / "order.avsc").write_text('"string"')
    assert "files/payments/schemas/order.avsc" in list_names(pack_fleet())


def test_archive_contains_empty_manifest_folders(driver_folder: Path) -> None:
    """Otherwise, tasks would report that the folder does not exist, and could not audit the cluster."""
    (driver_folder / "ops/lab/a.yaml").unlink()
    names = list_names(pack_fleet())
    assert "files/ops/lab/" in names
    assert "files/payments/manifests/" not in names


def test_pack_reports_unreadable_file(driver_folder: Path) -> None:
    fleet = open_fleet(FLEET, ENVIRON)
    store = driver_folder / "payments" / "store.txt"
    store.unlink()
    store.symlink_to("/proc/self/mem")  # a file that cannot be read
    with pytest.raises(KdeclareError, match="cannot be packed: input/output error"):
        pack(fleet, ENVIRON)


def read_rows(reach: ClusterLocator, name: str) -> list[dict[str, Any]]:
    return [row for batch in read_declared(reach, name) for row in batch.to_pylist()]


SCRIPT = """
import json, os, pickle, sys
from pathlib import Path
sys.path.insert(0, "./kdeclare.zip")  # as in Spark
import kdeclare
from kdeclare.app.fleet.cluster_rows import read_declared
assert kdeclare.__file__.startswith("./kdeclare.zip/")
reach = pickle.loads(bytes.fromhex(sys.stdin.read()))
before = os.getcwd()
names = ("eu-1", "lab", "gone")
rows = {name: [r for b in read_declared(reach, name) for r in b.to_pylist()] for name in names}
with reach.files():
    workspace = reach.workspace("lab")
    found = [rows, dict(workspace.project.environment.client_config), open("certs/ca.pem").read()]
assert os.getcwd() == before
(folder,) = Path(os.environ["SPARK_LOCAL_DIRS"]).iterdir()
assert [item.name for item in folder.iterdir()] == ["files"]
assert folder.stat().st_mode & 0o77 == 0
print(json.dumps(found))
"""


def read_in_other_process(driver: Path, tmp_path: Path, reach: ClusterLocator) -> Any:
    """Run tasks in a process that has only the archive, without the files and variables."""
    here = [read_rows(reach, name) for name in ("eu-1", "lab", "gone")]
    archive = pack_fleet()
    task, temporary = tmp_path / "task", tmp_path / "blockmgr"
    task.mkdir()
    temporary.mkdir()
    (task / "kdeclare.zip").write_bytes(build_package_zip())
    driver.rename(tmp_path / "hidden")
    packed_reach = reach.with_archive(archive)
    assert repr(packed_reach) == repr(reach)
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=pickle.dumps(packed_reach).hex(),
        cwd=task,
        capture_output=True,
        text=True,
        check=True,
        env={"SPARK_LOCAL_DIRS": str(temporary)},
    )
    assert list(temporary.iterdir()) == []
    rows, client, ca = json.loads(ran.stdout)
    assert (client, ca) == ({"ssl.truststore.location": "certs/ca.pem"}, "ca")
    return [json.loads(json.dumps(here)), list(rows.values())]


@pytest.mark.slow
def test_task_reads_archive_like_local_files(
    driver_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    here, there = read_in_other_process(driver_folder, tmp_path, ClusterLocator(str(FLEET)))
    assert there == here
    assert [(row["kind"], row["name"]) for row in there[0]] == [
        ("Cluster", "eu-1"),
        ("Topic", "orders"),
        ("Topic", "old"),
    ]
    assert there[0][0]["labels"] == [["tier", "gold"]]
    assert there[0][1]["source"] == "../payments/manifests/a.yaml:3:18"
    assert json.loads(there[0][1]["desired"])["partitions"] == 2
    assert [row["name"] for row in there[1]] == ["lab", "lab", "old"]
    assert there[2][0]["error"].startswith("'../ops/none.yaml' cannot be read")


@pytest.mark.slow
def test_task_reads_fleet_named_by_absolute_path(
    driver_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    here, there = read_in_other_process(
        driver_folder, tmp_path, ClusterLocator(str(driver_folder / "ops/fleet.yaml"))
    )
    for of_here, of_there in zip(here[:2], there[:2], strict=True):
        assert [row["name"] for row in of_there] == [row["name"] for row in of_here]
        assert [row["error"] for row in of_there] == [None] * len(of_here)


@pytest.mark.slow
@pytest.mark.parametrize(
    "end", ["os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "os.kill(0, signal.SIGHUP)"]
)
def test_unpacked_files_are_deleted_when_task_process_ends(
    end: str, driver_folder: Path, tmp_path: Path
) -> None:
    """Spark ends its task processes in these ways, which skip Python's exit handlers."""
    program = f"""
import os, signal, sys
from pathlib import Path
from kdeclare.app.fleet.unpacked_archive import enter_archive
with enter_archive(sys.stdin.buffer.read()):
    print(Path("certs/ca.pem").resolve(), flush=True)
    {end}
"""
    temporary = tmp_path / "blockmgr"
    temporary.mkdir()
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=pack_fleet(),
        capture_output=True,
        check=False,
        env=os.environ | {"SPARK_LOCAL_DIRS": str(temporary)},
        start_new_session=True,
    )
    assert ran.stdout.decode().startswith(str(temporary)), ran.stderr.decode()
    wait_for(lambda: not list(temporary.iterdir()), 120, every=0.01)


def test_unpack_failure_becomes_cluster_row_error(
    driver_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    (row,) = read_rows(ClusterLocator(str(FLEET)).with_archive(pack_fleet() + b"-"), "eu-1")
    assert "cannot be unpacked on the machine that runs the task: No such file or directory" in row["error"]
