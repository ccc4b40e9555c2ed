"""The documentation site is complete and needs no network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.site.nav import with_nav
from scripts.site.pages import with_pages
from tests.unit.docs.written import PAGES, ROOT, get_relative_path

STARTED = (
    *("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"),
    *("docs/", "examples/", "benchmarks/", "tests/cases/"),
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site like `make docs`, but with a sidebar only on the start page."""
    folder = tmp_path_factory.mktemp("site")
    strictly = ["-q", "-n", "-W", "--keep-going", "-c", "scripts/site", "-t", "quick", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *strictly, ".", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout + ran.stderr) == (0, "")
    return folder


@pytest.mark.slow
def test_site_contains_and_links_every_page(site: Path) -> None:
    written = {
        get_relative_path(file).removesuffix(".md")
        for file in PAGES
        if get_relative_path(file).startswith(STARTED)
    }
    made = {file.relative_to(site).as_posix().removesuffix(".html") for file in site.rglob("*.html")}
    assert made - {"index", "genindex", "search"} == written
    first = (site / "index.html").read_text()
    named = set(re.findall(r'<a class="reference internal" href="([^"#]+)\.html"', first))
    assert written - named <= {"README"}


@pytest.mark.slow
def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"([^\"]+)\"", page.read_text())
        assert loaded
        assert not [link for link in loaded if "//" in link]
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text())


@pytest.mark.slow
def test_site_links_point_to_same_files_as_in_repository(site: Path) -> None:
    first = (site / "index.html").read_text()
    assert 'href="examples/fleet/README.html"' in first, "a folder is the page that its README is"
    assert 'href="docs/decisions/README.html"' in first
    assert re.search(r'href="_downloads/\w+/kdeclare\.yaml"', first), "a file can be had"


def test_new_page_is_added_to_navigation(tmp_path: Path) -> None:
    (tmp_path / "docs" / "howto").mkdir(parents=True)
    for name in ("docs/new.md", "docs/errors.md", "docs/howto/new.md"):
        (tmp_path / name).write_text("# New\n")
    text = with_nav(tmp_path, "README", "# Start\n")
    assert text.startswith("# Start\n")
    assert text.count("/docs/new\n") == text.count("/docs/howto/new\n") == text.count("/docs/errors\n") == 1
    assert with_nav(tmp_path, "docs/new", "# New\n") == "# New\n"


def test_links_to_folders_point_to_readme(tmp_path: Path) -> None:
    (tmp_path / "with").mkdir()
    (tmp_path / "with" / "README.md").touch()
    (tmp_path / "without").mkdir()
    text = "[a](with) [b](with/) [c](without) [d](with#x) [e](https://with)\n[f\n](with)"
    led = text.replace("](with)", "](with/README.md)").replace("](with/)", "](with/README.md)")
    assert with_pages(tmp_path, text) == led
