"""``spec.lifecycle`` in commands: ignored fields, and declared deletions."""

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
