"""The operations of each kind: orders, placements, resets, steps, and protected keys."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from kdeclare.app.plan import CHECKS
from kdeclare.core.diagnostics import Severity
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.plans.plan import Plan
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.changes import Action, FieldOp, Reason, Risk
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.build import build_plan
from kdeclare.engine.planning.request import PlanRequest, PlanScope
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import open_project
from kdeclare.providers.kafka.ids import ConfigResource
from kdeclare.providers.kafka.live import Broker, Topic
from kdeclare.providers.kafka.reassignment.placement import place_replicas
from kdeclare.providers.kafka.reassignment.placement_request import PlacementRequest
from kdeclare.providers.kafka.request_values import NewPartitions
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import plan_outcome, run_outcome
from tests.beds import CLUSTER_WIDE, broker_resource, topic_resource
from tests.cases import case
from tests.connections import connections_to
from tests.engine.world import World, desired, nothing, sealed, topic
from tests.jsontypes import dump_args

LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def broker_config(name: str, /, **spec: Any) -> DesiredResource:
    return desired("BrokerConfig", name, **spec)


def list_codes(plan: Plan) -> list[str]:
    return [d.code for d in plan.diagnostics]


def list_steps(plan: Plan) -> list[tuple[str, list[str]]]:
    """Return the verb of each operation, and the keys that it changes."""
    return [(op.verb, [item["key"] for item in dump_args(op).get("ops", ())]) for op in plan.operations]


def read_overrides(world: World, resource: ConfigResource) -> dict[str, str]:
    found: dict[str, str] = world.cluster.overrides(resource)
    return found


def load_text(text: str) -> LoadedManifests:
    """Load a manifest as the command line does; return it with its diagnostics."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "it.yaml"
        path.write_text(text)
        return load_project_manifests(open_project(None, None, {}), [path], KINDS, {}, CHECKS)


# Factor, partitions and min.insync.replicas together.


@case("ISR-03")
def test_factor_is_raised_and_in_sync_before_min_isr() -> None:
    """ISR-03."""
    world = World(MemoryCluster(dict.fromkeys(range(1, 6)), move_ticks=3))
    world.apply(topic("t", partitions=1, replicationFactor=3, configs={"min.insync.replicas": "2"}))
    after = topic("t", partitions=1, replicationFactor=5, configs={"min.insync.replicas": "4"})
    plan = world.plan(after)
    assert list_steps(plan) == [("partitions.reassign", []), ("configs.alter", ["min.insync.replicas"])]
    assert plan.operations[1].needs == {
        plan.operations[0].id: "raise the replication factor before min.insync.replicas"
    }
    seen: list[int] = []
    world.cluster.faults.run_before(
        lambda other: seen.append(len(other.topics(["t"])["t"].partitions[0].isr)), method="alter_configs"
    )
    assert world.run(plan).complete
    assert seen == [5]


def test_min_isr_is_lowered_before_factor() -> None:
    """ISR-03, in the other direction."""
    world = World(MemoryCluster(dict.fromkeys(range(1, 6))))
    world.apply(topic("t", partitions=1, replicationFactor=5, configs={"min.insync.replicas": "4"}))
    plan = world.plan(topic("t", partitions=1, replicationFactor=3, configs={"min.insync.replicas": "2"}))
    assert list_steps(plan) == [("configs.alter", ["min.insync.replicas"]), ("partitions.reassign", [])]
    assert plan.operations[0].id in plan.operations[1].needs


def test_min_isr_above_factor_is_warned_of_and_applied() -> None:
    """ISR-01: Kafka accepts the value, but caps it at what all replicas can satisfy where it evaluates it."""
    world = World()
    wanted = topic("t", partitions=1, replicationFactor=3, configs={"min.insync.replicas": "5"})
    plan = world.plan(wanted)
    (diagnostic,) = plan.diagnostics
    assert (diagnostic.code, diagnostic.severity) == ("min-isr-above-factor", Severity.WARNING)
    assert diagnostic.detail == (
        "Topic 't' requires 5 in-sync replicas, but its replication factor is 3. With Kafka 4.3, producers "
        "with acks=all cannot write to the topic while any replica is out of sync. With older brokers, such "
        "producers may never be able to write."
    )
    assert plan_outcome(plan).exit_code is ExitCode.OK
    assert world.run(plan).complete
    assert world.cluster.get_effective_min_isr("t") == 3
    assert list_codes(world.plan(wanted)) == ["min-isr-above-factor"]  # for as long as this is the case


