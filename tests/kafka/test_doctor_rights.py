"""``kdeclare doctor`` on a broker with an authorizer: a user's rights for each kind, and after grants."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from kdeclare.cli.main import main
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from kdeclare.providers.kafka.client import KafkaCluster
from kdeclare.providers.kafka.consumer_group.group import CommittedOffset
from kdeclare.providers.kafka.ids import ConfigScope, TopicPartition
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.sandbox import SandboxStatus
from kdeclare.sandbox.layout import resolve_layout
from kdeclare.sandbox.security import ADMIN, READER
from tests.conftest import connect_as
from tests.polling import wait_for

pytestmark = pytest.mark.kafka

KINDS = ("Acl", "ScramUser", "ClientQuota", "ClientMetrics", "GroupConfig")
GROUP_CHECKS = ("Describe groups", "Reset offsets", "Delete groups")
TOPIC, GROUP = "doctor-topic", "doctor-group"
SPECS = {
    "Acl": {"principal": "User:a", "produce": ["t"]},
    "ScramUser": {"mechanisms": {"SCRAM-SHA-512": {"password": "${env.P}"}}},
    "ClientQuota": {"entity": {"user": "a"}, "limits": {"producer_byte_rate": 5}},
    "ClientMetrics": {"metrics": ["org.a."]},
    "GroupConfig": {"configs": {"consumer.session.timeout.ms": 50000}},
}


class Doctor:
    """The doctor in a project, as a user whose rights an administrator changes."""

    def __init__(self, sandbox: SandboxStatus, admin: KafkaCluster, capsys: pytest.CaptureFixture[str]):
        self.security = resolve_layout(Path(sandbox.folder)).security
        self.admin, self.capsys = admin, capsys
        self.at_first = admin.acls()

    def __call__(self, user: str, *options: str) -> tuple[int, dict[str, str], dict[str, str]]:
        """Return the exit code, the standings and the texts of the checks."""
        self.capsys.readouterr()
        properties = str(self.security.client(user))
        code = main(["doctor", *options, "--format", "json", "--command-config", properties])
        checks = json.loads(self.capsys.readouterr().out)["checks"]
        return code, {c["name"]: c["standing"] for c in checks}, {c["name"]: c["what"] for c in checks}

    def grant(self, *texts: str) -> None:
        bindings = [parse_binding(f"ALLOW User:{READER} {text} from *") for text in texts]
        assert set(self.admin.create_acls(bindings).values()) == {None}
        wait_for(lambda: self.admin.acls().issuperset(bindings), 90)

    def apply_missing_acls(self) -> None:
        """Apply the manifest that the doctor prints, as an administrator."""
        self.capsys.readouterr()
        main(["doctor", "--format", "json", "--command-config", str(self.security.client(READER))])
        (manifest,) = json.loads(self.capsys.readouterr().out)["manifests"]
        Path("acls.yaml").write_text(manifest)
        admin = ["--command-config", str(self.security.client(ADMIN))]
        assert main(["apply", "acls.yaml", "--yes", *admin]) == ExitCode.OK
        Path("acls.yaml").unlink()

    def make_group(self) -> None:
        """Create a group by committing an offset. The first commit waits for the coordinator."""
        offsets = {GROUP: {TopicPartition(TOPIC, 0): CommittedOffset(0)}}
        wait_for(lambda: set(self.admin.groups.alter_offsets(offsets).values()) == {None}, 90)


@pytest.fixture
def doctor(
    secured_sandbox: SandboxStatus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Doctor]:
    """A project with a manifest of each kind, and a group on the broker."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("P", "secret")
    environments = {"lab": {"bootstrapServers": secured_sandbox.bootstrap}}
    write("kdeclare.yaml", "Project", {"environments": environments})
    Path("manifests").mkdir()
    for kind, spec in SPECS.items():
        write(f"manifests/{kind}.yaml", kind, spec, GROUP if kind == "GroupConfig" else "a")
    admin = connect_as(secured_sandbox, ADMIN)
    admin.create_topics([NewTopic(TOPIC, 1, 1, None, {})])
    made = Doctor(secured_sandbox, admin, capsys)
    yield made
    admin.delete_acls(sorted(admin.acls() - made.at_first))
    admin.groups.delete_groups([GROUP])
    admin.delete_topics({TOPIC: None})
    admin.close()


