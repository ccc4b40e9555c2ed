"""Impossible URLs of Connect workers and invalid numbers are reported as usage errors, not as bugs."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kdeclare.http.urls import explain_url_problem
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.test_connect_worker_config import (
    WORKERS,
    cli,
    declare_workers,
    run_worker_config,
    workers,
)

__all__ = ["cli", "workers"]

NO_HOSTS = [
    "https://worker..eu",
    "https://.eu:8083",
    f"https://{'a' * 64}.eu:8083",
    f"https://{'.'.join(['a' * 60] * 5)}",
    "https://-a:8083",
    "https://a%20b",
    "https://999.1.1.1:8083",
    "https://[v1.a]:8083",
    "https://a,b:8083",
]
SAYING_MORE = [
    "https://w1:8083?",
    "https://w1:8083#x",
    "https://w1:8083#",
    "https://w1:8083/?",
    "https://w1/a",
]
WITH_USERS = [
    "https://me:s3cret@w1",
    "https://me:s3cret@w1:port",
    "ftp://me:s3cret@w1",
    "https://me:s3cret@[w1",
    "https://me:s3cret@w1/a?",
    "https://me:s3/cret@w1",
    "me:s3cret@w1",
]


@pytest.mark.parametrize("url", NO_HOSTS)
def test_worker_url_with_invalid_host_is_rejected(cli: CommandLine, url: str) -> None:
    code, _, err = run_worker_config(cli, "status", "--worker", url)
    assert code == 64
    assert "not a valid host name" in " ".join(err.split()) or "is not a valid URL" in err
    declare_workers(cli, workers=[url])
    ran = cli("validate", "--format", "json")
    assert (ran.code, json.loads(ran.out)["diagnostics"][0]["code"]) == (1, "invalid-worker-config")


@pytest.mark.parametrize("url", SAYING_MORE)
def test_worker_url_with_extra_parts_is_rejected(url: str) -> None:
    assert "has parts other than scheme, host and port" in explain_url_problem(url)


@pytest.mark.parametrize("url", WITH_USERS)
def test_worker_url_with_password_is_rejected_and_hidden(cli: CommandLine, url: str) -> None:
    code, out, err = run_worker_config(cli, "get", "--worker", url)
    assert code == 64
    assert "Use --header" in " ".join(err.split())
    declare_workers(cli, workers=[url])
    ran = cli("validate")
    assert ran.code == 1
    assert "'headers'" in ran.out + ran.err
    assert "s3cret" not in out + err + ran.out + ran.err
    assert "cret@" not in out + err + ran.out + ran.err


@pytest.mark.parametrize(
    "url",
    [
        "https://w1",
        "http://w1:8083/",
        "https://connect_1.eu.example.:8083",
        "https://10.0.0.1:8083",
        "https://[::1]:8083",
        f"https://{'a' * 63}.eu",
        "https://xn--mnchen-3ya.example:8083",
    ],
)
def test_worker_url_with_valid_host_is_accepted(url: str) -> None:
    assert explain_url_problem(url) == ""


@given(st.text("a-_.1:[]", max_size=70))
@example(".][::")
def test_accepted_worker_urls_can_be_resolved(text: str) -> None:
    """Simulate socket.getaddrinfo, which raises UnicodeError for names that it cannot look up."""
    if not explain_url_problem(f"https://{text}"):
        host = text.rstrip("/").rpartition(":")[0] or text.rstrip("/")
        host.strip("[]").encode("idna")


@pytest.mark.parametrize("number", ["nan", "inf", "-inf", "-1", "1e300", "soon"])
@pytest.mark.parametrize(
    "words",
    [
        ("status", "--warn-days"),
        ("status", "--timeout"),
        ("patch", "a=b", "--yes", "--wait"),
        ("delete", "a", "--yes", "--wait"),
    ],
)
def test_connect_command_rejects_invalid_numbers(
    cli: CommandLine, words: tuple[str, ...], number: str
) -> None:
    code, _, err = run_worker_config(cli, *words, number, *WORKERS)
    assert code == 64
    assert words[-1] in err


@pytest.mark.parametrize(
    "line",
    ["plan --timeout", "apply --move-timeout", "fleet plan f --timeout", "fleet apply f --move-timeout"],
)
def test_commands_reject_non_finite_timeouts(cli: CommandLine, line: str) -> None:
    assert cli(*line.split(), "nan").code == 64
    assert cli(*line.split(), "inf").code == 64


def test_status_accepts_large_warn_days(cli: CommandLine) -> None:
    code, out, _ = run_worker_config(cli, "status", *WORKERS, "--warn-days", "30000000")
    assert code == 0
    assert "Certificate expires soon" in out


@pytest.mark.parametrize("before", ["99999999999999999999d", f"{'9' * 400}d", "-1d", "nan", ".nan", "1e9d"])
def test_validate_rejects_invalid_expiry_duration(cli: CommandLine, before: str) -> None:
    declare_workers(cli, warnBeforeExpiry=before)
    ran = cli("validate", "--format", "json")
    assert (ran.code, json.loads(ran.out)["diagnostics"][0]["code"]) == (1, "bad-value")
