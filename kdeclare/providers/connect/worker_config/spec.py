"""What a ConnectWorkerConfig manifest can say, and what is wrong with it whatever the workers have."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.core.diagnostics import LITERAL_SECRET, Diagnostic, error, warning
from kdeclare.core.frozen import dataclass
from kdeclare.core.resources.adoption import SettingsLifecycle
from kdeclare.core.resources.kind import Path, Problem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.core.secrets.secret_refs import Referenced, is_sensitive_key
from kdeclare.core.units import Duration
from kdeclare.providers.connect.worker_state import HEADER_NAME, WorkerGroup, is_placeholder
from kdeclare.providers.kafka.config.wishes import Unset, Whole, Wish, as_secret, config_text

RAW_SECRET = "raw-secret"

_THIRTY_DAYS_S = 30 * 86400.0
_TOPIC = "Connect's config topic, which the workers' REST interface shows"
_INSTEAD = "Write one of Connect's own placeholders, as in ${file:/etc/connect/secrets.properties:keystore}."


class TlsSpec(BaseModel):
    """How to connect: PEM files, relative to the project's folder."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    caFile: Annotated[  # noqa: N815
        str | None, Field(description="The authority that the workers' certificates are from.")
    ] = None
    certFile: Annotated[str | None, Field(description="The client's certificate.")] = None  # noqa: N815
    keyFile: Annotated[  # noqa: N815
        str | None, Field(description="The key of the client's certificate.")
    ] = None


