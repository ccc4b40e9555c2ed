"""Responses of workers that never end, arrive byte by byte, or are too large."""

import gzip
import itertools
import time
from pathlib import Path

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.http.client import MAX_RESPONSE_BYTES
from kdeclare.providers.connect.client import port
from kdeclare.providers.connect.client.responses import MAX_MESSAGE_CHARS
from kdeclare.providers.connect.client.rest import RestWorkers, open_rest_workers
from kdeclare.providers.connect.worker_state import WorkerGroup
from tests.unit.connect.raw_server import measure_elapsed, run_raw_server, split_into_bytes

_OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_SLOW = {
    "the status line": split_into_bytes(b"HTTP/1.1 200 OK\r\n", 0),
    "the headers": [b"HTTP/1.1 200 OK\r\n", *split_into_bytes(b"X: " + b"y" * 2_000, 0)],
    "header after header": [b"HTTP/1.1 200 OK\r\n", *(b"X-%d: y\r\n" % n for n in range(2_000))],
    "continue after continue": [b"HTTP/1.1 100 Continue\r\n\r\n"] * 2_000,
    "the body": [_OK + b"Content-Length: 10000\r\n\r\n", *split_into_bytes(b"{", 2_000)],
    "chunks": [_OK + b"Transfer-Encoding: chunked\r\n\r\n", *([b"1\r\n \r\n"] * 2_000)],
    "a body without end": [_OK + b"\r\n", *split_into_bytes(b"{", 2_000)],
}
_CHUNK = b"10000\r\n" + b" " * 0x10000 + b"\r\n"


def open_workers(url: str, timeout_s: float = 5.0) -> RestWorkers:
    return open_rest_workers(WorkerGroup((url,)), Path(), str, timeout_s)


@pytest.mark.parametrize("what", _SLOW)
def test_status_with_slow_response_times_out(what: str) -> None:
    with run_raw_server(_SLOW[what], 0.1) as url:
        begun = time.monotonic()
        with pytest.raises(Fault) as raised:
            open_workers(url, 0.5).status(url)
        assert measure_elapsed(begun) < 100
    assert (raised.value.error, raised.value.kind) == (port.LOST, FaultKind.RETRIABLE)
    assert "timed out" in raised.value.message


def test_patch_with_slow_response_has_unknown_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.providers.connect.client.rest._CHANGE_S", 0.5)
    with run_raw_server(_SLOW["the body"], 0.1) as url:
        begun = time.monotonic()
        with pytest.raises(Fault) as raised:
            open_workers(url, 0.5).patch(url, {})
        assert measure_elapsed(begun) < 100
    assert (raised.value.error, raised.value.kind) == (port.LOST, FaultKind.UNKNOWN)


@pytest.mark.parametrize("status", [b"200 OK", b"500 Wrong"])
def test_status_with_endless_response_is_rejected(status: bytes) -> None:
    head = b"HTTP/1.1 " + status + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    with run_raw_server(itertools.chain([head], itertools.repeat(_CHUNK))) as url:
        begun = time.monotonic()
        with pytest.raises(Fault) as raised:
            open_workers(url, 600).status(url)
        assert measure_elapsed(begun) < 300
    assert (raised.value.error, raised.value.kind) == (port.BAD_ANSWER, FaultKind.REFUSED)
    assert f"larger than {MAX_RESPONSE_BYTES} bytes" in raised.value.message


def test_patch_with_too_large_response_has_unknown_result() -> None:
    body = b" " * (MAX_RESPONSE_BYTES + 1)
    with (
        run_raw_server([_OK + b"Content-Length: %d\r\n\r\n" % len(body), body]) as url,
        pytest.raises(Fault) as raised,
    ):
        open_workers(url).patch(url, {})
    assert (raised.value.error, raised.value.kind) == (port.BAD_ANSWER, FaultKind.UNKNOWN)


def test_status_with_compressed_response_is_rejected() -> None:
    body = gzip.compress(b" " * 100_000_000, 1)
    assert len(body) < MAX_RESPONSE_BYTES
    head = _OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    with run_raw_server([head, body]) as url, pytest.raises(Fault) as raised:
        open_workers(url).status(url)
    assert raised.value.error == port.BAD_ANSWER
    assert "compressed" in raised.value.message


def test_status_with_slow_but_timely_response_is_read() -> None:
    body = b'{"plugin_version": "1"}'
    with run_raw_server(
        [_OK + b"Content-Length: %d\r\n\r\n" % len(body), *split_into_bytes(body, 0)], 0.01
    ) as url:
        assert open_workers(url).status(url).plugin_version == "1"


def test_long_worker_message_is_truncated() -> None:
    body = b'{"error_code": 400, "message": "%s"}' % (b"x" * 100_000)
    with (
        run_raw_server([b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body), body]) as url,
        pytest.raises(Fault) as raised,
    ):
        open_workers(url).patch(url, {})
    assert len(raised.value.message) == MAX_MESSAGE_CHARS + 1