def test_min_isr_is_compared_with_live_factor() -> None:
    """ISR-01, for a manifest that states no factor."""
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=2))
    plan = world.plan(topic("t", configs={"min.insync.replicas": "3"}))
    assert list_codes(plan) == ["min-isr-above-factor"]


@case("KIP4-03")
def test_new_factor_and_partitions_become_increase_and_reassignment() -> None:
    """KIP4-03."""
    world = World()
    world.apply(topic("t", assignments={0: [1], 1: [2]}))
    after = topic("t", partitions=3, replicationFactor=2)
    plan = world.plan(after)
    increase, move = plan.operations
    assert (increase.verb, dump_args(increase)["total"]) == ("partitions.increase", 3)
    assert (move.verb, sorted(dump_args(move)["partitions"])) == (
        "partitions.reassign",
        ["t-0", "t-1", "t-2"],
    )
    assert move.needs == {increase.id: "add partitions before reassigning them"}
    assert dump_args(move)["partitions"]["t-0"][0] == 1  # existing assignments stay
    assert dump_args(move)["partitions"]["t-1"][0] == 2
    assert world.run(plan).complete
    assert [len(p.replicas) for p in world.cluster.topics(["t"])["t"].partitions] == [2, 2, 2]
    assert not world.plan(after).has_changes


@case("KIP4-06")
def test_added_partitions_balance_existing_placement() -> None:
    """KIP4-06."""
    world = World()
    world.apply(topic("t", assignments={0: [1], 1: [2], 2: [2], 3: [1]}))
    plan = world.plan(topic("t", partitions=6, replicationFactor=1))
    (increase,) = plan.operations
    assert increase.args == NewPartitions("t", 6, ((3,), (3,)))
    assert increase.irreversible
    assert plan.changes[0].risk is Risk.IRREVERSIBLE
    assert world.run(plan).complete
    assert len(world.cluster.topics(["t"])["t"].partitions) == 6


def test_equal_partition_count_sends_no_request() -> None:
    """KIP4-06: Kafka refuses an equal count, so none is sent."""
    world = World()
    world.apply(topic("t", partitions=4, replicationFactor=1))
    assert not world.plan(topic("t", partitions=4, replicationFactor=1)).operations


RACKS = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack1", 4: "rack3", 5: "rack3"}


def check_even_over_racks(partitions: Sequence[Sequence[int]]) -> None:
    """PLC-07: three racks each, with replicas and leaders spread evenly over the brokers."""
    assert all(len({RACKS[r] for r in replicas}) == 3 for replicas in partitions)
    assert set(Counter(r for replicas in partitions for r in replicas).values()) == {len(partitions) // 2}
    assert set(Counter(replicas[0] for replicas in partitions).values()) == {len(partitions) // 6}


def test_placement_stays_even_when_partitions_are_added() -> None:
    """PLC-07, as planned: 18 partitions, then 36."""
    brokers = [Broker(id_, "localhost", 9092, rack) for id_, rack in RACKS.items()]
    first = place_replicas(brokers, {"t": ()}, PlacementRequest(18, 3))["t"]
    check_even_over_racks(first)
    second = place_replicas(brokers, {"t": first}, PlacementRequest(36, 3))["t"]
    assert second[:18] == first
    check_even_over_racks(second)


def test_raised_factor_spans_racks() -> None:
    """PLC-07: from one replica to three, with twice the partitions."""
    world = World(MemoryCluster(RACKS))
    world.apply(topic("t", assignments={n: [n % 6] for n in range(18)}))
    assert world.apply(topic("t", partitions=36, replicationFactor=3)).complete
    check_even_over_racks([p.replicas for p in describe_topic(world, "t").partitions])


def describe_topic(world: World, name: str) -> Topic:
    return world.cluster.topics([name])[name]


@case("KIP4-08")
def test_operation_is_done_only_after_observation() -> None:
    """KIP4-08: metadata lags behind the controller, but a run sees its own changes."""
    world = World(MemoryCluster(move_ticks=3))
    world.apply(topic("t", partitions=2, replicationFactor=2, configs={"min.insync.replicas": "1"}))
    after = topic("t", partitions=4, replicationFactor=3, configs={"min.insync.replicas": "2"})
    plan = world.plan(after)
    world.cluster.stale_reads = 2
    assert world.run(plan).complete
    world.cluster.stale_reads = 0
    assert not world.plan(after).has_changes


# Lists.


def test_list_elements_are_compared_without_blanks() -> None:
    """OPS-15: Kafka compares elements literally, so they are sent literally."""
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.set("t", **{LEADERS: "0:1, 0:2"})
    whole = topic("t", partitions=1, replicationFactor=1, configs={LEADERS: ["0:1", "0:2"]})
    assert not world.plan(whole).has_changes
    part = topic("t", partitions=1, replicationFactor=1, configs={LEADERS: {"subtract": ["0:2"]}})
    assert world.apply(part).complete
    assert world.overrides("t") == {LEADERS: "0:1"}
    assert not world.plan(part).has_changes


def test_config_changes_are_incremental_by_key() -> None:
    """OPS-26: a key that another client set survives every change of another key."""
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "1"}))
    world.set("t", flush_ms="7")
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"retention.ms": "2"}))
    world.rollback()
    assert world.overrides("t") == {"retention.ms": "1", "flush.ms": "7"}
    assert {c.method for c in world.cluster.requests()} == {"create_topics", "alter_configs"}


