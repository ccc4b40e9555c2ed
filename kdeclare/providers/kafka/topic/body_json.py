"""A declared topic as plain data, to be sent to where it is compared."""

from kdeclare.core.jsontypes import Json
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.wish_json import wishes_from, wishes_json
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.reassignment.placing import Strategy
from kdeclare.providers.kafka.topic.spec import TopicBody


def topic_json(name: str, body: TopicBody) -> Json:
    """See `core.kind.Kind.to_json`; what is not stated, or as by default, is left out."""
    assignments = body.assignments
    stated: dict[str, Json] = {
        "partitions": body.partitions,
        "replicationFactor": body.replication_factor,
        "assignments": None if assignments is None else {str(n): list(r) for n, r in assignments.items()},
        "strategy": None if body.strategy is None else str(body.strategy),
        "racks": list(body.racks) or None,
        "removeUnmanaged": body.remove_unmanaged or None,
        "preventDestroy": body.prevent_destroy or None,
        "adopt": body.adopt or None,
    }
    configs = wishes_json(body.configs, catalog(ConfigScope.TOPIC))
    return {"configs": configs, **{field: value for field, value in stated.items() if value is not None}}


def topic_from(json: Json) -> TopicBody:
    """See `core.kind.Kind.from_json`."""
    assignments = json.get("assignments")
    if assignments is not None:
        assignments = {n: tuple(assignments[str(n)]) for n in sorted(map(int, assignments))}
    strategy = json.get("strategy")
    return TopicBody(
        partitions=json.get("partitions"),
        replication_factor=json.get("replicationFactor"),
        assignments=assignments,
        strategy=None if strategy is None else Strategy(strategy),
        racks=tuple(json.get("racks", ())),
        configs=wishes_from(json["configs"]),
        remove_unmanaged=json.get("removeUnmanaged", False),
        prevent_destroy=json.get("preventDestroy", False),
        adopt=json.get("adopt", False),
    )
