"""Replace links to folders with links to the README pages of the folders."""

import re
from pathlib import Path

_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)\)")


def with_pages(folder: Path, text: str) -> str:
    """Return the text of a page with links to README pages. folder: the folder of the page."""

    def led_on(link: re.Match[str]) -> str:
        target = link["target"].rstrip("/")
        return f"]({target}/README.md)" if (folder / target / "README.md").is_file() else link[0]

    return _LINK.sub(led_on, text)
