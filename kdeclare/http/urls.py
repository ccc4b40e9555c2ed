"""Check the URLs of servers and the names of HTTP headers."""

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The syntax of HTTP header names: a token of RFC 9110."""

_HOST_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""One label of a host name according to RFC 1123, section 2.1.

Underscores, common in container networks, are accepted, too.
"""
_MAX_HOST_LENGTH = 253
_BRACKETED_HOST = re.compile(r"\[[^\[\]]*\](?::\d*)?")
_URL_FORM = "use https://HOST:PORT"


def explain_url_problem(url: str, *, may_have_path: bool = False) -> str:
    """Describe what is wrong with the URL of a server, without passwords; empty if the URL is valid."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        return f"A URL cannot contain spaces, control characters or non-ASCII characters: {_URL_FORM}."
    if "@" in url:
        return (
            "A URL with credentials exposes the password. Use --header, or 'headers' in a manifest, instead."
        )
    try:
        parts = urlsplit(url)
        is_valid_port = parts.port != 0
    except ValueError as e:
        return f"'{url}' is not a valid URL: {e}."
    if parts.scheme not in ("http", "https") or not parts.hostname or not is_valid_port:
        return f"'{url}' is not of the form https://HOST:PORT."
    if (parts.path.strip("/") and not may_have_path) or "?" in url or "#" in url:
        return f"'{url}' has parts other than scheme, host and port: {_URL_FORM}."
    return (
        ""
        if _is_valid_host(parts)
        else f"'{url}': '{parts.hostname}' is not a valid host name or IP address."
    )


def is_plain_http(url: str) -> bool:
    """Whether requests to the URL are sent without encryption."""
    return urlsplit(url).scheme == "http"


def _is_valid_host(parts: SplitResult) -> bool:
    if ("[" in parts.netloc or "]" in parts.netloc) and not _BRACKETED_HOST.fullmatch(parts.netloc):
        return False  # urlsplit accepts brackets at every position, and ignores the characters before them.
    host = (parts.hostname or "").removesuffix(".")
    labels = host.split(".")
    try:
        if "[" in parts.netloc:
            IPv6Address(host)
        elif labels[-1].isdigit():
            IPv4Address(host)
        else:
            return len(host) <= _MAX_HOST_LENGTH and all(map(_HOST_LABEL.fullmatch, labels))
    except ValueError:
        return False
    return True
