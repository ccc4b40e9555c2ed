"""States, plans and journals that kdeclare 0.1 wrote (tests/formats/0.1)."""

import json
import shutil
from pathlib import Path
from typing import cast

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue
from kdeclare.engine.planning.plan_document import compute_document_id
from kdeclare.engine.planning.planfile import parse_plan_file
from kdeclare.engine.state.document import decode_state, encode_state
from kdeclare.engine.state.local_store import LocalStore
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.providers.kafka.request_values import NewTopic
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.engine.world import World, topic

STORED = Path(__file__).parents[1] / "formats" / "0.1"
ALTERED = "20260101T000000Z.0002-c661248d"


def load_stored_world(folder: Path) -> World:
    """The cluster as the stored runs left it, with a copy of their state."""
    shutil.copytree(STORED, folder)
    cluster = MemoryCluster()  # assigns topic ids in the order of creation, as it did then
    cluster.create_topics([NewTopic("shared", 2, 1, None, {"cleanup.policy": "compact,delete"})])
    cluster.create_topics(
        [NewTopic("orders", 2, 2, None, {"retention.ms": "60000", "cleanup.policy": "delete,compact"})]
    )
    return World(cluster=cluster, store=cast(MemoryStore, LocalStore(folder)))


def test_state_of_0_1_is_migrated(tmp_path: Path) -> None:
    world = load_stored_world(tmp_path / "state")
    assert world.owned()["Topic/orders"]["configs"]["cleanup.policy"] == {
        "append": ["compact"],
        "subtract": [],
        "added": [],
    }
    state = world.store.read()
    assert state is not None
    assert json.loads(encode_state(state))["version"] == 3, "an older kdeclare refuses it"


def test_list_elements_unproven_by_old_state_are_not_subtracted(tmp_path: Path) -> None:
    world = load_stored_world(tmp_path / "state")
    result = world.apply(
        topic("orders", partitions=2, replicationFactor=2, configs={"retention.ms": "60000"}),
        topic("shared"),
    )
    assert result.complete
    assert not [op for op in result.plan.operations if op.verb == "configs.alter"]
    assert world.overrides("orders")["cleanup.policy"] == "delete,compact"
    assert world.overrides("shared")["cleanup.policy"] == "compact,delete"


def test_plan_of_0_1_is_readable(tmp_path: Path) -> None:
    file = parse_plan_file((STORED / "runs" / ALTERED / "plan.json").read_text(), "it")
    assert file.is_outdated
    assert file.plan_id.startswith("c661248d"), "the id stays that of the file"
    change = file.plan.changes[0]
    assert change.risks == (change.risk,)
    assert {field.risk for field in change.fields} == {change.risk}, "never less than was known then"


def test_run_of_0_1_can_be_rolled_back(tmp_path: Path) -> None:
    world = load_stored_world(tmp_path / "state")
    result = world.rollback(ALTERED)
    assert result.complete
    assert world.overrides("orders") == {"retention.ms": "1000"}


@pytest.mark.parametrize("text", ['{"version": 4}', '{"version": 0}', '{"version": "3"}'])
def test_state_of_unknown_version_is_refused(text: str) -> None:
    with pytest.raises(KdeclareError):
        decode_state(text, "state.json")


def test_malformed_plan_of_old_format_is_refused() -> None:
    raw: dict[str, JsonValue] = {"format_version": "1.0", "changes": [], "ownership": [{"id": "Topic/x"}]}
    with pytest.raises(KdeclareError) as refused:
        parse_plan_file(json.dumps(raw | {"plan_id": compute_document_id(raw)}), "it.plan")
    assert [d.code for d in refused.value.diagnostics] == ["plan-malformed"]
