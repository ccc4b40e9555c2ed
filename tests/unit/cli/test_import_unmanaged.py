"""``kdeclare import --unmanaged --label``: manifests for what a project does not manage yet."""

import pytest
import yaml

from kdeclare.providers.kafka.request_values import NewTopic
from tests.unit.cli.command_line import CommandLine


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    """An owned topic, an orphan, a declared topic of others, and two topics that nobody manages."""
    kdeclare.topic("owned", partitions=1)
    kdeclare.topic("orphan", partitions=1)
    assert kdeclare("apply", "--yes").code == 0
    (kdeclare.folder / "manifests" / "orphan.yaml").unlink()
    names = ("declared", "stray", "odd.one")
    kdeclare.cluster.create_topics([NewTopic(name, 1, 1, None, {}) for name in names])
    kdeclare.topic("declared", partitions=1)
    return kdeclare


def read_topics(text: str) -> dict[str, dict[str, str]]:
    documents = [d for d in yaml.safe_load_all(text) if d["kind"] == "Topic"]
    return {d["metadata"]["name"]: d["metadata"].get("labels", {}) for d in documents}


def test_import_leaves_out_declared_and_owned_resources(shop: CommandLine) -> None:
    ran = shop("import", "--unmanaged")
    assert (ran.code, read_topics(ran.out)) == (0, {"stray": {}, "odd.one": {}}), ran
    assert "2 resources (already declared in the project)" in ran.err
    assert "1 resource (already owned by the project)" in ran.err
    assert "orphan" in read_topics(shop("import").out)


def test_import_adds_labels_and_next_plan_has_no_changes(shop: CommandLine) -> None:
    ran = shop(
        "import", "--unmanaged", "--label", "team=check: out", "--label", "tier=gold", "--out", "manifests"
    )
    assert ran.code == 0, ran
    (file,) = (shop.folder / "manifests").rglob("stray.yaml")
    labels = read_topics(file.read_text())["stray"]
    assert labels == {"team": "check: out", "tier": "gold"}
    ran = shop("plan", "--selector", "tier=gold", "--detailed-exitcode")
    assert ran.code == 0, ran
    assert "2 unchanged" in ran.out or "No changes." in ran.out
    assert read_topics(shop("import", "--unmanaged").out) == {}


def test_unmanaged_and_declared_contradict(shop: CommandLine) -> None:
    ran = shop("import", "--unmanaged", "--include-declared")
    assert ran.code == 64
    ran = shop("import", "--label", "team")
    assert ran.code == 64


def test_second_import_adds_only_new_resources_and_keeps_edited_files(shop: CommandLine) -> None:
    assert shop("import", "--out", "manifests").code == 0
    folder = shop.folder / "manifests"
    (edited,) = folder.rglob("stray.yaml")
    edited.write_text(edited.read_text() + "# edited\n")
    texts = {file: file.read_text() for file in folder.rglob("*.yaml")}
    assert shop("import", "--out", "manifests").code == 0
    assert {file: file.read_text() for file in folder.rglob("*.yaml")} == texts
    shop.cluster.create_topics([NewTopic("later", 1, 1, None, {})])
    ran = shop("import", "--out", "manifests")
    assert "Wrote 1 manifest to manifests." in ran.err
    new_texts = {file: file.read_text() for file in folder.rglob("*.yaml")}
    assert [file.name for file in new_texts.keys() - texts.keys()] == ["later.yaml"]
    assert new_texts.items() >= texts.items()
