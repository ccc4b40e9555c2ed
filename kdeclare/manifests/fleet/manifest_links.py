"""Links from findings to the manifests in the web interface of a Git server."""

import re
from urllib.parse import quote

from kdeclare.core.frozen_dataclass import dataclass

_PATH, _LINE = "{path}", "{line}"
_SOURCE = re.compile(r"(.+):([0-9]+):([0-9]+)")


@dataclass(frozen=True, slots=True)
class ManifestLinks:
    """Builds the URLs of manifests. template: a URL with ``{path}`` and optionally ``{line}``."""

    template: str

    def find_url(self, source: str) -> str | None:
        """Return the URL of a position in a manifest, such as ``topics/orders.yaml:3:1``.

        The path is relative to the folder of the fleet file. Return None for a file outside this folder.
        """
        position = _SOURCE.fullmatch(source)
        if position is None or position[1].startswith(("/", "../")):
            return None
        return self.template.replace(_LINE, position[2]).replace(_PATH, quote(position[1]))


def explain_bad_template(template: str) -> str | None:
    """Return why a template cannot be used for the URLs of manifests; None if it is valid."""
    if not template.startswith(("https://", "http://")):
        return "it does not start with https:// or http://"
    if _PATH not in template:
        return "it does not contain {path}"
    if re.search(r"[{}()|\s\"<>]", template.replace(_PATH, "").replace(_LINE, "")):
        return "it contains spaces, quotes, brackets, or braces other than those of {path} and {line}"
    return None


def explain_bad_link(url: str) -> str | None:
    """Return why a URL cannot be a link in a message; None if it can."""
    if not url.startswith(("https://", "http://")):
        return "it does not start with https:// or http://"
    if re.search(r"[()|\s\"<>\\]", url) or not url.isascii() or not url.isprintable():
        return "it contains spaces, quotes, brackets, or characters that are not ASCII"
    return None
