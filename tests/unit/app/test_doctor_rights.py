"""The permissions that ``kdeclare doctor`` checks for each kind, on an in-memory cluster with ACLs."""

import json
from collections.abc import Mapping, Sequence

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.provider.provider import CheckStatus
from kdeclare.providers.kafka import doctor
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import CLUSTER, CLUSTER_NAME, GROUP, list_operations, parse_binding
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import ConfigAlteration, ConfigQuery, Configs, Examination
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.cli.conftest import kdeclare as kdeclare
from tests.unit.report.golden_files import check_golden

OK, SKIPPED, WARNING, FAILED = CheckStatus.OK, CheckStatus.SKIPPED, CheckStatus.WARNING, CheckStatus.FAILED
ME = "User:me"
TOPIC_RIGHTS = frozenset({"CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
VERSIONS = {34: 2, 35: 4, 43: 2, 44: 1, 45: 1, 60: 2}


class SecuredMemory:
    """An in-memory cluster that evaluates the ACLs of a principal, as `Examinable`."""

    diagnostics = ()

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.validated: list[ConfigAlteration] = []

    def is_allowed(self, operation: str, resource_type: str, name: str) -> bool:
        request = AccessRequest(ME, operation, resource_type, name, "10.0.0.1")
        return decide_access(self.cluster.acls(), request).is_allowed

    def list_allowed(self, resource_type: str, name: str) -> frozenset[str]:
        operations = list_operations(resource_type)
        return frozenset(o for o in operations if o != "ALL" and self.is_allowed(o, resource_type, name))

    def describe(self) -> ClusterInfo:
        return self.cluster.describe()

    def examine(self) -> Examination:
        return Examination(VERSIONS, {}, self.list_allowed(CLUSTER, CLUSTER_NAME), {"t": TOPIC_RIGHTS})

    def examine_groups(self) -> Mapping[str, frozenset[str]]:
        groups = self.cluster.groups.list_groups()
        return {id_: self.list_allowed(GROUP, id_) for id_ in groups}

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        refused = Fault("GROUP_AUTHORIZATION_FAILED", "")
        return {
            q.resource: {} if self.is_allowed("DESCRIBE_CONFIGS", GROUP, q.resource.name) else refused
            for q in queries
        }

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        assert validate_only
        self.validated += items
        allowed = self.cluster.alter_configs(items, validate_only=True)
        refused = Fault("GROUP_AUTHORIZATION_FAILED", "")
        return {
            resource: result if self.is_allowed("ALTER_CONFIGS", GROUP, resource.name) else refused
            for resource, result in allowed.items()
        }

    def close(self) -> None:
        pass


@pytest.fixture
def secured(kdeclare: CommandLine) -> SecuredMemory:
    """The cluster, with the rights that every plan needs."""
    memory = SecuredMemory(kdeclare.cluster)
    kdeclare.monkeypatch.setattr(doctor, "reach_cluster", lambda *_: memory)
    kdeclare.monkeypatch.setenv("P", "secret")
    return memory


def grant(kdeclare: CommandLine, *texts: str) -> None:
    kdeclare.cluster.create_acls([parse_binding(f"ALLOW {ME} {text} from *") for text in texts])


READING = ("DESCRIBE cluster:kafka-cluster", "DESCRIBE_CONFIGS cluster:kafka-cluster")


def declare_every_kind(kdeclare: CommandLine) -> None:
    kdeclare.write("manifests/a.yaml", "Acl", "a", principal="User:a", produce=["t"])
    kdeclare.write(
        "manifests/s.yaml", "ScramUser", "s", mechanisms={"SCRAM-SHA-512": {"password": "${env.P}"}}
    )
    quota = {"producer_byte_rate": 5}
    kdeclare.write("manifests/q.yaml", "ClientQuota", "q", entity={"user": "q"}, limits=quota)
    kdeclare.write("manifests/m.yaml", "ClientMetrics", "m", metrics=["org.a."])
    for name in ("billing", "jobs"):
        configs = {"consumer.session.timeout.ms": 50000}
        kdeclare.write(f"manifests/{name}.yaml", "GroupConfig", name, configs=configs)


KINDS = ("Acl", "ScramUser", "ClientQuota", "ClientMetrics", "GroupConfig")


def run(kdeclare: CommandLine, *options: str) -> tuple[CommandResult, dict[str, tuple[str, str, str]]]:
    """Run the doctor; return its result and the standing, the text and the hint of each check."""
    ran = kdeclare("doctor", *options, "--format", "json")
    checks = json.loads(ran.out)["checks"]
    return ran, {item["name"]: (item["standing"], item["what"], item["hint"] or "") for item in checks}


def test_rights_of_undeclared_kinds_are_not_checked(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    grant(kdeclare, *READING)
    ran, checks = run(kdeclare)
    assert ran.code == ExitCode.OK
    assert checks.keys().isdisjoint(KINDS)
    assert "Acl" not in kdeclare("doctor").out
    assert secured.validated == []


def test_rights_of_declared_kinds_are_checked(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    grant(kdeclare, *READING)
    declare_every_kind(kdeclare)
    ran, checks = run(kdeclare)
    assert {name: checks[name][0] for name in KINDS} == dict.fromkeys(KINDS[:4], "warning") | {
        "GroupConfig": "failed"
    }
    assert ran.code == ExitCode.ERROR
    assert checks["Acl"][1:] == (
        "not permitted: ALTER on the cluster",
        "Grant kdeclare the Alter permission on the cluster.",
    )
    assert checks["ClientQuota"][1] == "not permitted: ALTER_CONFIGS on the cluster"
    assert checks["GroupConfig"][1] == (
        "not permitted on 2 of 2 groups (billing, jobs): DESCRIBE_CONFIGS and ALTER_CONFIGS"
    )

    grant(kdeclare, "ALTER cluster:kafka-cluster", "ALTER_CONFIGS cluster:kafka-cluster")
    grant(kdeclare, "ALTER_CONFIGS group:billing", "DESCRIBE_CONFIGS group:jobs")
    ran, checks = run(kdeclare)
    assert {name: checks[name][0] for name in KINDS} == dict.fromkeys(KINDS[:4], "ok") | {
        "GroupConfig": "warning"
    }
    assert ran.code == ExitCode.OK
    assert checks["GroupConfig"][1] == "not permitted on 1 of 2 groups (jobs): ALTER_CONFIGS"
    grant(kdeclare, "ALTER_CONFIGS group:jobs")
    _, checks = run(kdeclare)
    assert checks["GroupConfig"][:2] == ("ok", "permitted on all 2 groups")


def test_declared_kind_that_cannot_be_read_fails(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    grant(kdeclare, "DESCRIBE cluster:kafka-cluster")
    declare_every_kind(kdeclare)
    ran, checks = run(kdeclare)
    assert ran.code == ExitCode.ERROR
    standings = {name: checks[name][0] for name in KINDS[:4]}
    assert standings == dict.fromkeys(("Acl", "ScramUser"), "warning") | dict.fromkeys(
        ("ClientQuota", "ClientMetrics"), "failed"
    )
    assert checks["ClientQuota"][1] == "not permitted: DESCRIBE_CONFIGS and ALTER_CONFIGS on the cluster"


def test_requested_kinds_are_checked_and_never_fail(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    _, checks = run(kdeclare, *(word for kind in KINDS for word in ("--kind", kind)))
    assert {name: checks[name][0] for name in KINDS} == dict.fromkeys(KINDS[:4], "warning") | {
        "GroupConfig": "skipped"
    }
    grant(kdeclare, *READING)
    assert run(kdeclare, "--kind", "Acl")[0].code == ExitCode.OK


def test_rights_of_the_group_commands_are_checked_on_request(
    kdeclare: CommandLine, secured: SecuredMemory
) -> None:
    names = ("Describe groups", "Reset offsets", "Delete groups")
    grant(kdeclare, *READING, "READ group:billing", "DESCRIBE group:jobs", "DELETE group:tmp-*")
    _, checks = run(kdeclare, "--kind", "Group")
    assert [checks[name][:2] for name in names] == [
        ("skipped", "no groups are visible to this principal")
    ] * 3
    for name in ("billing", "jobs", "tmp-1"):
        kdeclare.cluster.add_group(name)
    ran, checks = run(kdeclare, "--kind", "Group")
    assert ran.code == ExitCode.OK
    assert [checks[name][:2] for name in names] == [
        ("ok", "permitted on all 3 groups"),
        ("warning", "not permitted on 2 of 3 groups (jobs, tmp-1): READ"),
        ("warning", "not permitted on 2 of 3 groups (billing, jobs): DELETE"),
    ]


def test_unknown_kind_is_wrong_usage(kdeclare: CommandLine) -> None:
    ran = kdeclare("doctor", "--kind", "ScramUsers")
    assert (ran.code, "Did you mean 'ScramUser'?" in ran.err) == (ExitCode.USAGE, True)


def test_unanswered_requests_are_skipped(
    kdeclare: CommandLine, secured: SecuredMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise Fault("REQUEST_TIMED_OUT", "no answer")

    declare_every_kind(kdeclare)
    for method in ("describe_configs_partially", "examine_groups"):
        monkeypatch.setattr(SecuredMemory, method, fail)
    _, checks = run(kdeclare, "--kind", "Group")
    assert checks["GroupConfig"][0] == checks["Groups"][0] == "skipped"
    assert "no answer" in checks["GroupConfig"][1]


def test_permissions_read_well(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    grant(kdeclare, *READING, "ALTER_CONFIGS cluster:kafka-cluster", "DESCRIBE_CONFIGS group:billing")
    kdeclare.cluster.add_group("billing")
    declare_every_kind(kdeclare)
    text = kdeclare("doctor", "--kind", "Group").out
    part = text[text.index("Permissions") : text.index("Features")]
    check_golden("doctor-kinds", part)