# Undeclared keys.


def test_unmanaged_config_reset_keeps_throttled_replicas() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.set("t", **{"flush.ms": "7", LEADERS: "0:1", FOLLOWERS: "0:2"})
    strict = topic("t", partitions=1, replicationFactor=1, unmanagedConfigs="remove")
    plan = world.plan(strict)
    assert [(f.path, f.op) for f in plan.changes[0].fields] == [("configs.flush.ms", FieldOp.DELETE)]
    assert plan.unmanaged_configs == {"Topic/t": (FOLLOWERS, LEADERS)}
    assert world.run(plan).complete
    assert world.overrides("t") == {LEADERS: "0:1", FOLLOWERS: "0:2"}
    assert not world.plan(strict).has_changes
    assert world.rollback().complete
    assert world.overrides("t") == {"flush.ms": "7", LEADERS: "0:1", FOLLOWERS: "0:2"}


def test_unmanaged_config_reset_keeps_throttle_rates() -> None:
    world = World()
    world.cluster.set_overrides(
        broker_resource(1), {**dict.fromkeys(RATES, "1000"), "log.cleaner.threads": "2"}
    )
    plan = world.plan(broker_config("1", unmanagedConfigs="remove"))
    assert [f.path for f in plan.changes[0].fields] == ["configs.log.cleaner.threads"]
    world.run(plan)
    assert read_overrides(world, broker_resource(1)) == dict.fromkeys(RATES, "1000")


def test_unmanaged_config_reset_keeps_undeletable_keys() -> None:
    """With eligible leader replicas enabled, the cluster-wide min.insync.replicas cannot be deleted."""
    world = World()
    world.cluster.set_overrides(CLUSTER_WIDE, {"min.insync.replicas": "1", "log.cleaner.threads": "2"})
    strict = broker_config("cluster-default", unmanagedConfigs="remove")
    plan = world.plan(strict)
    assert [f.path for f in plan.changes[0].fields] == ["configs.log.cleaner.threads"]
    assert world.run(plan).complete
    assert read_overrides(world, CLUSTER_WIDE) == {"min.insync.replicas": "1"}
    assert not world.plan(strict).has_changes


def test_undeclared_undeletable_key_is_released_with_warning() -> None:
    world = World()
    world.apply(broker_config("cluster-default", configs={"min.insync.replicas": 2}))
    plan = world.plan(broker_config("cluster-default"))
    assert list_codes(plan) == ["undeletable-config"]
    assert not plan.operations
    assert world.run(plan).complete
    assert read_overrides(world, CLUSTER_WIDE) == {"min.insync.replicas": "2"}
    again = world.plan(broker_config("cluster-default"))
    assert (again.diagnostics, again.changes, again.ownership) == ((), (), ())


# Brokers.


@pytest.mark.parametrize(
    ("wanted", "values"),
    [
        ("16", ["16"]),
        ("4", ["4"]),
        ("17", ["16", "17"]),
        ("3", ["4", "3"]),
        ("40", ["16", "32", "40"]),
        ("1", ["4", "2", "1"]),
    ],
)
def test_thread_pool_is_resized_in_steps(wanted: str, values: list[str]) -> None:
    """BRK-05: from 8, at most twice and at least half as many per step."""
    world = World()
    wish = broker_config("1", configs={"num.io.threads": wanted})
    plan = world.plan(wish)
    assert [dump_args(op)["ops"][0]["value"] for op in plan.operations] == values
    assert all(first.id in second.needs for first, second in pairwise(plan.operations))
    assert [(f.before, f.after) for f in plan.changes[0].fields] == [(None, wanted)]
    assert world.run(plan).complete
    assert read_overrides(world, broker_resource(1)) == {"num.io.threads": wanted}
    assert not world.plan(wish).has_changes
    assert world.rollback().complete
    assert read_overrides(world, broker_resource(1)) == {}


