"""Adoption: a differing resource that was never applied changes only if allowed (decision 0016)."""

import json
from typing import Any

import pytest

from kdeclare.core.diagnostics import Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.changes import Action, FieldOp, Reason
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    encode_body,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.secrets.secret_refs import Referenced
from kdeclare.engine.planning.plan_document import build_plan_document, compute_plan_id
from kdeclare.engine.planning.planfile import parse_plan, render_plan_file
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.connect.testing import MemoryWorkers
from kdeclare.providers.connect.testing.workers import LOCATION, PASSWORD, Keystore
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from kdeclare.report.sarif import build_plan_sarif
from tests.engine.test_connect_workers import PLACEHOLDER, make_certificate
from tests.engine.world import World, desired, topic
from tests.jsontypes import untyped

WEEK, DAY = "604800000", "86400000"
BROKER = ConfigResource(ConfigScope.BROKER, "1")
ADOPT = PlanScope(adopt=True)


@pytest.fixture
def world() -> World:
    """A cluster with a topic that another team created, and no ``--adopt``."""
    world = World(adopts=False)
    world.cluster.create_topics([NewTopic("orders", 3, 1, None, {"retention.ms": WEEK})])
    return world


def broker_config(**spec: Any) -> Any:
    return desired("BrokerConfig", "1", **spec)


def list_codes(plan: Plan) -> list[tuple[Severity, str]]:
    return [(d.severity, d.code) for d in plan.diagnostics]


DENIED = [(Severity.DENIED, "adoption")]
ALLOWED = [(Severity.INFO, "adoption")]


# A topic has its own identity.


def test_adoption_of_differing_topic_is_denied_by_default(world: World) -> None:
    wanted = topic("orders", partitions=12, configs={"retention.ms": 1000})
    plan = world.plan(wanted, topic("new", partitions=1))
    change = next(c for c in plan.changes if c.id.name == "orders")
    assert (change.action, change.reason, change.blocked) == (Action.UPDATE, Reason.ADOPT, "adoption")
    assert list_codes(plan) == DENIED
    assert plan_outcome(plan).exit_code is ExitCode.DENIED
    result = world.run(plan)
    assert run_outcome(result).exit_code is ExitCode.DENIED
    assert (world.overrides("orders"), set(world.owned())) == ({"retention.ms": WEEK}, {"Topic/new"})


@pytest.mark.parametrize("how", ["option", "lifecycle"])
def test_adoption_of_differing_topic_when_allowed_updates_it(world: World, how: str) -> None:
    spec: dict[str, Any] = {"configs": {"retention.ms": DAY}}
    spec |= {"lifecycle": {"adopt": True}} if how == "lifecycle" else {}
    plan = world.plan(topic("orders", **spec), scope=ADOPT if how == "option" else None)
    (change,) = plan.changes
    assert (change.reason, change.blocked, list_codes(plan)) == (Reason.ADOPT, None, ALLOWED)
    assert plan_outcome(plan).exit_code is ExitCode.OK
    world.run(plan)
    assert world.overrides("orders") == {"retention.ms": DAY}
    assert not world.plan(topic("orders", **spec)).has_changes


def test_adoption_of_equal_topic_sends_no_request(world: World) -> None:
    before = len(world.cluster.requests("alter_configs"))
    world.apply(topic("orders", partitions=3, configs={"retention.ms": WEEK}))
    assert "Topic/orders" in world.owned()
    assert len(world.cluster.requests("alter_configs")) == before


def test_adoption_is_not_required_for_owned_topic(world: World) -> None:
    world.apply(topic("orders", configs={"retention.ms": WEEK}))
    world.set("orders", segment_ms="1000", retention_ms=DAY)
    plan = world.plan(topic("orders", configs={"retention.ms": WEEK, "segment.ms": 2000}))
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.DRIFTED, None)
    plan = world.plan(topic("orders", configs={"retention.ms": DAY, "segment.ms": 2000}))
    assert (plan.changes[0].blocked, list_codes(plan)) == (None, [])


def test_adoption_is_required_after_forget(world: World) -> None:
    world.apply(topic("orders", configs={"retention.ms": WEEK}))
    world.apply(scope=PlanScope(forget=frozenset({ResourceId("Topic", "orders")})))
    plan = world.plan(topic("orders", configs={"retention.ms": DAY}))
    assert plan.changes[0].blocked == "adoption"


