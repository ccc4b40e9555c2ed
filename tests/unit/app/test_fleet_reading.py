"""A task reads one cluster into rows, or into one row with the error."""

import json
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kdeclare.app.fleet.cluster_locator import ClusterLocator
from kdeclare.app.fleet.cluster_rows import read_declared, read_live
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.state import State
from kdeclare.core.secrets.secret_hashes import KEY_VARIABLE, is_hash_of
from kdeclare.engine.state.local_store import open_store
from kdeclare.fleet.tables.rows import DECLARED, LIVE
from kdeclare.providers.connect.worker_config.diff import WorkerConfigRecord
from kdeclare.providers.connect.worker_state import WorkerGroup
from kdeclare.providers.kafka import connection
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import PendingMoveCleanup
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.topic.record import TopicRecord

FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: f}
spec:
  clusters:
    - {name: eu-1, labels: {tier: gold}, project: payments/kdeclare.yaml}
    - name: lab
      bootstrapServers: 127.0.0.1:1
      manifests: [lab]
      selector: {team: a}
    - {name: gone, project: none.yaml}
    - {name: secret, bootstrapServers: 'a:1', clientConfig: {sasl.password: "${env.NOT_SET}"}}
"""
PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: payments}
spec: {environments: {d: {bootstrapServers: 'x:1'}}}
"""
TOPIC = """\
---
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: %s, labels: {team: %s}}
spec: {partitions: 3}
"""


@pytest.fixture
def locator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterLocator:
    for name, text in {
        "fleet.yaml": FLEET,
        "payments/kdeclare.yaml": PROJECT,
        "payments/manifests/a.yaml": TOPIC % ("orders", "a") + TOPIC % ("clicks", "b"),
        "lab/a.yaml": TOPIC % ("orders", "a") + TOPIC % ("clicks", "b"),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return ClusterLocator("fleet.yaml", timeout_s=0.5)


@pytest.fixture
def connected_cluster(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    cluster = MemoryCluster(cluster_id="id-1")
    monkeypatch.setattr(connection, "connect_cluster", lambda *_: cluster)
    return cluster


def read_rows(
    read: Callable[[ClusterLocator, str], Iterator[Any]], reach: ClusterLocator, name: str
) -> dict[str, dict[str, Any]]:
    batches = list(partial(read, reach)(name))
    assert all(batch.schema == (LIVE if read is read_live else DECLARED) for batch in batches)
    return {f"{row['kind']}/{row['name']}": row for batch in batches for row in batch.to_pylist()}


def write_owned_state(location: str, project: str, env: str, *ids: str) -> None:
    store = open_store(location, project, env)
    record = TopicRecord(partitions=3, labels={"team": "was"})
    workers = WorkerConfigRecord(WorkerGroup(("https://w:8083",)), {})
    records = {text: workers if text.startswith("Connect") else record for text in ids}
    with store.lock("test"):
        store.write(State("l", 1, "id-1", records))


def test_read_live_returns_cluster_and_topics(
    locator: ClusterLocator, connected_cluster: MemoryCluster
) -> None:
    connected_cluster.create_topics([NewTopic("orders", 3, 1, None, {})])
    found = read_rows(read_live, locator, "eu-1")
    assert found["Cluster/eu-1"]["error"] is None
    assert found["Topic/orders"]["labels"] == [("tier", "gold")]
    assert connected_cluster.closed


def test_read_declared_covers_workers(locator: ClusterLocator) -> None:
    workers = "apiVersion: kdeclare/v1\nkind: ConnectWorkerConfig\nmetadata: {name: eu}\n"
    Path("payments/manifests/b.yaml").write_text(workers + "spec: {workers: ['https://w:8083']}\n")
    write_owned_state("payments/state", "payments", "d", "Topic/orders", "ConnectWorkerConfig/gone")
    found = read_rows(read_declared, locator, "eu-1")
    assert found["Cluster/eu-1"]["error"] is None
    live_keys = {name: row["live_key"] for name, row in found.items() if "Connect" in name}
    names = ("ConnectWorkerConfig/eu", "ConnectWorkerConfig/gone")
    assert live_keys == dict.fromkeys(names, "https://w:8083")
    assert "Topic/orders" in found


def test_read_live_reports_missing_permission(
    locator: ClusterLocator, connected_cluster: MemoryCluster
) -> None:
    connected_cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "not you"), nth=None, method="topics")
    found = read_rows(read_live, locator, "eu-1")
    assert list(found) == ["Cluster/eu-1"]
    assert found["Cluster/eu-1"]["error"] == (
        "x:1 does not permit this request: not you (CLUSTER_AUTHORIZATION_FAILED)."
    )
    assert found["Cluster/eu-1"]["labels"] == [("tier", "gold")]


