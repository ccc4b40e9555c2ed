"""Links to folders: on the site they lead to the page that the folder's README is."""

import re
from pathlib import Path

_LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)\)")


def with_pages(folder: Path, text: str) -> str:
    """A page's text with such links led on. folder: where the page is."""

    def led_on(link: re.Match[str]) -> str:
        target = link["target"].rstrip("/")
        return f"]({target}/README.md)" if (folder / target / "README.md").is_file() else link[0]

    return _LINK.sub(led_on, text)
