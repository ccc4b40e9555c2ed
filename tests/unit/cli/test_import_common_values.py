"""``kdeclare import --factor-defaults``: the written files, the notes, and imports into the same folder."""

from pathlib import Path

import pytest
import yaml

from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine
from tests.unit.report.golden_files import check_golden


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """Five topics: three with the same configs, one with another value, and one without configs."""
    day, week = "86400000", "604800000"
    configs = {
        "events": {},
        "invoices": {"cleanup.policy": "compact", "retention.ms": day},
        "orders": {"cleanup.policy": "compact", "retention.ms": week},
        "payments": {"cleanup.policy": "compact", "retention.ms": day, "segment.ms": "7000"},
        "returns": {"cleanup.policy": "compact", "retention.ms": day},
    }
    kdeclare.cluster.create_topics([NewTopic(name, 6, 3, None, own) for name, own in configs.items()])
    return kdeclare


def read_files(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*.yaml"))}


def test_import_writes_defaults_and_next_plan_has_no_changes(shop: CommandLine) -> None:
    ran = shop("import", "--factor-defaults", "--match", "[a-z]+", "--out", "manifests")
    assert ran.code == 0, ran
    assert "Defaults/topics has 4 common values of 4 Topic manifests." in ran.err
    assert "Wrote 6 manifests to manifests." in ran.err
    files = read_files(shop.folder / "manifests")
    check_golden("import-defaults", "".join(f"# {name}\n{text}\n" for name, text in files.items()))
    ran = shop("plan", "--detailed-exitcode")
    assert (ran.code, "No changes." in ran.out, "warning" in ran.out + ran.err) == (0, True, False), ran
    assert shop("fmt", "--check").code == 0


def test_later_import_keeps_existing_files(shop: CommandLine) -> None:
    assert shop("import", "--factor-defaults", "--out", "manifests").code == 0
    folder = shop.folder / "manifests"
    defaults = folder / "defaults" / "topics.yaml"
    defaults.write_text(defaults.read_text() + "# edited\n")
    files = read_files(folder)
    ran = shop("import", "--factor-defaults", "--out", "manifests")
    assert (ran.code, read_files(folder)) == (0, files)
    new_topics = [NewTopic(f"later{n}", 12, 3, None, {"retention.ms": "5"}) for n in range(3)]
    shop.cluster.create_topics(new_topics)
    assert shop("import", "--factor-defaults", "--out", "manifests").code == 0
    new_files = {name: text for name, text in read_files(folder).items() if name not in files}
    assert list(new_files) == ["defaults/topics-2.yaml", *(f"topics/later{n}.yaml" for n in range(3))]
    assert read_files(folder).items() >= files.items()
    assert shop("plan", "--detailed-exitcode").code == 0


def test_import_to_stdout_can_be_planned(shop: CommandLine) -> None:
    ran = shop("import", "--factor-defaults", "--quiet")
    kinds = [document["kind"] for document in yaml.safe_load_all(ran.out)]
    assert (kinds[0], kinds.count("Defaults")) == ("Defaults", 1)
    assert shop("plan", "-", "--detailed-exitcode", piped=ran.out).code == 0


def test_import_without_common_values_writes_only_manifests(shop: CommandLine) -> None:
    ran = shop("import", "--factor-defaults", "--match", "orders|events", "--out", "manifests")
    assert (ran.code, "There are no common values for Defaults." in ran.err) == (0, True), ran
    assert list(read_files(shop.folder / "manifests")) == ["topics/events.yaml", "topics/orders.yaml"]


def test_declared_resources_cannot_be_included(shop: CommandLine) -> None:
    ran = shop("import", "--factor-defaults", "--include-declared")
    assert (ran.code, "cannot be combined with --include-declared" in ran.err) == (64, True), ran
