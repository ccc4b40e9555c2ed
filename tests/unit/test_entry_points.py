"""Entry points found in folders are the same as those that `importlib.metadata` finds."""

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_all, find_entry_points

Found = list[tuple[str, str, str, str, str]]


def list_library_entry_points() -> Found:
    return [
        (point.group, point.name, point.value, point.dist.name, point.dist.version)
        for group in sorted(metadata.entry_points().groups)
        for point in metadata.entry_points(group=group)
        if group.startswith("kdeclare.") and point.dist is not None
    ]


def list_our_entry_points() -> Found:
    return [(p.group, p.name, p.value, p.distribution, p.version) for p in find_all()]


def check_same_entry_points() -> None:
    found = list_our_entry_points()
    assert sorted(found) == sorted(list_library_entry_points())
    for group in {group for group, *_ in found}:  # the order within a group decides which one is first
        assert [item for item in found if item[0] == group] == [
            i for i in list_library_entry_points() if i[0] == group
        ]


def install_distribution(
    folder: Path, name: str, text: str, *, version: str = "1", kind: str = "dist-info", file: str = "METADATA"
) -> None:
    about = folder / f"{name}-{version}.{kind}"
    about.mkdir(parents=True)
    (about / file).write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: a description\nVersion: 7\n"
    )
    (about / "entry_points.txt").write_text(text)


@pytest.mark.slow
def test_entry_points_of_environment_equal_library() -> None:
    check_same_entry_points()
    assert "kafka" in {point.name for point in find_entry_points("kdeclare.providers")}


@pytest.mark.slow
def test_first_distribution_of_same_name_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    odd = "# c\n[other]\nx = y:z\n\n[kdeclare.x]\none=m:f [extra]\n two = m : g\n"
    install_distribution(a, "Some.Thing", odd, version="2")
    install_distribution(b, "some_thing", "[kdeclare.x]\nold = m:f\n")
    install_distribution(b, "else", "[kdeclare.x]\none = m:f [extra]\nthree = n:h\n[other]\nfour = n:h\n")
    install_distribution(b, "eggs", "[kdeclare.y]\nfive = n:h\n", kind="egg-info", file="PKG-INFO")
    (b / "none-1.dist-info").mkdir()
    (b / "single.egg-info").write_text("Name: single\nVersion: 1\n")
    for folder in (b, a, tmp_path / "missing"):
        monkeypatch.syspath_prepend(str(folder))
    check_same_entry_points()
    assert [p.name for p in find_entry_points("kdeclare.x")] == ["one", "two", "one", "three"]
    assert [p.distribution for p in find_entry_points("kdeclare.y")] == ["eggs"]


@pytest.mark.slow
def test_entry_points_in_archive_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packed.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("packed-1.dist-info/METADATA", "Name: packed\nVersion: 1\n")
        file.writestr("packed-1.dist-info/entry_points.txt", "[kdeclare.x]\none = m:f\n")
    monkeypatch.syspath_prepend(str(archive))
    check_same_entry_points()
    assert [p.origin for p in find_entry_points("kdeclare.x")] == ["the package packed 1"]


@pytest.mark.slow
def test_entry_points_in_egg_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    egg = tmp_path / "packed-1-py3.11.egg"
    (egg / "EGG-INFO").mkdir(parents=True)
    (egg / "EGG-INFO" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: packed\nVersion: 1\n")
    (egg / "EGG-INFO" / "entry_points.txt").write_text("[kdeclare.x]\none = m:f\n")
    monkeypatch.syspath_prepend(str(egg))
    check_same_entry_points()
    assert [p.name for p in find_entry_points("kdeclare.x")] == ["one"]


@pytest.mark.slow
def test_entry_points_of_custom_finder_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_distribution(tmp_path, "far", "[kdeclare.x]\none = m:f\n")

    class Finder:
        def find_distributions(
            self, context: metadata.DistributionFinder.Context
        ) -> Iterator[metadata.Distribution]:
            yield metadata.Distribution.at(tmp_path / "far-1.dist-info")

        def find_spec(self, *_: object) -> None:
            """Return None: there are no modules."""

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    monkeypatch.syspath_prepend(str(tmp_path / "nothing"))
    check_same_entry_points()
    assert [p.origin for p in find_entry_points("kdeclare.x")] == ["the package far 1"]


def test_entry_point_loads_module_or_attribute() -> None:
    assert InstalledEntryPoint("", "", "sys").load() is sys
    assert InstalledEntryPoint("", "", "pathlib : Path.home [extra]").load() == Path.home
    with pytest.raises(AttributeError):
        InstalledEntryPoint("", "", "sys:nothing_of_this_name").load()
    with pytest.raises(ModuleNotFoundError):
        InstalledEntryPoint("", "", "no_such_module_at_all:x").load()


def test_help_does_not_import_metadata_library(tmp_path: Path) -> None:
    code = (
        "import sys; from kdeclare.cli.main import main; main(['--help']);"
        "print([m for m in ('importlib.metadata', 'email', 'zipfile') if m in sys.modules], file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ran.stderr == "[]\n"
