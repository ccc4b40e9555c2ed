"""Failures of a real process with real brokers, and the tables in docs/errors.md with one test per row."""

import ast
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client import connect
from kdeclare.sandbox import SandboxSettings, SandboxStatus, broker_properties
from tests.beds import KafkaBed
from tests.commands import Ran, run_here
from tests.conftest import free_port
from tests.polling import wait_for

ROOT = Path(__file__).parents[2]
kafka = pytest.mark.kafka


@dataclass
class Project:
    """A project in its own folder, with one manifest file and topics that only it uses."""

    folder: Path
    bootstrap: str
    prefix: str = field(default_factory=lambda: f"bad-{uuid.uuid4().hex[:8]}-")
    environ: dict[str, str] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.declare()
        environments = {"real": {"bootstrapServers": self.bootstrap, **self.environment}}
        spec = {"manifests": ["all.yaml"], "environments": environments}
        self._write("kdeclare.yaml", [("Project", "bad", spec)])

    @property
    def state(self) -> Path:
        return self.folder / "state" / "bad" / "real"

    def name(self, short: str) -> str:
        return self.prefix + short

    def declare(self, *manifests: tuple[str, str, Mapping[str, Any]]) -> None:
        """Replace the manifests of the project: kind, name, spec."""
        self._write("all.yaml", manifests)

    def topics(self, *names: str, **spec: Any) -> None:
        """Replace the manifests of the project by these topics, all alike."""
        whole = {"partitions": 1, "replicationFactor": 1, **spec}
        self.declare(*(("Topic", self.name(name), whole) for name in names))

    def start(self, *arguments: str, **more: Any) -> subprocess.Popen[str]:
        """Start the command as a process without a terminal."""
        environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **self.environ}
        return subprocess.Popen(
            [sys.executable, "-m", "kdeclare", *arguments],
            cwd=self.folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )

    def __call__(self, *arguments: str, preexec_fn: Callable[[], None] | None = None) -> Ran:
        """Run the command in this process, or in a separate one if that needs preparation."""
        if preexec_fn is None:
            return run_here(self.folder, *arguments, environ=self.environ)
        return wait_for_exit(self.start(*arguments, preexec_fn=preexec_fn))

    def done(self, *arguments: str) -> Ran:
        """Run the command, which must succeed."""
        ran = self(*arguments)
        assert ran.code is ExitCode.OK, ran
        return ran

    def in_order(self) -> bool:
        """Return whether the next plan has no changes."""
        return self.done("plan").out.startswith("No changes.")

    def journal(self) -> str:
        """Return the journal of the latest run; empty if there is none."""
        for run in sorted(self.state.glob("runs/[!.]*"), reverse=True):
            return (run / "journal.jsonl").read_text()
        return ""

    def count_runs(self) -> int:
        """Return the number of runs so far."""
        return len(list(self.state.glob("runs/[!.]*")))

    def _write(self, file: str, manifests: Any) -> None:
        documents = (
            {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
            for kind, name, spec in manifests
        )
        (self.folder / file).write_text("\n---\n".join(json.dumps(d) for d in documents))


def wait_for_exit(process: subprocess.Popen[str], timeout: float = 180) -> Ran:
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"it does not end: {process.communicate()}") from None
    assert "Traceback" not in err, err
    return Ran(ExitCode(process.returncode), out, err)


def wait_for_first_request(project: Project, process: subprocess.Popen[str], earlier_runs: int = 0) -> None:
    """Wait until a process has sent, or is about to send, its first request.

    earlier_runs: the number of the project's runs before the process started.
    """
    deadline = time.monotonic() + 60
    while project.count_runs() <= earlier_runs or '"begin"' not in project.journal():
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"it does not begin: {wait_for_exit(process, 1)}")
        time.sleep(0.002)


@contextmanager
def open_project(bootstrap: str, folder: Path) -> Iterator[tuple[Project, KafkaBed]]:
    """A project, and another client of the same cluster; the project's topics are deleted at the end."""
    project = Project(folder, bootstrap)
    cluster = connect(bootstrap, {})
    bed = KafkaBed(cluster, bootstrap)
    try:
        yield project, bed
        for name in cluster.topics():
            if name.startswith(project.prefix):
                bed.delete_at_end(name)
        bed.clean()
    finally:
        cluster.close()


