"""Client quotas on the command line: saved plans, history, rollback, overlays, defaults."""

import json
from typing import Any

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.engine.planning.plan_document import compute_document_id
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from tests.unit.cli.command_line import CommandLine

ALICE = QuotaEntity.of({EntityType.USER: "alice"})


def declare_quota(kdeclare: CommandLine, name: str = "alice", /, user: str = "alice", **limits: Any) -> None:
    kdeclare.write(f"manifests/{name}.yaml", "ClientQuota", name, entity={"user": user}, limits=limits)


def read_limits(kdeclare: CommandLine) -> dict[str, float]:
    return dict(kdeclare.cluster.quotas([ALICE]).get(ALICE, {}))


def write_plan(kdeclare: CommandLine, document: dict[str, Any]) -> None:
    document["plan_id"] = compute_document_id(document)
    (kdeclare.folder / "it.plan").write_text(json.dumps(document))


def test_saved_quota_plan_is_shown_applied_and_rolled_back(kdeclare: CommandLine) -> None:
    declare_quota(kdeclare, producer_byte_rate="10MiB")
    assert kdeclare("plan", "--out", "it.plan").code == 0
    shown = kdeclare("show", "it.plan")
    assert "1 to create" in shown.out
    assert "limits.producer_byte_rate  10485760 (10 MiB/s)" in shown.out
    applied = kdeclare("apply", "it.plan", "--yes")
    assert (applied.code, read_limits(kdeclare)) == (0, {"producer_byte_rate": 10485760.0})
    assert "1 quota changed" in applied.out
    run = next((kdeclare.folder / "state" / "shop" / "lab" / "runs").iterdir()).name
    assert "1 quota changed" in kdeclare("history", run).out
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert kdeclare("rollback", "--yes").code == 0
    assert read_limits(kdeclare) == {}


def test_plan_of_earlier_version_without_creation_is_applied(kdeclare: CommandLine) -> None:
    """Earlier versions planned the first limits of an entity as an update without the argument ``whole``."""
    declare_quota(kdeclare, producer_byte_rate=1)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    document = json.loads((kdeclare.folder / "it.plan").read_text())
    (change,), (operation,) = document["changes"], document["operations"]
    change |= {"action": "update", "reason": "declared"}
    document["summary"] |= {"create": 0, "update": 1}
    for arguments in (operation["args"], operation["inverse"]["args"]):
        del arguments["whole"]
    write_plan(kdeclare, document)
    assert "1 to change" in kdeclare("show", "it.plan").out
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert read_limits(kdeclare) == {"producer_byte_rate": 1.0}
    assert kdeclare("rollback", "--yes").code == 0
    assert read_limits(kdeclare) == {}


def test_plan_that_shows_creation_as_update_is_refused(kdeclare: CommandLine) -> None:
    declare_quota(kdeclare, producer_byte_rate=1)
    assert kdeclare("plan", "--out", "it.plan").code == 0
    document = json.loads((kdeclare.folder / "it.plan").read_text())
    document["changes"][0]["action"] = "update"
    document["summary"] |= {"create": 0, "update": 1}
    write_plan(kdeclare, document)
    ran = kdeclare("apply", "it.plan", "--yes")
    assert (ran.code, "is shown as update, but its operations create it" in ran.err) == (1, True), ran


@pytest.mark.parametrize(
    ("amount", "limit"), [("10MB", 10e6), ("10 MB/s", 10e6), ("10MiB/s", 10 * 2.0**20), ("1.5kB", 1500.0)]
)
def test_limits_accept_the_units_of_throttles(kdeclare: CommandLine, amount: str, limit: float) -> None:
    declare_quota(kdeclare, producer_byte_rate=amount)
    assert kdeclare("apply", "--yes").code == 0
    assert read_limits(kdeclare) == {"producer_byte_rate": limit}
    kdeclare("config", "alter", "--user", "alice", "--add-config", f"consumer_byte_rate={amount}", "--yes")
    assert read_limits(kdeclare)["consumer_byte_rate"] == limit


@pytest.mark.parametrize("target", ["ClientQuota/alice", "ClientQuota/bob"])
def test_target_limits_applied_quotas(kdeclare: CommandLine, target: str) -> None:
    declare_quota(kdeclare, producer_byte_rate=1)
    declare_quota(kdeclare, "bob", user="bob", producer_byte_rate=2)
    assert kdeclare("apply", "--yes", "--target", target).code == 0
    assert len(kdeclare.cluster.quotas()) == 1
    assert bool(read_limits(kdeclare)) is (target == "ClientQuota/alice")


def test_orphaned_quota_is_forgotten_or_deleted_by_name(kdeclare: CommandLine) -> None:
    for option, left in (("--forget", {"producer_byte_rate": 1.0}), ("--delete", {})):
        declare_quota(kdeclare, producer_byte_rate=1)
        kdeclare.topic("t")
        assert kdeclare("apply", "--yes").code == 0
        (kdeclare.folder / "manifests" / "alice.yaml").unlink()
        assert kdeclare("apply", "--yes", option, "ClientQuota/alice").code == 0
        assert read_limits(kdeclare) == left
        assert kdeclare("plan", "--detailed-exitcode").code == 0


