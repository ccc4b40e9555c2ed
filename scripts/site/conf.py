"""The Sphinx configuration of the site.

The source is the whole repository, so the links of pages work both on the site and in the repository. The
build is strict: broken links, broken anchors and pages without incoming links are errors. The build and the
site do not access the network.
"""

import sys
from pathlib import Path
from shutil import copyfile

from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.site.nav import START, with_nav  # noqa: E402  the path is set above
from scripts.site.pages import with_pages  # noqa: E402

project = "kdeclare"
extensions = ["myst_parser"]
root_doc = START
include_patterns = ["*.md", "docs/**.md", "**/README.md"]
# In tests/, only the cases are documentation.
exclude_patterns = [".*", "build", "kdeclare", "scripts", "state", "tests/[!c]*", "tests/co*"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "kdeclare"
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False


QUICK = "quick"
"""The tag of a build for tests: only the start page has a sidebar. Sidebars take half of the build time."""


def setup(app: Sphinx) -> None:
    """Set up Sphinx: resolve links to folders, add the navigation, and register the start page."""

    def read(app: Sphinx, name: str, content: list[str]) -> None:
        folder = (ROOT / name).parent
        content[0] = with_nav(ROOT, name, with_pages(folder, content[0]))

    def finish(app: Sphinx, problem: Exception | None) -> None:
        if problem is None:
            copyfile(Path(app.outdir, f"{START}.html"), Path(app.outdir, "index.html"))

    def leave_out_sidebar(
        app: Sphinx, name: str, template: str, context: dict[str, object], document: object
    ) -> None:
        if name != START:
            context["toctree"] = lambda **_: ""

    app.connect("source-read", read)
    if app.tags.has(QUICK):
        app.connect("html-page-context", leave_out_sidebar, priority=1)  # before the theme's own handler
    app.connect("build-finished", finish)
