"""What plans say about connectors of a real worker and subjects of a real registry, without manifests."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from kdeclare.http.target import HttpTarget
from kdeclare.providers.connect.client.connectors_rest import open_rest_cluster
from kdeclare.providers.connect.client.connectors_retry import RetryingConnectCluster
from kdeclare.providers.schema_registry.client.rest import open_rest_registry
from kdeclare.sandbox import SandboxStatus
from tests.commands import run_here
from tests.registries import ID, build_record

pytestmark = pytest.mark.kafka


def list_texts(document: dict[str, Any], code: str) -> list[str]:
    """Return the sentences of the observations with a code."""
    return [item["text"] for item in document["observations"] if item["code"] == code]


def test_live_connectors_and_subjects_of_a_deleted_topic_are_named(
    connect_sandbox: SandboxStatus, registry_url: str, tmp_path: Path
) -> None:
    urls = [worker.url for worker in connect_sandbox.workers]
    prefix = f"impact-{uuid.uuid4().hex[:8]}"
    topic = f"{prefix}.orders"
    endpoint = {"urls": urls, "tls": {"caFile": str(connect_sandbox.ca_file)}}

    def write_project(registry: str) -> None:
        environment = {
            "bootstrapServers": connect_sandbox.bootstrap,
            "connect": {"eu": endpoint},
            "registries": {"main": {"urls": [registry]}},
        }
        write("kdeclare.yaml", "Project", "shop", {"environments": {"lab": environment}})

    def write(file: str, kind: str, name: str, spec: dict[str, Any]) -> None:
        document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(json.dumps(document))

    write_project(registry_url)
    write("manifests/orders.yaml", "Topic", topic, {"partitions": 1, "replicationFactor": 1})
    applied = run_here(tmp_path, "apply", "--yes")
    assert applied.code == 0, applied
    connect = RetryingConnectCluster(open_rest_cluster(HttpTarget(tuple(urls), str(connect_sandbox.ca_file))))
    configs = {
        f"{prefix}-name": {"topics": topic},
        f"{prefix}-regex": {"topics.regex": f"{prefix}[.].*"},
        f"{prefix}-other": {"topics": f"{prefix}.refunds"},
    }
    registry = open_rest_registry(HttpTarget((registry_url,)))
    for subject in (f"{topic}-value", f"{prefix}.refunds-value"):
        registry.register(subject, build_record(ID))
    try:
        for name, config in configs.items():
            connect.create_connector(
                name, {"connector.class": "FileStreamSink", "file": str(tmp_path / name), **config}
            )
        (tmp_path / "manifests/orders.yaml").unlink()
        plan = ("plan", "--allow-deletes", "--allow-empty", "--format", "json")
        planned = run_here(tmp_path, *plan)
        hypothetical = run_here(tmp_path, "impact", f"Topic/{topic}", "--delete", "--format", "json")
        without = run_here(tmp_path, *plan, "--no-impact")
        write_project("http://127.0.0.1:9")
        unreachable = run_here(tmp_path, *plan)
    finally:
        for name in configs:
            if connect.describe_connector(name) is not None:
                connect.delete_connector(name)
        connect.close()
        registry.close()
        deleted = run_here(tmp_path, "apply", "--yes", "--allow-deletes", "--allow-empty", "--no-impact")
    assert deleted.code == 0, deleted
    connectors = f"2 connectors of Connect cluster 'eu' refer to this topic: {prefix}-name, {prefix}-regex."
    subjects = f"1 subject of schema registry 'main' is named after this topic: {topic}-value."
    for ran in (planned, hypothetical):
        assert ran.code == 0, ran
        assert list_texts(json.loads(ran.out), "references") == [connectors, subjects]
        assert list_texts(json.loads(ran.out), "not-determined") == []
    assert not json.loads(without.out).get("observations")
    assert unreachable.code == 0, unreachable
    assert list_texts(json.loads(unreachable.out), "references") == [connectors]
    (unknown,) = list_texts(json.loads(unreachable.out), "not-determined")
    assert unknown.startswith(
        "kdeclare could not determine which subjects of schema registry 'main' are named after the "
        "deleted topics: "
    )
