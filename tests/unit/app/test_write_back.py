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
    WriteBackProject,
    append,
    drop_key,
    format_topic,
    make_change,
    make_field_change,
    put_file,
    put_key,
    subtract,
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
OTHER = "---\n" + format_topic("other", "  partitions: 1  # one\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteBackProject:
    """A project with the topics orders and other in one file, and no overlays yet."""
    monkeypatch.chdir(tmp_path)
    put_file("kdeclare.yaml", PROJECT)
    put_file("overlays/dev/none.yaml", "")
    put_file("overlays/more/none.yaml", "")
    put_file("manifests/topics/orders.yaml", "# Orders.\n" + format_topic("orders", ORDERS) + OTHER)
    return WriteBackProject({"SECRET": "hunter2", "COUNT": "12"})


def test_edits_change_only_affected_lines(project: WriteBackProject) -> None:
    prepared = project.prepare(
        make_change(
            "orders",
            make_field_change("partitions", 24, 12),
            put_key("retention.ms", "3600000", "604800000"),
            append("cleanup.policy", "compact", after=["delete", "compact"]),
            put_key("max.message.bytes", "2000000"),
            drop_key("min.insync.replicas"),
        ),
        make_change("other", make_field_change("replicationFactor", 3, 1)),
    )
    check_golden("manifest-diff", render_manifest_diff(prepared.files), "diff")
    prepared.write()
    assert not project.prepare(make_change("orders", put_key("retention.ms", "3600000"))).files


def test_edits_create_and_delete_files(project: WriteBackProject) -> None:
    put_file("manifests/topics/old.yaml", format_topic("old", "  partitions: 1"))
    prepared = project.prepare(
        make_change("old", make_field_change("partitions", None, 1), action=Action.DELETE),
        make_change(
            "orders.new",
            make_field_change("partitions", 6),
            make_field_change("replicationFactor", 3),
            make_field_change("assignments.0", [1, 2, 3]),
            put_key("cleanup.policy", ["compact", "delete"]),
            put_key("retention.ms", "1"),
            action=Action.CREATE,
        ),
    )
    check_golden("manifest-diff-files", render_manifest_diff(prepared.files), "diff")
    prepared.write()
    assert not Path("manifests/topics/old.yaml").exists()
    assert load_names(project) == {"orders", "other", "orders.new"}


def load_names(here: WriteBackProject) -> set[str]:
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
def test_edit_writes_one_config(project: WriteBackProject, said: str, field: object, diff: str) -> None:
    put_file("manifests/a.yaml", format_topic("a", f"  partitions: 1\n  configs:\n    {said}\n"))
    assert project.render_diff(make_change("a", field)) == diff  # type: ignore[arg-type]


def test_edit_writes_append_and_subtract_of_one_key(project: WriteBackProject) -> None:
    both = append("cleanup.policy", "compact"), subtract("cleanup.policy", "delete")
    wanted = "+  configs:\n+    cleanup.policy: {append: [compact], subtract: [delete]}\n"
    assert project.render_diff(make_change("other", *both)) == wanted


def test_edit_writes_partitions_and_replicas_of_assignments(project: WriteBackProject) -> None:
    put_file(
        "manifests/a.yaml",
        format_topic("a", "  assignments:\n    0: [1, 2]  # zero\n    1:\n    - 2  # two\n    - 3\n"),
    )
    diff = project.render_diff(
        make_change(
            "a",
            make_field_change("partitions", 3, 2),
            make_field_change("replicationFactor", 3, 2),
            make_field_change("assignments.0", [1, 3, 2], [1, 2]),
            make_field_change("assignments.1", [2, 1, 3], [2, 3]),
            make_field_change("assignments.2", [3, 1, 2]),
        )
    )
    assert diff == ("-    0: [1, 2]  # zero\n+    0: [1, 3, 2]  # zero\n+    - 1\n+    2: [3, 1, 2]\n")


def test_edit_skips_assignments_of_topic_with_counts(project: WriteBackProject) -> None:
    prepared = project.prepare(
        make_change("orders", make_field_change("assignments.0", [3, 2, 1], [1, 2, 3]))
    )
    assert not prepared.files
    assert [notice.code for notice in prepared.notices] == ["assignments-not-declared"]


def test_edit_keeps_reference_with_same_value(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  partitions: ${env.COUNT}\n"))
    assert project.render_diff(make_change("a", make_field_change("partitions", 12, 6))) == ""


def test_creation_of_declared_topic_edits_its_manifest(project: WriteBackProject) -> None:
    creation = make_change(
        "orders",
        make_field_change("partitions", 24),
        make_field_change("replicationFactor", 3),
        action=Action.CREATE,
    )
    assert project.render_diff(creation) == "-  partitions: 12   # enough\n+  partitions: 24   # enough\n"


def test_edits_skip_no_op_and_forget(project: WriteBackProject) -> None:
    gone = [make_change("orders", action=action) for action in (Action.NO_OP, Action.FORGET)]
    assert not project.prepare(*gone).files


# overlays


def test_edit_goes_to_file_that_declares_the_value(project: WriteBackProject) -> None:
    put_file("overlays/dev/a.yaml", format_topic("orders", "  configs:\n    retention.ms: 1  # dev\n"))
    put_file("overlays/more/a.yaml", format_topic("orders", "  configs: {min.insync.replicas: 1}\n"))
    prepared = project.prepare(
        make_change(
            "orders",
            put_key("retention.ms", "2"),
            put_key("min.insync.replicas", "3"),
            put_key("max.message.bytes", "5"),
        )
    )
    check_golden("manifest-diff-overlays", render_manifest_diff(prepared.files), "diff")


def test_deletion_in_overlay_writes_null_for_declared_base_value(project: WriteBackProject) -> None:
    put_file(
        "overlays/dev/a.yaml", format_topic("orders", "  configs: {retention.ms: 1, max.message.bytes: 5}\n")
    )
    assert project.render_diff(
        make_change("orders", drop_key("retention.ms"), drop_key("max.message.bytes"))
    ) == ("-  configs: {retention.ms: 1, max.message.bytes: 5}\n+  configs: {retention.ms: null}\n")


def test_append_and_subtract_are_written_where_declared(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  configs:\n    cleanup.policy: {append: [compact]}\n"))
    put_file("overlays/dev/a.yaml", format_topic("a", "  configs:\n    cleanup.policy: {subtract: [x]}\n"))
    prepared = project.prepare(
        make_change("a", append("cleanup.policy", "b"), subtract("cleanup.policy", "c"))
    )
    assert [edit.file for edit in prepared.files] == ["manifests/a.yaml", "overlays/dev/a.yaml"]


def test_deleted_topic_is_removed_from_all_overlays(project: WriteBackProject) -> None:
    put_file("kdeclare.yaml", PROJECT + "    prod:\n      overlays: [overlays/prod]\n")
    put_file("overlays/dev/a.yaml", format_topic("orders", "  partitions: 6\n"))
    put_file("overlays/prod/a.yaml", format_topic("orders", "  partitions: 24\n") + OTHER)
    prepared = project.prepare(make_change("orders", action=Action.DELETE))
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


def test_reference_is_never_overwritten(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  configs:\n    retention.ms: ${var.retention}\n"))
    put_file("manifests/b.yaml", format_topic("b", "  partitions: ${env.COUNT}\n"))
    found = project.list_refusals(
        make_change("a", put_key("retention.ms", "5")),
        make_change("b", make_field_change("partitions", 24, 12)),
    )
    assert [(d.code, str(d.place)) for d in found] == [
        ("field-by-reference", "manifests/a.yaml:6:5"),
        ("field-by-reference", "manifests/b.yaml:5:3"),
    ]
    assert "The variable is defined at kdeclare.yaml:9:19" in found[0].detail
    assert project.render_diff(make_change("a", drop_key("retention.ms")))


def test_alias_is_never_followed(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  configs: &all\n    retention.ms: &n 5\n"))
    assert "&n 6" in project.render_diff(make_change("a", put_key("retention.ms", "6")))  # it has no aliases
    put_file(
        "manifests/a.yaml",
        format_topic("a", "  configs:\n    retention.ms: &n 5\n    max.message.bytes: *n\n"),
    )
    for key in ("retention.ms", "max.message.bytes"):
        (found,) = project.list_refusals(make_change("a", put_key(key, "6")))
        assert (found.code, found.subject) == ("aliased-field", f"spec.configs.{key}")
        assert "at manifests/a.yaml:6:19" in found.detail


def test_secret_is_never_written(project: WriteBackProject) -> None:
    secret = put_key("ssl.key.password", SENSITIVE_MASK)
    put_file(
        "manifests/b.yaml", "apiVersion: kdeclare/v1\nkind: BrokerConfig\nmetadata: {name: '1'}\nspec: {}\n"
    )
    for resource in (
        make_change("1", secret, kind="BrokerConfig"),
        make_change("new", secret, action=Action.CREATE),
    ):
        assert [d.code for d in project.list_refusals(resource)] == ["secret-not-written"]


def test_edits_refuse_update_of_undeclared_topic(project: WriteBackProject) -> None:
    assert [d.code for d in project.list_refusals(make_change("nope", put_key("retention.ms", "5")))] == [
        "not-declared"
    ]
    assert not project.prepare(make_change("nope", action=Action.DELETE)).files


def test_creation_refuses_existing_file(project: WriteBackProject) -> None:
    put_file("manifests/topics/new.yaml", format_topic("renamed", "  partitions: 1\n"))
    creation = make_change("new", make_field_change("partitions", 1), action=Action.CREATE)
    assert [d.code for d in project.list_refusals(creation)] == ["file-exists"]


def test_creation_refuses_project_without_manifests_folder(project: WriteBackProject) -> None:
    put_file("kdeclare.yaml", PROJECT.replace("[manifests]", "[manifests/topics/orders.yaml]"))
    creation = make_change("new", make_field_change("partitions", 1), action=Action.CREATE)
    assert [d.code for d in project.list_refusals(creation)] == ["no-manifests-folder"]


def test_creation_of_hidden_name_writes_loaded_file(project: WriteBackProject) -> None:
    creation = make_change(".hidden", put_key("retention.ms", "1"), action=Action.CREATE)
    project.prepare(creation).write()
    assert ".hidden" in load_names(project)


def test_creation_refuses_colliding_name(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a.b", "  partitions: 1\n"))
    (found,) = project.list_refusals(
        make_change("a_b", make_field_change("partitions", 1), action=Action.CREATE)
    )
    assert found.code == "not-as-wanted"
    assert "collide: Kafka treats" in found.detail


def test_edit_refuses_count_without_known_assignments(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  assignments: {0: [1, 2]}\n"))
    for path, after in (("partitions", 2), ("replicationFactor", 3)):
        assert [d.code for d in project.list_refusals(make_change("a", make_field_change(path, after)))] == [
            "assignments-unknown"
        ]


def test_edit_refuses_unsupported_layout(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  ? partitions\n  : 1\n"))
    (found,) = project.list_refusals(make_change("a", make_field_change("replicationFactor", 2)))
    assert (found.code, str(found.place)) == ("layout-not-edited", "manifests/a.yaml:5:3")


def test_all_refusals_are_reported_together(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  configs:\n    retention.ms: ${var.retention}\n"))
    both = make_change("a", put_key("retention.ms", "5")), make_change("nope", put_key("retention.ms", "5"))
    assert [d.code for d in project.list_refusals(*both)] == ["field-by-reference", "not-declared"]


def test_invalid_manifests_are_not_edited(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  partition: 1\n"))
    assert [d.code for d in project.list_refusals(make_change("orders", put_key("retention.ms", "5")))] == [
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
def test_check_outcome_refuses_unexpected_result(project: WriteBackProject, text: str, wrong: str) -> None:
    file = "manifests/topics/orders.yaml"
    workspace = project.workspace()
    before = load_manifests(workspace, ())
    good = Path(file).read_text().replace("retention.ms: 604800000", "retention.ms: 5")
    wanted = [make_change("orders", put_key("retention.ms", "5"))]
    check_outcome(before, load_manifests(workspace, (), {file: good.encode()}), wanted)
    assert text in good
    bad = good.replace(text, wrong)
    with pytest.raises(KdeclareError) as refused:
        check_outcome(before, load_manifests(workspace, (), {file: bad.encode()}), wanted)
    assert [d.code for d in refused.value.diagnostics] == ["not-as-wanted"]


# writing


def test_write_keeps_permissions_and_symlink(project: WriteBackProject) -> None:
    file = Path("manifests/topics/orders.yaml")
    real = Path("orders.real")
    file.rename(real)
    file.symlink_to(os.path.relpath(real, file.parent))
    real.chmod(0o640)
    project.prepare(make_change("orders", make_field_change("partitions", 24))).write()
    assert file.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert "partitions: 24 " in real.read_text()


def test_write_refuses_concurrently_changed_file(project: WriteBackProject) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  partitions: 1\n"))
    prepared = project.prepare(
        make_change("a", make_field_change("partitions", 2)),
        make_change("orders", make_field_change("partitions", 24)),
    )
    with Path("manifests/topics/orders.yaml").open("a") as file:
        file.write("# late\n")
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    assert [d.code for d in refused.value.diagnostics] == ["manifest-changed"]
    assert "partitions: 1\n" in Path("manifests/a.yaml").read_text()


def test_write_refuses_concurrently_created_file(project: WriteBackProject) -> None:
    prepared = project.prepare(make_change("new", make_field_change("partitions", 1), action=Action.CREATE))
    put_file("manifests/topics/new.yaml", "# mine\n")
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    assert [d.code for d in refused.value.diagnostics] == ["manifest-changed"]
    assert Path("manifests/topics/new.yaml").read_text() == "# mine\n"


def test_write_failure_reports_files_already_written(
    project: WriteBackProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_file("manifests/a.yaml", format_topic("a", "  partitions: 1\n"))
    prepared = project.prepare(
        make_change("a", make_field_change("partitions", 2)),
        make_change("orders", make_field_change("partitions", 24)),
    )
    written: list[Path] = []

    def fail_second_write(path: Path, data: bytes, mode: int | None = None) -> None:
        if written:
            raise OSError(28, "No space left on device")
        written.append(path)

    monkeypatch.setattr("kdeclare.app.authoring.write_back.replace_file", fail_second_write)
    with pytest.raises(KdeclareError) as refused:
        prepared.write()
    (found,) = refused.value.diagnostics
    assert found.code == "not-written"
    assert found.detail == (
        "manifests/topics/orders.yaml: no space left on device. Already written: manifests/a.yaml."
    )


# where it is declared


def test_find_declarations_locates_changed_fields(project: WriteBackProject) -> None:
    put_file("overlays/dev/a.yaml", format_topic("orders", "  configs: {min.insync.replicas: 1}\n"))
    put_file("manifests/b.yaml", format_topic("b", "  assignments: {0: [1]}\n"))
    changes = [
        make_change(
            "orders",
            make_field_change("partitions", 24),
            put_key("retention.ms", "5"),
            drop_key("min.insync.replicas"),
            put_key("max.message.bytes", "5"),
        ),
        make_change(
            "b",
            make_field_change("partitions", 2),
            make_field_change("assignments.0", [2]),
            make_field_change("assignments.1", [2]),
        ),
        make_change("nope", put_key("retention.ms", "5")),
    ]
    found = find_declared_positions(read_project_sources(project.workspace()), changes)
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
