"""``kdeclare shell`` on a pseudo-terminal, at real brokers."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.providers.kafka.client import connect
from kdeclare.sandbox import SandboxSettings, SandboxStatus
from tests.beds import KafkaBed
from tests.conftest import free_port
from tests.terminal import CTRL_C, CTRL_D, UP, open_terminal

pytestmark = pytest.mark.kafka

ASKED = "Only 'yes' is accepted:"


@dataclass(frozen=True)
class Project:
    """A folder with a project of one topic."""

    folder: Path
    bed: KafkaBed
    topic: str

    def declare(self, retention_ms: int) -> None:
        """Write the manifest."""
        (self.folder / "topic.yaml").write_text(
            f"apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: {self.topic}}}\n"
            f"spec: {{partitions: 1, replicationFactor: 1, configs: {{retention.ms: {retention_ms}}}}}\n"
        )

    @property
    def is_there(self) -> bool:
        """Whether the cluster has the topic."""
        return self.topic in self.bed.cluster.topics([self.topic])


def open_project(bootstrap: str, folder: Path) -> Iterator[Project]:
    """An empty cluster's project; its topic is gone at the end."""
    cluster = connect(bootstrap, {})
    bed = KafkaBed(cluster, bootstrap)
    made = Project(folder, bed, bed.delete_at_end(f"shell-{uuid.uuid4().hex[:8]}"))
    (folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        f"spec: {{manifests: [topic.yaml], environments: {{lab: {{bootstrapServers: '{bootstrap}'}}}}}}\n"
    )
    made.declare(1000)
    yield made
    bed.clean()
    cluster.close()


@pytest.fixture
def project(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[Project]:
    """At the three brokers."""
    yield from open_project(sandbox.bootstrap, tmp_path)


@pytest.fixture(scope="module")
def single_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """One broker that can go away without anybody else's missing it."""
    settings = SandboxSettings(tmp_path_factory.mktemp("alone"), 1, 1, free_port(1))
    try:
        yield kafka_sandbox.start(settings, print)
    finally:
        kafka_sandbox.reset(settings.folder)


def test_shell_plans_applies_completes_and_keeps_history(project: Project) -> None:
    with open_terminal(project.folder) as shell:
        assert shell.screen.splitlines()[-1].startswith("shop/lab 127.0.0.1:")
        shell.enter("plan", then="1 to create")
        shell.type("\x0c", "apply\r")
        shell.wait_for(ASKED)
        shell.type("no\r")
        shell.wait_for("Nothing was changed.")
        shell.wait_for_prompt()
        assert not project.is_there
        shell.type("\x0c", "apply\r")
        shell.wait_for(ASKED)
        shell.type(CTRL_C)
        shell.wait_for("Interrupted")
        shell.wait_for_prompt()
        shell.enter("plam", then="Did you mean 'plan'?")
        shell.type("\x0c", "apply\r")
        shell.wait_for(ASKED)
        shell.type("yes\r")
        shell.wait_for("1 of 1 operation done")
        shell.wait_for_prompt()
        assert project.is_there
        shell.type("\x0c", f"plan --target Topic/{project.topic[:-2]}\t")
        shell.wait_for(f"plan --target Topic/{project.topic}")
        shell.type("\r")
        shell.wait_for("No changes.")
        shell.wait_for_prompt()
        shell.type(CTRL_D)
        assert shell.wait_for_exit() == 0
    with open_terminal(project.folder) as shell:
        shell.type(UP)
        shell.wait_for(f"plan --target Topic/{project.topic}")


@pytest.mark.thorough
def test_shell_reconnects_after_broker_restart(single_broker: SandboxStatus, tmp_path: Path) -> None:
    for project in open_project(single_broker.bootstrap, tmp_path):
        with open_terminal(tmp_path, "--timeout", "5") as shell:
            shell.enter("apply --yes", then="1 of 1 operation done")
            kafka_sandbox.kill_broker(single_broker.folder, 1)
            try:
                project.declare(2000)
                shell.enter("apply --yes", then="Cluster unreachable", seconds=10)
                shell.enter("validate", then="Valid:")
            finally:
                kafka_sandbox.start_broker(single_broker.folder, 1)
            shell.enter("apply --yes", then="1 of 1 operation done")
            shell.enter("plan", then="No changes.")
