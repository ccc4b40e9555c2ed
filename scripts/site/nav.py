"""The navigation of the site and its order."""

from collections.abc import Mapping, Sequence
from pathlib import Path

START = "README"

_DECISIONS, _EXAMPLES, _CASES = "docs/decisions/README", "examples/README", "tests/cases/README"
_NAV: Mapping[str, Sequence[str]] = {
    "Tutorial": ("docs/README", "docs/tutorial", _EXAMPLES, _CASES),
    "How-to guides": ("docs/howto/*", "docs/*"),
    "Reference": (
        "docs/reference/*",
        "docs/errors",
        "docs/acls",
        "docs/client-quotas",
        "docs/scram-users",
        "docs/schema-registry",
        "docs/groups-and-metrics",
        "docs/connectors",
        "docs/pages",
        "docs/glossary",
    ),
    "Explanation": (
        "docs/guarantees",
        "docs/ARCHITECTURE",
        _DECISIONS,
        "docs/kafka-observed",
        "docs/scale",
        "benchmarks/README",
    ),
    "Project": ("CONTRIBUTING", "SECURITY", "CHANGELOG"),
}
"""The pages by heading. A pattern stands for all matching pages that are not listed by name."""

_LISTS: Mapping[str, str] = {
    _DECISIONS: "docs/decisions/*",
    _EXAMPLES: "examples/*/README",
    _CASES: "tests/cases/*/README",
}
"""Index pages, each with a pattern for the pages that it lists."""


def with_nav(root: Path, name: str, text: str) -> str:
    """Return the text of a page with the navigation entries appended."""
    if name == START:
        return text + "".join(_tree(root, heading, names) for heading, names in _NAV.items())
    return text + (_tree(root, "", (_LISTS[name],)) if name in _LISTS else "")


def _tree(root: Path, heading: str, names: Sequence[str]) -> str:
    caption = [f":caption: {heading}"] if heading else []
    found = [page for name in names for page in _pages(root, name)]
    return "\n".join(
        ["", "", "```{toctree}", ":hidden:", *caption, "", *(f"/{page}" for page in found), "```", ""]
    )


def _pages(root: Path, name: str) -> Sequence[str]:
    if "*" not in name:
        return [name]
    named = {page for names in _NAV.values() for page in names}
    found = (file.relative_to(root).with_suffix("").as_posix() for file in root.glob(f"{name}.md"))
    return sorted(page for page in found if page not in named)