@pytest.fixture
def project_and_bed(sandbox: SandboxStatus, tmp_path: Path) -> Iterator[tuple[Project, KafkaBed]]:
    with open_project(sandbox.bootstrap, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def authorizing_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxStatus]:
    """A sandbox of one broker with an authorizer that permits everything without a matching ACL."""
    usual = broker_properties.broker_properties

    def with_authorizer(of: SandboxSettings, broker_id: int, data: Path) -> dict[str, str]:
        if of.folder != settings.folder:
            return usual(of, broker_id, data)  # other sandboxes may start in the meantime
        return usual(of, broker_id, data) | {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
        }

    settings = SandboxSettings(tmp_path_factory.mktemp("strict"), 1, 1, free_port(1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(broker_properties, "broker_properties", with_authorizer)
        try:
            yield kafka_sandbox.start(settings, print)
        finally:
            kafka_sandbox.reset(settings.folder)


def permit_only(bootstrap: str, topic: str, *operations: str) -> None:
    """Permit only this operation on a topic, for all principals."""
    from kafka.admin import (
        ACL,
        ACLOperation,
        ACLPermissionType,
        KafkaAdminClient,
        ResourcePattern,
        ResourceType,
    )

    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        client.create_acls(
            [
                ACL(
                    principal="User:ANONYMOUS",
                    host="*",
                    operation=ACLOperation[operation],
                    permission_type=ACLPermissionType.ALLOW,
                    resource_pattern=ResourcePattern(ResourceType.TOPIC, topic),
                )
                for operation in operations
            ]
        )
    finally:
        client.close()


# permissions


@kafka
def test_plan_warns_of_missing_alter_permission(authorizing_sandbox: SandboxStatus, tmp_path: Path) -> None:
    with open_project(authorizing_sandbox.bootstrap, tmp_path) as (project, _):
        project.topics("free", "held")
        project.done("apply", "--yes")
        permit_only(
            authorizing_sandbox.bootstrap, project.name("held"), "DESCRIBE", "DESCRIBE_CONFIGS", "DELETE"
        )
        project.topics("free", "held", configs={"retention.ms": 5000})
        ran = project("plan")
        assert ran.code is ExitCode.OK
        assert f"needs AlterConfigs on topic {project.name('held')}" in ran.out.replace("\n", " ")
        ran = project("apply", "--yes")
        assert ran.code is ExitCode.PARTIAL
        assert "TOPIC_AUTHORIZATION_FAILED" in ran.out
        plan = project.done("plan", "--no-preflight")
        assert project.name("held") in plan.out
        assert project.name("free") not in plan.out  # the other operations were applied


@kafka
def test_plan_without_permission_to_read_configs_blocks_topic(
    authorizing_sandbox: SandboxStatus, tmp_path: Path
) -> None:
    with open_project(authorizing_sandbox.bootstrap, tmp_path) as (project, _):
        project.topics("dark", configs={"retention.ms": 5000})
        project.done("apply", "--yes")
        permit_only(authorizing_sandbox.bootstrap, project.name("dark"), "DESCRIBE", "DELETE")
        ran = project("plan")
        assert ran.code is ExitCode.DENIED
        assert "denied: Configs not visible" in ran.out
        assert f"Topic/{project.name('dark')} is left unchanged" in ran.out
        assert "Grant kdeclare the DescribeConfigs permission." in ran.out


# other clusters and secrets


@kafka
def test_commands_refuse_state_and_plan_of_other_cluster(
    project_and_bed: tuple[Project, KafkaBed], authorizing_sandbox: SandboxStatus
) -> None:
    project, _ = project_and_bed
    project.topics("t")
    project.done("apply", "--yes")
    project.topics("t", configs={"retention.ms": 5000})
    project.done("plan", "--out", "it.plan")
    for command in (["plan"], ["apply", "--yes"], ["apply", "it.plan", "--yes"], ["rollback", "--yes"]):
        ran = project(*command, "--bootstrap-server", authorizing_sandbox.bootstrap)
        assert ran.code is ExitCode.ERROR
        assert "Connected to a different cluster" in ran.err


@kafka
def test_apply_refuses_plan_after_secret_changed(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, _ = project_and_bed
    key = "listener.name.plaintext.ssl.keystore.password"
    project.environ["BAD_SECRET"] = "first-value"
    project.declare(("BrokerConfig", "1", {"configs": {key: "${env.BAD_SECRET}"}}))
    project.done("plan", "--out", "it.plan")
    project.environ["BAD_SECRET"] = "other-value"
    ran = project("apply", "it.plan", "--yes")
    assert ran.code is ExitCode.STALE
    assert "Secret has changed" in ran.err
    assert "${env.BAD_SECRET}" in ran.err
    assert "-value" not in ran.out + ran.err + (project.folder / "it.plan").read_text()
    assert not project.journal()


# the state folder


def drop_root_override() -> None:
    """In the child: drop root's exemption from permission checks."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@kafka
@pytest.mark.skipif(sys.platform != "linux", reason="root is not kept from writing elsewhere")
def test_apply_fails_if_state_folder_is_not_writable(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.topics("t")
    state = project.folder / "state"
    state.mkdir()
    state.chmod(0o555)
    try:
        ran = project("apply", "--yes", preexec_fn=drop_root_override)
        assert project("plan", preexec_fn=drop_root_override).code is ExitCode.OK  # reading needs no lock
    finally:
        state.chmod(0o755)
    assert ran.code is ExitCode.ERROR
    assert "No access to the state" in ran.err
    assert "--state" in ran.err
    assert not bed.cluster.topics([project.name("t")])


def limit_file_size(limit: int) -> Callable[[], None]:
    """In the child: simulate a full disk for files that grow beyond ``limit`` bytes."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@kafka
def test_apply_sends_nothing_if_disk_is_full(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.topics("t")
    ran = project("apply", "--yes", preexec_fn=limit_file_size(500))
    assert ran.code is ExitCode.ERROR
    assert "No space left for the state" in ran.err
    assert not bed.cluster.topics([project.name("t")])
    assert not project.journal()
    project.done("apply", "--yes")
    assert project.in_order()


@kafka
def test_run_is_recovered_after_disk_filled_up(project_and_bed: tuple[Project, KafkaBed]) -> None:
    """The state is larger than this run's plan and journal, so only the state no longer fits."""
    project, _ = project_and_bed
    names = [f"t{n}" for n in range(40)]
    project.topics(*names)
    project.done("apply", "--yes")
    size = (project.state / "state.json").stat().st_size
    alike = {"partitions": 1, "replicationFactor": 1}
    manifests = [("Topic", project.name(name), alike) for name in names[1:]]
    changed = {**alike, "configs": {"retention.ms": 5000}}
    project.declare(("Topic", project.name(names[0]), changed), *manifests)
    ran = project("apply", "--yes", preexec_fn=limit_file_size(size - 1000))
    assert ran.code is ExitCode.ERROR
    assert "No space left for the state" in ran.err
    assert '"done"' in project.journal()
    ran = project.done("plan")
    assert "was recovered" in ran.err
    assert ran.out.startswith("No changes.")
    project.done("apply", "--yes")
    record = json.loads((project.state / "state.json").read_text())
    assert "5000" in json.dumps(record)


@kafka
def test_apply_fails_on_full_file_system(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    disk = project.folder / "disk"
    disk.mkdir()
    if not shutil.which("unshare") or not can_mount(disk):
        pytest.skip("no file system can be mounted here")
    project.topics(*(f"t{n}" for n in range(60)))
    ran = wait_for_exit(start_on_small_disk(project, disk, "kdeclare apply --yes --state disk"))
    assert ran.code is ExitCode.ERROR
    assert "No space left for the state" in ran.err
    assert "No space left on device" in ran.err
    assert not bed.cluster.topics([project.name("t0")])


def can_mount(disk: Path) -> bool:
    command = ["unshare", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", str(disk)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def start_on_small_disk(project: Project, disk: Path, command: str) -> subprocess.Popen[str]:
    """A shell with a private file system of 16 kB, which is removed with the shell."""
    program = command.replace("kdeclare", f"'{sys.executable}' -m kdeclare", 1)
    script = f"mount -t tmpfs -o size=16k none '{disk}' && exec {program}"
    return subprocess.Popen(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


# during a reassignment


@dataclass
class MovingApply:
    """An apply that waits for a reassignment, which only ends when it is released."""

    project: Project
    bed: KafkaBed
    topic: str
    process: subprocess.Popen[str]

    def in_flight(self) -> bool:
        return bool(self.bed.cluster.moves([self.topic]))


@contextmanager
def start_held_move(project: Project, bed: KafkaBed, *options: str) -> Iterator[MovingApply]:
    """Start a reassignment from brokers 1 and 2 to 1 and 3."""
    topic = bed.create({0: (1, 2)}, name=project.name("moved"))
    bed.hold_moves(topic)
    wanted = {"topic": topic, "partition": 0, "replicas": [1, 3]}
    project.declare(("Reassignment", "move", {"partitions": [wanted]}))
    process = project.start("apply", "--yes", *options)
    it = MovingApply(project, bed, topic, process)
    try:
        wait_for_first_request(project, process)
        wait_for(it.in_flight, every=0.02)
        yield it
    finally:
        process.kill()
        process.communicate()
        bed.eventually(bed.release_moves)
        wait_for(lambda: not it.in_flight(), every=0.02)


def read_replicas(bed: KafkaBed, topic: str) -> tuple[int, ...]:
    return bed.topic(topic).partitions[0].replicas


@kafka
def test_apply_interrupted_during_move_leaves_it_in_progress(
    project_and_bed: tuple[Project, KafkaBed],
) -> None:
    project, bed = project_and_bed
    with start_held_move(project, bed) as it:
        it.process.send_signal(signal.SIGINT)
        ran = wait_for_exit(it.process)
        assert ran.code is ExitCode.INTERRUPTED
        assert "Press Ctrl-C again to exit at once" in ran.err
        assert "Interrupted" in ran.out
        assert "Still in progress in the cluster" in ran.out
        assert it.topic in project.done("status").out
    project.done("apply", "--yes")
    assert project.in_order()
    bed.eventually(lambda: expect_equal(read_replicas(bed, it.topic), (1, 3)))


@kafka
def test_apply_interrupted_twice_during_move_is_recovered(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    with start_held_move(project, bed) as it:
        it.process.send_signal(signal.SIGINT)
        time.sleep(0.01)
        it.process.send_signal(signal.SIGINT)
        assert wait_for_exit(it.process).code is ExitCode.INTERRUPTED
        assert it.topic in project.done("status").out
    project.done("apply", "--yes")
    assert project.in_order()
    bed.eventually(lambda: expect_equal(read_replicas(bed, it.topic), (1, 3)))


def expect_equal(one: object, other: object) -> None:
    assert one == other


@kafka
def test_move_that_exceeds_timeout_is_reported(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    with start_held_move(project, bed, "--move-timeout", "2") as it:
        ran = wait_for_exit(it.process)
        assert ran.code is ExitCode.PARTIAL
        assert "Still moving after 2 s" in ran.out
        assert it.in_flight()
    project.done("apply", "--yes")
    assert project.in_order()


@kafka
def test_plan_leaves_move_of_other_client_alone(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    with start_held_move(project, bed) as it:
        it.process.kill()
        it.process.wait()
        other = Project(project.folder / "other", project.bootstrap, project.prefix)
        other.topics("moved", partitions=2, replicationFactor=2)
        ran = other("plan")
        assert ran.code is ExitCode.DENIED
        assert "Reassignment in progress" in ran.out


@kafka
def test_apply_waits_for_lost_destination_broker(
    project_and_bed: tuple[Project, KafkaBed], sandbox: SandboxStatus
) -> None:
    """The run waits for the broker, and succeeds once it is back."""
    project, bed = project_and_bed
    with start_held_move(project, bed) as it:
        try:
            kafka_sandbox.kill_broker(sandbox.folder, 3)
            time.sleep(2)
            assert it.process.poll() is None
            assert it.in_flight()
        finally:
            kafka_sandbox.start_broker(sandbox.folder, 3)
        bed.eventually(bed.release_moves)
        ran = wait_for_exit(it.process)
        assert ran.code is ExitCode.OK, ran
    assert project.in_order()
    bed.eventually(lambda: expect_equal(read_replicas(bed, it.topic), (1, 3)))


@kafka
@pytest.mark.thorough
def test_apply_reports_unknown_outcome_after_cluster_loss(
    authorizing_sandbox: SandboxStatus, tmp_path: Path
) -> None:
    with open_project(authorizing_sandbox.bootstrap, tmp_path) as (project, _):
        # enough topics for the request to take longer than stopping the broker
        project.topics(*(f"t{n}" for n in range(200)), partitions=5)
        [broker] = kafka_sandbox.status(authorizing_sandbox.folder).brokers
        assert broker.pid is not None
        process = project.start("apply", "--yes")
        try:
            wait_for_first_request(project, process)
            # a stopped process accepts the request and does not respond, regardless of the load
            os.kill(broker.pid, signal.SIGSTOP)
            time.sleep(2)
        finally:
            kafka_sandbox.kill_broker(authorizing_sandbox.folder, 1)
        ran = wait_for_exit(process)
        status = project("status", "--timeout", "1")
        kafka_sandbox.start_broker(authorizing_sandbox.folder, 1)
        assert ran.code is ExitCode.PARTIAL, ran
        assert "the live state could not be read afterwards" in " ".join(ran.out.split())
        assert (status.code, "connection refused" in status.err) == (ExitCode.ERROR, True)
        settled = project.done("status")
        assert "was recovered" in settled.err
        project.done("apply", "--yes")
        assert project.in_order()


# a large project, and an empty one


@kafka
@pytest.mark.thorough
def test_plan_of_ten_thousand_resources(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, _ = project_and_bed
    project.topics(*(f"t{n}" for n in range(10_000)), configs={"retention.ms": 5000})
    plan = json.loads(project.done("plan", "--format", "json").out)
    assert plan["summary"]["create"] == 10_000
    assert len(plan["operations"]) == 10_000


@kafka
def test_commands_succeed_in_empty_project(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, _ = project_and_bed
    for command in (
        ["validate"],
        ["plan", "--detailed-exitcode"],
        ["apply", "--yes"],
        ["status"],
        ["history"],
    ):
        project.done(*command)
    assert project.in_order()


# arguable cases


@kafka
def test_plan_guards_deny_changes_at_real_brokers(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.topics("t", partitions=3, lifecycle={"preventDestroy": True})
    project.done("apply", "--yes")
    project.topics("t", partitions=2)
    ran = project("plan")
    assert (ran.code, "Kafka cannot remove partitions" in ran.out) == (ExitCode.DENIED, True)
    project.declare()
    ran = project("plan", "--allow-deletes", "--allow-empty")
    assert (ran.code, "preventDestroy" in ran.out) == (ExitCode.DENIED, True)
    [one, two, *_] = bed.brokers
    here_now = list(read_replicas(bed, project.name("t")))
    wanted = {"topic": project.name("t"), "partition": 0, "replicas": [one, two]}
    project.declare(("Reassignment", "r", {"partitions": [wanted]}))
    ran = project("plan", "--target", "Reassignment/r")
    assert (ran.code, "from 1 to 2" in ran.out) == (ExitCode.DENIED, True)
    elsewhere = one if here_now != [one] else two
    wanted = {**wanted, "replicas": [elsewhere], "expectedReplicas": [elsewhere]}
    project.declare(("Reassignment", "r", {"partitions": [wanted]}))
    ran = project("plan", "--target", "Reassignment/r")
    assert (ran.code, "Unexpected current replicas" in ran.out) == (ExitCode.DENIED, True)


@kafka
def test_rollback_reports_what_it_cannot_restore(project_and_bed: tuple[Project, KafkaBed]) -> None:
    project, bed = project_and_bed
    project.topics("t")
    project.done("apply", "--yes")
    bed.produce(project.name("t"), 3)
    ran = project("rollback", "--yes")
    assert (ran.code, "holds 3 records" in ran.out) == (ExitCode.PARTIAL, True)
    project.topics("t", partitions=2)
    project.done("apply", "--yes")
    ran = project("rollback", "--yes")
    assert (ran.code, "Cannot be undone" in ran.out) == (ExitCode.PARTIAL, True)


@kafka
def test_broker_thread_pool_is_resized_in_allowed_steps(project_and_bed: tuple[Project, KafkaBed]) -> None:
    """BRK-05: the sandbox's brokers are started with 4; Kafka's default is 8."""
    project, _ = project_and_bed
    project.declare(("BrokerConfig", "2", {"configs": {"num.io.threads": 32}}))
    project.done("apply", "--yes")
    assert project.in_order()
    project.declare(("BrokerConfig", "2", {"configs": {}}))
    project.done("apply", "--yes")
    assert project.in_order()


# docs/errors.md


@dataclass(frozen=True)
class Row:
    trouble: str
    said: str
    code: str
    tests: tuple[str, ...]


def read_error_table() -> list[Row]:
    """Return the rows of the tables in docs/errors.md."""
    found = []
    for line in (ROOT / "docs" / "errors.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if (
            line.startswith("|")
            and len(cells) == 4
            and not set(cells[0]) <= set("-: ")
            and cells[2] != "exit"
        ):
            tests = tuple(re.findall(r"`(tests/[^`]+)`", cells[3]))
            found.append(Row(cells[0], cells[1], cells[2], tests))
    return found


@cache
def list_functions(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.slow
def test_error_table_rows_name_existing_tests() -> None:
    assert len(read_error_table()) > 40
    for row in read_error_table():
        assert row.tests, row
        for name in row.tests:
            file, _, test = name.partition("::")
            assert test in list_functions(file), row


def test_error_table_has_all_exit_codes() -> None:
    codes = {int(code) for row in read_error_table() for code in re.findall(r"\d+", row.code)}
    assert codes == set(ExitCode)


def test_error_table_codes_exist_in_kdeclare() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "kdeclare").rglob("*.py"))
    known = set(re.findall(r'"([A-Za-z-]+)"', sources))
    given = {code for row in read_error_table() for code in re.findall(r"`([A-Za-z-]+)`:", row.said)}
    assert given
    assert given <= known, given - known
