"""A plan file with a matching hash is still not trusted: it must do what it shows, and nothing else."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.record_binding import dump_record
from kdeclare.engine.planning.plan_document import compute_document_id
from kdeclare.engine.planning.planfile import (
    load_plan,
    parse_plan_file,
    render_plan_file,
    require_known_parts,
    verify_plan,
)
from kdeclare.engine.planning.request import PlanScope
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.plan.plan_page import render_plan_page
from kdeclare.report.plan.plan_text import plan_text
from tests.engine.world import World, desired, topic

Document = dict[str, Any]


def load_document(plan: Plan) -> Document:
    text, _ = render_plan_file(plan)
    document: Document = json.loads(text)
    return document


def sign(document: Document) -> str:
    """Return the text as a forger writes it, with the matching id."""
    return json.dumps(document | {"plan_id": compute_document_id(document)})


def accept_plan(text: str) -> None:
    """Process a file as commands do before applying it."""
    file = parse_plan_file(text, "x.plan")
    verify_plan(file, "x.plan")
    require_known_parts(file.plan)


def get_refusal(document: Document) -> str:
    """Return why the file is refused."""
    with pytest.raises(KdeclareError) as caught:
        accept_plan(sign(document))
    (problem,) = caught.value.diagnostics
    assert problem.hint
    return problem.detail


def find_op(document: Document, verb: str) -> Document:
    found: Document = next(op for op in document["operations"] if op["verb"] == verb)
    return found


@pytest.fixture
def world() -> World:
    return World(MemoryCluster({1: "a", 2: "b", 3: "c"}))


def plan_creation(world: World) -> Plan:
    return world.plan(topic("t", partitions=2, replicationFactor=1, configs={"retention.ms": "1000"}))


def plan_update(world: World) -> Plan:
    world.apply(topic("t", partitions=1, configs={"retention.ms": "1000", "cleanup.policy": ["delete"]}))
    configs = {"retention.ms": "2000", "cleanup.policy": ["delete", "compact"]}
    return world.plan(topic("t", partitions=3, configs=configs))


def plan_move(world: World) -> Plan:
    world.apply(topic("t", assignments={0: [1, 2]}))
    body: Document = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 3]}]}
    return world.plan(topic("t"), desired("Reassignment", "move", **body))


def plan_deletion(world: World) -> Plan:
    world.apply(topic("t", partitions=1), topic("other", partitions=1))
    return world.plan(topic("other", partitions=1), scope=PlanScope(allow_deletes=True))


def plan_broker(world: World) -> Plan:
    return world.plan(desired("BrokerConfig", "1", configs={"log.cleaner.threads": "2"}))


def test_unmodified_plans_are_accepted(world: World, tmp_path: Path) -> None:
    for number, make in enumerate((plan_creation, plan_update, plan_move, plan_deletion, plan_broker)):
        file = tmp_path / f"{number}.plan"
        file.write_text(render_plan_file(make(World(MemoryCluster({1: "a", 2: "b", 3: "c"}))))[0])
        assert load_plan(file).plan.operations


def set_args(verb: str, **args: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        find_op(document, verb)["args"].update(args)

    return forge


def set_op(number: int, **item: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        find_op(document, "configs.alter")["args"]["ops"][number].update(item)

    return forge


def set_field(number: int, **field: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["changes"][0]["fields"][number].update(field)

    return forge


def drop_section(what: str) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document[what] = []

    return forge


def set_change(**change: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["changes"][0].update(change)

    return forge


def set_summary(**summary: int) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["summary"].update(summary)

    return forge


def add_op(document: Document) -> None:
    ops = find_op(document, "configs.alter")
    ops["args"]["ops"].append({"key": "max.message.bytes", "op": "SET", "value": "1"})
    ops["expect"]["max.message.bytes"] = None


def add_operation(document: Document) -> None:
    extra = copy.deepcopy(document["operations"][0])
    document["operations"].append(extra | {"id": "extra", "resource": "Topic/payments"})


def lower_risk(document: Document) -> None:
    change = document["changes"][0]
    for field in change["fields"]:
        field["risk"], field["cause"] = "safe", ""
    change["risk"], change["risks"] = "safe", ["safe"]


def set_op_field(name: str, **op: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        found = find_op(document, name)
        found.pop("irreversible", None)
        found.update(op)

    return forge


def drop_expectation(verb: str) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        find_op(document, verb)["expect"] = {}

    return forge


def set_ownership(**item: Any) -> Callable[[Document], None]:
    def forge(document: Document) -> None:
        document["ownership"][0].update(item)

    return forge


FORGERIES: list[tuple[str, Callable[[World], Plan], Callable[[Document], None]]] = [
    ("another topic is created", plan_creation, set_args("topic.create", topic="payments")),
    ("more partitions are created", plan_creation, set_args("topic.create", partitions=900)),
    ("another config is created", plan_creation, set_args("topic.create", configs={"retention.ms": "1"})),
    ("a config more is created", plan_creation,
     set_args("topic.create", configs={"retention.ms": "1000", "segment.ms": "1"})),
    ("an argument has another type", plan_creation, set_args("topic.create", partitions="2")),
    ("an argument is unknown", plan_creation, set_args("topic.create", also="this")),
    ("the summary counts no creation", plan_creation, set_summary(create=0, unchanged=1)),
    ("a creation is shown as an update", plan_creation, set_change(action="update")),
    ("a creation is shown as an orphan", plan_creation, set_change(action="no-op")),
    ("a creation is shown as blocked", plan_creation, set_change(blocked="policy-violation")),
    ("the inverse deletes another topic", plan_creation,
     set_op_field("topic.create", inverse={"verb": "topic.delete", "args": {"topic": "payments"}})),
    ("the inverse has an unknown verb", plan_creation,
     set_op_field("topic.create", inverse={"verb": "topic.burn", "args": {}})),
    ("another value is set", plan_update, set_op(1, value="1")),
    ("another op is done", plan_update, set_op(1, op="DELETE", value=None)),
    ("another key is set", plan_update, set_op(1, key="segment.ms")),
    ("a key more is set", plan_update, add_op),
    ("another topic is altered", plan_update, set_args("configs.alter", entity_name="payments")),
    ("a broker is altered", plan_update, set_args("configs.alter", entity_type="BROKER", entity_name="1")),
    ("another value is shown", plan_update, set_field(1, after=["delete"])),
    ("another value is shown as the one before", plan_update, set_field(1, before=["compact"])),
    ("another path is shown", plan_update, set_field(1, path="configs.segment.ms")),
    ("more partitions are added", plan_update, set_args("partitions.increase", total=900)),
    ("partitions of another topic are added", plan_update, set_args("partitions.increase", topic="other")),
    ("partitions are not shown", plan_update, set_field(0, path="configs.retention.bytes")),
    ("risks are lowered", plan_update, lower_risk),
    ("only the list of risks is lowered", plan_update, set_change(risks=["safe"])),
    ("an irreversible operation has an inverse", plan_update,
     set_op_field("partitions.increase",
                  inverse={"verb": "topic.delete", "args": {"topic": "t", "require_empty": True}})),
    ("nothing is expected of the cluster", plan_update, drop_expectation("configs.alter")),
    ("no operation does what is shown", plan_update, drop_section("operations")),
    ("no change shows what is done", plan_update, drop_section("changes")),
    ("another resource is changed as well", plan_update, add_operation),
    ("it ends owned by nobody", plan_update, set_ownership(after=None)),
    ("a partition is moved elsewhere", plan_move,
     set_args("partitions.reassign", partitions={"t-0": [3, 1]})),
    ("another partition is moved", plan_move, set_args("partitions.reassign", partitions={"x-0": [2, 3]})),
    ("no move is counted", plan_move, set_summary(reassign=0)),
    ("a move is shown otherwise", plan_move, set_field(0, after=[1, 3])),
    ("another topic is deleted", plan_deletion, set_args("topic.delete", topic="other")),
    ("a topic of another id is deleted", plan_deletion, set_args("topic.delete", topic_id="other")),
    ("a deletion is shown as an update", plan_deletion, set_change(action="update")),
    ("a deletion is shown as released", plan_deletion, set_change(action="forget")),
    ("a deletion is not counted", plan_deletion, set_summary(delete=0)),
    ("a deletion is safe", plan_deletion, lower_risk),
    ("what is deleted stays owned", plan_deletion, set_ownership(after={"configs": {}})),
    ("another broker is configured", plan_broker, set_args("configs.alter", entity_name="2")),
    ("all brokers are configured", plan_broker, set_args("configs.alter", entity_name="")),
    ("a topic is configured", plan_broker, set_args("configs.alter", entity_type="TOPIC", entity_name="1")),
    ("a verb is not for the kind", plan_broker, set_op_field("configs.alter", verb="topic.delete",
                                                     args={"topic": "t"})),
]  # fmt: skip


@pytest.mark.parametrize(("make", "forge"), [f[1:] for f in FORGERIES], ids=[f[0] for f in FORGERIES])
def test_forged_plan_is_refused(
    world: World, make: Callable[[World], Plan], forge: Callable[[Document], None]
) -> None:
    document = load_document(make(world))
    verify_plan(parse_plan_file(sign(document), "x.plan"), "x.plan")
    forge(document)
    assert "x.plan" in get_refusal(document)


def add_detour(document: Document) -> None:
    """Records older than a millisecond are deleted before the value is as shown."""
    op = find_op(document, "configs.alter")
    detour = copy.deepcopy(op) | {"id": "detour"}
    detour["args"]["ops"] = [{"key": "retention.ms", "op": "SET", "value": "1"}]
    detour["inverse"]["args"]["ops"] = [{"key": "retention.ms", "op": "SET", "value": "1000"}]
    detour["expect"] = {e: v for e, v in op["expect"].items() if e != "cleanup.policy"}
    op["expect"]["retention.ms"] = "1"
    op["needs"].append("detour")
    back = {"key": "retention.ms", "op": "SET", "value": "1"}
    op["inverse"]["args"]["ops"] = [
        back if o["key"] == "retention.ms" else o for o in op["inverse"]["args"]["ops"]
    ]
    document["operations"].insert(document["operations"].index(op), detour)


def test_plan_with_intermediate_config_value_is_refused(world: World) -> None:
    document = load_document(plan_update(world))
    add_detour(document)
    assert "retention.ms is changed more than once" in get_refusal(document)


def test_thread_pool_steps_must_approach_shown_value(world: World) -> None:
    plan = world.plan(desired("BrokerConfig", "1", configs={"log.cleaner.threads": "8"}))
    document = load_document(plan)
    first, *_, last = document["operations"]
    assert first is not last
    accept_plan(sign(document))
    first["args"]["ops"][0]["value"] = "1000"
    document["operations"][1]["expect"]["log.cleaner.threads"] = "1000"
    document["operations"][1]["inverse"]["args"]["ops"][0]["value"] = "1000"
    assert "log.cleaner.threads" in get_refusal(document)


@pytest.mark.parametrize("verb", ["partitions.increase", "configs.alter"])
def test_deletion_with_extra_operation_is_refused(world: World, verb: str) -> None:
    extra = copy.deepcopy(find_op(load_document(plan_update(world)), verb))
    document = load_document(plan_deletion(World(MemoryCluster({1: "a", 2: "b", 3: "c"}))))
    document["operations"].insert(0, extra)
    document["changes"][0]["fields"] = []
    assert "is not a deletion" in get_refusal(document)


def test_creation_without_operation_is_refused(world: World) -> None:
    document = load_document(plan_creation(world))
    document["operations"], document["changes"][0]["fields"] = [], []
    assert "no operation changes it" in get_refusal(document)


@pytest.mark.parametrize("expect", [{"cleanup.policy": 5}, {"cleanup.policy": {}}])
def test_impossible_expectations_are_refused(world: World, expect: Document) -> None:
    world.apply(topic("t", partitions=1, configs={"cleanup.policy": ["delete"]}))
    document = load_document(world.plan(topic("t", configs={"cleanup.policy": {"append": ["compact"]}})))
    op = find_op(document, "configs.alter")
    op["expect"] |= expect
    op["irreversible"] = "It stays."
    op.pop("inverse")
    assert "shows changes that differ from its operations" in get_refusal(document)


THROTTLES = [
    {"TOPIC/t": {"retention.ms": "1"}},
    {"TOPIC/t": {"leader.replication.throttled.replicas": "x"}, "group/x": {}},
]


@pytest.mark.parametrize("entries", THROTTLES)
def test_throttle_with_other_config_keys_is_refused(world: World, entries: Document) -> None:
    world.apply(topic("t", assignments={0: [1, 2]}))
    body: Document = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 3]}], "throttle": 1000000}
    document = load_document(world.plan(topic("t"), desired("Reassignment", "move", **body)))
    find_op(document, "throttle.set")["args"]["entries"] = entries
    assert "throttle.set" in get_refusal(document)


def test_rollback_of_unknown_run_is_refused(world: World) -> None:
    document = load_document(plan_update(world))
    document["undoes"] = "20260101T000000Z-00000000"
    assert "undoes" in get_refusal(document)


UNKNOWN = [("verb", "queue.create"), ("resource", "Queue/t")]


@pytest.mark.parametrize(("key", "value"), UNKNOWN)
def test_plan_with_unknown_verb_or_kind_is_shown_but_not_applied(world: World, key: str, value: str) -> None:
    document = load_document(plan_creation(world))
    document["operations"][0][key] = value
    if key == "resource":
        document["changes"][0]["id"] = value
    file = parse_plan_file(sign(document), "x.plan")
    verify_plan(file, "x.plan")
    assert plan_text(file.plan, graph=True)
    assert render_plan_page(file.plan)
    with pytest.raises(KdeclareError) as caught:
        require_known_parts(file.plan)
    (problem,) = caught.value.diagnostics
    assert value.split("/")[0] in problem.detail


def test_stored_run_with_unknown_kind_does_not_stop_later_commands(world: World) -> None:
    """Such a state used to make every later command end with a traceback."""
    document = load_document(plan_creation(world))
    record: Document = {"id": "Queue/q", "before": None, "after": {"configs": {}}}
    document["ownership"].append(record)
    document["operations"].append(
        {
            "id": "q",
            "verb": "queue.create",
            "resource": "Queue/q",
            "needs": [],
            "args": {},
            "expect": {},
            "irreversible": "It stays.",
        }
    )
    text = sign(document)
    run_id = "20260101T000000Z-deadbeef"
    with world.store.lock("test"), world.store.begin_run(run_id, text) as journal:
        journal.append(
            {"event": "run", "at": "2026-01-01T00:00:00Z", "plan_id": "p", "who": "w", "command": "c"}
        )
    world.recover()
    assert world.apply(topic("t", partitions=1)).complete
    assert "Topic/t" in world.owned()


def plan_protected_deletion(world: World) -> Plan:
    kept = topic("t", partitions=1, lifecycle={"preventDestroy": True})
    world.apply(kept, topic("other", partitions=1))
    document = load_document(world.plan(kept, scope=PlanScope(allow_deletes=True)))
    for part in ("changes", "operations", "ownership"):
        document[part] = json.loads(json.dumps(document[part]).replace("other", "t"))
    live = {name: item.topic_id for name, item in world.cluster.topics(["t"]).items()}
    op = find_op(document, "topic.delete")
    op["expect"] = {"topic": live["t"]}
    if op["args"].get("topic_id"):
        op["args"]["topic_id"] = live["t"]
    state = world.store.read()
    assert state
    document["ownership"] = [
        {"id": "Topic/t", "before": dump_record(state.resources["Topic/t"]), "after": None}
    ]
    return parse_plan_file(sign(document), "x.plan").plan


def test_forged_plan_does_not_delete_protected_topic(world: World) -> None:
    plan = plan_protected_deletion(world)
    with pytest.raises(KdeclareError) as caught:
        world.run(plan, identity="0" * 64)
    (problem,) = caught.value.diagnostics
    assert (problem.code, caught.value.exit_code) == ("prevent-destroy", 3)
    assert set(world.cluster.topics(["t"])) == {"t"}


def test_rollback_of_creation_deletes_protected_topic(world: World) -> None:
    world.apply(topic("t", partitions=1, lifecycle={"preventDestroy": True}))
    assert world.rollback().complete
    assert not world.cluster.topics(["t"])


def make_outdated(document: Document) -> Document:
    return document | {"format_version": "1.0"}


def test_outdated_plan_with_invalid_expectation_is_refused(world: World) -> None:
    document = make_outdated(load_document(plan_update(world)))
    find_op(document, "partitions.increase")["expect"]["partitions"] = "one"
    assert "'partitions.increase:Topic/t' (partitions.increase) has values that are invalid" in get_refusal(
        document
    )


def test_outdated_plan_with_invalid_arguments_is_displayed(world: World) -> None:
    document = make_outdated(load_document(plan_update(world)))
    for op in document["operations"]:
        op["args"] = {"unknown": 1}
    file = parse_plan_file(sign(document), "x.plan")
    verify_plan(file, "x.plan")
    assert "partitions" in plan_text(file.plan, graph=True)
    assert render_plan_page(file.plan)


def test_integer_that_fits_no_float_is_displayed(world: World) -> None:
    document = make_outdated(load_document(plan_update(world)))
    (field,) = (f for f in document["changes"][0]["fields"] if f["path"] == "configs.retention.ms")
    field["after"] = str(10**400 + 1)
    file = parse_plan_file(sign(document), "x.plan")
    assert str(10**400 + 1) in plan_text(file.plan)


def test_forged_integer_that_fits_no_float_is_refused(world: World) -> None:
    document = load_document(plan_update(world))
    fields = document["changes"][0]["fields"]
    (field,) = (f for f in fields if f["path"] == "configs.retention.ms")
    fields.append(field | {"before": 10**400})
    assert "retention.ms" in get_refusal(document)


def test_rack_of_broker_id_that_no_cluster_has_is_refused(world: World) -> None:
    """Found by a fuzzer: Python refuses to convert strings of more than 4,300 digits."""
    document = load_document(plan_update(world))
    document["racks"] = {"9" * 5000: "a"}
    assert "racks" in get_refusal(document)


@pytest.mark.parametrize(
    ("name", "value"), [("throttle", 10**400), ("throttle", 0), ("pause_s", 10**400), ("batch_size", -1)]
)
def test_pace_out_of_range_is_refused(world: World, name: str, value: int) -> None:
    """Found by a fuzzer: a throttle that fits no float could not be shown."""
    world.apply(topic("t", assignments={0: [1, 2]}))
    body: Document = {"partitions": [{"topic": "t", "partition": 0, "replicas": [2, 3]}], "throttle": 1000000}
    document = load_document(world.plan(topic("t"), desired("Reassignment", "move", **body)))
    find_op(document, "partitions.reassign")["args"]["pace"][name] = value
    assert "partitions.reassign" in get_refusal(document)