def test_undeclared_thread_pool_is_reset_in_steps() -> None:
    """BRK-05."""
    world = World()
    world.apply(broker_config("1", configs={"num.io.threads": 64}))
    assert world.apply(broker_config("1")).complete
    assert read_overrides(world, broker_resource(1)) == {}


@pytest.mark.parametrize("started_with", ["2", "100"])
def test_undeclared_thread_pool_is_reset_to_static_value(started_with: str) -> None:
    """BRK-05: below the override is the broker's own properties file, not Kafka's default."""
    world = World(MemoryCluster(static={"num.io.threads": started_with}))
    assert world.apply(broker_config("1", configs={"num.io.threads": 16})).complete
    assert world.apply(broker_config("1")).complete
    assert read_overrides(world, broker_resource(1)) == {}


def test_thread_pool_step_rejected_by_brokers_is_a_plan_error() -> None:
    """BRK-05, at the cluster default: brokers were started with 2 each, and the plan reports this."""
    world = World(MemoryCluster(static={"num.io.threads": "2"}))
    plan = world.plan(broker_config("cluster-default", configs={"num.io.threads": 16}))
    assert list_codes(plan) == ["refused-by-cluster"]
    assert "not be greater than double the current value 2" in plan.diagnostics[0].detail
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
    assert not plan.operations


def test_read_only_broker_keys_are_errors_when_loading() -> None:
    """BRK-01."""
    found = load_text(
        """
        apiVersion: kdeclare/v1
        kind: BrokerConfig
        metadata: {name: "1"}
        spec: {configs: {auto.create.topics.enable: false, auto.leader.rebalance.enable: false, broker.id: 1}}
        """
    )
    assert [d.code for d in found.diagnostics] == ["read-only-config"] * 3
    assert all(d.is_error for d in found.diagnostics)


def test_misspelled_broker_key_is_an_error() -> None:
    """BRK-07."""
    found = load_text(
        """
        apiVersion: kdeclare/v1
        kind: BrokerConfig
        metadata: {name: cluster-default}
        spec: {configs: {log.cleaner.threadzz: 2}}
        """
    )
    (diagnostic,) = found.diagnostics
    assert (diagnostic.code, diagnostic.is_error) == ("unknown-config", True)
    assert "log.cleaner.threads" in diagnostic.hint
    plan = build_plan(make_request(found), connections_to(MemoryCluster()), World().secrets, nothing)
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_undeclared_broker_config_is_orphan() -> None:
    world = World()
    world.apply(broker_config("1", configs={"log.cleaner.threads": 2}))
    world.cluster.set_overrides(
        broker_resource(1), {"log.cleaner.threads": "2", "log.cleaner.backoff.ms": "99"}
    )
    plan = world.plan()
    assert not plan.has_changes
    assert [(c.action, c.reason) for c in plan.changes] == [(Action.NO_OP, Reason.ORPHANED)]
    assert list_codes(plan) == ["orphaned"]
    assert plan_outcome(plan, detailed_exitcode=True).exit_code is ExitCode.OK
    plan = world.plan(scope=PlanScope(allow_deletes=True))
    assert plan.summary.update == 1
    assert world.run(plan).complete
    assert read_overrides(world, broker_resource(1)) == {"log.cleaner.backoff.ms": "99"}  # owned keys only
    assert world.owned() == {}
    assert world.rollback().complete
    assert read_overrides(world, broker_resource(1))["log.cleaner.threads"] == "2"


def test_unregistered_broker_is_an_error() -> None:
    world = World()
    plan = world.plan(broker_config("9", configs={"log.cleaner.threads": 2}))
    assert list_codes(plan) == ["unknown-broker"]
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


# Keys that the catalogue does not know.


def make_request(found: LoadedManifests) -> PlanRequest:
    return PlanRequest(
        "test", "default", "memory", sealed(found.desired), None, PlanScope(), found.diagnostics
    )


UNHEARD_OF = """
    apiVersion: kdeclare/v1
    kind: Topic
    metadata: {name: t}
    spec: {partitions: 1, replicationFactor: 1, configs: {retention.millis: 5}}
    """


