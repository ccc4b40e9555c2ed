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
def applied(kdeclare: CommandLine) -> CommandLine:
    (kdeclare.folder / "manifests/orders.yaml").write_text(ORDERS)
    (kdeclare.folder / "manifests/defaults.yaml").write_text(DEFAULTS)
    assert kdeclare("apply", "--yes").code == 0
    return kdeclare


def alter(kdeclare: CommandLine, *arguments: str) -> tuple[int, str, str]:
    ran = kdeclare("config", "alter", "--topic", "orders", *arguments, "--yes")
    return ran.code, ran.out + ran.err, (kdeclare.folder / "manifests/orders.yaml").read_text()


def test_it_is_told_where_it_is_declared(applied: CommandLine) -> None:
    code, said, _ = alter(applied, "--add-config", "retention.ms=2000")
    assert code == 0
    assert "manifests/defaults.yaml:7:15" in said


def test_another_value_goes_into_the_manifest(applied: CommandLine) -> None:
    code, _, text = alter(applied, "--add-config", "retention.ms=2000", "--write-manifest")
    assert code == 0
    assert "retention.ms: 2000" in text
    assert (applied.folder / "manifests/defaults.yaml").read_text() == DEFAULTS
    assert applied("plan", "--detailed-exitcode").code == 0


def test_what_defaults_say_is_not_taken_out_of_the_manifest(applied: CommandLine) -> None:
    code, said, text = alter(applied, "--delete-config", "retention.ms", "--write-manifest")
    assert code == 1
    assert "Manifests not written" in said
    assert text == ORDERS
    assert applied("plan", "--detailed-exitcode").code == 0, "nothing was done"
