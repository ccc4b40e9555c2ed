"""Ad hoc changes are written back into manifests: which lines of which files change."""

import os
import stat
from pathlib import Path

import pytest

from kdeclare.app.authoring.write_back import check_outcome, find_declared_positions, read_project_sources
from kdeclare.app.plan import load_manifests
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.resources.changes import Action
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.report.manifest.manifest_diff import render_manifest_diff
from tests.unit.app.write_back_project import (
    PROJECT,
    Place,
    append,
    change,
    changed,
    drop_key,
    put,
    put_key,
    subtract,
    topic,
)
from tests.unit.report.golden_files import check_golden

ORDERS = """\
  # How many can read at once.
  partitions: 12   # enough
  replicationFactor: 3

  configs:
    # A week.
    retention.ms: 604800000   # see the wiki
    cleanup.policy: [delete]
    min.insync.replicas: 2
"""
OTHER = "---\n" + topic("other", "  partitions: 1  # one\n")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project with the topics orders and other in one file, and no overlays yet."""
    monkeypatch.chdir(tmp_path)
    put("kdeclare.yaml", PROJECT)
    put("overlays/dev/none.yaml", "")
    put("overlays/more/none.yaml", "")
    put("manifests/topics/orders.yaml", "# Orders.\n" + topic("orders", ORDERS) + OTHER)
    return Place({"SECRET": "hunter2", "COUNT": "12"})


def test_exactly_the_changed_lines_change(here: Place) -> None:
    prepared = here.prepared(
        changed(
            "orders",
            change("partitions", 24, 12),
            put_key("retention.ms", "3600000", "604800000"),
            append("cleanup.policy", "compact", after=["delete", "compact"]),
            put_key("max.message.bytes", "2000000"),
            drop_key("min.insync.replicas"),
        ),
        changed("other", change("replicationFactor", 3, 1)),
    )
    check_golden("manifest-diff", render_manifest_diff(prepared.files), "diff")
    prepared.write()
    assert not here.prepared(changed("orders", put_key("retention.ms", "3600000"))).files


def test_a_file_that_comes_and_one_that_goes(here: Place) -> None:
    put("manifests/topics/old.yaml", topic("old", "  partitions: 1"))
    prepared = here.prepared(
        changed("old", change("partitions", None, 1), action=Action.DELETE),
        changed(
            "orders.new",
            change("partitions", 6),
            change("replicationFactor", 3),
            change("assignments.0", [1, 2, 3]),
            put_key("cleanup.policy", ["compact", "delete"]),
            put_key("retention.ms", "1"),
            action=Action.CREATE,
        ),
    )
    check_golden("manifest-diff-files", render_manifest_diff(prepared.files), "diff")
    prepared.write()
    assert not Path("manifests/topics/old.yaml").exists()
    assert names(here) == {"orders", "other", "orders.new"}


def names(here: Place) -> set[str]:
    return {item.id.name for item in load_manifests(here.workspace(), ()).desired}


@pytest.mark.parametrize(
    ("said", "field", "diff"),
    [
        # as they are declared
        ("retention.ms: 5", put_key("retention.ms", "6"), "-    retention.ms: 5\n+    retention.ms: 6\n"),
        ("retention.ms: 5", put_key("retention.ms", "5"), ""),
        ("preallocate: TRUE", put_key("preallocate", "true"), ""),
        (
            "retention.ms: null",
            put_key("retention.ms", "6"),
            "-    retention.ms: null\n+    retention.ms: 6\n",
        ),
        ("retention.ms: null", drop_key("retention.ms"), ""),
        ("retention.ms: 5", drop_key("min.insync.replicas"), ""),
        # lists keep their form
        (
            "cleanup.policy: delete",
            append("cleanup.policy", "compact", after=["delete", "compact"]),
            '-    cleanup.policy: delete\n+    cleanup.policy: "delete,compact"\n',
        ),
        ("cleanup.policy: compact,delete", put_key("cleanup.policy", ["delete", "compact"]), ""),
        (
            "cleanup.policy: [compact, delete]",
            subtract("cleanup.policy", "compact", after=["delete"]),
            "-    cleanup.policy: [compact, delete]\n+    cleanup.policy: [delete]\n",
        ),
        (
            "cleanup.policy:\n    - compact # one",
            put_key("cleanup.policy", ["delete"]),
            "-    - compact # one\n+    - delete\n",
        ),
        (
            "cleanup.policy: {append: [compact]}",
            put_key("cleanup.policy", ["delete"]),
            "-    cleanup.policy: {append: [compact]}\n+    cleanup.policy: [delete]\n",
        ),
        # lists by part
        (
            "retention.ms: 5",
            append("cleanup.policy", "compact"),
            "+    cleanup.policy: {append: [compact]}\n",
        ),
        (
            "cleanup.policy: null",
            subtract("cleanup.policy", "delete"),
            "-    cleanup.policy: null\n+    cleanup.policy: {subtract: [delete]}\n",
        ),
        (
            "cleanup.policy: {append: [compact]}",
            append("cleanup.policy", "delete"),
            "-    cleanup.policy: {append: [compact]}\n+    cleanup.policy: {append: [compact, delete]}\n",
        ),
        (
            "cleanup.policy: {append: [compact, delete]}",
            subtract("cleanup.policy", "delete"),
            "-    cleanup.policy: {append: [compact, delete]}\n"
            "+    cleanup.policy: {append: [compact], subtract: [delete]}\n",
        ),
        (
            "cleanup.policy:\n      append: compact\n      subtract: [delete]  # gone",
            append("cleanup.policy", "delete"),
            '-      append: compact\n-      subtract: [delete]  # gone\n+      append: "compact,delete"\n',
        ),
        (
            "cleanup.policy: {append: [compact]}",
            drop_key("cleanup.policy"),
            "-  configs:\n-    cleanup.policy: {append: [compact]}\n+  configs: {}\n",
        ),
    ],
)
def test_one_config(here: Place, said: str, field: object, diff: str) -> None:
    put("manifests/a.yaml", topic("a", f"  partitions: 1\n  configs:\n    {said}\n"))
    assert here.diff(changed("a", field)) == diff  # type: ignore[arg-type]


def test_append_and_subtract_of_one_key(here: Place) -> None:
    both = append("cleanup.policy", "compact"), subtract("cleanup.policy", "delete")
    wanted = "+  configs:\n+    cleanup.policy: {append: [compact], subtract: [delete]}\n"
    assert here.diff(changed("other", *both)) == wanted


def test_partitions_and_replicas_of_a_topic_with_assignments(here: Place) -> None:
    put(
        "manifests/a.yaml",
        topic("a", "  assignments:\n    0: [1, 2]  # zero\n    1:\n    - 2  # two\n    - 3\n"),
    )
    diff = here.diff(
        changed(
            "a",
            change("partitions", 3, 2),
            change("replicationFactor", 3, 2),
            change("assignments.0", [1, 3, 2], [1, 2]),
            change("assignments.1", [2, 1, 3], [2, 3]),
            change("assignments.2", [3, 1, 2]),
        )
    )
    assert diff == ("-    0: [1, 2]  # zero\n+    0: [1, 3, 2]  # zero\n+    - 1\n+    2: [3, 1, 2]\n")


def test_replicas_of_a_topic_that_declares_numbers_are_not_written(here: Place) -> None:
    prepared = here.prepared(changed("orders", change("assignments.0", [3, 2, 1], [1, 2, 3])))
    assert not prepared.files
    assert [notice.code for notice in prepared.notices] == ["assignments-not-declared"]


def test_a_number_that_a_reference_gives_already_stays(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  partitions: ${env.COUNT}\n"))
    assert here.diff(changed("a", change("partitions", 12, 6))) == ""


def test_creating_what_is_declared_edits_its_manifest(here: Place) -> None:
    creation = changed(
        "orders", change("partitions", 24), change("replicationFactor", 3), action=Action.CREATE
    )
    assert here.diff(creation) == "-  partitions: 12   # enough\n+  partitions: 24   # enough\n"


def test_what_is_blocked_or_not_a_change_of_the_cluster_is_left_out(here: Place) -> None:
    gone = [changed("orders", action=action) for action in (Action.NO_OP, Action.FORGET)]
    assert not here.prepared(*gone).files


# overlays


def test_an_edit_goes_where_the_value_stands(here: Place) -> None:
    put("overlays/dev/a.yaml", topic("orders", "  configs:\n    retention.ms: 1  # dev\n"))
    put("overlays/more/a.yaml", topic("orders", "  configs: {min.insync.replicas: 1}\n"))
    prepared = here.prepared(
        changed(
            "orders",
            put_key("retention.ms", "2"),
            put_key("min.insync.replicas", "3"),
            put_key("max.message.bytes", "5"),
        )
    )
    check_golden("manifest-diff-overlays", render_manifest_diff(prepared.files), "diff")


def test_what_an_overlay_says_goes_with_null_where_the_manifest_says_it_too(here: Place) -> None:
    put("overlays/dev/a.yaml", topic("orders", "  configs: {retention.ms: 1, max.message.bytes: 5}\n"))
    assert here.diff(changed("orders", drop_key("retention.ms"), drop_key("max.message.bytes"))) == (
        "-  configs: {retention.ms: 1, max.message.bytes: 5}\n+  configs: {retention.ms: null}\n"
    )


def test_parts_stand_in_overlays_and_manifests(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  configs:\n    cleanup.policy: {append: [compact]}\n"))
    put("overlays/dev/a.yaml", topic("a", "  configs:\n    cleanup.policy: {subtract: [x]}\n"))
    prepared = here.prepared(changed("a", append("cleanup.policy", "b"), subtract("cleanup.policy", "c")))
    assert [edit.file for edit in prepared.files] == ["manifests/a.yaml", "overlays/dev/a.yaml"]


def test_a_topic_that_goes_leaves_all_overlays(here: Place) -> None:
    put("kdeclare.yaml", PROJECT + "    prod:\n      overlays: [overlays/prod]\n")
    put("overlays/dev/a.yaml", topic("orders", "  partitions: 6\n"))
    put("overlays/prod/a.yaml", topic("orders", "  partitions: 24\n") + OTHER)
    prepared = here.prepared(changed("orders", action=Action.DELETE))
    files = {edit.file: edit.after for edit in prepared.files}
    assert files == {
        "manifests/topics/orders.yaml": OTHER.removeprefix("---\n").encode(),
        "overlays/dev/a.yaml": None,
        "overlays/prod/a.yaml": OTHER.removeprefix("---\n").encode(),
    }
    assert [(n.code, "also apply to the environments prod." in n.detail) for n in prepared.notices] == [
        ("shared-manifest", True)
    ]


# what is refused


def test_a_reference_is_never_overwritten(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  configs:\n    retention.ms: ${var.retention}\n"))
    put("manifests/b.yaml", topic("b", "  partitions: ${env.COUNT}\n"))
    found = here.refused(
        changed("a", put_key("retention.ms", "5")), changed("b", change("partitions", 24, 12))
    )
    assert [(d.code, str(d.place)) for d in found] == [
        ("field-by-reference", "manifests/a.yaml:6:5"),
        ("field-by-reference", "manifests/b.yaml:5:3"),
    ]
    assert "It is defined at kdeclare.yaml:9:19" in found[0].detail
    assert here.diff(changed("a", drop_key("retention.ms")))


def test_an_alias_is_never_followed(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  configs: &all\n    retention.ms: &n 5\n"))
    assert "&n 6" in here.diff(changed("a", put_key("retention.ms", "6")))  # it has no aliases
    put("manifests/a.yaml", topic("a", "  configs:\n    retention.ms: &n 5\n    max.message.bytes: *n\n"))
    for key in ("retention.ms", "max.message.bytes"):
        (found,) = here.refused(changed("a", put_key(key, "6")))
        assert (found.code, found.subject) == ("aliased-field", f"spec.configs.{key}")
        assert "at manifests/a.yaml:6:19" in found.detail


def test_a_secret_is_never_written(here: Place) -> None:
    secret = put_key("ssl.key.password", SENSITIVE_MASK)
    put("manifests/b.yaml", "apiVersion: kdeclare/v1\nkind: BrokerConfig\nmetadata: {name: '1'}\nspec: {}\n")
    for resource in (changed("1", secret, kind="BrokerConfig"), changed("new", secret, action=Action.CREATE)):
        assert [d.code for d in here.refused(resource)] == ["secret-not-written"]


def test_what_no_manifest_declares(here: Place) -> None:
    assert [d.code for d in here.refused(changed("nope", put_key("retention.ms", "5")))] == ["not-declared"]
    assert not here.prepared(changed("nope", action=Action.DELETE)).files


def test_a_new_file_never_takes_the_place_of_another(here: Place) -> None:
    put("manifests/topics/new.yaml", topic("renamed", "  partitions: 1\n"))
    creation = changed("new", change("partitions", 1), action=Action.CREATE)
    assert [d.code for d in here.refused(creation)] == ["file-exists"]


def test_a_new_file_without_a_folder_for_it(here: Place) -> None:
    put("kdeclare.yaml", PROJECT.replace("[manifests]", "[manifests/topics/orders.yaml]"))
    creation = changed("new", change("partitions", 1), action=Action.CREATE)
    assert [d.code for d in here.refused(creation)] == ["no-manifests-folder"]


def test_a_new_file_is_one_that_is_loaded(here: Place) -> None:
    creation = changed(".hidden", put_key("retention.ms", "1"), action=Action.CREATE)
    here.prepared(creation).write()
    assert ".hidden" in names(here)


def test_a_name_that_collides_is_refused_before_it_is_written(here: Place) -> None:
    put("manifests/a.yaml", topic("a.b", "  partitions: 1\n"))
    (found,) = here.refused(changed("a_b", change("partitions", 1), action=Action.CREATE))
    assert found.code == "not-as-wanted"
    assert "collides" in found.detail


def test_replicas_that_are_not_known(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  assignments: {0: [1, 2]}\n"))
    for path, after in (("partitions", 2), ("replicationFactor", 3)):
        assert [d.code for d in here.refused(changed("a", change(path, after)))] == ["assignments-unknown"]


def test_a_layout_that_cannot_be_edited(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  ? partitions\n  : 1\n"))
    (found,) = here.refused(changed("a", change("replicationFactor", 2)))
    assert (found.code, str(found.place)) == ("layout-not-edited", "manifests/a.yaml:5:3")


def test_all_that_is_refused_is_said_at_once(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  configs:\n    retention.ms: ${var.retention}\n"))
    both = changed("a", put_key("retention.ms", "5")), changed("nope", put_key("retention.ms", "5"))
    assert [d.code for d in here.refused(*both)] == ["field-by-reference", "not-declared"]


def test_manifests_with_mistakes_are_not_edited(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  partition: 1\n"))
    assert [d.code for d in here.refused(changed("orders", put_key("retention.ms", "5")))] == [
        "unknown-field"
    ]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("retention.ms: 5", "retention.ms: 6"),  # an unexpected result
        ("retention.ms: 5", "flush.ms: 5"),
        ("partitions: 12", "partitions: 13"),  # another field of the topic
        ("{name: orders}", "{name: orders, labels: {a: b}}"),
        ("partitions: 1 ", "partitions: 2 "),  # another topic
        ("{name: other}", "{name: another}"),
    ],
)
def test_an_outcome_that_was_not_wanted_is_refused(here: Place, text: str, wrong: str) -> None:
    file = "manifests/topics/orders.yaml"
    workspace = here.workspace()
    before = load_manifests(workspace, ())
    good = Path(file).read_text().replace("retention.ms: 604800000", "retention.ms: 5")
    wanted = [changed("orders", put_key("retention.ms", "5"))]
    check_outcome(before, load_manifests(workspace, (), {file: good.encode()}), wanted)
    assert text in good
    bad = good.replace(text, wrong)
    with pytest.raises(KdeclareError) as refused:
        check_outcome(before, load_manifests(workspace, (), {file: bad.encode()}), wanted)
    assert [d.code for d in refused.value.diagnostics] == ["not-as-wanted"]


# writing


def test_a_file_keeps_its_permissions_and_the_link_to_it(here: Place) -> None:
    file = Path("manifests/topics/orders.yaml")
    real = Path("orders.real")
    file.rename(real)
    file.symlink_to(os.path.relpath(real, file.parent))
    real.chmod(0o640)
    here.prepared(changed("orders", change("partitions", 24))).write()
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "partitions: 24 " in real.read_text()


def test_nothing_is_written_when_a_file_has_changed_since(here: Place) -> None:
    put("manifests/a.yaml", topic("a", "  partitions: 1\n"))
    prepared = here.prepared(
        changed("a", change("partitions", 2)), changed("orders", change("partitions", 24))
    )
    with Path("manifests/topics/orders.yaml").open("a") as file:
        file.write("# late\n")
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    assert [d.code for d in refused.value.diagnostics] == ["manifest-changed"]
    assert "partitions: 1\n" in Path("manifests/a.yaml").read_text()


def test_a_new_file_that_is_there_by_then(here: Place) -> None:
    prepared = here.prepared(changed("new", change("partitions", 1), action=Action.CREATE))
    put("manifests/topics/new.yaml", "# mine\n")
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    assert [d.code for d in refused.value.diagnostics] == ["manifest-changed"]
    assert Path("manifests/topics/new.yaml").read_text() == "# mine\n"


def test_what_cannot_be_written_says_what_was(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    put("manifests/a.yaml", topic("a", "  partitions: 1\n"))
    prepared = here.prepared(
        changed("a", change("partitions", 2)), changed("orders", change("partitions", 24))
    )
    written: list[Path] = []

    def full(path: Path, data: bytes, mode: int | None = None) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(path)

    monkeypatch.setattr("kdeclare.app.authoring.write_back.replace_file", full)
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    (found,) = refused.value.diagnostics
    assert found.code == "not-written"
    assert found.detail == (
        "manifests/topics/orders.yaml: no space left on device. Written before that: manifests/a.yaml."
    )


# where it is declared


def test_where_the_changed_fields_are_declared(here: Place) -> None:
    put("overlays/dev/a.yaml", topic("orders", "  configs: {min.insync.replicas: 1}\n"))
    put("manifests/b.yaml", topic("b", "  assignments: {0: [1]}\n"))
    changes = [
        changed(
            "orders",
            change("partitions", 24),
            put_key("retention.ms", "5"),
            drop_key("min.insync.replicas"),
            put_key("max.message.bytes", "5"),
        ),
        changed("b", change("partitions", 2), change("assignments.0", [2]), change("assignments.1", [2])),
        changed("nope", put_key("retention.ms", "5")),
    ]
    found = find_declared_positions(read_project_sources(here.workspace()), changes)
    assert {(named.name, path): str(place) for (named, path), place in found.items()} == {
        ("orders", ""): "manifests/topics/orders.yaml:4:18",
        ("orders", "partitions"): "manifests/topics/orders.yaml:7:3",
        ("orders", "configs.retention.ms"): "manifests/topics/orders.yaml:12:5",
        ("orders", "configs.min.insync.replicas"): "overlays/dev/a.yaml:5:13",
        ("b", ""): "manifests/b.yaml:3:18",
        ("b", "partitions"): "manifests/b.yaml:5:3",
        ("b", "assignments.0"): "manifests/b.yaml:5:17",
        ("b", "assignments.1"): "manifests/b.yaml:5:3",
    }