def test_overlays_and_defaults_set_quota_limits(kdeclare: CommandLine) -> None:
    environments = {"lab": {"bootstrapServers": "lab:9092", "overlays": ["over.yaml"]}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments)
    declare_quota(kdeclare, producer_byte_rate=1)
    declare_quota(kdeclare, "bob", user="bob")
    defaults = """{apiVersion: kdeclare/v1, kind: Defaults, metadata: {name: d}, spec: {kind: ClientQuota,
      defaults: {limits: {request_percentage: 50, producer_byte_rate: 2MiB}}}}"""
    (kdeclare.folder / "manifests" / "defaults.yaml").write_text(defaults)
    kdeclare.write("over.yaml", "ClientQuota", "alice", limits={"producer_byte_rate": 3})
    assert kdeclare("apply", "--yes").code == 0
    assert read_limits(kdeclare) == {"producer_byte_rate": 3.0, "request_percentage": 50.0}
    bob = QuotaEntity.of({EntityType.USER: "bob"})
    assert kdeclare.cluster.quotas([bob])[bob] == {"producer_byte_rate": 2.0**21, "request_percentage": 50.0}
    shown = kdeclare("show-manifest", "ClientQuota/alice")
    assert shown.code == 0
    assert "producer_byte_rate: 3" in shown.out


def test_quota_plan_json_contains_operation_arguments(kdeclare: CommandLine) -> None:
    declare_quota(kdeclare, request_percentage=2.5)
    (operation,) = json.loads(kdeclare("plan", "--format", "json").out)["operations"]
    assert operation["verb"] == "quota.alter"
    assert operation["args"] == {
        "entity": {"user": "alice"},
        "ops": [{"key": "request_percentage", "op": "SET", "value": 2.5}],
        "whole": True,
    }
    assert operation["expect"] == {"request_percentage": None}
    (back,) = operation["inverse"]["args"]["ops"]
    assert back == {"key": "request_percentage", "op": "DELETE", "value": None}


@pytest.mark.parametrize("output", ["text", "markdown", "json", "sarif"])
def test_quota_plan_sanitizes_hostile_names(kdeclare: CommandLine, output: str) -> None:
    declare_quota(kdeclare, user="<b>\u202e\x1b[31m</b>", producer_byte_rate=1)
    other = QuotaEntity.of({EntityType.USER: "<b>\u202e\x1b[31m</b>", EntityType.CLIENT_ID: None})
    kdeclare.cluster.alter_quotas({other: {"producer_byte_rate": 1.0}})
    ran = kdeclare("plan", "--format", output)
    assert "\x1b[31m" not in ran.out
    assert "\u202e" not in ran.out
    assert "shadowed-limit" in ran.out or "Limit never applies" in ran.out


OF_QUOTAS: dict[str, Any] = {"selector": {"kind": "ClientQuota"}, "actions": ["CREATE", "MODIFY"]}


def add_bound_policy(kdeclare: CommandLine) -> None:
    rule = "(!('producer_byte_rate' in after.limits) || after.limits.producer_byte_rate <= 10485760)"
    spec = {"rule": f"{rule} || after.entity.user == 'batch'", "message": "No more than 10 MiB/s."}
    kdeclare.write("manifests/bounded.yaml", "Policy", "bounded", **spec, **OF_QUOTAS)


def test_policy_bounds_quota_limits(kdeclare: CommandLine) -> None:
    add_bound_policy(kdeclare)
    declare_quota(kdeclare, producer_byte_rate="11MiB")
    declare_quota(kdeclare, "bob", user="bob", producer_byte_rate="10MiB")
    declare_quota(kdeclare, "batch", user="batch", producer_byte_rate="1GiB")
    ran = kdeclare("plan")
    assert ran.code == 3
    assert "ClientQuota/alice  BLOCKED: policy-violation" in ran.out
    assert "denied by policy bounded: No more than 10 MiB/s." in ran.out
    assert kdeclare("apply", "--yes").code == 3
    assert len(kdeclare.cluster.quotas()) == 2
    assert read_limits(kdeclare) == {}
    checked = kdeclare("policy", "check")
    assert checked.code == 3, checked.out
    assert "ClientQuota/alice" in checked.out


