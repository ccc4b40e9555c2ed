"""kdeclare can restore its own rights on a real broker, unless the lock-out guard protects them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from kdeclare.providers.kafka.acl.lockout import NEEDED
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER
from tests.conftest import connect_as
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

USER = f"User:{READER}"
TOPIC = "own-rights"
KEPT = frozenset(
    parse_binding(f"ALLOW {USER} {operation} cluster:kafka-cluster from *") for operation in NEEDED
)


class Project:
    """A project that declares a topic, and the rights of the principal that applies it."""

    def __init__(self, sandbox: SandboxStatus, admin: KafkaCluster) -> None:
        self.admin = admin
        self._properties = str(resolve_layout(Path(sandbox.folder)).security.client(READER))
        write("kdeclare.yaml", "Project", {"environments": {"lab": {"bootstrapServers": sandbox.bootstrap}}})
        Path("manifests").mkdir()
        write("manifests/topic.yaml", "Topic", {"partitions": 1}, TOPIC)

    def declare_rights(self, *entries: object) -> None:
        kept = {"cluster": True, "allow": list(NEEDED)}
        spec = {"principal": USER, "bindings": [kept, *entries], "unmanagedBindings": "remove"}
        write("manifests/acl.yaml", "Acl", spec, "own")

    def __call__(self, *arguments: str) -> int:
        return main([*arguments, "--command-config", self._properties])

    def read_own_bindings(self) -> frozenset[Binding]:
        return self.admin.acls([USER])

    def wait_until_own_bindings_are(self, expected: frozenset[Binding]) -> None:
        wait_for(lambda: self.read_own_bindings() == expected, 90)


def write(file: str, kind: str, spec: object, name: str = "own-rights") -> None:
    document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    Path(file).write_text(yaml.safe_dump(document))


@pytest.fixture
def project(
    secured_sandbox: SandboxStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Project]:
    monkeypatch.chdir(tmp_path)
    admin = connect_as(secured_sandbox, ADMIN)
    at_first = admin.acls([USER])
    made = Project(secured_sandbox, admin)
    assert set(admin.create_acls(sorted(KEPT)).values()) == {None}
    made.wait_until_own_bindings_are(at_first | KEPT)
    yield made
    admin.delete_topics({TOPIC: None})
    admin.delete_acls(sorted(made.read_own_bindings() - at_first))
    admin.create_acls(sorted(at_first))
    made.wait_until_own_bindings_are(at_first)
    admin.close()


def test_rollback_restores_own_rights_that_the_guard_does_not_protect(project: Project) -> None:
    project.declare_rights(
        {"topic": TOPIC, "allow": ["ALL"]}, {"cluster": True, "allow": ["DESCRIBE_CONFIGS"]}
    )
    assert project("apply", "--yes", "manifests/acl.yaml") == ExitCode.OK
    assert project("apply", "--yes") == ExitCode.OK
    all_rights = project.read_own_bindings()
    assert len(all_rights - KEPT) == 2

    project.declare_rights()
    assert project("apply", "--yes") == ExitCode.OK, "the guard allows the change"
    project.wait_until_own_bindings_are(KEPT)
    assert project("plan", "--detailed-exitcode") != ExitCode.OK, "the topic is not visible anymore"

    assert project("rollback", "--yes") == ExitCode.OK
    project.wait_until_own_bindings_are(all_rights)
    project.declare_rights(
        {"topic": TOPIC, "allow": ["ALL"]}, {"cluster": True, "allow": ["DESCRIBE_CONFIGS"]}
    )
    assert project("plan", "--detailed-exitcode") == ExitCode.OK
