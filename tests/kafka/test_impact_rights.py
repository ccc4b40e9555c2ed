"""Policies about impact deny on a real broker as long as permissions are missing, and name them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER
from tests.conftest import connect_as
from tests.kafka.random_topics import commit
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

USER = f"User:{READER}"
TOPIC, GROUP = "impact-rights", "impact-rights-readers"


def build_bindings(*texts: str) -> list[Binding]:
    """Parse bindings of the principal."""
    return [parse_binding(f"ALLOW {USER} {text} from *") for text in texts]


@pytest.fixture
def admin(
    secured_sandbox: SandboxStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KafkaCluster]:
    """A super user. The principal under test may do everything with the topic, and nothing else."""
    monkeypatch.chdir(tmp_path)
    admin = connect_as(secured_sandbox, ADMIN)
    at_first = admin.acls([USER])
    admin.delete_acls(sorted(at_first))
    replace_rights(admin, *build_bindings(f"ALL topic:{TOPIC}"))
    write(
        "kdeclare.yaml", "Project", {"environments": {"lab": {"bootstrapServers": secured_sandbox.bootstrap}}}
    )
    Path("manifests").mkdir()
    write("manifests/topic.yaml", "Topic", {"partitions": 1}, TOPIC)
    yield admin
    admin.delete_topics({TOPIC: None})
    admin.groups.delete_groups([GROUP])
    replace_rights(admin, *at_first)
    admin.close()


def write(file: str, kind: str, spec: object, name: str = "impact-rights") -> None:
    """Write a manifest."""
    document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    Path(file).write_text(yaml.safe_dump(document))


def replace_rights(admin: KafkaCluster, *bindings: Binding) -> None:
    """Replace all bindings of the principal, and wait until the broker uses them."""
    wanted = frozenset(bindings)
    now = admin.acls([USER])
    admin.delete_acls(sorted(now - wanted))
    admin.create_acls(sorted(wanted - now))
    wait_for(lambda: admin.acls([USER]) == wanted, 90)


def test_policies_deny_until_groups_are_visible(
    secured_sandbox: SandboxStatus, admin: KafkaCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = str(resolve_layout(Path(secured_sandbox.folder)).security.client(READER))

    def plan_deletion() -> tuple[int, str]:
        code = main(["plan", "--allow-deletes", "--allow-empty", "--command-config", properties])
        said = capsys.readouterr()
        return code, f"{said.out} {said.err}"

    assert main(["apply", "--yes", "--command-config", properties]) == 0
    Path("manifests/topic.yaml").unlink()
    rules = {"unused": "impact.activeConsumers == 0", "unwritten": "impact.activeProducers == 0"}
    for name, rule in rules.items():
        write(
            f"manifests/{name}.yaml",
            "Policy",
            {"rule": rule, "actions": ["DELETE"], "message": "In use."},
            name,
        )
    commit(admin, {GROUP: {TOPIC: 0}})

    code, text = plan_deletion()
    assert code == 3, text
    hidden = "without the Describe permission on the cluster, kdeclare sees only the groups"
    assert f"'impact.activeConsumers' of Topic/{TOPIC} is unknown" in text
    assert hidden in text
    assert "impact.activeProducers" not in text

    topic_rights = ["DESCRIBE", "DESCRIBE_CONFIGS", "ALTER", "DELETE"]
    only_described = [f"{right} topic:{TOPIC}" for right in topic_rights]
    replace_rights(admin, *build_bindings(*only_described, "DESCRIBE cluster:kafka-cluster"))
    code, text = plan_deletion()
    assert code == 3, text
    assert "kdeclare lacks the Describe permission on the groups." in text
    assert "kdeclare lacks the Read permission on the topic." in text

    rights = [f"ALL topic:{TOPIC}", "DESCRIBE cluster:kafka-cluster", "DESCRIBE group:*"]
    replace_rights(admin, *build_bindings(*rights))
    code, text = plan_deletion()
    assert code == 0, text