def write(file: str, kind: str, spec: object, name: str = "shop") -> None:
    document = {"apiVersion": "kdeclare/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    Path(file).write_text(yaml.safe_dump(document))


def test_doctor_reports_rights_that_each_kind_needs(doctor: Doctor) -> None:
    assert {doctor(ADMIN)[1][kind] for kind in KINDS} == {"ok"}
    code, standings, texts = doctor(READER)
    assert code == ExitCode.ERROR, "the configs of the declared group cannot be read"
    expected = dict.fromkeys(KINDS[:4], "warning") | {"GroupConfig": "failed"}
    assert {kind: standings[kind] for kind in KINDS} == expected
    assert texts["Acl"] == texts["ScramUser"] == "not permitted: ALTER on the cluster"
    assert texts["ClientQuota"] == texts["ClientMetrics"] == "not permitted: ALTER_CONFIGS on the cluster"
    assert texts["GroupConfig"] == (
        f"not permitted on 1 of 1 group ({GROUP}): DESCRIBE_CONFIGS and ALTER_CONFIGS"
    )

    doctor.grant("ALTER cluster:kafka-cluster", f"DESCRIBE_CONFIGS group:{GROUP}")
    code, standings, texts = doctor(READER)
    assert code == ExitCode.OK
    expected = {"Acl": "ok", "ScramUser": "ok", "ClientQuota": "warning", "ClientMetrics": "warning"}
    assert {kind: standings[kind] for kind in KINDS} == expected | {"GroupConfig": "warning"}
    assert texts["GroupConfig"].endswith(": ALTER_CONFIGS")

    doctor.grant("ALTER_CONFIGS cluster:kafka-cluster", f"ALTER_CONFIGS group:{GROUP}")
    assert {doctor(READER)[1][kind] for kind in KINDS} == {"ok"}
    names = {r.name for r in doctor.admin.list_config_resources(ConfigScope.GROUP)}
    assert GROUP not in names, "the doctor changes nothing"


def test_doctor_reports_rights_of_the_group_commands(doctor: Doctor) -> None:
    doctor.make_group()
    _, standings, _ = doctor(ADMIN, "--kind", "Group")
    assert [standings[name] for name in GROUP_CHECKS] == ["ok"] * 3
    _, standings, _ = doctor(READER)
    assert standings.keys().isdisjoint(GROUP_CHECKS)
    doctor.grant(f"DESCRIBE group:{GROUP}")
    _, standings, texts = doctor(READER, "--kind", "Group")
    assert standings["Describe groups"] in ("ok", "warning"), "other tests can leave groups behind"
    assert f"({GROUP}" in texts["Reset offsets"]
    assert texts["Reset offsets"].endswith(": READ")
    assert texts["Delete groups"].endswith(": DELETE")
    doctor.grant("ALL group:*")
    _, standings, texts = doctor(READER, "--kind", "Group")
    assert [standings[name] for name in GROUP_CHECKS] == ["ok"] * 3, texts


PREFIX = "pay-"


def test_doctor_prints_the_acls_that_a_team_lacks(doctor: Doctor) -> None:
    for file in Path("manifests").iterdir():
        file.unlink()
    doctor.admin.create_topics([NewTopic(f"{PREFIX}orders", 1, 1, None, {})])
    try:
        wait_for(lambda: f"{PREFIX}orders" in doctor.admin.topics(), 90)
        for name in ("orders", "new"):
            write(f"manifests/{name}.yaml", "Topic", {"partitions": 1}, f"{PREFIX}{name}")
        code, _, texts = doctor(READER)
        assert code == ExitCode.OK
        assert texts["Read declared topics"] == f"permitted on 2 topics ({PREFIX}new, {PREFIX}orders)"
        assert texts["Create declared topics"] == f"not permitted on 1 topic ({PREFIX}new): CREATE"
        assert texts["Alter topic configs"].endswith(": ALTER_CONFIGS")
        assert texts["Add partitions"] == f"not permitted on 1 topic ({PREFIX}orders): ALTER"

        doctor.apply_missing_acls()
        names = ("Read declared topics", "Create declared topics", "Alter topic configs", "Add partitions")
        wait_for(lambda: {doctor(READER)[1][name] for name in names} == {"ok"}, 90)
        assert f"{PREFIX}new" not in doctor.admin.topics(), "the doctor changes nothing"
    finally:
        doctor.admin.delete_topics({f"{PREFIX}orders": None})
