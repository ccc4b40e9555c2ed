"""Write the catalog of config keys from a running broker.

    python scripts/generate_catalog.py 127.0.0.1:19092

The types and defaults come from the broker. To determine how a broker key can be changed, the script sends
validate-only changes to the cluster-wide default.
"""

import json
import sys
from pathlib import Path
from typing import Any

from kafka.admin import KafkaAdminClient, NewTopic
from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

TARGET = Path(__file__).parent.parent / "kdeclare" / "providers" / "kafka" / "config" / "catalog"
TOPIC = "kdeclare-catalog"
TYPES = {
    1: "BOOLEAN",
    2: "STRING",
    3: "INT",
    4: "SHORT",
    5: "LONG",
    6: "DOUBLE",
    7: "LIST",
    8: "CLASS",
    9: "PASSWORD",
}
DEFAULT_CONFIG = 5
NEVER_DESCRIBED_UNSET = (
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)


def main(bootstrap: str) -> None:
    """Describe a topic, a broker, a group and a client metrics subscription, and write a file for each."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    version = "4.3"
    client.create_topics([NewTopic(TOPIC, 1, 1)])
    try:
        topic = {e["name"]: _key(e, "topic") for e in _described(client, 2, TOPIC)}
        broker_id = client.describe_cluster()["brokers"][0]["broker_id"]
        described = _described(client, 4, str(broker_id))
        modes = {e["name"]: _mode(client, e) for e in described}
        broker = {e["name"]: _key(e, modes[e["name"]]) for e in described}
        rate = {"type": "LONG", "default": None, "mode": "cluster-wide"}
        broker |= dict.fromkeys(NEVER_DESCRIBED_UNSET, rate)
        # Kafka describes groups and subscriptions that do not exist, with their defaults.
        group = {e["name"]: _key(e, "group") for e in _described(client, 32, TOPIC)}
        metrics = {e["name"]: _key(e, "client-metrics") for e in _described(client, 16, TOPIC)}
    finally:
        client.delete_topics([TOPIC])
        client.close()
    _write("topic", version, topic)
    _write("broker", version, broker)
    _write("group", version, group)
    _write("client_metrics", version, metrics)


def _described(client: Any, resource_type: int, name: str) -> list[dict[str, Any]]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=False)
    node = int(name) if resource_type == 4 else None
    response = client._manager.run(_send, client, request, node)
    return [entry.to_dict() if hasattr(entry, "to_dict") else entry for entry in response.results[0].configs]


async def _send(client: Any, request: Any, node: int | None) -> Any:
    return await client._manager.send(request, node_id=node)


def _key(entry: dict[str, Any], mode: str) -> dict[str, Any]:
    defaults = [s["value"] for s in entry["synonyms"] if s["source"] == DEFAULT_CONFIG]
    default = defaults[0] if defaults else None
    if entry["config_source"] == DEFAULT_CONFIG and default is None:
        default = entry["value"]
    return {"type": TYPES[entry["config_type"]], "default": default, "mode": mode}


def _mode(client: Any, entry: dict[str, Any]) -> str:
    if entry["read_only"]:
        return "read-only"
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    item = resource(
        resource_type=4,
        resource_name="",
        configs=[
            resource.AlterableConfig(name=entry["name"], config_operation=0, value=entry["value"] or "1")
        ],
    )
    request = IncrementalAlterConfigsRequest(resources=[item], validate_only=True)
    response = client._manager.run(_send, client, request, None)
    message = response.responses[0].error_message or ""
    if "listener prefix" in message:
        return "per-listener"
    return "per-broker" if "cluster level" in message else "cluster-wide"


def _write(scope: str, version: str, keys: dict[str, Any]) -> None:
    text = json.dumps({"kafka": version, "keys": dict(sorted(keys.items()))}, indent=1)
    (TARGET / f"{scope}.json").write_text(text + "\n")
    print(f"{scope}: {len(keys)} keys", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
