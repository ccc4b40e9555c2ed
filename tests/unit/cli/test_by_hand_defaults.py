"""Ad hoc changes to defaults: the position is reported, and the manifest is written or the change refused."""

import pytest

from tests.unit.cli.command_line import CommandLine

ORDERS = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders}\nspec:\n  partitions: 1\n"
DEFAULTS = """\
apiVersion: kdeclare/v1
kind: Defaults
metadata: {name: everything}
spec:
  kind: Topic
  defaults:
    configs: {retention.ms: 1000}
"""


@pytest.fixture
def applied_project(kdeclare: CommandLine) -> CommandLine:
    (kdeclare.folder / "manifests/orders.yaml").write_text(ORDERS)
    (kdeclare.folder / "manifests/defaults.yaml").write_text(DEFAULTS)
    assert kdeclare("apply", "--yes").code == 0
    return kdeclare


def alter(kdeclare: CommandLine, *arguments: str) -> tuple[int, str, str]:
    ran = kdeclare("config", "alter", "--topic", "orders", *arguments, "--yes")
    return ran.code, ran.out + ran.err, (kdeclare.folder / "manifests/orders.yaml").read_text()


def test_alter_names_default_that_declares_the_value(applied_project: CommandLine) -> None:
    code, said, _ = alter(applied_project, "--add-config", "retention.ms=2000")
    assert code == 0
    assert "manifests/defaults.yaml:7:15" in said


def test_alter_writes_new_value_to_manifest(applied_project: CommandLine) -> None:
    code, _, text = alter(applied_project, "--add-config", "retention.ms=2000", "--write-manifest")
    assert code == 0
    assert "retention.ms: 2000" in text
    assert (applied_project.folder / "manifests/defaults.yaml").read_text() == DEFAULTS
    assert applied_project("plan", "--detailed-exitcode").code == 0


def test_alter_refuses_to_remove_default_from_manifest(applied_project: CommandLine) -> None:
    code, said, text = alter(applied_project, "--delete-config", "retention.ms", "--write-manifest")
    assert code == 1
    assert "Manifests not written" in said
    assert text == ORDERS
    assert applied_project("plan", "--detailed-exitcode").code == 0, "nothing was done"
