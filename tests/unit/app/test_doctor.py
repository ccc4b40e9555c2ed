"""``kdeclare doctor`` without brokers: its requests, and how it reports the responses."""

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kdeclare.app.doctor import run_doctor
from kdeclare.app.workspace import WorkspaceOptions
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.state import State
from kdeclare.core.provider.provider import Check, CheckStatus
from kdeclare.engine.state.local_store import open_store
from kdeclare.providers.kafka import doctor
from kdeclare.providers.kafka.doctor import check_features, check_rights
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.providers.kafka.port import Examinable, Examination
from kdeclare.report.doctor import DoctorView

OK, SKIPPED, WARNING, FAILED = CheckStatus.OK, CheckStatus.SKIPPED, CheckStatus.WARNING, CheckStatus.FAILED
ALL = frozenset({"CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
VERSIONS = {34: 2, 35: 4, 43: 2, 44: 1, 45: 1, 60: 2}
WELL = Examination(VERSIONS, {"eligible.leader.replicas.version": 1}, ALL, {"orders": ALL})
BROKERS = tuple(Broker(i, f"b{i}", 9092) for i in (1, 2))


@dataclass
class Fake:
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

    def close(self) -> None:
        self.open -= 1


def look(fake: Fake, servers: str | None = "b1:9092", **more: object) -> DoctorView:
    options = replace(WorkspaceOptions(bootstrap_server=servers), **more)  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doctor, "reach_cluster", fake)
        view = run_doctor(options, lambda *_: None, os.environ)
    assert fake.open == 0, "every opened connection is closed"
    return view


def checks(view: DoctorView, *names: str) -> list[Check]:
    return [check for section in view.sections for check in section.checks if check.name in names]


def only(view: DoctorView, name: str) -> Check:
    (found,) = checks(view, name)
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
def _somewhere(tmp_path: Path, jdk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(jdk))


def test_java_and_its_compiler(jdk: Path) -> None:
    view = look(Fake(), None)
    assert only(view, "Java").what == f"21 at {jdk}/bin/java"
    assert only(view, "Java compiler").what == f"{jdk}/bin/javac"


def test_all_is_well() -> None:
    fake = Fake()
    view = look(fake)
    assert (view.worst_status, view.exit_code) == (OK, ExitCode.OK)
    assert only(view, "Cluster").what == "the-id, Kafka 4.3, 2 brokers; authenticated as User:ann"
    assert [check.what for check in checks(view, "Address", "Broker 1", "Broker 2")] == [
        "b1:9092 responds",
        "b1:9092 responds",
        "b2:9092 responds",
    ]
    assert sorted(fake.asked) == ["b1:9092", "b1:9092", "b2:9092"]


def test_without_any_cluster_nothing_is_asked() -> None:
    fake = Fake()
    view = look(fake, None)
    assert (fake.asked, view.exit_code) == ([], ExitCode.OK)
    assert only(view, "Address").what == (
        "no cluster is configured; brokers, permissions and features were not checked"
    )
    assert "--bootstrap-server HOST:PORT, or set bootstrapServers" in only(view, "Address").hint
    assert view.skipped_titles == ("Cluster",)


def test_what_client_properties_leave_to_providers_is_shown_as_it_is_used(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("brokers=b1:9092,b2:9092\nprotocol=SASL_SSL\n")
    file = tmp_path / "client.properties"
    file.write_text(
        "config.providers=file\n"
        "config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider\n"
        f"bootstrap.servers=${{file:{tmp_path}/kept:brokers}}\n"
        f"security.protocol=${{file:{tmp_path}/kept:protocol}}\n"
        "sasl.mechanism=PLAIN\n"
    )
    fake = Fake()
    view = look(fake, None, command_config=file)
    assert only(view, "Client properties").what == "SASL_SSL, PLAIN"
    assert [check.what for check in checks(view, "Address")] == ["b1:9092 responds", "b2:9092 responds"]
    (tmp_path / "kept").write_text("protocol=SASL_SSL\n")
    missing = only(look(Fake(), None, command_config=file), "Client properties")
    assert (missing.standing, "the value does not exist" in missing.what) == (FAILED, True)


def test_what_is_not_in_use_is_not_missed() -> None:
    view = look(Fake())
    assert only(view, "Project file").standing is SKIPPED
    assert view.skipped_titles == ()


def test_an_address_that_does_not_answer_is_a_warning_beside_one_that_does() -> None:
    view = look(Fake(unreachable=frozenset({"gone:1"})), "gone:1,b1:9092")
    gone, here = checks(view, "Address")
    assert (gone.standing, here.standing, view.exit_code) == (WARNING, OK, ExitCode.OK)
    assert gone.what == "gone:1: connection refused."
    assert gone.hint == "Check this address; kdeclare uses another one that works. Look."


def test_no_address_answers() -> None:
    view = look(Fake(unreachable=frozenset({"b1:9092"})))
    assert only(view, "Network").what == "b1:9092: connection refused."
    assert view.exit_code is ExitCode.ERROR
    assert checks(view, "Store", "Lock") != []


def test_a_broker_that_is_not_where_clients_are_told_to_go() -> None:
    view = look(Fake(unreachable=frozenset({"b2:9092"})))
    assert only(view, "Broker 2").standing is FAILED
    assert "the advertised address cannot be used: b2:9092: connection refused" in only(view, "Broker 2").what
    assert "advertised.listeners" in only(view, "Broker 2").hint


def test_brokers_with_an_ipv6_address_are_asked_where_they_are() -> None:
    fake = Fake()
    fake.info = replace(fake.info, brokers=(Broker(1, "::1", 9092), Broker(2, "fe80::2", 9093)))
    view = look(fake, "[::1]:9092")
    assert sorted(fake.asked) == ["[::1]:9092", "[::1]:9092", "[fe80::2]:9093"]
    assert only(view, "Broker 2").what == "[fe80::2]:9093 responds"


def test_a_broker_that_does_not_serve_is_not_tried() -> None:
    fake = Fake()
    fake.info = replace(fake.info, brokers=(BROKERS[0], replace(BROKERS[1], fenced=True)))
    view = look(fake)
    assert only(view, "Broker 2").standing is WARNING
    assert "b2:9092" not in fake.asked


def test_client_properties(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=b1:9092\nsecurity.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n")
    unused = warning("unused-client-property", "Without effect", "No effect: acks.")
    view = look(Fake(diagnostics=(unused,)), None, command_config=file)
    used, ignored = checks(view, "Client properties")
    assert (used.what, ignored.what) == ("SASL_SSL, PLAIN", "No effect: acks.")
    assert (used.standing, ignored.standing) == (OK, WARNING)
    file.write_text("x=${env.NOBODY_SETS_THIS}\n")
    view = look(Fake(), command_config=file)
    assert only(view, "Client properties").standing is FAILED
    assert "NOBODY_SETS_THIS" in only(view, "Client properties").what


def test_properties_that_cannot_be_used_are_no_matter_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
        raise KdeclareError(error("client-properties", "No", "ssl.provider: it is not supported."))

    monkeypatch.setattr(doctor, "reach_cluster", refusing)
    view = run_doctor(WorkspaceOptions(bootstrap_server="b:1"), lambda *_: None, os.environ)
    assert only(view, "Client properties").what == "ssl.provider: it is not supported."
    assert checks(view, "Network") == []


def test_a_cluster_that_does_not_tell_who_it_is() -> None:
    view = look(Fake(fault=Fault("CLUSTER_AUTHORIZATION_FAILED", "no")))
    assert only(view, "Cluster").standing is FAILED
    assert "CLUSTER_AUTHORIZATION_FAILED: no" in only(view, "Cluster").what


# project and state


def project(folder: Path, manifest: str) -> None:
    (folder / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {environments: {lab: {bootstrapServers: 'b1:9092'}}}\n"
    )
    (folder / "manifests").mkdir()
    (folder / "manifests" / "all.yaml").write_text(f"apiVersion: kdeclare/v1\n{manifest}\n")


def test_a_project(tmp_path: Path) -> None:
    project(tmp_path, "kind: Topic\nmetadata: {name: orders}\nspec: {partitions: 1, replicationFactor: 1}")
    view = look(Fake(), None)
    assert only(view, "Project file").what == "kdeclare.yaml, environment lab"
    assert only(view, "Manifests").what == "1 resource in 1 file"
    assert view.exit_code is ExitCode.OK


def test_manifests_with_mistakes(tmp_path: Path) -> None:
    project(tmp_path, "kind: Topic\nmetadata: {name: orders}\nspec: {partition: 1}")
    view = look(Fake(), None)
    assert only(view, "Manifests").standing is FAILED
    assert "manifests/all.yaml:4" in only(view, "Manifests").what


def test_a_project_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kdeclare.yaml").write_text("kind: Nothing\n")
    for servers in (None, "b1:9092"):
        fake = Fake()
        view = look(fake, servers)
        assert (only(view, "Project file").standing, view.exit_code) == (FAILED, ExitCode.ERROR)
        assert only(view, "Address").what == "no cluster was checked, because the project file cannot be used"
        assert fake.asked == []


def test_the_state_of_another_cluster() -> None:
    store = open_store("state", "default", "default")
    with store.lock("a test"):
        store.write(State("lineage", 1, "other-id"))
        view = look(Fake())
    assert only(view, "Cluster id").standing is FAILED
    assert "other-id" in only(view, "Cluster id").what
    assert only(view, "Lock").standing is WARNING
    assert "a test" in only(view, "Lock").what
    assert "serial 1" in only(view, "Store").what
    assert (only(look(Fake()), "Lock").standing, only(look(Fake(), None), "Lock").what) == (OK, "free")


def test_a_state_that_cannot_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "default" / "default"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text("{")
    assert only(look(Fake()), "Store").standing is FAILED


def test_a_state_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    refuses = lambda path, mode: Path(path).name != "state"  # noqa: E731  root may do everything
    monkeypatch.setattr(os, "access", refuses)
    found = only(look(Fake(), None), "Store")
    assert (found.standing, "plan works without" in found.why) == (WARNING, True)


def test_java_is_needed_by_few_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    view = look(Fake())
    assert (only(view, "Java").standing, view.exit_code) == (WARNING, ExitCode.OK)
    assert "kdeclare sandbox" in only(view, "Java").why


def test_connect_workers_that_do_not_answer(tmp_path: Path) -> None:
    project(
        tmp_path,
        "kind: ConnectWorkerConfig\nmetadata: {name: tls}\n"
        "spec: {workers: ['https://127.0.0.1:1'], config: {listeners.https.ssl.keystore.location: /k}}",
    )
    found = only(look(Fake(), None), "https://127.0.0.1:1")
    assert (found.standing, found.why) == (FAILED, "ConnectWorkerConfig")


# permissions and features


def test_every_right_and_feature_is_there() -> None:
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
def test_a_right_that_is_missing(missing: str, names: set[str], standing: CheckStatus) -> None:
    granted = ALL - {missing}
    found = check_rights(Examination(VERSIONS, {}, granted, {"a": granted, "b": ALL}))
    lacking = [check for check in found if check.standing is not OK]
    assert {check.name for check in lacking} == names
    for check in lacking:
        assert check.standing is standing
        assert missing in check.what
        assert "Request " in check.hint
        assert "1 of 2 topics (a)" in check.what or "on the cluster" in check.what


def test_what_brokers_do_not_tell_is_neither_good_nor_bad() -> None:
    assert {check.standing for check in check_rights(Examination(VERSIONS))} == {SKIPPED}
    none = check_rights(Examination(VERSIONS, {}, ALL, {}))
    assert [check.what for check in none if check.standing is SKIPPED] == ["no topics are visible to you"] * 4


@pytest.mark.parametrize(
    ("versions", "name", "standing", "since"),
    [
        ({45: 0}, "Replication factor guard", WARNING, "4.1"),
        ({35: 3}, "Disk capacity", WARNING, "3.3"),
        ({60: 1}, "Fenced brokers", WARNING, "4.0"),
        ({44: -1}, "Incremental config changes", FAILED, "2.3"),
    ],
)
def test_a_feature_that_brokers_do_not_have(
    versions: dict[int, int], name: str, standing: CheckStatus, since: str
) -> None:
    found = check_features(Examination(VERSIONS | versions, WELL.features))
    (lacking,) = [check for check in found if check.standing is not OK]
    assert (lacking.name, lacking.standing) == (name, standing)
    assert f"requires Kafka {since} or later" in lacking.what
    assert f"Kafka {since} or later" in lacking.hint


def test_eligible_leader_replicas_are_a_choice() -> None:
    *_, elr = check_features(Examination(VERSIONS))
    assert (elr.standing, "not enabled" in elr.what) == (SKIPPED, True)


def test_nothing_of_the_properties_is_in_the_document(tmp_path: Path) -> None:
    from kdeclare.core.documents import dump_document
    from kdeclare.report.doctor import build_doctor_document

    file = tmp_path / "client.properties"
    file.write_text('sasl.jaas.config=x required password="s3cret";\nssl.key.password=s3cret\n')
    fake = Fake()
    assert "s3cret" not in json.dumps(dump_document(build_doctor_document(look(fake, command_config=file))))
    assert "s3cret" in fake.config["ssl.key.password"]
