"""The files of a release: what is built, from which commit, and with which license."""

import io
import json
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdeclare.providers.connect.client.plugin.jar import EXTENSION, get_jar_name
from kdeclare.version import VERSION
from scripts.release import CHECKSUMS, PLUGIN_FOLDER, ReleaseError, check_tag, make_release, read_version

ROOT = Path(__file__).parents[2]
LICENSES = ("LICENSE", "NOTICE")
DATED = f"# Changelog\n\n## {VERSION} (2026-12-01)\n"


def run_git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.com")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Path]:
    """A repository with the files of a wheel and one commit, which has the tag of the version."""
    folder = tmp_path / "repository"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kdeclare", folder / "kdeclare", ignore=ignored)
    for name in ("pyproject.toml", "README.md", *LICENSES):
        shutil.copy(ROOT / name, folder / name)
    (folder / "CHANGELOG.md").write_text(DATED)
    for arguments in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("tag", f"v{VERSION}")):
        run_git(folder, *arguments)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("tags", "changelog", "words"),
    [
        ([], DATED, "the commit has no tag"),
        (["v9.9.9"], DATED, "the commit has only v9.9.9"),
        ([f"v{VERSION}"], DATED.replace("2026-12-01", "unreleased"), "CHANGELOG.md has no heading"),
        ([f"v{VERSION}"], "# Changelog", "CHANGELOG.md has no heading"),
    ],
)
def test_release_without_matching_tag_and_changelog_is_refused(
    tags: list[str], changelog: str, words: str
) -> None:
    with pytest.raises(ReleaseError, match=words):
        check_tag(VERSION, tags, changelog)


def test_release_with_matching_tag_and_changelog_is_accepted() -> None:
    check_tag(VERSION, ["latest", f"v{VERSION}"], DATED)
    assert read_version(ROOT) == VERSION


@pytest.mark.slow
def test_release_has_licenses_sbom_and_checksums(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")  # the SBOM has no hashes then
    (repository / "kdeclare" / "local.json").write_text("{}")  # not part of the commit
    out = tmp_path / "dist"
    out.mkdir()
    (out / "old.whl").touch()
    assert make_release(repository, out) == VERSION
    wheel, source = f"kdeclare-{VERSION}-py3-none-any.whl", f"kdeclare-{VERSION}.tar.gz"
    sbom = f"kdeclare-{VERSION}.cdx.json"
    assert {path.name for path in out.iterdir()} == {CHECKSUMS, sbom, wheel, source}
    subprocess.run(["sha256sum", "--check", "--strict", CHECKSUMS], cwd=out, check=True)
    assert json.loads((out / sbom).read_text())["metadata"]["component"]["version"] == VERSION
    with zipfile.ZipFile(out / wheel) as content:
        metadata = f"kdeclare-{VERSION}.dist-info"
        for name in LICENSES:
            assert content.read(f"{metadata}/licenses/{name}") == (ROOT / name).read_bytes()
        assert "License-Expression: Apache-2.0" in content.read(f"{metadata}/METADATA").decode()
        assert "kdeclare/py.typed" in content.namelist()
        assert "kdeclare/local.json" not in content.namelist()
        plugin = content.read(f"{PLUGIN_FOLDER}/{get_jar_name()}")
    with zipfile.ZipFile(io.BytesIO(plugin)) as jar:
        assert f"{EXTENSION.replace('.', '/')}.class" in jar.namelist()
    with tarfile.open(out / source) as archive:
        for name in LICENSES:
            member = archive.extractfile(f"kdeclare-{VERSION}/{name}")
            assert member is not None
            assert member.read() == (ROOT / name).read_bytes()


def test_license_is_the_apache_license() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License\n                           Version 2.0, January 2004" in text
    assert text.count("\n   9. ") == 1
    assert text.rstrip().endswith("limitations under the License.")