def test_unknown_topic_key_is_error_when_live_topic_lacks_it() -> None:
    world = World()
    world.apply(topic("other", partitions=1, replicationFactor=1))
    plan = build_plan(
        make_request(load_text(UNHEARD_OF)), connections_to(world.cluster), world.secrets, nothing
    )
    assert list_codes(plan) == ["unknown-config"]
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_unknown_topic_key_without_live_topic_is_validated_by_broker() -> None:
    world = World()
    plan = build_plan(
        make_request(load_text(UNHEARD_OF)), connections_to(world.cluster), world.secrets, nothing
    )
    severities = {d.code: d.severity for d in plan.diagnostics}
    assert severities == {"unknown-config": Severity.WARNING, "refused-by-cluster": Severity.ERROR}
    (refusal,) = (d for d in plan.diagnostics if d.is_error)
    (change,) = plan.changes
    assert refusal.place == change.source is not None
    assert plan_outcome(plan).exit_code is ExitCode.ERROR


def test_plugin_key_known_to_cluster_is_accepted() -> None:
    """A plug-in's key, in use on one of the brokers."""
    world = World()
    world.cluster.set_overrides(broker_resource(2), {"my.plugin.size": "5"})
    found = load_text(
        """
        apiVersion: kdeclare/v1
        kind: BrokerConfig
        metadata: {name: "2"}
        spec: {configs: {my.plugin.size: "${env.SIZE}"}}
        """.replace('"${env.SIZE}"', "6")
    )
    assert [d.code for d in found.diagnostics] == ["unknown-config"]
    plan = build_plan(make_request(found), connections_to(world.cluster), AnySecret(), nothing)
    assert not plan.has_errors
    assert [f.path for f in plan.changes[0].fields] == ["configs.my.plugin.size"]


class AnySecret:
    """Kafka treats keys that it does not know as sensitive, so the value is handled like a secret."""

    def reveal(self, secret: object) -> str:
        return "6"


# Partitions.


def test_fewer_partitions_than_live_blocks_only_that_topic() -> None:
    world = World()
    world.apply(topic("t", partitions=3, replicationFactor=1))
    before = world.cluster.dump(ids=True)["topics"]["t"]
    result = world.apply(
        topic("t", partitions=2, replicationFactor=1, configs={"flush.ms": "1"}),
        topic("other", partitions=1, replicationFactor=1),
    )
    assert list_codes(result.plan) == ["invalid-partitions"]
    assert plan_outcome(result.plan).exit_code is ExitCode.DENIED
    assert run_outcome(result).exit_code is ExitCode.DENIED
    assert world.cluster.dump(ids=True)["topics"]["t"] == before, "neither changed nor re-created"
    assert world.overrides("t") == {}
    assert set(world.cluster.topics()) == {"t", "other"}, "the rest of the plan goes on"


def test_rollback_of_partition_increase_is_reported_irreversible() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"flush.ms": "1"}))
    world.apply(topic("t", partitions=2, replicationFactor=1, configs={"flush.ms": "2"}))
    result = world.rollback()
    assert [d.code for d in result.plan.diagnostics] == ["irreversible"]
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert world.overrides("t") == {"flush.ms": "1"}
    assert len(describe_topic(world, "t").partitions) == 2


def test_rollback_leaves_concurrent_changes_unchanged() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"flush.ms": "1", "retention.ms": "1"}))
    world.apply(topic("t", partitions=1, replicationFactor=1, configs={"flush.ms": "2", "retention.ms": "2"}))
    world.cluster.set_overrides(topic_resource("t"), {"flush.ms": "3", "retention.ms": "2"})
    result = world.rollback()
    assert [d.code for d in result.plan.diagnostics] == ["conflict"]
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert world.overrides("t") == {"flush.ms": "3", "retention.ms": "1"}


def test_rollback_does_not_delete_topic_with_records() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    world.cluster.produce("t", 3)
    result = world.rollback()
    assert [d.code for d in result.plan.diagnostics] == ["has-records"]
    assert run_outcome(result).exit_code is ExitCode.PARTIAL
    assert "t" in world.cluster.topics()


def test_unplaceable_replicas_are_a_plan_error() -> None:
    world = World()
    world.apply(topic("t", partitions=1, replicationFactor=1))
    plan = world.plan(topic("t", partitions=1, replicationFactor=4))
    assert list_codes(plan) == ["no-placement"]
    assert plan_outcome(plan).exit_code is ExitCode.ERROR
