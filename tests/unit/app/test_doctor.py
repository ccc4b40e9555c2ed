"""``kdeclare doctor`` without brokers: its requests, and how it reports the responses."""

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kdeclare.app.doctor import run_doctor
from kdeclare.app.workspace import WorkspaceOptions
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.core.plans.state import State
from kdeclare.core.provider.provider import Check, CheckStatus
from kdeclare.engine.state.local_store import open_store
from kdeclare.providers.kafka.doctor import examine
from kdeclare.providers.kafka.doctor.examine import check_features
from kdeclare.providers.kafka.doctor.rights import check_rights
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.providers.kafka.port import Examinable, Examination
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigQuery, Configs, NewTopic
from kdeclare.report.doctor import DoctorView

OK, SKIPPED, WARNING, FAILED = CheckStatus.OK, CheckStatus.SKIPPED, CheckStatus.WARNING, CheckStatus.FAILED
ALL = frozenset({"CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
VERSIONS = {29: 3, 32: 4, 34: 2, 35: 4, 43: 2, 44: 1, 45: 1, 48: 1, 50: 0, 60: 2}
WELL = Examination(VERSIONS, {"eligible.leader.replicas.version": 1}, ALL, {"orders": ALL})
BROKERS = tuple(Broker(i, f"b{i}", 9092) for i in (1, 2))


@dataclass
class FakeCluster:
    """A fake cluster, and the function that opens it."""

    info: ClusterInfo = field(default_factory=lambda: ClusterInfo("the-id", BROKERS, True, "User:ann", "4.3"))
    found: Examination = WELL
    unreachable: frozenset[str] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list)
    open: int = 0
    config: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
        self.asked.append(servers)
        self.config = config
        if all(server in self.unreachable for server in servers.split(",")):
            raise KdeclareError(error("unreachable", "No", f"{servers}: connection refused.", hint="Look."))
        self.open += 1
        return self

    def describe(self) -> ClusterInfo:
        if self.fault is not None:
            raise self.fault
        return self.info

    def examine(self) -> Examination:
        return self.found

    def examine_groups(self) -> Mapping[str, frozenset[str]]:
        raise AssertionError("no group was asked about")

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        raise AssertionError("only existing topics were declared")

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        raise AssertionError("only existing topics were declared")

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        raise AssertionError("no group was declared")

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        raise AssertionError("the doctor changes nothing")

    def close(self) -> None:
        self.open -= 1


def run_fake_doctor(fake: FakeCluster, servers: str | None = "b1:9092", **more: object) -> DoctorView:
    options = replace(WorkspaceOptions(bootstrap_server=servers), **more)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(examine, "reach_cluster", fake)
        view = run_doctor(options, lambda *_: None, os.environ)
    assert fake.open == 0, "every opened connection is closed"
    return view


def find_checks(view: DoctorView, *names: str) -> list[Check]:
    return [check for section in view.sections for check in section.checks if check.name in names]


def find_check(view: DoctorView, name: str) -> Check:
    (found,) = find_checks(view, name)
    return found


@pytest.fixture(scope="module")
def jdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A JAVA_HOME whose programs only print their version; a real JVM starts slowly."""
    folder = tmp_path_factory.mktemp("jdk")
    (folder / "bin").mkdir()
    for name, version in (("java", 'openjdk version "21.0.1"'), ("javac", "javac 21.0.1")):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def _isolated_folder(tmp_path: Path, jdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(jdk))


def test_doctor_shows_java_and_compiler(jdk: Path) -> None:
    view = run_fake_doctor(FakeCluster(), None)
    assert find_check(view, "Java").what == f"21 at {jdk}/bin/java"
    assert find_check(view, "Java compiler").what == f"{jdk}/bin/javac"


def test_doctor_reports_healthy_cluster() -> None:
    fake = FakeCluster()
    view = run_fake_doctor(fake)
    assert (view.worst_status, view.exit_code) == (OK, ExitCode.OK)
    assert find_check(view, "Cluster").what == "the-id, Kafka 4.3, 2 brokers; authenticated as User:ann"
    assert [check.what for check in find_checks(view, "Address", "Broker 1", "Broker 2")] == [
        "b1:9092 responds",
        "b1:9092 responds",
        "b2:9092 responds",
    ]
    assert sorted(fake.asked) == ["b1:9092", "b1:9092", "b2:9092"]


def test_doctor_without_cluster_sends_no_requests() -> None:
    fake = FakeCluster()
    view = run_fake_doctor(fake, None)
    assert (fake.asked, view.exit_code) == ([], ExitCode.OK)
    assert find_check(view, "Address").what == (
        "no cluster is configured; brokers, permissions and features were not checked"
    )
    assert "--bootstrap-server HOST:PORT, or set bootstrapServers" in find_check(view, "Address").hint
    assert view.skipped_titles == ("Cluster",)


def test_doctor_shows_client_properties_resolved_by_config_providers(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("brokers=b1:9092,b2:9092\nprotocol=SASL_SSL\n")
    file = tmp_path / "client.properties"
    file.write_text(
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        f"bootstrap.servers=${{file:{tmp_path}/kept:brokers}}\n"
        f"security.protocol=${{file:{tmp_path}/kept:protocol}}\n"
        "sasl.mechanism=PLAIN\n"
    )
    fake = FakeCluster()
    view = run_fake_doctor(fake, None, command_config=file)
    assert find_check(view, "Client properties").what == "SASL_SSL, PLAIN"
    assert [check.what for check in find_checks(view, "Address")] == ["b1:9092 responds", "b2:9092 responds"]
    (tmp_path / "kept").write_text("protocol=SASL_SSL\n")
    missing = find_check(run_fake_doctor(FakeCluster(), None, command_config=file), "Client properties")
    assert (missing.standing, "the value does not exist" in missing.what) == (FAILED, True)


def test_doctor_skips_unused_project_file() -> None:
    view = run_fake_doctor(FakeCluster())
    assert find_check(view, "Project file").standing is SKIPPED
    assert view.skipped_titles == ()


def test_doctor_warns_about_one_unreachable_address() -> None:
    view = run_fake_doctor(FakeCluster(unreachable=frozenset({"gone:1"})), "gone:1,b1:9092")
    gone, here = find_checks(view, "Address")
    assert (gone.standing, here.standing, view.exit_code) == (WARNING, OK, ExitCode.OK)
    assert gone.what == "gone:1: connection refused."
    assert gone.hint == "Correct or remove this address. kdeclare connected to a different address. Look."


def test_doctor_fails_when_no_address_responds() -> None:
    view = run_fake_doctor(FakeCluster(unreachable=frozenset({"b1:9092"})))
    assert find_check(view, "Network").what == "b1:9092: connection refused."
    assert view.exit_code is ExitCode.ERROR
    assert find_checks(view, "Store", "Lock") != []


def test_doctor_reports_unreachable_advertised_listener() -> None:
    view = run_fake_doctor(FakeCluster(unreachable=frozenset({"b2:9092"})))
    assert find_check(view, "Broker 2").standing is FAILED
    assert (
        "the advertised address cannot be used: b2:9092: connection refused"
        in find_check(view, "Broker 2").what
    )
    assert "advertised.listeners" in find_check(view, "Broker 2").hint


def test_doctor_brackets_ipv6_broker_addresses() -> None:
    fake = FakeCluster()
    fake.info = replace(fake.info, brokers=(Broker(1, "::1", 9092), Broker(2, "fe80::2", 9093)))
    view = run_fake_doctor(fake, "[::1]:9092")
    assert sorted(fake.asked) == ["[::1]:9092", "[::1]:9092", "[fe80::2]:9093"]
    assert find_check(view, "Broker 2").what == "[fe80::2]:9093 responds"


def test_doctor_skips_fenced_broker() -> None:
    fake = FakeCluster()
    fake.info = replace(fake.info, brokers=(BROKERS[0], replace(BROKERS[1], fenced=True)))
    view = run_fake_doctor(fake)
    assert find_check(view, "Broker 2").standing is WARNING
    assert "b2:9092" not in fake.asked


def test_doctor_shows_client_properties_and_unused_ones(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=b1:9092\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    unused = warning("unused-client-property", "Without effect", "No effect: acks.")
    view = run_fake_doctor(FakeCluster(diagnostics=(unused,)), None, command_config=file)
    used, ignored = find_checks(view, "Client properties")
    assert (used.what, ignored.what) == ("SASL_SSL, PLAIN", "No effect: acks.")
    assert (used.standing, ignored.standing) == (OK, WARNING)
    file.write_text("x=${env.NOBODY_SETS_THIS}\n")
    view = run_fake_doctor(FakeCluster(), command_config=file)
    assert find_check(view, "Client properties").standing is FAILED
    assert "NOBODY_SETS_THIS" in find_check(view, "Client properties").what


def test_doctor_separates_property_errors_from_network_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
        raise KdeclareError(error("client-properties", "No", "ssl.provider: kdeclare does not support it."))

    monkeypatch.setattr(examine, "reach_cluster", refuse)
    view = run_doctor(WorkspaceOptions(bootstrap_server="b:1"), lambda *_: None, os.environ)
    assert find_check(view, "Client properties").what == "ssl.provider: kdeclare does not support it."
    assert find_checks(view, "Network") == []


def test_doctor_reports_unauthorized_describe_cluster() -> None:
    view = run_fake_doctor(FakeCluster(fault=Fault("CLUSTER_AUTHORIZATION_FAILED", "no")))
    assert find_check(view, "Cluster").standing is FAILED
    assert "CLUSTER_AUTHORIZATION_FAILED: no" in find_check(view, "Cluster").what


# project and state


def write_project(folder: Path, manifest: str) -> None:
    (folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {environments: {lab: {bootstrapServers: 'b1:9092'}}}\n"
    )
    (folder / "manifests").mkdir()
    (folder / "manifests" / "all.yaml").write_text(f"apiVersion: kdeclare/v1\n{manifest}\n")


def test_doctor_shows_project_and_manifests(tmp_path: Path) -> None:
    write_project(
        tmp_path, "kind: Topic\nmetadata: {name: orders}\nspec: {partitions: 1, replicationFactor: 1}"
    )
    view = run_fake_doctor(FakeCluster(), None)
    assert find_check(view, "Project file").what == "kdeclare.yaml, environment lab"
    assert find_check(view, "Manifests").what == "1 resource in 1 file"
    assert view.exit_code is ExitCode.OK


def test_doctor_reports_invalid_manifests(tmp_path: Path) -> None:
    write_project(tmp_path, "kind: Topic\nmetadata: {name: orders}\nspec: {partition: 1}")
    view = run_fake_doctor(FakeCluster(), None)
    assert find_check(view, "Manifests").standing is FAILED
    assert "manifests/all.yaml:4" in find_check(view, "Manifests").what


def test_doctor_reports_unreadable_project_file(tmp_path: Path) -> None:
    (tmp_path / "kdeclare.yaml").write_text("kind: Nothing\n")
    for servers in (None, "b1:9092"):
        fake = FakeCluster()
        view = run_fake_doctor(fake, servers)
        assert (find_check(view, "Project file").standing, view.exit_code) == (FAILED, ExitCode.ERROR)
        assert (
            find_check(view, "Address").what
            == "no cluster was checked, because the project file cannot be used"
        )
        assert fake.asked == []


def test_doctor_reports_state_of_other_cluster() -> None:
    store = open_store("state", "default", "default")
    with store.lock("a test"):
        store.write(State("lineage", 1, "other-id"))
        view = run_fake_doctor(FakeCluster())
    assert find_check(view, "Cluster id").standing is FAILED
    assert "other-id" in find_check(view, "Cluster id").what
    assert find_check(view, "Lock").standing is WARNING
    assert "a test" in find_check(view, "Lock").what
    assert "serial 1" in find_check(view, "Store").what
    assert (
        find_check(run_fake_doctor(FakeCluster()), "Lock").standing,
        find_check(run_fake_doctor(FakeCluster(), None), "Lock").what,
    ) == (OK, "free")


def test_doctor_reports_unreadable_state(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "default" / "default"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("{")
    assert find_check(run_fake_doctor(FakeCluster()), "Store").standing is FAILED


def test_doctor_warns_about_read_only_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    refuses = lambda path, mode: Path(path).name != "state"  # noqa: E731  root may do everything
    monkeypatch.setattr(os, "access", refuses)
    found = find_check(run_fake_doctor(FakeCluster(), None), "Store")
    assert (found.standing, "plan works without" in found.why) == (WARNING, True)


def test_doctor_warns_about_missing_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    view = run_fake_doctor(FakeCluster())
    assert (find_check(view, "Java").standing, view.exit_code) == (WARNING, ExitCode.OK)
    assert "kdeclare sandbox" in find_check(view, "Java").why


def test_doctor_reports_unreachable_connect_workers(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        "kind: ConnectWorkerConfig\nmetadata: {name: tls}\n"
        "spec: {workers: ['https://127.0.0.1:1'], config: {listeners.https.ssl.keystore.location: /k}}",
    )
    found = find_check(run_fake_doctor(FakeCluster(), None), "https://127.0.0.1:1")
    assert (found.standing, found.why) == (FAILED, "ConnectWorkerConfig")


# permissions and features


def test_check_rights_and_features_pass_when_all_are_present() -> None:
    assert {check.standing for check in (*check_rights(WELL), *check_features(WELL))} == {OK}


@pytest.mark.parametrize(
    ("missing", "names", "standing"),
    [
        ("DESCRIBE", {"Read the cluster", "Read topics"}, FAILED),
        ("DESCRIBE_CONFIGS", {"Read the cluster", "Read topics"}, FAILED),
        ("CREATE", {"Create topics"}, WARNING),
        ("ALTER", {"Alter the cluster", "Add partitions"}, WARNING),
        ("ALTER_CONFIGS", {"Alter broker configs", "Alter topic configs"}, WARNING),
        ("DELETE", {"Delete topics"}, WARNING),
    ],
)
def test_check_rights_reports_missing_permission(
    missing: str, names: set[str], standing: CheckStatus
) -> None:
    granted = ALL - {missing}
    found = check_rights(Examination(VERSIONS, {}, granted, {"a": granted, "b": ALL}))
    lacking = [check for check in found if check.standing is not OK]
    assert {check.name for check in lacking} == names
    for check in lacking:
        assert check.standing is standing
        assert missing in check.what
        assert "Grant kdeclare the " in check.hint
        assert "1 of 2 topics (a)" in check.what or "on the cluster" in check.what


def test_check_rights_skips_what_brokers_do_not_report() -> None:
    assert {check.standing for check in check_rights(Examination(VERSIONS))} == {SKIPPED}
    none = check_rights(Examination(VERSIONS, {}, ALL, {}))
    assert [check.what for check in none if check.standing is SKIPPED] == [
        "no topics are visible to this principal"
    ] * 4


@pytest.mark.parametrize(
    ("versions", "name", "standing", "since"),
    [
        ({45: 0}, "Replication factor guard", WARNING, "4.1"),
        ({35: 3}, "Disk capacity", WARNING, "3.3"),
        ({60: 1}, "Fenced brokers", WARNING, "4.0"),
        ({44: -1}, "Incremental config changes", FAILED, "2.3"),
    ],
)
def test_check_features_reports_missing_feature(
    versions: dict[int, int], name: str, standing: CheckStatus, since: str
) -> None:
    found = check_features(Examination(VERSIONS | versions, WELL.features))
    (lacking,) = [check for check in found if check.standing is not OK]
    assert (lacking.name, lacking.standing) == (name, standing)
    assert f"requires Kafka {since} or later" in lacking.what
    assert f"Kafka {since} or later" in lacking.hint


def test_check_features_skips_disabled_eligible_leader_replicas() -> None:
    *_, elr = check_features(Examination(VERSIONS))
    assert (elr.standing, "not enabled" in elr.what) == (SKIPPED, True)


def test_doctor_document_contains_no_client_secrets(tmp_path: Path) -> None:
    from kdeclare.core.documents import dump_document
    from kdeclare.report.doctor import build_doctor_document

    file = tmp_path / "client.properties"
    file.write_text('sasl.jaas.config=x required password="s3cret";\nssl.key.password=s3cret\n')
    fake = FakeCluster()
    assert "s3cret" not in json.dumps(
        dump_document(build_doctor_document(run_fake_doctor(fake, command_config=file)))
    )
    assert "s3cret" in fake.config["ssl.key.password"]
