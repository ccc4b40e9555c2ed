"""``spec.lifecycle`` in commands: ignored fields, and declared deletions."""

import pytest

from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from tests.unit.cli.command_line import CommandLine

ORDERS = ConfigResource(ConfigScope.TOPIC, "orders")
TOPIC = """\
apiVersion: kdeclare/v1
kind: Topic
metadata: {name: orders}
spec:
  partitions: 1
  replicationFactor: 1
  configs: {retention.ms: 86400000}
"""
DEFAULTS = """\
apiVersion: kdeclare/v1
kind: Defaults
metadata: {name: retention}
spec:
  kind: Topic
  defaults: {lifecycle: {ignoreChanges: [configs.retention.ms]}}
"""


def write(kdeclare: CommandLine, **files: str) -> None:
    for name, text in files.items():
        path = kdeclare.folder / "manifests" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_ad_hoc_command_changes_ignored_field_which_plans_then_keep(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=TOPIC, defaults=DEFAULTS)
    assert kdeclare("apply", "--yes").code == 0
    ran = kdeclare("config", "alter", "--topic", "orders", "--add-config", "retention.ms=5000", "--yes")
    assert ran.code == 0, ran
    assert kdeclare.cluster.overrides(ORDERS) == {"retention.ms": "5000"}
    ran = kdeclare("plan", "--detailed-exitcode")
    assert ran.code == 0
    assert "1 field differs from the manifests and is left unchanged" in " ".join(ran.out.split())


def test_show_manifest_prints_where_ignored_fields_come_from(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=TOPIC, defaults=DEFAULTS)
    ran = kdeclare("show-manifest", "Topic/orders")
    (line,) = [line for line in ran.out.splitlines() if "ignoreChanges" in line]
    assert line.startswith("    ignoreChanges: [configs.retention.ms]")
    assert "manifests/defaults.yaml:6" in line


def test_declared_absence_is_reviewed_and_deletes_topic(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=TOPIC)
    assert kdeclare("apply", "--yes").code == 0
    gone = f"{TOPIC}  lifecycle: {{state: absent}}\n"
    write(kdeclare, orders=gone)
    ran = kdeclare("plan", "--detailed-exitcode")
    assert ran.code == 2
    assert "- Topic/orders  declared absent" in ran.out
    assert "manifests/orders.yaml:3:18" in ran.out
    ran = kdeclare("validate")
    assert (ran.code, "1 resource" in ran.out + ran.err) == (0, True), ran
    assert "state: absent" in kdeclare("show-manifest", "Topic/orders").out
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare.cluster.topics() == {}
    ran = kdeclare("plan", "--detailed-exitcode")
    assert (ran.code, "No changes." in ran.out) == (0, True)


def test_declared_absence_of_protected_topic_is_an_error(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=f"{TOPIC}  lifecycle: {{preventDestroy: true, state: absent}}\n")
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "manifests/orders.yaml:8:" in ran.out + ran.err
    assert "Deletion is both declared and prevented" in ran.out + ran.err


def test_overlay_can_declare_absence_in_one_environment(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=TOPIC)
    assert kdeclare("apply", "--yes").code == 0
    project = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  environments:
    lab: {bootstrapServers: "lab:9092", overlays: [overlays]}
"""
    (kdeclare.folder / "overlays").mkdir()
    (kdeclare.folder / "kdeclare.yaml").write_text(project)
    overlay = "{kind: Topic, metadata: {name: orders}, spec: {lifecycle: {state: absent, adopt: true}}}\n"
    (kdeclare.folder / "overlays" / "orders.yaml").write_text(overlay)
    ran = kdeclare("plan", "--env", "lab", "--detailed-exitcode")
    assert (ran.code, "declared absent" in ran.out) == (2, True), ran


@pytest.mark.parametrize(
    ("kind", "spec", "reason"),
    [
        ("BrokerConfig", "{lifecycle: {state: absent}}", "A broker exists with or without overrides."),
        ("ConnectWorkerConfig", "{connect: eu, lifecycle: {state: absent}}", "Workers exist with or without"),
        (
            "Acl",
            "{principal: User:a, lifecycle: {ignoreChanges: [bindings]}}",
            "Kafka creates and deletes bindings, but never changes them.",
        ),
    ],
)
def test_option_that_a_kind_cannot_have_is_refused_with_a_reason(
    kdeclare: CommandLine, kind: str, spec: str, reason: str
) -> None:
    text = f"{{apiVersion: kdeclare/v1, kind: {kind}, metadata: {{name: '1'}}, spec: {spec}}}\n"
    write(kdeclare, refused=text)
    ran = kdeclare("validate")
    output = " ".join((ran.out + ran.err).split())
    assert ran.code == 1
    assert "Lifecycle option not available" in output
    assert reason in output
    assert "manifests/refused.yaml:1:" in output


def test_misspelled_lifecycle_option_is_still_an_unknown_field(kdeclare: CommandLine) -> None:
    write(kdeclare, orders=f"{TOPIC}  lifecycle: {{stat: absent}}\n")
    ran = kdeclare("validate")
    assert "Did you mean 'state'?" in ran.out + ran.err


def test_absent_user_is_deleted_without_its_password(kdeclare: CommandLine) -> None:
    user = (
        "{apiVersion: kdeclare/v1, kind: ScramUser, metadata: {name: a}, "
        "spec: {mechanisms: {SCRAM-SHA-512: {password: '${file.password}'}}}}\n"
    )
    (kdeclare.folder / "password").write_text("correct horse")
    write(kdeclare, user=user)
    ran = kdeclare("apply", "--yes")
    assert ran.code == 0, ran
    assert kdeclare.cluster.scram_users().keys() == {"a"}
    (kdeclare.folder / "password").unlink()
    write(kdeclare, user=f"{user[: user.index('spec:')]}spec: {{lifecycle: {{state: absent}}}}}}\n")
    ran = kdeclare("apply", "--yes")
    assert ran.code == 0, ran
    assert kdeclare.cluster.scram_users() == {}
