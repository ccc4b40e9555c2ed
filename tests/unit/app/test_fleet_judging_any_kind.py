"""Policies about other kinds than Topic judge the contents of a snapshot by the names of resources."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from kdeclare.app.fleet.audit_policies import evaluate_objects
from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections, LiveState
from kdeclare.core.plans.plan import Verdict
from kdeclare.core.provider.installed_providers import (
    find_providers,
    load_providers,
    resolve_provider,
    use_providers,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.fleet.cluster_pass import (
    ClusterEvaluation,
    ClusterTables,
    KnownResources,
    LabelsByResource,
    find_in_cluster,
)
from kdeclare.fleet.tables.row_builder import Row
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.resource_checks import check_live
from kdeclare.policy.subjects import PolicyContext, read_existing
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.loaded_providers import replace_load_providers
from tests.unit.fleet.fleets import make_desired as declare
from tests.unit.fleet.kitchen import Kettle, KettleRecord, KitchenState
from tests.unit.fleet.quotas import QuotaCluster, make_entity, make_quota, make_quota_record
from tests.unit.fleet.test_foreign_provider import KITCHEN, make_declared_rows, make_kettle, make_live_rows


@pytest.fixture
def _kitchen_provider() -> Iterator[None]:
    use_providers((*find_providers(), KITCHEN))
    yield
    use_providers(None)


def build_rule(kind: str, text: str, **selector: object) -> ConfiguredPolicy:
    """Return a rule named after its kind."""
    policies = PolicyKind()
    spec = policies.spec.model_validate(
        {"rule": text, "actions": ["CREATE", "MODIFY"], "selector": {"kind": kind, **selector}}
    )
    body, problems = policies.parse("p", spec)
    assert not problems, problems
    return replace(policies.configured(DesiredResource(ResourceId("Policy", "p"), body)), name=kind)


def collect_verdicts(
    policies: Sequence[ConfiguredPolicy], declared: Sequence[Row], live: Sequence[Row]
) -> tuple[list[Verdict], tuple[str, ...]]:
    """Return all verdicts, and the notices of the cluster."""
    said: list[Verdict] = []

    def judge(
        state: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        judged = evaluate_objects(policies, state, objects, labels, known)
        said.extend(judged.verdicts)
        return judged

    (own, *mine), (itself, *theirs) = declared, live
    found = find_in_cluster(ClusterTables("eu-1", own["owned"], itself["body"], mine, theirs), judge)
    return said, tuple(found.notices)


def map_outcomes(said: Sequence[Verdict]) -> dict[str, str]:
    return {verdict.resource: str(verdict.outcome) for verdict in said}


KETTLES = KitchenState({"k1": Kettle(90, "a"), "k2": Kettle(20, "a"), "k3": Kettle(90, "a")})


@pytest.mark.usefixtures("_kitchen_provider")
def test_verdicts_of_foreign_kind_use_resource_names_and_labels() -> None:
    rows = make_declared_rows(
        [make_kettle("tea", "k1", 90), make_kettle("gone", "k9", 90)], {"Kettle/old": KettleRecord("k2", 20)}
    )
    said, notices = collect_verdicts([build_rule("Kettle", "after.heat < 80")], rows, make_live_rows(KETTLES))
    assert map_outcomes(said) == {"Kettle/tea": "deny", "Kettle/old": "allow", "Kettle/k3": "deny"}
    assert notices == ()
    labeled = build_rule("Kettle", "after.heat < 80", labels={"team": "tea"})
    assert map_outcomes(collect_verdicts([labeled], rows, make_live_rows(KETTLES))[0]) == {
        "Kettle/tea": "deny"
    }


@pytest.mark.usefixtures("_kitchen_provider")
def test_verdict_becomes_finding_with_resource_labels() -> None:
    rows, live = make_declared_rows([make_kettle("tea", "k1", 90)]), make_live_rows(KETTLES)

    def judge(
        state: LiveState, objects: Sequence[ResourceId], labels: LabelsByResource, known: KnownResources
    ) -> ClusterEvaluation:
        return evaluate_objects([build_rule("Kettle", "after.heat < 80")], state, objects, labels, known)

    (own, *mine), (itself, *theirs) = rows, live
    found = find_in_cluster(ClusterTables("eu-1", own["owned"], itself["body"], mine, theirs), judge).found
    assert {(str(id_), labels.get("team"), item.path) for id_, labels, item in found} == {
        ("Kettle/tea", "tea", "policies.Kettle"),
        ("Kettle/k3", None, "policies.Kettle"),
    }


@pytest.mark.usefixtures("_kitchen_provider")
def test_principal_is_null_without_find_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rows = (
        build_rule("Kettle", "principal == null"),
        make_declared_rows([make_kettle("tea", "k1", 90)]),
    )
    assert set(map_outcomes(collect_verdicts([policy], rows, make_live_rows(KETTLES))[0]).values()) == {
        "allow"
    }

    def find_principal(connections: Connections) -> str:
        raise AssertionError("nobody is asked")

    definitions = map(resolve_provider, load_providers())
    providers = [replace(p, find_principal=find_principal) if p.name == "kitchen" else p for p in definitions]
    replace_load_providers(monkeypatch, lambda: providers)
    other = replace(build_rule("Kettle", "after.heat < 100"), name="other")
    said, notices = collect_verdicts([policy, other], rows, make_live_rows(KETTLES))
    assert {verdict.policy for verdict in said} == {"other"}
    assert notices == (
        "Policy 'Kettle' needs data that snapshots do not contain. "
        "Run 'kdeclare policy check --live' to evaluate it.",
    )


@pytest.mark.usefixtures("_kitchen_provider")
def test_notice_names_system_that_was_not_read() -> None:
    live = make_live_rows(KETTLES, Fault("POWER_CUT", "no power"))
    said, notices = collect_verdicts([build_rule("Kettle", "after.heat < 80")], make_declared_rows([]), live)
    assert said == []
    assert notices == (
        "Policy 'Kettle' was not evaluated, because the objects that it checks were not read.",
    )


@pytest.mark.usefixtures("_kitchen_provider")
def test_kind_missing_from_snapshots_is_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    live = make_live_rows(KETTLES)
    definitions = map(resolve_provider, load_providers())
    providers = [replace(p, collectors=(), kinds=p.kinds) if p.name == "kitchen" else p for p in definitions]
    replace_load_providers(monkeypatch, lambda: providers)
    said, notices = collect_verdicts([build_rule("Kettle", "after.heat < 80")], make_declared_rows([]), live)
    assert said == []
    why = "needs data that snapshots do not contain. Run 'kdeclare policy check --live' to evaluate it."
    assert notices == (f"Policy 'Kettle' {why}",)


def make_quotas_and_brokers() -> tuple[QuotaCluster, list[DesiredResource], dict[str, OwnedRecord]]:
    """A cluster with two declared quotas (one missing), an undeclared quota, and broker configs."""
    made = QuotaCluster(cluster=MemoryCluster({1: "a", 2: "b"}, cluster_id="id-1"))
    made.set(make_entity(user="alice"), producer_byte_rate=5)
    made.set(make_entity(user="bob"), producer_byte_rate=50)
    for name, value in {"": "1000", "1": "2000", "2": "3000"}.items():
        resource = ConfigResource(ConfigScope.BROKER, name)
        made.cluster.set_overrides(resource, {"log.cleaner.threads": value})
    slow, gone = (
        make_quota("slow", make_entity(user="alice"), producer_byte_rate=5),
        make_quota("gone", make_entity(user="carl"), producer_byte_rate=5),
    )
    brokers = [
        declare("BrokerConfig", name, configs={"log.cleaner.threads": 1000})
        for name in ("cluster-default", "1")
    ]
    made.desired = [slow, gone, *brokers]
    made.owned = {str(item.id): make_quota_record(item) for item in (slow, gone)}
    return made, [slow, gone, *brokers], dict(made.owned)


def test_snapshot_verdicts_agree_with_live_check() -> None:
    made, desired, owned = make_quotas_and_brokers()
    policies = [
        build_rule("ClientQuota", "double(after.limits['producer_byte_rate']) < 20.0"),
        build_rule("BrokerConfig", "after.configs['log.cleaner.threads'] == '1000'"),
    ]
    said, notices = collect_verdicts(policies, made.declared_rows(), made.live_rows())
    assert notices == ()
    context = PolicyContext(
        connections_to(made.cluster),
        desired={item.id: item for item in desired},
        owned={ResourceId.parse(text): record for text, record in owned.items()},
        labels={item.id: item.labels for item in desired},
    )
    live, selections, resources = read_existing([policy.kind for policy in policies], context)
    context = replace(context, live=live, selections=selections)
    assert said == list(check_live(policies, resources, context, lambda done: None).verdicts)
    assert map_outcomes(said) == {
        "ClientQuota/slow": "allow",
        "ClientQuota/user=bob": "deny",
        "BrokerConfig/cluster-default": "allow",
        "BrokerConfig/1": "deny",
    }


def test_objects_outside_selector_are_not_evaluated() -> None:
    made, desired, _ = make_quotas_and_brokers()
    made.desired, made.left_out, made.owned = desired[:2], desired[2:], {}
    policy = build_rule("BrokerConfig", "after.configs['log.cleaner.threads'] == '1000'")
    assert collect_verdicts([policy], made.declared_rows(), made.live_rows()) == ([], ())
