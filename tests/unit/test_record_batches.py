"""Batches of records: sizes and keys are those that kafka-python wrote, and nothing is too large."""

import gzip
import importlib.util
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import FetchResponse
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from kdeclare.providers.kafka.client.decoding import decompression
from kdeclare.providers.kafka.client.decoding.decompression import UnreadableRecordsError, decompress_start
from kdeclare.providers.kafka.client.decoding.fetched_records import FetchedRecords, decode_fetched_records
from kdeclare.providers.kafka.client.decoding.record_batches import decode_batches
from kdeclare.providers.kafka.client.decoding.wire_format import MalformedResponse, RawResponse
from kdeclare.providers.kafka.request_values import RecordBatch
from tests.served.records import encode_batch

SECRET = b"secret-of-a-customer"
CODECS = [
    pytest.param(
        codec, id=name, marks=pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=module)
    )
    for codec, name, module in [
        (0, "none", "zlib"),
        (1, "gzip", "zlib"),
        (2, "snappy", "snappy"),
        (3, "lz4", "lz4"),
        (4, "zstd", "zstandard"),
    ]
]

records = st.tuples(
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=200),
    st.lists(st.tuples(st.text(max_size=5), st.binary(max_size=5)), max_size=2),
)


@pytest.mark.parametrize("codec", CODECS)
@given(batches=st.lists(st.lists(records, min_size=1, max_size=20), max_size=4), offset=st.integers(0, 2**40))
def test_keys_are_those_of_the_records(
    codec: int, batches: list[list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]]], offset: int
) -> None:
    encoded = []
    for batch in batches:
        builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**31 - 1)
        for number, (key, value, headers) in enumerate(batch):
            assert builder.append(number * 1000, offset + number, key, value, headers)
        encoded.append(bytes(builder.build()))
    assert decode_batches(b"".join(encoded), 1000) == tuple(
        RecordBatch(len(data), len(batch), len(batch), sum(key is not None for key, _, _ in batch))
        for data, batch in zip(encoded, batches, strict=True)
    )


@given(st.binary(max_size=300), st.binary(max_size=100))
def test_damaged_batches_never_fail(noise: bytes, tail: bytes) -> None:
    good = encode_batch(RecordBatch(500, 3, 3, 2))
    for data in (noise, good[:61] + noise, good + noise, good[:21] + noise + tail):
        batches = decode_batches(data, 100)
        assert all(0 <= batch.keyed <= batch.inspected <= 100 for batch in batches)


def test_incomplete_batch_shows_its_size() -> None:
    data = encode_batch(RecordBatch(500, 3, 3, 2))
    assert decode_batches(data + data[:61], 100) == (RecordBatch(500, 3, 3, 2), RecordBatch(500, 3))
    assert decode_batches(data + data[:60], 100) == (RecordBatch(500, 3, 3, 2),)


def test_control_batches_are_omitted() -> None:
    data = bytearray(encode_batch(RecordBatch(200, 1)))
    data[22] |= 0x20
    assert decode_batches(bytes(data), 100) == ()


def test_records_of_the_old_format_are_a_problem() -> None:
    builder = LegacyRecordBatchBuilder(1, 0, 10_000)
    builder.append(0, 1000, b"k", b"v")
    (batch,) = decode_batches(bytes(builder.build()), 100)
    assert batch.problem == "records have the format of Kafka before 0.11"


def test_only_the_beginning_of_a_batch_is_decompressed() -> None:
    """A small batch can decompress to gigabytes."""
    assert len(decompress_start(1, gzip.compress(bytes(50_000_000)), 1000)) == 1000
    batch = encode_batch(RecordBatch(0, 300, keyed=300), compression=1, value=bytes(100_000))
    (decoded,) = decode_batches(batch, 1000)
    assert (decoded.records, decoded.inspected, decoded.keyed) == (300, 11, 11)


@pytest.mark.parametrize(
    ("codec", "name", "package"),
    [(2, "snappy", "python-snappy"), (3, "lz4", "lz4"), (4, "zstd", "zstandard")],
)
def test_missing_library_is_named(
    codec: int, name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompression, f"_{name}", None)
    data = bytearray(encode_batch(RecordBatch(200, 1)))
    data[22] |= codec
    (batch,) = decode_batches(bytes(data), 100)
    assert batch.problem == (
        f"records are compressed with {name}, and the Python package {package} is not installed"
    )


@pytest.mark.parametrize("codec", [*CODECS[1:], 7])
def test_damaged_compression_does_not_quote_records(codec: int) -> None:
    with pytest.raises(UnreadableRecordsError) as caught:
        decompress_start(codec, b"\xff" + SECRET, 1000)
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value)


def test_large_snappy_block_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "_snappy", SimpleNamespace(decompress=lambda block: block))
    assert decompress_start(2, b"\x05hello", 1000) == b"\x05hello"
    with pytest.raises(UnreadableRecordsError):
        decompress_start(2, b"\xff\xff\xff\x7fhello", 1000)


def build_response(*partitions: object, error_code: int = 0) -> RawResponse:
    topic = FetchResponse.FetchableTopicResponse(topic="orders", partitions=list(partitions))
    response = FetchResponse(throttle_time_ms=0, error_code=error_code, session_id=0, responses=[topic])
    return RawResponse(response.encode(version=12), 12)


def build_partition(records: bytes | None, aborted: int = 0) -> object:
    kind = FetchResponse.FetchableTopicResponse.PartitionData
    return kind(
        partition_index=3,
        error_code=0,
        high_watermark=77,
        last_stable_offset=70,
        log_start_offset=5,
        aborted_transactions=[kind.AbortedTransaction(producer_id=1, first_offset=2)] * aborted,
        preferred_read_replica=-1,
        records=records,
    )


@pytest.mark.parametrize("aborted", [0, 2])
@pytest.mark.parametrize("records", [b"", SECRET, SECRET * 10_000])
def test_records_of_a_response(records: bytes, aborted: int) -> None:
    response = build_response(build_partition(records, aborted))
    fetched = decode_fetched_records(response)
    assert fetched == FetchedRecords(0, 77, records)
    assert "secret" not in f"{response!r}{response}{fetched!r}{fetched}"


def test_error_of_a_whole_response() -> None:
    assert decode_fetched_records(build_response(error_code=29)).error_code == 29


def test_malformed_responses_are_refused() -> None:
    whole = build_response(build_partition(b"x" * 50)).body
    for end in range(len(whole) - 10):
        with pytest.raises(MalformedResponse):
            decode_fetched_records(RawResponse(whole[:end], 12))
    with pytest.raises(MalformedResponse, match="2 partitions instead of one"):
        decode_fetched_records(build_response(build_partition(b""), build_partition(b"")))


@pytest.mark.parametrize("length", range(-1, 5))
def test_impossible_length_ends_the_batches(length: int) -> None:
    data = bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(100)
    assert decode_batches(data, 10) == ()
