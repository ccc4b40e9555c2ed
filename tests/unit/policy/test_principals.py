"""Policies and override records get the principal of kdeclare in the system of the checked resource."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from kdeclare.core.live.faults import Fault
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import VerdictOutcome
from kdeclare.core.provider import registry
from kdeclare.core.provider.provider_queries import find_principal
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.executor.entries import fold_journal
from kdeclare.engine.planning.request import PlanScope
from kdeclare.policy.configured_policy import ConfiguredPolicy, build_selector
from kdeclare.policy.interface import PolicyViolation
from kdeclare.policy.resource_checks import check_live
from kdeclare.policy.subjects import PolicyContext
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.connections import connections_to
from tests.engine.world import World, desired, topic
from tests.loaded_providers import replace_load_providers
from tests.unit.policy.kettles import Kitchen, kitchen

__all__ = ["kitchen"]

COOK = "cook"
ID = ResourceId("Kettle", "big")


NameCook = Callable[[str | Fault], None]


@pytest.fixture
def name_cook(kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch) -> NameCook:
    """Make the kitchen's provider report the principal of kdeclare."""

    def name(answer: str | Fault) -> None:
        def find(connections: Connections) -> str:
            if isinstance(answer, Fault):
                raise answer
            return answer

        *others, own = vars(registry)["load_providers"]()
        providers = (*others, replace(own, find_principal=find))
        replace_load_providers(monkeypatch, lambda: providers)

    return name


def make_connections() -> Connections:
    cluster = MemoryCluster(cluster_id="id-1")
    cluster.principal = "User:ci"
    return connections_to(cluster)


class PrincipalPolicy:
    """Reports the principal that it reads."""

    def validate(self, request: object) -> None:
        raise PolicyViolation(str(request.principal))  # type: ignore[attr-defined]

    def close(self) -> None: ...


def ask_about_kettle() -> str:
    policy = ConfiguredPolicy("p", PrincipalPolicy(), selector=build_selector((), {}, "Kettle"))
    (verdict,) = check_live([policy], [ID], PolicyContext(make_connections()), lambda done: None).verdicts
    return verdict.message


@pytest.mark.parametrize("kind", ["Topic", "BrokerConfig", "ClientQuota", "Reassignment"])
def test_principal_is_same_for_kinds_of_one_provider(kind: str) -> None:
    assert find_principal(make_connections(), kind) == "User:ci"


def test_principal_of_kafka_is_not_used_for_other_systems(kitchen: Kitchen, name_cook: NameCook) -> None:
    assert find_principal(make_connections(), "Kettle") is None
    assert find_principal(make_connections(), "NoSuchKind") is None
    name_cook(COOK)
    assert find_principal(make_connections(), "Kettle") == COOK
    assert find_principal(make_connections(), "Topic") == "User:ci"


def test_principal_without_connection_is_none() -> None:
    assert find_principal(Connections(), "Topic") is None


def test_policy_reads_principal_of_checked_kind(kitchen: Kitchen, name_cook: NameCook) -> None:
    kitchen.kettles["big"] = {"heat": 1}
    assert ask_about_kettle() == "None"
    name_cook(COOK)
    assert ask_about_kettle() == COOK


def test_policy_fails_if_principal_cannot_be_read(kitchen: Kitchen, name_cook: NameCook) -> None:
    kitchen.kettles["big"] = {"heat": 1}
    name_cook(Fault("POWER_CUT", "There is no power."))
    with pytest.raises(Fault):
        ask_about_kettle()


def test_override_record_has_principal_of_its_system(kitchen: Kitchen, name_cook: NameCook) -> None:
    name_cook(COOK)
    denies = [
        ConfiguredPolicy(kind, PrincipalPolicy(), selector=build_selector((), {}, kind))
        for kind in ("Topic", "Kettle")
    ]
    here = World(policies=tuple(denies))
    here.cluster.principal = "User:alice"
    scope = PlanScope(overrides={"Topic": "agreed", "Kettle": "tea"})
    plan = here.plan(topic("t", partitions=1), desired("Kettle", "big", heat=5), scope=scope)
    assert {v.outcome for v in plan.verdicts} == {VerdictOutcome.WARN}
    run = here.run(plan)
    record = fold_journal(run.run_id or "", here.store.entries(run.run_id or ""))
    assert record.start is not None
    assert {line.resource: line.principal for line in record.start.overrides} == {
        "Topic/t": "User:alice",
        "Kettle/big": COOK,
    }
