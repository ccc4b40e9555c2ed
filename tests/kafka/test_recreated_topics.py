"""Topics that are deleted and created again, as brokers see them after a restart."""

from typing import Any

import pytest
from kafka.admin import KafkaAdminClient
from kafka.protocol.admin import DescribeConfigsRequest

from kdeclare import sandbox as kafka_sandbox
from kdeclare.sandbox import SandboxStatus
from tests.beds import DELETE, SET, KafkaBed, topic_resource
from tests.kafka.records import expect
from tests.polling import retry_until_passes

pytestmark = pytest.mark.kafka

_TOPIC, _DYNAMIC_TOPIC_CONFIG = 2, 1
RESTARTED, OTHER = 3, 1


def read_overrides(admin: KafkaAdminClient, broker: int, topic: str) -> dict[str, str]:
    """Return the overrides of a topic as one broker sees them."""
    request = DescribeConfigsRequest(resources=[(_TOPIC, topic, None)], include_synonyms=False, min_version=1)

    async def send() -> Any:
        return await admin._manager.send(request, node_id=broker)

    response = admin._manager.run(send)
    return {
        entry.name: entry.value
        for entry in response.results[0].configs
        if entry.config_source == _DYNAMIC_TOPIC_CONFIG
    }


def test_restarted_broker_gives_configs_of_deleted_topic_to_new_topic(
    kafka_bed: KafkaBed, sandbox: SandboxStatus
) -> None:
    """ConfigurationsDelta forgets only configs of an earlier image, and a restart begins without one."""
    name = kafka_bed.create(configs={"retention.ms": "5000000"})
    assert kafka_bed.cluster.delete_topics({name: None}) == {name: None}
    kafka_sandbox.kill_broker(sandbox.folder, RESTARTED)
    kafka_sandbox.start_broker(sandbox.folder, RESTARTED)
    kafka_bed.create(name=name, configs={"flush.ms": "60000"})
    admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
    try:
        retry_until_passes(lambda: expect(bool(read_overrides(admin, RESTARTED, name))))
        assert read_overrides(admin, OTHER, name) == {"flush.ms": "60000"}
        both = {"flush.ms": "60000", "retention.ms": "5000000"}
        assert read_overrides(admin, RESTARTED, name) == both
        resource = topic_resource(name)
        assert kafka_bed.alter(resource, ("retention.ms", DELETE, None), ("flush.ms", SET, "70000")) is None
        retry_until_passes(lambda: expect(read_overrides(admin, RESTARTED, name)["flush.ms"] == "70000"))
        assert "retention.ms" in read_overrides(admin, RESTARTED, name), "the controller ignores the deletion"
        assert kafka_bed.alter(resource, ("retention.ms", SET, "6000000")) is None
        assert kafka_bed.alter(resource, ("retention.ms", DELETE, None)) is None
        retry_until_passes(lambda: expect("retention.ms" not in read_overrides(admin, RESTARTED, name)))
    finally:
        admin.close()
