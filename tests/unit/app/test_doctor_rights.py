"""The permissions that ``kdeclare doctor`` checks for each kind, on an in-memory cluster with ACLs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
import yaml

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault, Outcome, Result
from kdeclare.core.provider.provider import CheckStatus
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import (
    CLUSTER,
    CLUSTER_NAME,
    GROUP,
    TOPIC,
    list_operations,
    parse_binding,
)
from kdeclare.providers.kafka.acl.manifests.expansion import parse_acl
from kdeclare.providers.kafka.acl.spec import AclSpec
from kdeclare.providers.kafka.doctor import examine
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Examination
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigQuery, Configs, NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.unit.cli.command_line import CommandLine, CommandResult
from tests.unit.cli.conftest import kdeclare as kdeclare
from tests.unit.report.golden_files import check_golden

OK, SKIPPED, WARNING, FAILED = CheckStatus.OK, CheckStatus.SKIPPED, CheckStatus.WARNING, CheckStatus.FAILED
ME = "User:me"
TOPIC_RIGHTS = frozenset({"CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"})
VERSIONS = {29: 3, 32: 4, 34: 2, 35: 4, 43: 2, 44: 1, 45: 1, 48: 1, 50: 0, 60: 2}


class SecuredMemory:
    """An in-memory cluster that evaluates the ACLs of a principal, as `Examinable`."""

    diagnostics = ()

    def __init__(self, cluster: MemoryCluster) -> None:
        self.cluster = cluster
        self.validated: list[ConfigAlteration] = []
        self.versions = VERSIONS

    def is_allowed(self, operation: str, resource_type: str, name: str) -> bool:
        request = AccessRequest(ME, operation, resource_type, name, "10.0.0.1")
        return decide_access(self.cluster.acls(), request).is_allowed

    def is_permitted(self, operation: str, resource: ConfigResource) -> bool:
        return self.is_allowed(operation, resource.scope.value.lower(), resource.name)

    def list_allowed(self, resource_type: str, name: str) -> frozenset[str]:
        operations = list_operations(resource_type)
        return frozenset(o for o in operations if o != "ALL" and self.is_allowed(o, resource_type, name))

    def describe(self) -> ClusterInfo:
        return replace(self.cluster.describe(), principal=ME)

    def examine(self) -> Examination:
        on_topics = {name: self.list_allowed(TOPIC, name) for name in self.cluster.topics()}
        visible = {name: own for name, own in on_topics.items() if "DESCRIBE" in own}
        on_cluster = self.list_allowed(CLUSTER, CLUSTER_NAME)
        return Examination(self.versions, {}, on_cluster, {"t": TOPIC_RIGHTS} | visible)

    def find_hidden_topics(self, names: Sequence[str]) -> frozenset[str]:
        return frozenset(name for name in names if not self.is_allowed("DESCRIBE", TOPIC, name))

    def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> Mapping[str, Outcome]:
        assert validate_only
        refused = Fault("TOPIC_AUTHORIZATION_FAILED", "")
        results = self.cluster.create_topics(topics, validate_only=True)
        is_admin = self.is_allowed("CREATE", CLUSTER, CLUSTER_NAME)
        return {
            name: result if is_admin or self.is_allowed("CREATE", TOPIC, name) else refused
            for name, result in results.items()
        }

    def examine_groups(self) -> Mapping[str, frozenset[str]]:
        groups = self.cluster.groups.list_groups()
        return {id_: self.list_allowed(GROUP, id_) for id_ in groups}

    def describe_configs_partially(
        self, queries: Sequence[ConfigQuery]
    ) -> Mapping[ConfigResource, Configs | Fault]:
        return {
            q.resource: {} if self.is_permitted("DESCRIBE_CONFIGS", q.resource) else refuse(q.resource)
            for q in queries
        }

    def alter_configs(
        self, items: Sequence[ConfigAlteration], *, validate_only: bool = False
    ) -> Mapping[ConfigResource, Result]:
        assert validate_only
        self.validated += items
        allowed = self.cluster.alter_configs(items, validate_only=True)
        return {
            resource: result if self.is_permitted("ALTER_CONFIGS", resource) else refuse(resource)
            for resource, result in allowed.items()
        }

    def close(self) -> None:
        pass


def refuse(resource: ConfigResource) -> Fault:
    return Fault(f"{resource.scope.value}_AUTHORIZATION_FAILED", "")


@pytest.fixture
def secured(kdeclare: CommandLine) -> SecuredMemory:
    """The cluster, with the rights that every plan needs."""
    memory = SecuredMemory(kdeclare.cluster)
    kdeclare.monkeypatch.setattr(examine, "reach_cluster", lambda *_: memory)
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


@pytest.mark.slow
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


def test_kinds_that_the_brokers_do_not_support_are_reported(
    kdeclare: CommandLine, secured: SecuredMemory
) -> None:
    grant(kdeclare, *READING, "ALTER cluster:kafka-cluster", "ALTER_CONFIGS cluster:kafka-cluster")
    secured.versions = {key: version for key, version in VERSIONS.items() if key not in (29, 48, 50)}
    kdeclare.write("manifests/a.yaml", "Acl", "a", principal="User:a", produce=["t"])
    ran, checks = run(kdeclare, "--kind", "ClientQuota")
    assert ran.code == ExitCode.ERROR
    assert checks["Acl"] == (
        "failed",
        "not supported by the brokers",
        "Remove the manifests, and manage the objects with the tools of your Kafka service.",
    )
    assert checks["ClientQuota"] == ("warning", "not supported by the brokers", "")
    assert "ScramUser" not in checks


def test_requested_kinds_are_checked_and_never_fail(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    _, checks = run(kdeclare, *(word for kind in KINDS for word in ("--kind", kind)))
    assert {name: checks[name][0] for name in KINDS} == dict.fromkeys(KINDS[:4], "warning") | {
        "GroupConfig": "skipped"
    }
    grant(kdeclare, *READING)
    assert run(kdeclare, "--kind", "Acl")[0].code == ExitCode.OK


@pytest.mark.slow
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


def make_topics(kdeclare: CommandLine, *names: str) -> None:
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in names])


TEAM = ("DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALTER", "CREATE")
"""The operations that a team needs on the prefix of its topics."""


def test_team_without_rights_on_the_cluster_passes(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    make_topics(kdeclare, "pay.orders", "other")
    kdeclare.topic("pay.orders")
    kdeclare.topic("pay.new")
    grant(kdeclare, *(f"{operation} topic:pay.*" for operation in TEAM), "DESCRIBE topic:other")
    before = kdeclare.cluster.dump()
    ran, checks = run(kdeclare)
    assert ran.code == ExitCode.OK
    names = ("Read declared topics", "Create declared topics", "Alter topic configs", "Add partitions")
    assert [checks[name][:2] for name in names] == [
        ("ok", "permitted on 2 topics (pay.new, pay.orders)"),
        ("ok", "permitted on 1 topic (pay.new)"),
        ("ok", "permitted on 2 topics (pay.new, pay.orders)"),
        ("ok", "permitted on 1 topic (pay.orders)"),
    ]
    assert checks["Read the cluster"][:2] == ("warning", "not permitted: DESCRIBE on the cluster")
    assert checks.keys().isdisjoint({"Move replicas", "Alter broker configs", "Delete topics"})
    assert kdeclare.cluster.dump() == before, "the doctor changes nothing"


@pytest.mark.slow
def test_missing_acls_are_a_manifest_that_fixes_the_checks(
    kdeclare: CommandLine, secured: SecuredMemory
) -> None:
    make_topics(kdeclare, "orders", "hidden", "old")
    kdeclare.topic("orders", assignments={0: [1]}, partitions=None)
    kdeclare.topic("hidden")
    kdeclare.topic("new")
    kdeclare.write("manifests/old.yaml", "Topic", "old")
    document = yaml.safe_load((kdeclare.folder / "manifests/old.yaml").read_text())
    document["spec"] = {"lifecycle": {"state": "absent"}}
    (kdeclare.folder / "manifests/old.yaml").write_text(yaml.safe_dump(document))
    declare_every_kind(kdeclare)
    grant(kdeclare, "DESCRIBE topic:orders", "DESCRIBE topic:old", "DESCRIBE_CONFIGS topic:orders")
    ran = kdeclare("doctor", "--format", "json")
    assert ran.code == ExitCode.ERROR
    (manifest,) = json.loads(ran.out)["manifests"]
    check_golden("doctor-missing-acls", manifest)
    assert kdeclare("doctor").out.count(f"\n\n{manifest}\n") == 1

    body, problems = parse_acl("a", AclSpec.model_validate(yaml.safe_load(manifest)["spec"]))
    assert problems == ()
    kdeclare.cluster.create_acls(sorted(body.bindings))
    ran = kdeclare("doctor", "--format", "json")
    document = json.loads(ran.out)
    assert (ran.code, document["manifests"]) == (ExitCode.OK, [])
    standings = {c["name"]: c["standing"] for c in document["checks"] if c["section"] == "Permissions"}
    assert set(standings.values()) == {"ok"}, standings


def test_broker_configs_need_rights_on_the_cluster(kdeclare: CommandLine, secured: SecuredMemory) -> None:
    kdeclare.write("manifests/b.yaml", "BrokerConfig", "default", configs={"log.cleaner.threads": 2})
    ran, checks = run(kdeclare)
    assert ran.code == ExitCode.ERROR
    assert checks["Read broker configs"][:2] == ("failed", "not permitted: DESCRIBE_CONFIGS on the cluster")
    assert checks["Alter broker configs"][0] == "warning"
    assert "Read the cluster" not in checks