class ConnectWorkerConfigSpec(BaseModel):
    """``spec`` of a ConnectWorkerConfig manifest.

    workers: the URLs of all of them. config: keys as the plug-in's whitelist has them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
    workers: Annotated[list[str], Field(min_length=1, description="The URLs of all workers of the group.")]
    tls: Annotated[TlsSpec, Field(description="How to connect, as PEM files.")] = TlsSpec()
    headers: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(
            description="HTTP headers for every request; values by reference only, as in ${env.CONNECT_AUTH}."
        ),
    ] = {}
    config: Annotated[
        dict[str, Any],
        RawText(may_be_secret=True),
        Field(description="Overrides of worker settings, of the keys that the plug-in's whitelist has."),
    ] = {}
    warnBeforeExpiry: Annotated[  # noqa: N815
        Duration | None,
        Field(description="How long before a certificate ends there is a warning, as in 30d (the default)."),
    ] = None
    lifecycle: Annotated[
        SettingsLifecycle, Field(description="What may happen to settings that others made.")
    ] = SettingsLifecycle()


@dataclass(frozen=True, slots=True)
class WorkerConfigBody:
    """Declared overrides of a group of workers.

    warn_before_s: how long before a certificate ends that is worth a warning, in seconds.
    """

    group: WorkerGroup
    configs: Mapping[str, Wish] = field(default_factory=dict)
    warn_before_s: float = _THIRTY_DAYS_S
    adopt: bool = False


def parse_worker_config(
    name: str, spec: ConnectWorkerConfigSpec
) -> tuple[WorkerConfigBody, tuple[Problem, ...]]:
    """The body of a spec, and what is wrong with it; offline."""
    resource = f"ConnectWorkerConfig/{name}"
    problems = [*_url_problems(resource, spec.workers), *_tls_problems(resource, spec.tls)]
    if spec.headers:
        problems += _plain_http_problems(resource, spec.workers)
    headers: list[tuple[str, str]] = []
    for header, value in spec.headers.items():
        wrong = _header_problem(header, value)
        if wrong is not None:
            problems.append(_wrong(resource, ("headers", header), *wrong))
        else:
            headers.append((header, value.reference))
    wishes: dict[str, Wish] = {}
    for key, raw in spec.config.items():
        wish, said = parse_value(resource, key, raw)
        problems += [Problem(("config", key), item) for item in said]
        if wish is not None:
            wishes[key] = wish
    tls = spec.tls
    urls = tuple(dict.fromkeys(url.rstrip("/") for url in spec.workers))
    group = WorkerGroup(urls, tls.caFile, tls.certFile, tls.keyFile, tuple(headers))
    before = _THIRTY_DAYS_S if spec.warnBeforeExpiry is None else spec.warnBeforeExpiry
    return WorkerConfigBody(group, wishes, before, spec.lifecycle.adopt), tuple(problems)


def parse_value(resource: str, key: str, raw: object) -> tuple[Wish | None, tuple[Diagnostic, ...]]:
    """What is wanted of one key, and what there is to say of that."""
    if raw is None:
        return Unset(), ()
    if isinstance(raw, Mapping | list | tuple):
        detail = f"'{key}' takes one value, and not a list or a mapping."
        return None, (
            error("invalid-config", "Invalid config value", detail, resource=resource, subject=key),
        )
    text = config_text(raw)
    if not is_sensitive_key(key) or (is_placeholder(text) and not isinstance(text, Referenced)):
        return Whole(str(text)), ()
    secret = as_secret(Whole(text))
    return secret, (_literal(resource, key) if secret.reference is None else raw_secret(resource, key),)


def _url_problems(resource: str, urls: list[str]) -> Iterator[Problem]:
    seen: set[str] = set()
    for n, url in enumerate(urls):
        what = wrong_url(url)
        if not what and url.rstrip("/") in seen:
            what = f"'{url}' is named twice."
        if what:
            yield _wrong(resource, ("workers", n), what)
        seen.add(url.rstrip("/"))


def _plain_http_problems(resource: str, urls: list[str]) -> Iterator[Problem]:
    for n, url in enumerate(urls):
        if not wrong_url(url) and is_plain_http(url):
            yield Problem(("workers", n), plain_http_warning(url, resource))


def plain_http_warning(url: str, resource: str | None = None) -> Diagnostic:
    """Headers hold logins, which everybody on the way can read."""
    return warning(
        "plain-http",
        "Secret sent without encryption",
        f"The headers that go to {url} can be read on the network.",
        hint="Use an https:// address.",
        resource=resource,
    )


def _tls_problems(resource: str, tls: TlsSpec) -> Iterator[Problem]:
    if tls.keyFile is not None and tls.certFile is None:
        yield _wrong(resource, ("tls", "keyFile"), "'keyFile' is the key of 'certFile', which is missing.")


def _header_problem(header: str, value: object) -> tuple[str, str] | None:
    """What is wrong, and what to do. No message repeats a value: it may be secret."""
    if not HEADER_NAME.fullmatch(header):
        return f"'{header}' cannot be the name of an HTTP header.", ""
    if not isinstance(value, Referenced):
        instead = "Write ${env.NAME} or ${file.PATH}, with what goes before it."
        return f"'{header}' is written out, for everybody to read; headers are given by reference.", instead
    if not value.isprintable() or not value.isascii():
        return f"'{header}' holds what no HTTP header can.", ""
    return None


def _wrong(resource: str, path: Path, detail: str, hint: str = "") -> Problem:
    wrong = error(
        "invalid-worker-config", "Invalid ConnectWorkerConfig", detail, hint=hint, resource=resource
    )
    return Problem(path, wrong)


def raw_secret(resource: str | None, key: str) -> Diagnostic:
    """KIP-1185 keeps overrides raw, so a password that is no placeholder stands in Connect's topic."""
    return warning(
        RAW_SECRET,
        "Secret goes into Connect's topic",
        f"'{key}' is sensitive, and its value will stand in {_TOPIC}.",
        hint=_INSTEAD,
        resource=resource,
        subject=key,
    )


def _literal(resource: str, key: str) -> Diagnostic:
    return warning(
        LITERAL_SECRET,
        "Secret written into a manifest",
        f"'{key}' is sensitive; its value stands in the manifest, and would stand in {_TOPIC}.",
        hint=_INSTEAD,
        resource=resource,
        subject=key,
    )


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