def test_adoption_is_required_to_remove_unmanaged_configs(world: World) -> None:
    plan = world.plan(topic("orders", unmanagedConfigs="remove"))
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.ADOPT, "adoption")


def test_rollback_of_adoption_restores_configs_and_releases_topic(world: World) -> None:
    world.apply(topic("orders", configs={"retention.ms": DAY}), scope=ADOPT)
    assert "Topic/orders" in world.owned()
    plan = world.plan_rollback()
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.UPDATE, Reason.ROLLBACK)]
    world.rollback()
    assert world.overrides("orders") == {"retention.ms": WEEK}
    assert not world.owned()


def test_rollback_of_adoption_without_changes_releases_topic(world: World) -> None:
    world.apply(topic("orders", configs={"retention.ms": WEEK}))
    world.rollback()
    assert not world.owned()
    assert "orders" in world.cluster.topics()


def test_ad_hoc_change_requires_no_adoption(world: World) -> None:
    wanted = topic("orders", configs={"retention.ms": DAY})
    plan = world.plan(wanted, scope=PlanScope(by_hand=True))
    assert (plan.changes[0].reason, plan.changes[0].blocked, list_codes(plan)) == (Reason.ASKED, None, [])
    plan = world.plan(broker_config(configs={"log.cleaner.threads": 2}), scope=PlanScope(by_hand=True))
    assert (plan.changes[0].reason, plan.changes[0].fields[0].reason) == (Reason.ASKED, None)


def test_reassignment_requires_no_adoption(world: World) -> None:
    move = desired("Reassignment", "away", partitions=[{"topic": "orders", "partition": 0, "replicas": [3]}])
    plan = world.plan(move)
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.CHANGED, None)


# Settings of objects that always exist are adopted key by key.


def test_unset_broker_keys_require_no_adoption(world: World) -> None:
    plan = world.plan(broker_config(configs={"log.cleaner.threads": 2}))
    assert (plan.changes[0].reason, plan.changes[0].blocked, list_codes(plan)) == (Reason.CHANGED, None, [])


def test_broker_key_overridden_by_another_client_requires_adoption(world: World) -> None:
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    wanted = broker_config(configs={"log.cleaner.threads": 4, "num.io.threads": 9})
    plan = world.plan(wanted)
    (change,) = plan.changes
    assert (change.reason, change.blocked, list_codes(plan)) == (Reason.ADOPT, "adoption", DENIED)
    reasons = {f.path: f.reason or change.reason for f in change.fields}
    assert reasons == {
        "configs.log.cleaner.threads": Reason.ADOPT,
        "configs.num.io.threads": Reason.CHANGED,
    }
    assert "log.cleaner.threads" in plan.diagnostics[0].detail
    assert "num.io.threads" not in plan.diagnostics[0].detail
    world.apply(wanted, scope=ADOPT)
    assert world.cluster.overrides(BROKER)["log.cleaner.threads"] == "4"


def test_new_key_of_owned_broker_config_requires_adoption(world: World) -> None:
    world.apply(broker_config(configs={"num.io.threads": 9}))
    world.cluster.set_overrides(BROKER, {"num.io.threads": "8", "log.cleaner.threads": "2"})
    plan = world.plan(broker_config(configs={"num.io.threads": 9, "log.cleaner.threads": 4}))
    (change,) = plan.changes
    assert change.blocked == "adoption"
    assert {f.path: f.reason for f in change.fields} == {
        "configs.num.io.threads": Reason.DRIFTED,
        "configs.log.cleaner.threads": None,
    }


def test_null_for_key_of_another_client_requires_adoption(world: World) -> None:
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    plan = world.plan(broker_config(configs={"log.cleaner.threads": None}))
    assert (plan.changes[0].fields[0].op, plan.changes[0].blocked) == (FieldOp.DELETE, "adoption")


def test_unmanaged_key_reset_requires_adoption_only_before_first_apply(world: World) -> None:
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    wanted = broker_config(configs={"num.io.threads": 9}, unmanagedConfigs="remove")
    assert world.plan(wanted).changes[0].blocked == "adoption"
    world.apply(wanted, scope=ADOPT)
    world.cluster.set_overrides(BROKER, {"num.io.threads": "9", "log.cleaner.threads": "3"})
    assert world.plan(wanted).changes[0].blocked is None


