"""Ready-made policies for SCRAM users and client quotas, in plans on an in-memory cluster."""

from collections.abc import Mapping
from typing import Any

import pytest

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Mechanism
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare
from tests.unit.report.golden_files import check_golden

SCRAM, QUOTA = "scram_user.policies", "client_quota.policies"
ALICE = QuotaEntity.of({EntityType.USER: "alice"})
RATE = "producer_byte_rate"


def use(kdeclare: CommandLine, module: str, name: str, config: Mapping[str, Any] | None = None) -> None:
    entry = {
        "name": "rule",
        "class": f"kdeclare.providers.kafka.{module}:{name}",
        "selector": {"kind": "ScramUser" if module == SCRAM else "ClientQuota"},
        **({"config": config} if config else {}),
    }
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=[entry])


def declare_user(kdeclare: CommandLine, *mechanisms: str, iterations: int | None = None) -> None:
    kdeclare.monkeypatch.setenv("P", "correct horse battery")
    item = {"password": "${env.P}"} | ({"iterations": iterations} if iterations else {})
    kdeclare.write("manifests/u.yaml", "ScramUser", "u", mechanisms=dict.fromkeys(mechanisms, item))


def declare_quota(kdeclare: CommandLine, limits: Mapping[str, Any], **entity: Any) -> None:
    kdeclare.write(
        "manifests/q.yaml", "ClientQuota", "q", entity=entity or {"user": "alice"}, limits=dict(limits)
    )


def set_limits(kdeclare: CommandLine, limits: Mapping[str, float | None]) -> None:
    kdeclare.cluster.alter_quotas({ALICE: limits})


def set_credential(kdeclare: CommandLine, mechanism: Mechanism, iterations: int) -> None:
    kdeclare.cluster.alter_scram_users([ScramAlteration("u", mechanism, ScramUpsertion(iterations, "old"))])


