"""A fleet's files, packed on the driver and used where they were unpacked."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet import unpacking
from kdeclare.app.fleet.packing import pack
from kdeclare.app.fleet.reach import Reach
from kdeclare.app.fleet.reading import read_declared
from kdeclare.fleet.spark.shipping import package_zip
from kdeclare.manifests.fleet import open_fleet
from kdeclare.model.diagnostics import KdeclareError
from kdeclare.model.state import State
from kdeclare.state.location import open_store

FILES = {
    "ops/fleet.yaml": """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: f}
spec:
  clusters:
    - {name: eu-1, labels: {tier: "${env.TIER}"}, project: ../payments/kdeclare.yaml, env: eu}
    - name: lab
      bootstrapServers: 127.0.0.1:1
      clientConfig: {ssl.truststore.location: certs/ca.pem}
      manifests: [lab]
      state: ABSOLUTE
    - {name: gone, project: none.yaml}
""",
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
ENVIRON = {"TIER": "gold", "PW": "hunter2", "KEY": "k", "HOME": "/root", "OTHER": "secret"}


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    root = tmp_path / "driver"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("ABSOLUTE", str(root / "states")).replace("MISSING", "PW"))
    for location, project, env in (("payments/state", "payments", "eu"), ("states", "lab", "default")):
        store = open_store(root / location, project, env)
        with store.lock("test"):
            store.write(State("l", 1, "id-1", {"Topic/old": {"configs": {}}}))
            store.begin_run("20260101T000000Z-abcd", "{}").close()
            store.begin_run(LAST_RUN, "{}").close()
    monkeypatch.chdir(root / "work")
    yield root
    unpacking.unpacked.cache_clear()


FLEET = Path("../ops/fleet.yaml")


def packed(to: Path) -> Path:
    to.mkdir()
    return pack(open_fleet(FLEET, ENVIRON), to, ENVIRON)


def names(archive: Path) -> set[str]:
    with zipfile.ZipFile(archive) as zipped:
        return set(zipped.namelist())


def test_what_is_in_it(driver: Path, tmp_path: Path) -> None:
    archive = packed(tmp_path / "to")
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
    assert names(archive) == {"environ.json", "files/work/", *(f"files/{name}" for name in files)}
    with zipfile.ZipFile(archive) as zipped:
        contents = json.loads(zipped.read("environ.json"))
    assert contents == {
        "cwd": "work",
        "driver": str(driver / "work"),
        "variables": {"TIER": "gold", "PW": "hunter2", "KEY": "k"},
    }


def test_only_its_owner_can_read_it(driver: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        archive = packed(tmp_path / "to")
    finally:
        os.umask(before)
    assert archive.stat().st_mode & 0o777 == 0o600
    with zipfile.ZipFile(archive) as zipped:
        assert {m.external_attr >> 16 & 0o77 for m in zipped.infolist() if not m.is_dir()} == {0}


def test_a_file_that_cannot_be_packed(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KdeclareError, match="cannot be packed: no such file or directory"):
        pack(open_fleet(FLEET, ENVIRON), tmp_path / "none", ENVIRON)


def read(reach: Reach, name: str) -> list[dict[str, Any]]:
    return [row for batch in read_declared(reach, name) for row in batch.to_pylist()]


SCRIPT = """
import json, pickle, sys
sys.path.insert(0, "./kdeclare.zip")  # as Spark has it
import kdeclare
from kdeclare.app.fleet.reading import read_declared
assert kdeclare.__file__.startswith("./kdeclare.zip/")
reach = pickle.loads(bytes.fromhex(sys.argv[1]))
names = ("eu-1", "lab", "gone")
rows = {name: [r for b in read_declared(reach, name) for r in b.to_pylist()] for name in names}
workspace = reach.workspace("lab")
print(json.dumps([rows, dict(workspace.project.environment.client_config), open("certs/ca.pem").read()]))
"""


def elsewhere(driver: Path, tmp_path: Path, reach: Reach, base: Callable[[Path], str]) -> Any:
    """What tasks give in a process that has the archive, none of the files and no variables."""
    import pickle

    here = [read(reach, name) for name in ("eu-1", "lab", "gone")]
    archive = packed(tmp_path / "to")
    task = tmp_path / "task"
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(task / "fleet")
    (task / "kdeclare.zip").write_bytes(package_zip())
    driver.rename(tmp_path / "hidden")
    sent = pickle.dumps(reach.packed(base(task)))
    assert b"hunter2" not in sent
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, sent.hex()],
        cwd=task,
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    rows, client, ca = json.loads(ran.stdout)
    assert (client, ca) == ({"ssl.truststore.location": "certs/ca.pem"}, "ca")
    return [json.loads(json.dumps(here)), list(rows.values())]


@pytest.mark.slow
@pytest.mark.parametrize("base", [lambda task: "fleet", lambda task: str(task / "fleet")])
def test_a_task_reads_there_what_it_would_read_here(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, base: Callable[[Path], str]
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    here, there = elsewhere(driver, tmp_path, Reach(str(FLEET)), base)
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
def test_a_fleet_named_by_an_absolute_path(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRON.items():
        monkeypatch.setenv(name, value)
    here, there = elsewhere(driver, tmp_path, Reach(str(driver / "ops/fleet.yaml")), lambda task: "fleet")
    for of_here, of_there in zip(here[:2], there[:2], strict=True):
        assert [row["name"] for row in of_there] == [row["name"] for row in of_here]
        assert [row["error"] for row in of_there] == [None] * len(of_here)


def test_no_archive(driver: Path) -> None:
    (row,) = read(Reach("fleet.yaml").packed("nowhere"), "eu-1")
    assert "has not been unpacked where this task runs" in row["error"]