@pytest.mark.parametrize("read", [read_live, read_declared])
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gone", "'none.yaml' cannot be read: no such file or directory."),
        ("secret", "fleet.yaml:12:77: The environment variable 'NOT_SET' is not set."),
        ("other", "fleet.yaml has no cluster 'other'."),
    ],
)
def test_read_error_becomes_cluster_row(
    locator: ClusterLocator, read: Callable[[ClusterLocator, str], Iterator[Any]], name: str, error: str
) -> None:
    found = read_rows(read, locator, name)
    assert list(found) == [f"Cluster/{name}"]
    assert found[f"Cluster/{name}"]["error"] == error


def test_read_live_reports_missing_fleet_file(locator: ClusterLocator) -> None:
    Path("fleet.yaml").unlink()
    assert "cannot be read" in read_rows(read_live, locator, "eu-1")["Cluster/eu-1"]["error"]


def test_read_live_reports_refused_connection(locator: ClusterLocator) -> None:
    error = read_rows(read_live, locator, "lab")["Cluster/lab"]["error"]
    assert error == "127.0.0.1:1: connection refused."


def test_read_live_times_out_for_hanging_cluster(locator: ClusterLocator) -> None:
    kept: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    kept.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        Path("fleet.yaml").write_text(FLEET.replace("127.0.0.1:1", address))
        begun = time.monotonic()
        error = read_rows(read_live, replace(locator, timeout_s=2.0), "lab")["Cluster/lab"]["error"]
        took = time.monotonic() - begun
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)
    assert kept
    # on a busy machine, the time can be over before the connection is noticed
    assert error in {f"{address}: {how}no response in time." for how in ("connected, but ", "")}
    assert 1.9 < took < 29, "without the timeout it takes 30 s or more"


def test_read_declared_returns_declared_and_owned_resources(locator: ClusterLocator) -> None:
    write_owned_state("payments/state", "payments", "d", "Topic/orders", "Topic/old", "Later/kind")
    found = read_rows(read_declared, locator, "eu-1")
    assert list(found) == ["Cluster/eu-1", "Topic/orders", "Topic/clicks", "Topic/old"]
    assert (found["Cluster/eu-1"]["error"], found["Cluster/eu-1"]["always"]) == (None, False)
    assert found["Cluster/eu-1"]["labels"] == [("tier", "gold")]
    orders, clicks, old = (found[f"Topic/{name}"] for name in ("orders", "clicks", "old"))
    assert (json.loads(orders["desired"])["partitions"], orders["owned"] is None) == (3, False)
    assert orders["source"] == "payments/manifests/a.yaml:4:18"
    assert orders["labels"] == [("team", "a")]
    assert (clicks["owned"], clicks["alone"]) == (None, True)
    assert (old["desired"], json.loads(old["owned"])["partitions"]) == (None, 3)


def test_read_declared_marks_resources_outside_selector(locator: ClusterLocator) -> None:
    write_owned_state("state", "lab", "default", "Topic/clicks", "Topic/old")
    found = read_rows(read_declared, locator, "lab")
    assert found["Topic/orders"]["desired"]
    assert found["Topic/orders"]["left_out"] is None
    clicks, old = found["Topic/clicks"], found["Topic/old"]
    for row in (clicks, old):  # not orphaned, not unmanaged, not missing
        assert (row["desired"], row["owned"], row["alone"]) == (None, None, False)
    assert json.loads(clicks["left_out"])["partitions"] == 3
    assert old["left_out"] is None
    assert (clicks["labels"], old["labels"]) == ([("team", "b")], [("team", "was")]), "rules count them"


def test_read_declared_puts_pending_cleanup_on_cluster_row(locator: ClusterLocator) -> None:
    assert read_rows(read_declared, locator, "eu-1")["Cluster/eu-1"]["owned"] is None
    store = open_store("payments/state", "payments", "d")
    with store.lock("test"):
        store.write(
            State("l", 1, "id-1", pending_cleanup=PendingMoveCleanup(moves=("orders-0",)).merge_into({}))
        )
    cleanup = json.loads(read_rows(read_declared, locator, "eu-1")["Cluster/eu-1"]["owned"])
    assert cleanup["moves"] == ["orders-0"]


