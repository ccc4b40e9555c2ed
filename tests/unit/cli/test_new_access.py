"""`kdeclare new` for quotas, SCRAM users and ACLs."""

import pytest

from tests.unit.cli.command_line import CommandLine

QUOTA = """\
apiVersion: kdeclare/v1
kind: ClientQuota
metadata:
  name: checkout
spec:
  entity:
    user: "12"
    clientId: {default: true}
  limits:
    producer_byte_rate: "10MiB"
    request_percentage: 12.5
"""
USER = """\
apiVersion: kdeclare/v1
kind: ScramUser
metadata:
  name: check-out
spec:
  mechanisms:
    SCRAM-SHA-512:
      password: "${env.CHECK_OUT_PASSWORD}"
"""
ACL = """\
apiVersion: kdeclare/v1
kind: Acl
metadata:
  name: checkout
spec:
  principals: ["User:checkout", "User:jobs"]
  hosts: ["10.0.0.1"]
  produce: [orders, "payments.*"]
  consume: {topics: [refunds], groups: ["12"]}
  transactions: [tx]
  streams: [app]
  observe: {topics: [audit]}
"""


def read(kdeclare: CommandLine, name: str) -> str:
    return (kdeclare.folder / "manifests" / f"{name}.yaml").read_text()


def test_new_client_quota_writes_manifest(kdeclare: CommandLine) -> None:
    limits = ("--limit", "producer_byte_rate=10MiB", "--limit", "request_percentage=12.5")
    ran = kdeclare("new", "client-quota", "checkout", "--user", "12", "--client-defaults", *limits)
    assert (ran.code, ran.out) == (0, "manifests/checkout.yaml\n"), ran.err
    assert read(kdeclare, "checkout") == QUOTA
    assert kdeclare("plan").code == 0


def test_new_scram_user_writes_reference_that_can_be_set_later(kdeclare: CommandLine) -> None:
    ran = kdeclare("new", "scram-user", "check-out")
    assert (ran.code, ran.out) == (0, "manifests/check-out.yaml\n"), ran.err
    assert "The environment variable 'CHECK_OUT_PASSWORD' is not set." in ran.err
    assert read(kdeclare, "check-out") == USER
    kdeclare.monkeypatch.setenv("CHECK_OUT_PASSWORD", "correct horse battery")
    assert kdeclare("apply", "--yes").code == 0


def test_new_scram_user_takes_mechanisms_and_iterations(kdeclare: CommandLine) -> None:
    (kdeclare.folder / "p.txt").write_text("correct horse battery")
    options = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512", "--iterations", "8192")
    assert kdeclare("new", "scram-user", "a", "--password", "${file.p.txt}", *options).code == 0
    assert read(kdeclare, "a").count('password: "${file.p.txt}"\n      iterations: 8192\n') == 2
    assert kdeclare("validate").code == 0


def test_new_acl_writes_manifest(kdeclare: CommandLine) -> None:
    principals = ("--principal", "User:checkout", "--principal", "User:jobs", "--host", "10.0.0.1")
    roles = (
        "--produce orders --produce payments.* --consume refunds --group 12 --transactions tx --streams app"
    )
    ran = kdeclare("new", "acl", "checkout", *principals, *roles.split(), "--observe", "audit")
    assert (ran.code, ran.out) == (0, "manifests/checkout.yaml\n"), ran.err
    assert read(kdeclare, "checkout") == ACL
    assert kdeclare("validate").code == 0


@pytest.mark.parametrize(
    "line",
    [
        "client-quota q",
        "client-quota q --user a",
        "client-quota q --limit producer_byte_rate=1",
        "client-quota q --user a --user-defaults --limit producer_byte_rate=1",
        "client-quota q --user a --limit producer_byte_rate",
        "scram-user a --password secret",
        "scram-user a --password ${var.secret}",
        "scram-user a --mechanism PLAIN",
        "scram-user a --iterations 5",
        "acl a",
        "acl a --produce orders",
        "acl a --principal User:a",
    ],
)
def test_wrong_usage_writes_nothing(kdeclare: CommandLine, line: str) -> None:
    ran = kdeclare("new", *line.split())
    assert (ran.code, ran.out) == (64, "")
    assert list((kdeclare.folder / "manifests").iterdir()) == []


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("client-quota q --user a --limit producer_byterate=1", "producer_byterate"),
        ("client-quota q --user a --limit producer_byte_rate=-1", "must be more than 0"),
        ("client-quota q --user a --ip 10.0.0.1 --limit connection_creation_rate=1", "IP address"),
        ("acl a --principal alice --produce orders", "alice"),
    ],
)
def test_manifest_with_mistake_is_not_written(kdeclare: CommandLine, line: str, detail: str) -> None:
    ran = kdeclare("new", *line.split())
    assert (ran.code, ran.out) == (1, "")
    assert detail in ran.err
    assert list((kdeclare.folder / "manifests").iterdir()) == []
