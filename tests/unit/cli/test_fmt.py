"""``kdeclare fmt`` writes manifests in a uniform layout."""

import os
from pathlib import Path

import pytest

from tests.unit.cli.command_line import CommandLine

_UNTIDY = """\
kind: Topic
apiVersion: kdeclare/v1
metadata:
    name: orders   # the orders
spec: {partitions: 1}
"""
_TIDY = """\
apiVersion: kdeclare/v1
kind: Topic
metadata:
  name: orders   # the orders
spec: {partitions: 1}
"""
_PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: shop}
spec:
  manifests: [manifests]
  environments:
    dev: {bootstrapServers: "lab:9092", overlays: [overlays/dev.yaml]}
    prod: {bootstrapServers: "lab:9092", manifests: [prod], variables: {x: "${env.UNSET}"}}
"""


@pytest.fixture
def shop(kdeclare: CommandLine) -> CommandLine:
    (kdeclare.folder / "kdeclare.yaml").write_text(_PROJECT)
    for name in ("manifests/a.yaml", "prod/b.yaml", "overlays/dev.yaml", "manifests/c.yaml"):
        file = kdeclare.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(_TIDY if name == "manifests/c.yaml" else _UNTIDY)
    return kdeclare


def test_fmt_writes_the_files_of_all_environments_and_prints_their_names(shop: CommandLine) -> None:
    (shop.folder / "manifests/a.yaml").chmod(0o640)
    ran = shop("fmt")
    assert (ran.code, ran.out) == (0, "manifests/a.yaml\noverlays/dev.yaml\nprod/b.yaml\n")
    assert ran.err == "5 files read, 3 of them changed.\n"
    assert all(Path(name).read_text() == _TIDY for name in ran.out.split())
    assert os.stat("manifests/a.yaml").st_mode & 0o777 == 0o640  # noqa: PTH116
    again = shop("fmt", "-q")
    assert (again.code, again.out, again.err) == (0, "", "")
    assert shop("fmt", "--check").code == 0


def test_check_shows_the_differences_and_writes_nothing(shop: CommandLine) -> None:
    ran = shop("fmt", "--check", "manifests")
    assert ran.code == 1
    assert "--- a/manifests/a.yaml\n+++ b/manifests/a.yaml\n" in ran.out
    assert "\n-    name: orders   # the orders\n+  name: orders   # the orders\n" in ran.out
    assert "File is not formatted" in ran.err
    assert "manifests/a.yaml:1:1" in ran.err
    assert "manifests/c.yaml" not in ran.out + ran.err
    assert Path("manifests/a.yaml").read_text() == _UNTIDY


def test_file_that_is_not_yaml_is_reported_and_other_files_are_formatted(shop: CommandLine) -> None:
    Path("manifests/b.yaml").write_text("kind: [Topic\n")
    ran = shop("fmt")
    assert (ran.code, ran.out.splitlines()[0]) == (1, "manifests/a.yaml")
    assert "manifests/b.yaml:2:1" in ran.err
    assert Path("manifests/a.yaml").read_text() == _TIDY


def test_document_that_is_not_supported_is_reported(shop: CommandLine) -> None:
    text = "? kind\n: Topic\n"
    Path("manifests/b.yaml").write_text(text)
    ran = shop("fmt", "manifests/b.yaml")
    assert (ran.code, ran.out) == (0, "")
    assert "Document is not formatted" in ran.err
    assert Path("manifests/b.yaml").read_text() == text


def test_fmt_reads_standard_input(shop: CommandLine) -> None:
    assert shop("fmt", "-", piped=_UNTIDY).out == _TIDY
    ran = shop("fmt", "-", "--check", piped=_UNTIDY)
    assert ran.code == 1
    assert "<stdin>:1:1" in ran.err
    assert shop("fmt", "-", "--check", piped=_TIDY).code == 0
    assert shop("fmt", "-", "manifests", piped=_TIDY).code == 64


def test_json_manifests_are_left_unchanged(shop: CommandLine) -> None:
    text = '{"kind": "Topic",   "apiVersion": "kdeclare/v1"}'
    Path("manifests/a.json").write_text(text)
    assert shop("fmt").code == 0
    assert Path("manifests/a.json").read_text() == text


def test_fmt_needs_a_project_or_a_path(shop: CommandLine) -> None:
    Path("kdeclare.yaml").rename("other.yaml")
    assert "No project" in shop("fmt").err
    assert shop("fmt", "missing.yaml").code == 1
    assert shop("fmt", "--project", "other.yaml", "--check").code == 1
    assert shop("fmt", "manifests").code == 0


def test_fmt_in_the_shell_uses_the_project_of_the_shell(shop: CommandLine) -> None:
    Path("kdeclare.yaml").rename("other.yaml")
    ran = shop("shell", "--project", "other.yaml", "--env", "dev", piped="fmt\n")
    assert ran.code == 0, ran.err
    assert Path("manifests/a.yaml").read_text() == _TIDY
