"""Sample plans that cover every form of the reports."""

from dataclasses import replace

from kdeclare.core.diagnostics import SourcePosition, denied, error, warning
from kdeclare.core.jsontypes import JsonObject
from kdeclare.core.operations.argument_binding import bind_arguments
from kdeclare.core.operations.operation import Inverse, Operation
from kdeclare.core.plans.plan import (
    SYSTEM_POLICY,
    ClusterRef,
    Ownership,
    Plan,
    PlanBase,
    Summary,
    Verdict,
    VerdictOutcome,
)
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.reassignment.operations.arguments import ReassignArgs
from kdeclare.providers.kafka.topic.record import TopicRecord
from tests.jsontypes import Json

ORDERS = ResourceId("Topic", "orders")
PAYMENTS = ResourceId("Topic", "payments")
REFUNDS = ResourceId("Topic", "refunds")
OLD = ResourceId("Topic", "legacy.events")
CLUSTER = ResourceId("BrokerConfig", "cluster-default")
DRAIN = ResourceId("Reassignment", "drain-broker-3")

SET, DELETE, APPEND, SUBTRACT, CHANGE = FieldOp
ALLOW, WARN, DENY = VerdictOutcome


def make_position(name: str, line: int = 1) -> SourcePosition:
    return SourcePosition(f"manifests/{name}.yaml", line, 1)


def make_field_change(
    path: str, before: Json, after: Json, op: FieldOp = CHANGE, value: Json = None
) -> FieldChange:
    return FieldChange(path, op, before, after, value)


def make_config_change(
    key: str, before: Json, after: Json, op: FieldOp = SET, value: Json = None
) -> FieldChange:
    return FieldChange(f"configs.{key}", op, before, after, value)


def make_operation(
    verb: str,
    resource: ResourceId,
    needs: dict[str, str] | None = None,
    irreversible: str | None = None,
    moved: dict[str, tuple[list[int], list[int]]] | None = None,
) -> Operation:
    """moved: replicas before and after, by partition."""
    inverse = None if irreversible else Inverse(verb, bind_arguments(verb, {"back": True}))
    args = bind_arguments(verb, {"a": 1})
    expect: JsonObject = {"b": 2}
    if moved:
        args = ReassignArgs({name: tuple(after) for name, (_, after) in moved.items()}, False)
        expect = {name: before for name, (before, _) in moved.items()}
    return Operation(f"{verb}:{resource}", verb, resource, args, expect, needs or {}, inverse, irreversible)


def make_plan(**parts: object) -> Plan:
    given: dict[str, object] = {
        "project": "payments",
        "env": "sandbox",
        "cluster": ClusterRef("5L6g3nShT-eMCtK--X86sw", "127.0.0.1:19092"),
        "base": PlanBase("b1946ac9", 7),
        "summary": Summary(),
    }
    return Plan(**(given | parts))  # type: ignore[arg-type]


CREATE_ORDERS = Change(
    ORDERS,
    Action.CREATE,
    Reason.DECLARED,
    Risk.SAFE,
    (
        make_field_change("partitions", None, 12),
        make_field_change("replicationFactor", None, 3),
        make_config_change("cleanup.policy", None, ["compact", "delete"]),
        make_config_change("retention.ms", None, "604800000"),
        make_config_change("max.message.bytes", None, "1048588"),
    ),
    make_position("orders"),
)

UPDATE_PAYMENTS = Change(
    PAYMENTS,
    Action.UPDATE,
    Reason.CHANGED,
    Risk.IRREVERSIBLE,
    (
        make_field_change("partitions", 6, 12),
        make_config_change("retention.ms", "86400000", "604800000"),
        make_config_change("segment.bytes", None, "536870912"),
        make_config_change("min.insync.replicas", "2", None, DELETE),
        make_config_change("cleanup.policy", ["delete"], ["delete", "compact"], APPEND, ["compact"]),
    ),
    make_position("payments", 14),
)

DRIFT_REFUNDS = Change(
    REFUNDS,
    Action.UPDATE,
    Reason.DRIFTED,
    Risk.SAFE,
    (
        make_config_change("retention.ms", "-1", "2592000000"),
        make_config_change("cleanup.policy", ["compact", "delete"], ["compact"], SUBTRACT, ["delete"]),
    ),
    make_position("refunds"),
)

