"""What plans on a real broker say about clients that are connected, and about what deleted objects leave."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kafka
import pytest

from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import KafkaCluster, read_properties
from kdeclare.providers.kafka.client.records.client_arguments import build_record_client_arguments
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN
from tests.commands import run_here
from tests.conftest import connect_as
from tests.kafka.group_consumers import join_group
from tests.kafka.test_bad_input import Project

pytestmark = pytest.mark.kafka

GROUP, CLIENT, USER = "impact-access-readers", "impact-access-client", "impact-access-user"


@pytest.fixture
def admin(secured_sandbox: SandboxStatus) -> Iterator[KafkaCluster]:
    """A super user, who removes all bindings of the user at the end."""
    admin = connect_as(secured_sandbox, ADMIN)
    yield admin
    admin.delete_acls(sorted(admin.acls([f"User:{USER}"])))
    admin.close()


def plan(project: Project, properties: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the observations of a plan by resource and code."""
    arguments = ("--allow-deletes", "--allow-empty", "--command-config", str(properties))
    planned = run_here(project.folder, "plan", "--format", "json", *arguments)
    assert planned.code == 0, planned.err
    found: dict[str, list[dict[str, Any]]] = {}
    for item in json.loads(planned.out)["observations"]:
        found.setdefault(f"{item['resource']} {item['code']}", []).append(item)
    return found


def test_connected_group_is_named_for_quotas_and_permissions(
    secured_sandbox: SandboxStatus, admin: KafkaCluster, tmp_path: Path
) -> None:
    project = Project(tmp_path, secured_sandbox.bootstrap, environ={"PASSWORD": "secret-1"})
    properties = resolve_layout(Path(secured_sandbox.folder)).security.client(ADMIN)
    topic = project.name("read")
    topic_manifest = ("Topic", topic, {"partitions": 1, "replicationFactor": 1})
    password = {"password": "${env.PASSWORD}"}

    def declare_quota(limit: int) -> tuple[str, str, dict[str, Any]]:
        return "ClientQuota", "q", {"entity": {"clientId": CLIENT}, "limits": {"consumer_byte_rate": limit}}

    bindings = [{"topic": topic, "allow": ["READ"]}]
    project.declare(
        topic_manifest,
        declare_quota(2_000_000),
        ("Acl", "rights", {"principal": f"User:{USER}", "bindings": bindings}),
        ("ScramUser", USER, {"mechanisms": {"SCRAM-SHA-512": password}}),
    )
    applied = run_here(
        tmp_path, "apply", "--yes", "--command-config", str(properties), environ=project.environ
    )
    assert applied.code == 0, applied.out + applied.err
    remaining = [
        f"ALLOW User:{USER} WRITE topic:{topic} from *",
        f"ALLOW User:{USER} READ group:{GROUP} from *",
    ]
    assert set(admin.create_acls(list(map(parse_binding, remaining))).values()) == {None}
    arguments = {**build_record_client_arguments("", read_properties(properties), 10.0), "client_id": CLIENT}
    consumer = kafka.KafkaConsumer(group_id=GROUP, **arguments)
    try:
        join_group(consumer, topic)
        project.declare(topic_manifest, declare_quota(1_000_000))
        found = plan(project, properties)
        consumer.poll(0)
        project.declare(declare_quota(2_000_000))
        deletion = plan(project, properties)
    finally:
        consumer.close(autocommit=False)
    (limited,) = found["ClientQuota/q limited-clients"]
    assert limited["text"] == f"1 member of 1 group uses client id '{CLIENT}': {GROUP} (1)."
    (lost,) = found["Acl/rights lost-access"]
    assert lost["text"] == (
        f"1 member of group '{GROUP}' may lose access to topic {topic}, if it connects as User:{USER}."
    )
    (user,) = found[f"ScramUser/{USER} remaining-access"]
    assert user["figures"] == {"acl_bindings": 2, "quotas": 0}
    assert f"ScramUser/{USER} unknown-clients" in found
    (left,) = deletion[f"Topic/{topic} remaining-access"]
    assert left["text"].startswith(f"1 ACL binding still names the topic (User:{USER}).")
