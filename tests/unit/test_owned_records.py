"""Ownership records: frozen values in memory, unchanged JSON in files."""

import json

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.plans.plan import ClusterRef, Ownership, Plan, PlanBase, Summary
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.owned_record import (
    OwnedRecord,
    UnboundRecord,
    get_owned_labels,
    is_protected,
    narrow_record,
)
from kdeclare.core.resources.record_binding import bind_record, dump_record, protect_record
from kdeclare.core.secrets.secret_refs import SecretRef, find_records
from kdeclare.engine.executor.ownership import compute_owned
from kdeclare.engine.planning.plan_integrity import find_inconsistencies
from kdeclare.engine.state.document import decode_state, encode_state
from kdeclare.providers.kafka.client_quota.diff import QuotaRecord
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.topic.record import TopicRecord

QUOTA: dict[str, JsonValue] = {
    "entity": {"user": "alice", "clientId": None},
    "limits": {"producer_byte_rate": 5, "a": 0.5},
}
WORKERS: dict[str, JsonValue] = {
    "workers": {"urls": ["https://a:8083"], "ca_file": "ca.pem", "headers": [["A", "Bearer ${env.T}"]]},
    "configs": {
        "ssl.keystore.location": {"value": "/new"},
        "ssl.keystore.type": {"value": None},
        "ssl.keystore.password": {"secret": "a-hash", "reference": "${env.P}"},
        "ssl.key.password": {"secret": "a-hash", "reference": None},
    },
}
TOPIC: dict[str, JsonValue] = {
    "configs": {
        "retention.ms": {"value": "1"},
        "cleanup.policy": {"value": ["compact", "delete"]},
        "segment.ms": {"value": None},
        "follower.replication.throttled.replicas": {
            "append": ["0:1", "0:2"],
            "subtract": [],
            "added": ["0:1"],
        },
        "plug.in.password": {"secret": "a-hash", "reference": "${env.P}"},
    },
    "preventDestroy": True,
    "topicId": "an-id",
    "labels": {"team": "a"},
    "assignments": {"0": [1, 2], "1": [2, 1]},
    "partitions": 2,
    "replicationFactor": 2,
}
OTHER: dict[str, JsonValue] = {"configs": {}, "entirely": ["new"]}


def make_state_text(**resources: JsonValue) -> str:
    known = {name.replace("__", "/"): record for name, record in resources.items()}
    head: dict[str, JsonValue] = {"version": 3, "lineage": "l", "serial": 1, "cluster_id": "c"}
    return json.dumps({**head, "resources": known})


def make_plan(before: OwnedRecord | None, after: OwnedRecord | None) -> Plan:
    ownership = (Ownership(ResourceId("ClientQuota", "x"), before, after),)
    return Plan("p", "e", ClusterRef("c", "c"), PlanBase("l", 1), Summary(), ownership=ownership)


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("ClientQuota", QUOTA),
        ("ClientQuota", {**QUOTA, "labels": {"team": "a"}}),
        ("ClientQuota", {**QUOTA, "limits": {}}),
        ("Topic", TOPIC),
        ("Topic", {"configs": {}, "preventDestroy": False}),
        ("BrokerConfig", {"configs": TOPIC["configs"]}),
        ("ConnectWorkerConfig", WORKERS),
        ("ConnectWorkerConfig", {"workers": {"urls": ["http://a:8083"]}, "configs": {}}),
    ],
)
def test_record_round_trips(kind: str, record: dict[str, JsonValue]) -> None:
    bound = bind_record(kind, record)
    assert isinstance(bound, OwnedRecord)
    assert not isinstance(bound, UnboundRecord)
    assert json.dumps(dump_record(bound), sort_keys=True) == json.dumps(record, sort_keys=True)
    assert get_owned_labels(bound) == record.get("labels", {})
    assert bound == bind_record(kind, dump_record(bound))


def test_record_secrets_have_same_paths_as_body() -> None:
    in_configs = dict(find_records(bind_record("Topic", TOPIC)))
    assert in_configs == {("configs", "plug.in.password"): SecretRef("a-hash", "${env.P}")}
    records = dict(find_records(bind_record("ConnectWorkerConfig", WORKERS)))
    assert records["configs", "ssl.keystore.password"] == SecretRef("a-hash", "${env.P}")
    assert len(records) == 2