def test_list_patch_on_list_of_another_client_requires_adoption(world: World) -> None:
    key = "ssl.cipher.suites"
    world.cluster.set_overrides(BROKER, {"listener.name.internal." + key: "A"})
    wanted = broker_config(configs={"listener.name.internal." + key: {"append": ["B"]}})
    assert world.plan(wanted).changes[0].blocked == "adoption"


def test_unreadable_password_requires_adoption(world: World) -> None:
    key = "listener.name.internal.ssl.keystore.password"
    wanted = broker_config(configs={key: Referenced("geheim", "${env.PW}")})
    world.secrets.values["${env.PW}"] = "geheim"
    assert world.plan(wanted).changes[0].blocked is None
    world.cluster.set_overrides(BROKER, {key: "geheim"})
    assert world.plan(wanted).changes[0].blocked == "adoption"


def test_worker_config_keys_are_adopted_individually() -> None:
    world = World(MemoryCluster(), adopts=False)
    workers = MemoryWorkers()
    world.workers[workers.urls] = workers
    workers.files = {
        "/old": Keystore(make_certificate("old"), "pw"),
        "/new": Keystore(make_certificate("new"), "pw"),
    }
    workers.placeholders = {PLACEHOLDER: "pw"}
    key = LOCATION

    def worker_config(location: str) -> Any:
        config = {key: location, PASSWORD: PLACEHOLDER}
        return desired("ConnectWorkerConfig", "eu", workers=list(workers.urls), config=config)

    assert world.plan(worker_config("/old")).changes[0].blocked is None, "unset so far"
    world.apply(worker_config("/old"))
    world.apply(scope=PlanScope(forget=frozenset({ResourceId("ConnectWorkerConfig", "eu")})))
    plan = world.plan(worker_config("/new"))
    assert (plan.changes[0].reason, plan.changes[0].blocked) == (Reason.ADOPT, "adoption")
    assert [f.path for f in plan.changes[0].fields] == [f"configs.{key}"]
    world.apply(worker_config("/new"), scope=ADOPT)
    assert world.owned()["ConnectWorkerConfig/eu"]["configs"][key] == {"value": "/new"}


@pytest.mark.parametrize("kind", ["Topic", "BrokerConfig", "ConnectWorkerConfig"])
def test_adopt_setting_survives_live_codec_round_trip(kind: str) -> None:
    spec: dict[str, Any] = {"workers": ["http://127.0.0.1:8083"]} if kind == "ConnectWorkerConfig" else {}
    for adopt in (True, False):
        item = desired(kind, "1", **spec, lifecycle={"adopt": adopt})
        body = json.loads(json.dumps(encode_body(item)))
        assert decode_body(kind, body) == item.body
        assert getattr(item.body, "adopt", None) is adopt


# What the plan shows.


@pytest.mark.parametrize("scope", [PlanScope(), ADOPT])
def test_adoption_is_shown_in_every_format(world: World, scope: PlanScope) -> None:
    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    wanted = broker_config(configs={"log.cleaner.threads": 4, "num.io.threads": 9})
    plan = world.plan(topic("orders", configs={"retention.ms": DAY}), wanted, scope=scope)
    for text in (plan_text(plan), plan_markdown(plan), render_plan_page(plan)):
        assert "adopt: exists, not owned yet" in text
    assert "4  adopt" in plan_text(plan)
    assert [c["reason"] for c in untyped(build_plan_document(plan))["changes"]] == ["adopt", "adopt"]
    results = [r for r in build_plan_sarif(plan)["runs"][0]["results"] if r["ruleId"] == "adoption"]
    level = "note" if scope.adopt else "error"
    assert [(r["ruleId"], r["level"]) for r in results] == [("adoption", level)] * 2


def test_saved_plan_keeps_field_reasons(world: World) -> None:
    from datetime import UTC, datetime

    world.cluster.set_overrides(BROKER, {"log.cleaner.threads": "2"})
    plan = world.plan(broker_config(configs={"log.cleaner.threads": 4, "num.io.threads": 9}), scope=ADOPT)
    text, identity = render_plan_file(plan, datetime(2026, 1, 1, tzinfo=UTC))
    again = parse_plan(text, "x")
    assert (again.changes, compute_plan_id(again), identity) == (
        plan.changes,
        identity,
        compute_plan_id(plan),
    )
