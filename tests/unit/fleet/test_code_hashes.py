"""Incremental audits notice that the code of kdeclare, of a provider or of the CEL engine changed."""

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path, PurePosixPath

import pytest

import kdeclare
from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers
from kdeclare.core.provider.package_files import hash_files, hash_package, list_files
from kdeclare.fleet.tables.comparison_options import describe_code

SCRIPT = "from kdeclare.core.provider.package_files import hash_package; print(hash_package('kdeclare'))"


def hash_folder(folder: Path) -> str:
    return hash_files(list_files(folder, PurePosixPath("package")))


def hash_in_new_process(path: Path) -> str:
    environ = {**os.environ, "PYTHONPATH": str(path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env=environ,
        cwd=path.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_hash_depends_on_names_and_contents_of_files(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.py").write_text("1")
    (tmp_path / "two.json").write_text("2")
    seen = [hash_folder(tmp_path)]
    (tmp_path / "a" / "one.py").write_text("3")
    seen.append(hash_folder(tmp_path))
    (tmp_path / "two.json").rename(tmp_path / "three.json")
    seen.append(hash_folder(tmp_path))
    (tmp_path / "a" / "empty.py").touch()
    seen.append(hash_folder(tmp_path))
    assert len(set(seen)) == len(seen)


def test_hash_ignores_compiled_modules(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("1")
    before = hash_folder(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "one.cpython-311.pyc").write_bytes(b"1")
    assert hash_folder(tmp_path) == before


@pytest.mark.slow
def test_changed_line_of_kdeclare_changes_hash_in_folders_and_zip_files(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    source = Path(kdeclare.__path__[0])
    shutil.copytree(source, copy / "kdeclare", ignore=shutil.ignore_patterns("__pycache__"))
    assert hash_in_new_process(copy) == hash_package("kdeclare")
    archive = Path(shutil.make_archive(str(tmp_path / "kdeclare"), "zip", copy))
    assert hash_in_new_process(archive) == hash_package("kdeclare")
    module = copy / "kdeclare" / "fleet" / "drift.py"
    module.write_text(f"{module.read_text()}\n# changed\n")
    assert hash_in_new_process(copy) != hash_package("kdeclare")


def test_code_of_other_providers_and_of_cel_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "namespace" / "extra").mkdir(parents=True)
    (tmp_path / "namespace" / "extra" / "__init__.py").write_text("PROVIDER = 1")
    (tmp_path / "lonely_module.py").write_text("PROVIDER = None")
    monkeypatch.syspath_prepend(tmp_path)
    others = [
        InstalledProvider("extra", "", "", "namespace.extra:PROVIDER"),
        InstalledProvider("lonely", "", "", "lonely_module:PROVIDER"),
    ]
    hashes, cel = json.loads(describe_code([*list_providers(), *others]))
    assert hashes.keys() >= {"kdeclare", "namespace.extra", "lonely_module"}
    assert len(set(hashes.values())) == len(hashes)
    assert cel == version("cel-expr-python")


def test_unknown_package_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        hash_package("no_such_package_at_all")