BROKERS = Change(
    CLUSTER,
    Action.UPDATE,
    Reason.CHANGED,
    Risk.DISRUPTIVE,
    (
        make_config_change("log.cleaner.threads", "1", "2"),
        make_config_change("listener.name.tls.ssl.keystore.password", "(sensitive)", "(sensitive)"),
    ),
    make_position("brokers"),
)

MOVE = Change(
    DRAIN,
    Action.UPDATE,
    Reason.CHANGED,
    Risk.DISRUPTIVE,
    (
        make_field_change("replicas.orders-0", [1, 2, 3], [1, 2, 4]),
        make_field_change("replicas.orders-10", [3, 1, 2], [4, 1, 2]),
    ),
    make_position("drain"),
)

DELETE_OLD = Change(
    OLD,
    Action.DELETE,
    Reason.ORPHANED,
    Risk.IRREVERSIBLE,
    (
        make_field_change("partitions", 3, None),
        make_field_change("replicationFactor", 2, None),
        make_config_change("retention.ms", "1000", None),
    ),
)

SAMPLES: dict[str, Plan] = {
    "no-changes": make_plan(summary=Summary(unchanged=36)),
    "adopting": make_plan(
        summary=Summary(unchanged=3),
        ownership=tuple(Ownership(r, None, TopicRecord()) for r in (ORDERS, PAYMENTS, REFUNDS)),
    ),
    "orphans": make_plan(
        summary=Summary(unchanged=35, orphaned=1),
        changes=(Change(OLD, Action.NO_OP, Reason.ORPHANED, Risk.SAFE),),
        diagnostics=(warning("orphaned", "Orphan", f"{OLD} is owned.", resource=str(OLD)),),
    ),
    "create": make_plan(
        summary=Summary(create=1, unchanged=3),
        changes=(CREATE_ORDERS,),
        operations=(make_operation("topic.create", ORDERS),),
    ),
    "everything": make_plan(
        summary=Summary(1, 4, 1, 1, 29, 1, 0, 4, 2, 3),
        changes=(
            BROKERS,
            MOVE,
            DELETE_OLD,
            CREATE_ORDERS,
            UPDATE_PAYMENTS,
            DRIFT_REFUNDS,
            Change(ResourceId("Topic", "scratch"), Action.FORGET, Reason.FORGOTTEN, Risk.SAFE),
            Change(ResourceId("Topic", "zombie"), Action.NO_OP, Reason.ORPHANED, Risk.SAFE),
        ),
        operations=(
            make_operation("configs.alter", CLUSTER),
            make_operation("topic.create", ORDERS),
            make_operation(
                "partitions.increase", PAYMENTS, irreversible="Kafka cannot take partitions away."
            ),
            make_operation(
                "configs.alter",
                PAYMENTS,
                {f"partitions.increase:{PAYMENTS}": "partitions before their configs"},
            ),
            make_operation("configs.alter", REFUNDS),
            make_operation(
                "throttle.set", DRAIN, {f"topic.create:{ORDERS}": "created before anything on it"}
            ),
            make_operation(
                "partitions.reassign",
                DRAIN,
                {f"throttle.set:{DRAIN}": "throttled before it moves"},
                moved={"orders-0": ([3, 1, 2], [4, 1, 2]), "orders-1": ([1, 2, 3], [1, 2, 4])},
            ),
            make_operation(
                "throttle.clear", DRAIN, {f"partitions.reassign:{DRAIN}": "taken off after the move"}
            ),
            make_operation("topic.delete", OLD, irreversible="Its records are lost."),
        ),
        unmanaged_configs={
            "Topic/payments": ("flush.ms", "segment.jitter.ms"),
            "Topic/refunds": ("flush.ms",),
        },
    ),
    "blocked": make_plan(
        summary=Summary(create=1, unchanged=3, blocked=2),
        changes=(
            CREATE_ORDERS,
            Change(
                OLD,
                Action.DELETE,
                Reason.ORPHANED,
                Risk.IRREVERSIBLE,
                DELETE_OLD.fields,
                None,
                "prevent-destroy",
            ),
            Change(
                PAYMENTS,
                Action.UPDATE,
                Reason.CHANGED,
                Risk.IRREVERSIBLE,
                (make_field_change("partitions", 6, 100),),
                make_position("payments", 14),
                "policy-violation",
            ),
        ),
        operations=(make_operation("topic.create", ORDERS),),
        verdicts=(
            Verdict("bounds", str(PAYMENTS), DENY, "100 partitions are more than the 48 allowed."),
            Verdict("naming", str(ORDERS), WARN, "the name has no team in front."),
            Verdict("factor", str(ORDERS), ALLOW),
            Verdict("factor", "Topic/other", WARN, "one replica only."),
        ),
        diagnostics=(
            denied(
                "prevent-destroy",
                "The topic may not be deleted",
                f"{OLD} had lifecycle.preventDestroy: true when it was last applied.",
                hint="Declare it again without preventDestroy, apply, then take it out.",
                resource=str(OLD),
            ),
        ),
    ),
    "judged": make_plan(
        summary=Summary(create=1, update=1, unchanged=3, blocked=2, reassign=1),
        changes=(
            CREATE_ORDERS,
            replace(MOVE, blocked="policy-violation"),
            replace(DRIFT_REFUNDS, blocked="policy-violation"),
            UPDATE_PAYMENTS,
        ),
        operations=(
            make_operation("topic.create", ORDERS),
            make_operation(
                "partitions.increase", PAYMENTS, irreversible="Kafka cannot take partitions away."
            ),
        ),
        verdicts=(
            Verdict("bounds", str(ORDERS), ALLOW),
            Verdict("naming", str(ORDERS), WARN, "no team in front.", override="named before the rule was"),
            Verdict("racks", str(DRAIN), ALLOW, topic="refunds"),
            Verdict("racks", str(DRAIN), DENY, "on 1 rack,\nand 2 are wanted.", topic="orders"),
            Verdict(SYSTEM_POLICY, str(REFUNDS), DENY, "retention.ms must not be below an hour."),
            Verdict("bounds", str(PAYMENTS), ALLOW),
        ),
    ),
    "errors": make_plan(
        summary=Summary(update=1, unchanged=3, blocked=1),
        changes=(
            DRIFT_REFUNDS,
            Change(
                ORDERS,
                Action.UPDATE,
                Reason.CHANGED,
                Risk.SAFE,
                (make_field_change("partitions", 12, 6),),
                make_position("orders"),
                "invalid-partitions",
            ),
        ),
        operations=(make_operation("configs.alter", REFUNDS),),
        diagnostics=(
            warning("literal-secret", "Secret in a manifest", "It can be read by all who see the file."),
            error(
                "invalid-partitions",
                "Partitions cannot be taken away",
                f"{ORDERS} has 12 partitions; the manifest says 6.",
                hint="Say 12 or more, or make a new topic and move the records.",
                place=SourcePosition("manifests/orders.yaml", 6, 15),
                resource=str(ORDERS),
            ),
        ),
    ),
    "rollback": make_plan(
        undoes="20260131-120000-a1b2",
        summary=Summary(update=1),
        changes=(
            Change(
                PAYMENTS,
                Action.UPDATE,
                Reason.ROLLBACK,
                Risk.SAFE,
                (
                    make_config_change("retention.ms", "604800000", "86400000"),
                    make_config_change("segment.bytes", "536870912", None, DELETE),
                ),
            ),
        ),
        operations=(make_operation("configs.alter", PAYMENTS),),
        diagnostics=(
            warning(
                "irreversible", "Not undone", f"{PAYMENTS} keeps its 12 partitions.", resource=str(PAYMENTS)
            ),
            warning(
                "conflict",
                "Changed by another client after the run",
                f"{REFUNDS} retention.ms is 1000; the run left 2592000000.",
                resource=str(REFUNDS),
            ),
        ),
    ),
    "cannot-undo": make_plan(
        undoes="20260131-120000-a1b2",
        diagnostics=(warning("has-records", "The topic holds records", f"{ORDERS} holds 5 records."),),
    ),
    "nothing-to-undo": make_plan(undoes="20260131-120000-a1b2"),
    "hostile": make_plan(
        summary=Summary(update=1),
        changes=(
            Change(
                ORDERS,
                Action.UPDATE,
                Reason.DRIFTED,
                Risk.SAFE,
                (
                    make_config_change("compression.type", "\x1b[31mzstd\nx", "lz4"),
                    make_config_change("empty", "", " padded "),
                    make_config_change(
                        "leader.replication.throttled.replicas",
                        [f"{n}:{n % 3}" for n in range(40)],
                        ["*"],
                    ),
                    make_config_change("follower.replication.throttled.rate", None, "52428800"),
                ),
            ),
        ),
        operations=(make_operation("configs.alter", ORDERS),),
    ),
}
