"""Mistakes that users made easily are refused or reported."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.syntax.files import build_file_name
from tests.unit.cli.command_line import CommandLine


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "-out=x"],
        ["plan", "-out", "x"],
        ["apply", "-yes"],
        ["topic", "create", "a", "-partitions=3"],
        ["sandbox", "start", "-port=1"],
    ],
)
def test_long_option_with_one_dash_is_refused(kdeclare: CommandLine, arguments: list[str]) -> None:
    """``-out=x`` would be ``-o`` with the value ``ut=x``."""
    ran = kdeclare(*arguments)
    assert ran.code == 64
    assert "needs two dashes" in ran.err
    assert not (kdeclare.folder / "ut=x").exists()


def test_short_options_accept_attached_values(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert kdeclare("plan", "-oit.plan").code == 0
    assert (kdeclare.folder / "it.plan").exists()
    assert kdeclare("plan", "-qv").code == 0


def test_json_manifest_in_folder_is_loaded(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    manifest = '{"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": {"name": "x"}, "spec": {}}'
    (kdeclare.folder / "manifests" / "x.json").write_text(manifest)
    (kdeclare.folder / "manifests" / "other.json").write_text('{"some": "thing"}')
    ran = kdeclare("validate")
    assert ran.code == 0
    assert "2 resources in 2 files" in ran.out
    assert "other.json" not in ran.out + ran.err


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def make_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [make_fifo, link_to_zero, make_large, make_folder])
def test_file_reference_to_special_file_is_refused(
    kdeclare: CommandLine, make: Callable[[Path], None]
) -> None:
    """Before, a FIFO blocked forever, and /dev/zero filled the memory."""
    make(kdeclare.folder / "secret")
    kdeclare.topic("orders", configs={"retention.ms": "${file.secret}"})
    ran = kdeclare("validate")
    assert ran.code == 1
    assert "cannot be read" in ran.out + ran.err
    assert "manifests/orders.yaml" in ran.out + ran.err


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "..", "a/b", "%2F", ".hidden"])
def test_file_names_stay_inside_their_folder(tmp_path: Path, name: str) -> None:
    file = tmp_path / build_file_name(ResourceId("Topic", name))
    assert file.resolve().parent == tmp_path.resolve()


def test_long_names_have_short_file_names(tmp_path: Path) -> None:
    """Group ids can be of any length, and special characters take up to nine bytes when they are escaped."""
    names = [f"{'ü' * 100}{end}" for end in ("a", "b")] + ["x" * 5000]
    files = {build_file_name(ResourceId("GroupConfig", name)) for name in names}
    assert len(files) == len(names)
    for file in files:
        (tmp_path / file).touch()


def test_valid_topic_names_are_kept_as_file_names() -> None:
    assert build_file_name(ResourceId("Topic", "checkout.orders_v2-x")) == "checkout.orders_v2-x.yaml"
    assert build_file_name(ResourceId("Topic", "%2F")) != build_file_name(ResourceId("Topic", "/"))


@pytest.mark.parametrize("option", ["--skip-stale", "--require-signature"])
def test_missing_plan_file_is_reported_as_missing(kdeclare: CommandLine, option: str) -> None:
    ran = kdeclare("apply", "missing.plan", option)
    assert ran.code == 1
    assert "'missing.plan' does not exist." in ran.err