def test_allowed_mechanisms_denies_others_by_name(kdeclare: CommandLine) -> None:
    use(kdeclare, SCRAM, "AllowedMechanisms")
    declare_user(kdeclare, "SCRAM-SHA-256", "SCRAM-SHA-512")
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "The change sets a credential for SCRAM-SHA-256 instead of SCRAM-SHA-512." in ran.out
    assert kdeclare("apply", "--yes").code == ExitCode.DENIED
    assert kdeclare.cluster.scram_users(None) == {}
    declare_user(kdeclare, "SCRAM-SHA-512")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    use(kdeclare, SCRAM, "AllowedMechanisms", {"allowed": ["SCRAM-SHA-256"]})
    declare_user(kdeclare, "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert kdeclare("apply", "--yes").code == ExitCode.OK, "an existing credential stays"
    assert kdeclare("policy", "check", "--live").code == ExitCode.DENIED


def test_deleting_a_forbidden_credential_is_permitted(kdeclare: CommandLine) -> None:
    declare_user(kdeclare, "SCRAM-SHA-256", "SCRAM-SHA-512")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    use(kdeclare, SCRAM, "AllowedMechanisms")
    declare_user(kdeclare, "SCRAM-SHA-512")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    assert set(kdeclare.cluster.scram_users(None)["u"]) == {Mechanism.SHA_512}


def test_minimum_iterations_needs_a_declared_number(kdeclare: CommandLine) -> None:
    use(kdeclare, SCRAM, "MinimumIterations", {"minimum": 8192})
    declare_user(kdeclare, "SCRAM-SHA-512")
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "but at least 8,192 are required. Declare 'iterations: 8192' or more." in " ".join(ran.out.split())
    declare_user(kdeclare, "SCRAM-SHA-512", iterations=8191)
    assert "SCRAM-SHA-512 has 8,191 iterations" in kdeclare("plan").out
    declare_user(kdeclare, "SCRAM-SHA-512", iterations=8192)
    assert kdeclare("apply", "--yes").code == ExitCode.OK


def test_adopting_a_weak_credential_unchanged_is_permitted(kdeclare: CommandLine) -> None:
    set_credential(kdeclare, Mechanism.SHA_512, 4096)
    use(kdeclare, SCRAM, "MinimumIterations", {"minimum": 8192})
    declare_user(kdeclare, "SCRAM-SHA-512")
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    assert kdeclare.cluster.scram_users(None)["u"] == {Mechanism.SHA_512: 4096}


@pytest.mark.parametrize(
    ("limits", "entity", "message"),
    [
        ({RATE: "2MiB"}, {}, "'producer_byte_rate' of user 'alice' would be 2 MiB/s, but at most 1 MiB/s is"),
        ({RATE: 1023}, {}, "but at least 1 KiB/s is permitted"),
        ({"connection_creation_rate": 11}, {"ip": "10.0.0.1"}, "but at most 10 connections/s is permitted"),
    ],
)
def test_limit_outside_bounds_is_denied(
    kdeclare: CommandLine, limits: Mapping[str, Any], entity: Mapping[str, Any], message: str
) -> None:
    bounds = {
        RATE: {"minimum": "1KiB", "maximum": "1MiB"},
        "connection_creation_rate": {"maximum": 10},
    }
    use(kdeclare, QUOTA, "LimitBounds", {"limits": bounds})
    declare_quota(kdeclare, limits, **entity)
    ran = kdeclare("plan")
    assert (ran.code, message in " ".join(ran.out.split())) == (ExitCode.DENIED, True), ran
    assert kdeclare("apply", "--yes").code == ExitCode.DENIED
    assert kdeclare.cluster.quotas(None) == {}


def test_limit_at_bound_or_of_other_key_passes(kdeclare: CommandLine) -> None:
    use(kdeclare, QUOTA, "LimitBounds", {"limits": {RATE: {"minimum": "1KiB", "maximum": "1MiB"}}})
    declare_quota(kdeclare, {RATE: "1MiB", "consumer_byte_rate": 1})
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    declare_quota(kdeclare, {RATE: 1024, "consumer_byte_rate": None})
    assert kdeclare("apply", "--yes").code == ExitCode.OK


def test_live_limit_outside_bounds_stays_but_is_found(kdeclare: CommandLine) -> None:
    set_limits(kdeclare, {RATE: float("inf")})
    use(kdeclare, QUOTA, "LimitBounds", {"limits": {RATE: {"maximum": "1MiB"}}})
    declare_quota(kdeclare, {"consumer_byte_rate": 5})
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    ran = kdeclare("policy", "check", "--live")
    assert (ran.code, "would be inf, but at most 1 MiB/s" in " ".join(ran.out.split())) == (3, True), ran


def test_required_limit_cannot_be_left_out_or_removed(kdeclare: CommandLine) -> None:
    use(kdeclare, QUOTA, "RequiredLimits", {"keys": [RATE, "connection_creation_rate"]})
    declare_quota(kdeclare, {"consumer_byte_rate": 5})
    ran = kdeclare("plan")
    assert ran.code == ExitCode.DENIED, ran
    assert "User 'alice' would have no limit for 'producer_byte_rate'." in " ".join(ran.out.split())
    declare_quota(kdeclare, {"consumer_byte_rate": 5, RATE: 5})
    assert kdeclare("apply", "--yes").code == ExitCode.OK
    declare_quota(kdeclare, {"consumer_byte_rate": 5})
    assert kdeclare("plan").code == ExitCode.DENIED
    (kdeclare.folder / "manifests" / "q.yaml").unlink()
    assert kdeclare("apply", "--allow-deletes", "--allow-empty", "--yes").code == ExitCode.OK
    assert kdeclare.cluster.quotas(None) == {}


@pytest.mark.parametrize(
    ("module", "name", "config", "message"),
    [
        (SCRAM, "AllowedMechanisms", {"allowed": ["SCRAM-SHA-1"]}, "SCRAM-SHA-256"),
        (SCRAM, "AllowedMechanisms", {"allowed": []}, "at least one"),
        (SCRAM, "MinimumIterations", {"minimum": 20000}, "16384"),
        (QUOTA, "LimitBounds", {"limits": {"producer_rate": {"maximum": 1}}}, "'producer_byte_rate'"),
        (QUOTA, "LimitBounds", {"limits": {RATE: {"maximum": "1 potato"}}}, "an amount such as 10MiB"),
        (QUOTA, "LimitBounds", {"limits": {RATE: {"minimum": 2, "maximum": 1}}}, "higher than the maximum"),
        (QUOTA, "LimitBounds", {"limits": {RATE: {"max": 1}}}, "max"),
        (QUOTA, "RequiredLimits", {"keys": ["producer_rate"]}, "'producer_byte_rate'"),
    ],
)
def test_wrong_settings_are_reported(
    kdeclare: CommandLine, module: str, name: str, config: Mapping[str, Any], message: str
) -> None:
    use(kdeclare, module, name, config)
    ran = kdeclare("validate")
    text = " ".join((ran.out + ran.err).split())
    assert (ran.code, message in text, "Traceback" in text) == (ExitCode.ERROR, True, False), ran


def test_denials_read_like_sentences(kdeclare: CommandLine) -> None:
    entry = "kdeclare.providers.kafka."
    policies = [
        {
            "name": "mechanisms",
            "class": f"{entry}{SCRAM}:AllowedMechanisms",
            "selector": {"kind": "ScramUser"},
        },
        {
            "name": "iterations",
            "class": f"{entry}{SCRAM}:MinimumIterations",
            "selector": {"kind": "ScramUser"},
            "config": {"minimum": 8192},
        },
        {
            "name": "bounds",
            "class": f"{entry}{QUOTA}:LimitBounds",
            "selector": {"kind": "ClientQuota"},
            "config": {"limits": {RATE: {"maximum": "1MiB"}}},
        },
        {
            "name": "required",
            "class": f"{entry}{QUOTA}:RequiredLimits",
            "selector": {"kind": "ClientQuota"},
            "config": {"keys": ["consumer_byte_rate"]},
        },
    ]
    environments = {"lab": {"bootstrapServers": "lab:9092"}}
    kdeclare.write("kdeclare.yaml", "Project", "shop", environments=environments, policies=policies)
    declare_user(kdeclare, "SCRAM-SHA-256", iterations=5000)
    declare_quota(kdeclare, {RATE: "20MiB"})
    ran = kdeclare("policy", "check")
    assert ran.code == ExitCode.DENIED, ran
    check_golden("policy-check-access", ran.out)