def test_quota_record_has_entity() -> None:
    record = narrow_record(bind_record("ClientQuota", QUOTA), QuotaRecord)
    assert record is not None
    assert record.quota_entity == QuotaEntity.of({EntityType.USER: "alice", EntityType.CLIENT_ID: None})
    with pytest.raises(TypeError, match="expected QuotaRecord, got dict"):
        narrow_record(QUOTA, QuotaRecord)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({**QUOTA, "unheard": 1}, "unheard: Unexpected keyword argument"),
        ({"limits": {}}, "entity: Field required"),
        ({**QUOTA, "limits": {"a": "5"}}, "limits.a"),
        ([], "Input should be an object"),
    ],
)
def test_unreadable_record_is_kept_unchanged(record: JsonValue, problem: str) -> None:
    bound = bind_record("ClientQuota", record)
    assert isinstance(bound, UnboundRecord)
    assert problem in bound.problem
    assert dump_record(bound) == record


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({**TOPIC, "unheard": 1}, "unheard: unknown field"),
        ({**TOPIC, "partitions": "2"}, "partitions: expected an integer, got str"),
        ({**TOPIC, "preventDestroy": 1}, "preventDestroy: expected true or false, got int"),
        ({**TOPIC, "assignments": {"0": [True]}}, "assignments: expected an integer, got bool"),
        ({"configs": []}, "configs: not an object"),
        ({"configs": {"a.b": {"value": 5}}}, "configs.a.b: expected an array, got int"),
        ({"configs": {"a.b": {"append": [], "subtract": []}}}, "configs.a.b: not a value"),
        ([], "expected an object, got list"),
    ],
)
def test_unreadable_topic_record_is_kept_unchanged(record: JsonValue, problem: str) -> None:
    bound = bind_record("Topic", record)
    assert isinstance(bound, UnboundRecord)
    assert bound.problem.startswith(problem)
    assert dump_record(bound) == record


@pytest.mark.parametrize("kind", ["Queue", "Nobody"])
def test_record_of_unknown_kind_is_kept_unchanged(kind: str) -> None:
    assert dump_record(bind_record(kind, OTHER)) == OTHER
    text = encode_state(decode_state(make_state_text(**{f"{kind}__x": OTHER}), "state.json"))
    assert json.loads(text)["resources"] == {f"{kind}/x": OTHER}
    assert encode_state(decode_state(text, "state.json")) == text


def test_state_text_with_records_round_trips() -> None:
    text = encode_state(
        decode_state(make_state_text(ClientQuota__x=QUOTA, Topic__t=TOPIC, Nobody__n=OTHER), "state.json")
    )
    state = decode_state(text, "state.json")
    assert isinstance(state.resources["ClientQuota/x"], QuotaRecord)
    assert encode_state(state) == text
    assert json.loads(text)["resources"] == {"ClientQuota/x": QUOTA, "Topic/t": TOPIC, "Nobody/n": OTHER}


def test_malformed_record_in_state_is_reported_with_file_and_resource() -> None:
    with pytest.raises(KdeclareError) as caught:
        decode_state(make_state_text(ClientQuota__x={**QUOTA, "limits": {"a": "5"}}), "/some/state.json")
    (problem,) = caught.value.diagnostics
    assert problem.code == "state-corrupt"
    assert problem.detail.startswith("/some/state.json: the record of ClientQuota/x cannot be read (limits.a")


def test_plan_with_unreadable_record_is_inconsistent() -> None:
    unreadable = bind_record("ClientQuota", {"limits": {}})
    (problem,) = find_inconsistencies(make_plan(None, unreadable))
    assert problem == "the ownership record of ClientQuota/x cannot be read (entity: Field required)"


def test_run_keeps_record_it_cannot_read() -> None:
    unreadable, record = bind_record("ClientQuota", {"limits": {}}), bind_record("ClientQuota", QUOTA)
    assert record is not None
    owned = {"ClientQuota/x": record}
    assert compute_owned(make_plan(record, unreadable), {}, owned) == owned


def test_record_stores_protection() -> None:
    protected = protect_record("Topic", TopicRecord())
    assert is_protected(protected)
    assert is_protected(protect_record("Topic", None))
    assert not is_protected(TopicRecord())
    assert not is_protected(bind_record("ClientQuota", QUOTA))
