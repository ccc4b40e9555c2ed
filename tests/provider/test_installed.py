"""The example as somebody else gets it: installed with pip, in an environment of its own."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.provider.conftest import EXAMPLE

pytestmark = pytest.mark.slow
ROOT = EXAMPLE.parents[1]
PACKAGE = EXAMPLE / "kdeclare_flags"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with kdeclare, as it is here, and the provider."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", "--without-pip", str(folder / "env"))
    found = folder / "env" / "bin" / "python"
    site = run(str(found), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    (Path(site) / "here.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")
    options = ("--no-index", "--no-deps", "--quiet", "--disable-pip-version-check")
    run(str(found), "-m", "pip", "install", *options, str(make_wheel(folder)))
    return found


def make_wheel(folder: Path) -> Path:
    """The package as a wheel: what setuptools makes of it, which is not everywhere without a network."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    name, version = project["name"].replace("-", "_"), project["version"]
    points = [
        line
        for group, entries in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    info = f"{name}-{version}.dist-info"
    files = {path.relative_to(EXAMPLE).as_posix(): path.read_text() for path in PACKAGE.glob("*.py")} | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n".join(points),
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return wheel


def run(*command: str, folder: Path | None = None) -> str:
    """What a command says; it has to succeed."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_found(python: Path) -> None:
    assert "kdeclare-flags (kdeclare_flags.provider:PROVIDER)" in run(
        str(python), "-m", "kdeclare", "providers"
    )


def test_its_manifests_are_valid(python: Path, tmp_path: Path) -> None:
    (tmp_path / "kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: shop}\n"
        "spec: {environments: {lab: {providers: {flags: {file: flags.db}}}}}\n"
    )
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "flag.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Flag\nmetadata: {name: dark-mode}\nspec: {rollout: 10}\n"
    )
    assert "Valid: 1 resource" in run(str(python), "-m", "kdeclare", "validate", folder=tmp_path)


def test_its_author_can_run_the_contract_suite(python: Path, tmp_path: Path) -> None:
    shutil.copy(EXAMPLE / "test_flags_contract.py", tmp_path)
    run(
        str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_flags_contract.py", folder=tmp_path
    )
