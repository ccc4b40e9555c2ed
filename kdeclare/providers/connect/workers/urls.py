"""URLs of workers: where one is, and nothing else."""

import re
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import SplitResult, urlsplit

_LABEL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
"""RFC 1123, section 2.1, and the underscores of container networks."""
_LONGEST = 253
_ALL = "https://HOST:PORT is all"


def wrong_url(url: str) -> str:
    """What is wrong with the URL of a worker; empty if nothing is. No password is repeated."""
    if not (url.isascii() and url.isprintable()) or " " in url:
        return f"A URL holds no such characters: {_ALL}."
    if "@" in url:
        return "A URL with a user in it shows a password to everybody; use --header, in a manifest 'headers'."
    try:
        parts = urlsplit(url)
        port_is_good = parts.port != 0
    except ValueError as e:
        return f"'{url}' is no URL: {e}."
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_good:
        return f"'{url}' is not of the form https://HOST:PORT."
    if parts.path.strip("/") or "?" in url or "#" in url:
        return f"'{url}' says more than where the worker is: {_ALL}."
    return "" if _is_host(parts) else f"'{url}': '{parts.hostname}' is no name of a host, and no address."


def is_plain_http(url: str) -> bool:
    """Whether what is sent to the URL can be read on the network."""
    return urlsplit(url).scheme == "http"


def _is_host(parts: SplitResult) -> bool:
    host = (parts.hostname or "").removesuffix(".")
    labels = host.split(".")
    try:
        if "[" in parts.netloc:
            IPv6Address(host)
        elif labels[-1].isdigit():
            IPv4Address(host)
        else:
            return len(host) <= _LONGEST and all(map(_LABEL.fullmatch, labels))
    except ValueError:
        return False
    return True
