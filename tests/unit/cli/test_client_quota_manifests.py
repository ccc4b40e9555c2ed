"""Invalid ClientQuota manifests: errors offline, with position and suggestion (P-QUO-05)."""

from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.resources.kind import SpecProblem
from kdeclare.providers.kafka.client_quota.kind import ClientQuotaKind
from kdeclare.providers.kafka.client_quota.spec import ClientQuotaSpec, bind_quota, dump_quota
from tests.unit.cli.command_line import CommandLine

DOCUMENT = """apiVersion: kdeclare/v1
kind: ClientQuota
metadata: {{name: q}}
spec:
  entity: {entity}
  limits:
    {limits}
"""
RATE = "producer_byte_rate: 1"
BAD = {
    "ip with user": (
        "{ip: 10.0.0.1, user: a}",
        "connection_creation_rate: 1",
        "5:16",
        "An entity with an IP address cannot",
    ),
    "rate of an ip": ("{ip: 10.0.0.1}", RATE, "7:25", "applies to users and client ids"),
    "connections of a user": ("{user: a}", "connection_creation_rate: 1", "7:31", "applies to IP addresses"),
    "zero": ("{user: b}", "producer_byte_rate: 0", "7:25", "must be more than 0"),
    "negative": ("{user: b}", "request_percentage: -2.5", "7:25", "must be more than 0"),
    "nan": ("{user: c}", "producer_byte_rate: .nan", "7:25", "must be more than 0"),
    "infinite": ("{user: c}", "request_percentage: .inf", "7:25", "must be more than 0"),
    "larger than any float": ("{user: c}", f"request_percentage: {10**400}", "7:25", "must be more than 0"),
    "too large": ("{user: c}", "producer_byte_rate: 9007199254740994", "7:25", "at most 9,007,199,254"),
    "half a byte": ("{user: d}", "producer_byte_rate: 10.5", "7:25", "must be a whole number"),
    "half a connection": ("{ip: 10.0.0.1}", "connection_creation_rate: 0.5", "7:31", "a whole number"),
    "wrong unit": ("{user: d}", "producer_byte_rate: 10 MBit", "7:25", "an amount such as 10MiB"),
    "amount of percent": ("{user: d}", "request_percentage: 10KiB", "7:25", "takes a number."),
    "truth": (
        "{user: d}",
        "producer_byte_rate: true",
        "7:25",
        "takes a whole number or a number or a string",
    ),
    "list": ("{user: d}", "producer_byte_rate: [1]", "7:25", "takes a whole number or a number or a string"),
    "nobody": ("{}", RATE, "5:11", "names no user, client id or IP address"),
    "empty name": ("{user: ''}", RATE, "5:18", "is empty"),
    "not the default": ("{user: {default: false}}", RATE, "5:28", "spec.entity.user.default"),
    "range": ("{ip: 10.0.0.0/8}", "connection_creation_rate: 1", "5:16", "is a range"),
    "misspelt key": ("{user: e}", "producer_byterate: 1", "7:5", "Did you mean 'producer_byte_rate'?"),
    "misspelt entity": ("{usr: e}", RATE, "5:12", "Did you mean 'user'?"),
    "client-id": ("{client-id: e}", RATE, "5:12", "Did you mean 'clientId'?"),
}


@pytest.mark.parametrize("wrong", BAD)
def test_validate_rejects_invalid_quota_with_position(kdeclare: CommandLine, wrong: str) -> None:
    entity, limits, place, said = BAD[wrong]
    path = kdeclare.folder / "manifests" / "q.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(DOCUMENT.format(entity=entity, limits=limits))
    ran = kdeclare("validate")
    told = " ".join((ran.out + ran.err).split())
    assert ran.code == ExitCode.ERROR
    assert f"manifests/q.yaml:{place}" in told
    assert said in told
    assert kdeclare.cluster.calls == []


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        (1, 1),
        (2.0, 2),
        ("1MiB", 2**20),
        ("10 MiB/s", 10 * 2**20),
        ("1e3", 1000),
        ("5", 5),
        (None, None),
    ],
)
def test_quota_limits_parse_byte_units(stated: Any, meant: int | None) -> None:
    body, problems = parse_quota(entity={"user": "a"}, limits={"producer_byte_rate": stated})
    assert (body.limits, problems) == ({"producer_byte_rate": meant}, ())


def test_validate_does_not_resolve_reference_in_message(kdeclare: CommandLine) -> None:
    path = kdeclare.folder / "manifests" / "q.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(DOCUMENT.format(entity="{user: a}", limits="producer_byte_rate: '${env.RATE}'"))
    kdeclare.monkeypatch.setenv("RATE", "hunter2")
    ran = kdeclare("validate")
    assert ran.code == ExitCode.ERROR
    assert "hunter2" not in ran.out + ran.err
    assert "manifests/q.yaml:7:25" in ran.out + ran.err


@pytest.mark.parametrize(
    "spec",
    [
        {"entity": {"user": "a"}},
        {"entity": {"user": {"default": True}, "clientId": "b"}, "limits": {"request_percentage": None}},
        {
            "entity": {"ip": {"default": True}},
            "limits": {"connection_creation_rate": 5},
            "unmanagedLimits": "remove",
            "lifecycle": {"adopt": True},
        },
    ],
)
def test_quota_body_round_trips_as_plain_data(spec: dict[str, Any]) -> None:
    body, problems = parse_quota(**spec)
    assert problems == ()
    assert bind_quota(dump_quota(body)) == body


def parse_quota(**spec: Any) -> tuple[Any, tuple[SpecProblem, ...]]:
    return ClientQuotaKind().parse("q", ClientQuotaSpec.model_validate(spec))