def test_read_declared_reports_manifest_errors(locator: ClusterLocator) -> None:
    Path("payments/manifests/b.yaml").write_text("kind: Topik\n---\nkind: Topic\n")
    (row,) = read_rows(read_declared, locator, "eu-1").values()
    assert row["error"].startswith("payments/manifests/b.yaml:1:")
    assert row["error"].endswith("more)")


def test_read_declared_accepts_unknown_config_key(locator: ClusterLocator) -> None:
    text = TOPIC.replace("partitions: 3", "configs: {no.such.key: 1}") % ("x", "a")
    Path("payments/manifests/b.yaml").write_text(text)
    found = read_rows(read_declared, locator, "eu-1")
    assert found["Cluster/eu-1"]["error"] is None
    assert "Topic/x" in found


def test_read_declared_reports_corrupt_state(locator: ClusterLocator) -> None:
    write_owned_state("payments/state", "payments", "d", "Topic/orders")
    Path("payments/state/payments/d/state.json").write_text("{")
    (row,) = read_rows(read_declared, locator, "eu-1").values()
    assert "state.json" in row["error"]


def test_read_declared_marks_project_with_policies(locator: ClusterLocator) -> None:
    policies = "policies: [{name: m, class: 'kdeclare.policy.rules:PartitionBounds', config: {max: 3}}], env"
    Path("payments/kdeclare.yaml").write_text(PROJECT.replace("env", policies, 1))
    found = read_rows(read_declared, locator, "eu-1")
    assert found["Cluster/eu-1"]["error"] is None
    assert found["Cluster/eu-1"]["always"] is True


def test_read_declared_reports_unloadable_policy_on_cluster_row(locator: ClusterLocator) -> None:
    policies = "policies: [{name: m, class: 'no.such:Rule'}], env"
    Path("payments/kdeclare.yaml").write_text(PROJECT.replace("env", policies, 1))
    (row,) = read_rows(read_declared, locator, "eu-1").values()
    assert "The module 'no' does not exist" in row["error"]


def test_read_declared_uses_shared_state_location(locator: ClusterLocator) -> None:
    write_owned_state("elsewhere", "payments", "d", "Topic/old")
    assert "Topic/old" in read_rows(read_declared, replace(locator, state="elsewhere"), "eu-1")


def test_pickled_task_is_small_and_contains_no_secret(
    locator: ClusterLocator, monkeypatch: pytest.MonkeyPatch, connected_cluster: MemoryCluster
) -> None:
    monkeypatch.setenv("NOT_SET", "hunter2")
    read_rows(read_live, locator, "secret")
    sent = pickle.dumps(partial(read_live, locator))
    assert b"hunter2" not in sent
    assert len(sent) < 1000
    assert pickle.loads(sent).args == (locator,)


def test_locator_reads_files_once_per_process(
    locator: ClusterLocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    plain = Path.read_bytes

    def record_read(path: Path) -> bytes:
        opened.append(str(path))
        return plain(path)

    monkeypatch.setattr(Path, "read_bytes", record_read)
    for _ in range(3):
        locator.workspace("eu-1")
    assert opened == ["fleet.yaml", "payments/kdeclare.yaml"]
    Path("fleet.yaml").write_text(FLEET.replace("eu-1", "eu-2"))
    assert locator.entry("eu-2").name == "eu-2"


BROKER = """\
apiVersion: kdeclare/v1
kind: BrokerConfig
metadata: {name: '1'}
spec:
  configs:
    listener.name.internal.ssl.keystore.password: ${env.PASSWORD}
    plugin.token: ${env.TOKEN}
"""


def test_hashes_use_key_unless_tasks_lack_it(
    locator: ClusterLocator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PASSWORD": "hunter2", "TOKEN": "hunter3", KEY_VARIABLE: "a key of the team"}.items():
        monkeypatch.setenv(name, value)
    Path("lab/a.yaml").write_text(BROKER + TOPIC % ("orders", "a"))
    Path("fleet.yaml").write_text(FLEET.replace("selector: {team: a}", ""))
    row = read_rows(read_declared, locator, "lab")["BrokerConfig/1"]
    assert "hunter" not in str(row)
    configs = json.loads(row["desired"])["configs"]
    assert configs["listener.name.internal.ssl.keystore.password"]["secret"].startswith("hmac$")
    assert configs["plugin.token"]["secret"].startswith("pbkdf2$")
    assert is_hash_of(configs["plugin.token"]["secret"], "hunter3")