def test_policy_reads_live_and_default_quotas(kdeclare: CommandLine) -> None:
    kdeclare.cluster.alter_quotas({ALICE: {"request_percentage": 800.0}})
    rule = "(before == null || !('request_percentage' in before.limits)) && after.entity.user != ''"
    kdeclare.write("manifests/p.yaml", "Policy", "p", rule=rule, **OF_QUOTAS)
    declare_quota(kdeclare, producer_byte_rate=1)
    everyone = {"entity": {"user": {"default": True}}, "limits": {"producer_byte_rate": 1}}
    kdeclare.write("manifests/everyone.yaml", "ClientQuota", "everyone", **everyone)
    declare_quota(kdeclare, "bob", user="bob", producer_byte_rate=1)
    found = json.loads(kdeclare("plan", "--format", "json").out)["verdicts"]
    denied = {verdict["resource"] for verdict in found if verdict["outcome"] == "deny"}
    assert denied == {"ClientQuota/alice", "ClientQuota/everyone"}


def test_imported_quotas_plan_no_changes(kdeclare: CommandLine) -> None:
    everyone = QuotaEntity.of({EntityType.USER: None})
    kdeclare.cluster.alter_quotas({ALICE: {"request_percentage": 0.5}, everyone: {"producer_byte_rate": 1e6}})
    ran = kdeclare("import", "--out", "manifests")
    assert ran.code == 0, ran
    files = {path.name for path in (kdeclare.folder / "manifests" / "clientquotas").iterdir()}
    assert files == {"user-alice.yaml", "user-default.yaml"}
    plan = kdeclare("plan", "--detailed-exitcode")
    assert (plan.code, "No changes." in plan.out) == (0, True)
    assert kdeclare("apply", "--yes").code == 0


def test_import_match_selects_quotas_by_user(kdeclare: CommandLine) -> None:
    bob = QuotaEntity.of({EntityType.USER: "bob", EntityType.CLIENT_ID: None})
    kdeclare.cluster.alter_quotas({ALICE: {"request_percentage": 0.5}, bob: {"request_percentage": 0.5}})
    ran = kdeclare("import", "--match", "bo.*")
    assert "name: user-bob-client-default" in ran.out
    assert "alice" not in ran.out


def test_import_without_quota_permission_warns_and_continues(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("apply", "--yes").code == 0
    denial = Fault("CLUSTER_AUTHORIZATION_FAILED", "")
    kdeclare.cluster.faults.fail(denial, method="quotas", nth=None)
    ran = kdeclare("import", "--include-declared")
    assert (ran.code, "name: orders" in ran.out) == (0, True)
    assert "ClientQuota: the principal is not permitted to describe quotas" in " ".join(ran.err.split())


def add_limit_policy(kdeclare: CommandLine) -> None:
    rule = "!('producer_byte_rate' in after.limits) || after.limits.producer_byte_rate <= 100"
    spec = {"rule": rule, "message": "At most 100.", **OF_QUOTAS}
    kdeclare.write("manifests/bounded.yaml", "Policy", "bounded", **spec)


def test_policy_check_live_evaluates_undeclared_quotas(kdeclare: CommandLine) -> None:
    add_limit_policy(kdeclare)
    declare_quota(kdeclare, "mine", producer_byte_rate=10)
    everyone = QuotaEntity.of({EntityType.USER: None, EntityType.CLIENT_ID: None})
    fine = QuotaEntity.of({EntityType.CLIENT_ID: "fine"})
    limits_by_entity = {ALICE: 300.0, everyone: 200.0, fine: 50.0}
    kdeclare.cluster.alter_quotas({e: {"producer_byte_rate": n} for e, n in limits_by_entity.items()})
    ran = kdeclare("policy", "check", "--live", "--format", "json")
    assert ran.code == 3
    assert {item["resource"]: item["outcome"] for item in json.loads(ran.out)["verdicts"]} == {
        "ClientQuota/client-id=fine": "allow",
        "ClientQuota/mine": "deny",
        "ClientQuota/user=*,client-id=*": "deny",
    }
    ran = kdeclare("policy", "check", "--live")
    assert ran.out.splitlines()[0] == "2 of 3 resources violate a policy."
    assert "ClientQuota/user=*,client-id=*" in ran.out
    reads = [call for call in kdeclare.cluster.calls if call.method == "quotas"]
    assert len(reads) == 2, "one request for all entities, regardless of what is declared"


def test_policy_check_live_evaluates_renamed_quota_once(kdeclare: CommandLine) -> None:
    declare_quota(kdeclare, "before", producer_byte_rate=300)
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "manifests" / "before.yaml").unlink()
    declare_quota(kdeclare, "now", producer_byte_rate=300)
    add_limit_policy(kdeclare)
    ran = kdeclare("policy", "check", "--live", "--format", "json")
    assert [item["resource"] for item in json.loads(ran.out)["verdicts"]] == ["ClientQuota/now"]


def test_policy_check_live_fails_without_quota_permission(kdeclare: CommandLine) -> None:
    add_limit_policy(kdeclare)
    kdeclare.cluster.faults.fail(Fault("CLUSTER_AUTHORIZATION_FAILED", "No."), nth=None, method="quotas")
    ran = kdeclare("policy", "check", "--live")
    assert ran.code == 1
    assert "reading quotas requires the DescribeConfigs permission on the cluster" in " ".join(
        ran.err.split()
    )
