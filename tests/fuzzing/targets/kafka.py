"""Kafka: client properties, JSON files of the reassignment tool, and answers of brokers."""

import json
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from kafka.record.default_records import DefaultRecordBatchBuilder

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.providers.kafka.client.decoding.configs_decoder import decode_configs
from kdeclare.providers.kafka.client.decoding.created_topics import decode_created_topics
from kdeclare.providers.kafka.client.decoding.fetched_records import decode_fetched_records
from kdeclare.providers.kafka.client.decoding.record_batches import decode_batches
from kdeclare.providers.kafka.client.decoding.wire_format import MalformedResponse, RawResponse
from kdeclare.providers.kafka.client.properties import (
    build_client_arguments,
    read_properties,
    resolve_config_providers,
)
from kdeclare.providers.kafka.client.topics import decode_topics
from kdeclare.providers.kafka.commands.reassign.assignments_file import (
    dump_assignments,
    parse_assignments,
    parse_broker_list,
    parse_topics_to_move,
)
from kdeclare.providers.kafka.consumer_group.reset_values import (
    parse_duration_ms,
    parse_offsets_file,
    parse_time_ms,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.request_values import ConfigQuery
from tests.fuzzing.mutations import mutate_bytes, mutate_json
from tests.fuzzing.target import Target
from tests.fuzzing.targets.plans import ROOT

_ANSWERS = ROOT / "tests/unit/kafka_answers"
_NAMES = ("metadata-v13", "topic-configs-v4", "broker-configs-v4", "created-topics-v7")
_RESOURCES = (
    *(ConfigResource(ConfigScope.TOPIC, f"orders-{i}") for i in range(12)),
    ConfigResource(ConfigScope.BROKER, "1"),
)
_QUERIES = {
    resource: ConfigQuery(resource, frozenset({"retention.ms"}), overrides=True) for resource in _RESOURCES
}


@cache
def _make_file() -> Path:
    return Path(tempfile.mkdtemp(prefix="fuzz-properties-")) / "client.properties"


def read_client_properties(data: bytes) -> None:
    """Read client properties, and build the arguments of the client. Config providers read no files here."""
    file = _make_file()
    file.write_bytes(data)
    properties = read_properties(file)
    properties.pop("config.providers", None)
    build_client_arguments(resolve_config_providers(properties))


def read_reassignment(data: bytes) -> None:
    """Parse a file of the reassignment tool, and write what was read."""
    text = data.decode("utf-8", "replace")
    with suppress(KdeclareError):
        assignments = parse_assignments(text, "x.json")
        assert len(parse_assignments(dump_assignments(assignments), "again.json")) == len(assignments)
    with suppress(KdeclareError):
        parse_topics_to_move(text, "x.json")
    with suppress(KdeclareError):
        parse_broker_list(text[:1000])


def read_offsets_file(data: bytes) -> None:
    """Parse a file of offsets, and its text as the values of options."""
    text = data.decode("utf-8", "replace")
    for parse in (parse_time_ms, parse_duration_ms):
        with suppress(KdeclareError, ValueError):
            parse(text)
    parse_offsets_file(text, "x.csv")


def read_broker_answer(data: bytes) -> None:
    """Decode an answer. The first byte chooses the type of the answer."""
    name, body = _NAMES[data[0] % len(_NAMES)] if data else _NAMES[0], data[1:]
    response = RawResponse(body, int(name.rpartition("-v")[2]))
    if name.startswith("metadata"):
        list(decode_topics(response))
    elif name.startswith("created"):
        decode_created_topics(response)
    else:
        list(decode_configs(response, _QUERIES))


def read_record_batches(data: bytes) -> None:
    """Decode batches of records, and the response to a Fetch request that contains them."""
    decode_batches(data, 1000)
    with suppress(MalformedResponse):
        decode_batches(decode_fetched_records(RawResponse(data, 12)).records, 1000)


def make_properties() -> Sequence[bytes]:
    """Return client properties with TLS and SASL."""
    module = b"sasl.jaas.config=org.apache.kafka.common.security.%s.%sLoginModule"
    jaas = module + b" required username=\"a\" password='b';\n"
    return [
        b"bootstrap.servers=a:9092,[::1]:9093\nclient.id = kd\n! c\nx\\=y:1\\u00e9\\\n  z\n",
        b"security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n" + jaas % (b"plain", b"Plain"),
        b"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n" + jaas % (b"scram", b"Scram"),
        b"security.protocol=SSL\nssl.endpoint.identification.algorithm=\nrequest.timeout.ms=3000\n",
        b"security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\nsasl.oauthbearer.token.endpoint.url=https://a/b\n"
        b"sasl.oauthbearer.client.credentials.client.id=a\nsasl.oauthbearer.client.credentials.client.secret=b\n",
        b"client.dns.lookup=use_all_dns_ips\nmetadata.max.age.ms=300000\nssl.enabled.protocols=TLSv1.3,TLSv1.2\n",
    ]


def make_reassignments() -> Sequence[bytes]:
    """Return the three forms of files, and a list of brokers."""
    partition = {"topic": "t", "partition": 0, "replicas": [1, 2], "log_dirs": ["any", "/d"]}
    documents = [
        {"version": 1, "partitions": [partition, partition | {"partition": 1}]},
        {"partitions": [{"topic": "é.x", "partition": 2, "replicas": [3]}]},
        {"version": 1, "topics": [{"topic": "t"}, {"topic": "u"}]},
    ]
    return [*(json.dumps(document).encode() for document in documents), b"1,2,3"]


def make_offsets_files() -> Sequence[bytes]:
    """Return the formats of a file, and of options."""
    texts = (
        "t,0,5\nu,1,7\n",
        '"t",0,5',
        "2026-01-01T00:00:00.000Z",
        "2026-01-01T00:00:00+02:00",
        "P1DT2H",
        "PT0.5S",
    )
    return [text.encode() for text in texts]


def make_broker_answers() -> Sequence[bytes]:
    """Return recorded answers of brokers."""
    return [bytes([n]) + (_ANSWERS / f"{name}.bin").read_bytes() for n, name in enumerate(_NAMES)]


def make_record_batches() -> Sequence[bytes]:
    """Return batches with each compression type, and a response."""
    batches = [_build_batch(codec) for codec in (0, 1)]
    head = bytes(10) + bytes([2, 2]) + b"t" + bytes([2]) + bytes(30) + bytes([1]) + bytes(4)
    size = len(batches[0]) + 1  # two bytes as a variable-length number
    response = head + bytes([size & 0x7F | 0x80, size >> 7]) + batches[0] + bytes(3)
    return [*batches, batches[0] + batches[1], response]


def _build_batch(codec: int) -> bytes:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**31 - 1)
    for number in range(3):
        builder.append(number, number, b"key" if number else None, b"value", [("header", b"1")])
    return bytes(builder.build())


TARGETS = (
    Target("client-properties", read_client_properties, make_properties, mutate_bytes),
    Target("reassignment", read_reassignment, make_reassignments, mutate_json),
    Target("offsets-file", read_offsets_file, make_offsets_files, mutate_bytes),
    Target("broker-answer", read_broker_answer, make_broker_answers, mutate_bytes, (MalformedResponse,)),
    Target("record-batches", read_record_batches, make_record_batches, mutate_bytes),
)
