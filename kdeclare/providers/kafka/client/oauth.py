"""Tokens for SASL OAUTHBEARER, from the client credentials grant (RFC 6749, KIP-768) or from a file."""

import base64
import http.client
import io
import json
import math
import socket
import ssl
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from kafka import errors as client_errors
from kafka.net.sasl.oauth import AbstractTokenProvider

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.providers.kafka.client.connection_problems import build_property_error
from kdeclare.providers.kafka.client.tls import build_ssl_context

_TOKEN_URL_KEY = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS_PREFIX = "sasl.oauthbearer.client.credentials."
_RETRIEVERS = ("", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_REFRESH_FACTOR = 0.8
"""kdeclare renews a token after this fraction of its lifetime (sasl.login.refresh.window.factor)."""
_DEFAULT_LIFETIME_S = 300.0
"""The assumed lifetime of a token in seconds, if the endpoint does not report the lifetime."""
_MAX_TIMEOUT_MS = (1 << 31) - 1
"""The largest timeout that Kafka accepts, in milliseconds."""
_MAX_RESPONSE_BYTES = 1 << 20
"""The largest accepted response, in bytes."""


class Token(NamedTuple):
    """A token, and its lifetime in seconds."""

    text: str
    lifetime_s: float


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """A token provider for kafka-python that reuses a token for most of its lifetime."""

    def __init__(self, fetch: Callable[[], Token], extensions: Mapping[str, str]) -> None:
        """Create a provider without a token. fetch: requests a token; can raise KdeclareError."""
        super().__init__()
        self._fetch = fetch
        self._extensions = dict(extensions)
        self._lock = threading.Lock()
        self._token = ""
        self._fresh_until = 0.0

    def first(self) -> None:
        """Fetch a token. Call this before connecting, to report problems early. Raises KdeclareError."""
        with self._lock:
            token = self._fetch()
            self._token = token.text
            SCRUBBER.register(token.text)
            self._fresh_until = time.monotonic() + _REFRESH_FACTOR * token.lifetime_s

    def token(self) -> str:
        """Return the token; renew it first if necessary. Raises SaslAuthenticationFailedError."""
        if time.monotonic() >= self._fresh_until:
            try:
                self.first()
            except KdeclareError as exc:
                raise client_errors.SaslAuthenticationFailedError(str(exc)) from exc
        return self._token

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions (KIP-342)."""
        return self._extensions


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Rejects redirects, because the client secret must only be sent to the configured endpoint."""

    def redirect_request(self, *_: object) -> None:
        """Return None, so that urllib raises HTTPError and does not follow the redirect."""


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """A token endpoint and its client credentials."""

    url: str
    client_id: str
    secret: str = field(repr=False)
    scope: str
    urlencoded: bool
    timeout_s: float
    properties: Mapping[str, str] = field(repr=False)

    def ask(self) -> Token:
        """Request a token. Raises KdeclareError. Error messages never contain the secret."""
        pair = (self.client_id, self.secret)
        user, secret = map(urllib.parse.quote_plus, pair) if self.urlencoded else pair
        form = {"grant_type": "client_credentials"} | ({"scope": self.scope} if self.scope else {})
        request = urllib.request.Request(
            self.url,
            urllib.parse.urlencode(form).encode(),
            {
                "Authorization": "Basic " + base64.b64encode(f"{user}:{secret}".encode()).decode(),
                "Accept": "application/json",
            },
        )
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects(), DeadlineHttpHandler(self.timeout_s)]
        if self.url.startswith("https:"):
            handlers.append(DeadlineHttpsHandler(build_ssl_context(self.properties), self.timeout_s))
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=self.timeout_s) as answer:
                content = answer.read(_MAX_RESPONSE_BYTES + 1)
        except urllib.error.HTTPError as exc:
            raise _build_no_token_error(
                self.url, f"the endpoint responded with {exc.code} {_explain_http_error(exc)}".rstrip()
            ) from exc
        except urllib.error.URLError as exc:
            raise _build_no_token_error(self.url, str(exc.reason)) from exc
        except TimeoutError as exc:
            raise _build_no_token_error(self.url, f"no response within {self.timeout_s:g} s") from exc
        except http.client.InvalidURL as exc:
            raise _build_no_token_error(self.url, "the address is not a valid URL") from exc
        except http.client.HTTPException as exc:
            raise _build_no_token_error(
                self.url, f"the response is not valid HTTP ({type(exc).__name__})"
            ) from exc
        except (OSError, OverflowError, ValueError) as exc:
            raise _build_no_token_error(self.url, str(exc)) from exc
        if len(content) > _MAX_RESPONSE_BYTES:
            raise _build_no_token_error(self.url, f"the response is larger than {_MAX_RESPONSE_BYTES} bytes")
        return _parse_token(self.url, content)


def _parse_token(url: str, content: bytes) -> Token:
    try:
        document = json.loads(content)
        text, lifetime_s = document["access_token"], float(document.get("expires_in") or _DEFAULT_LIFETIME_S)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as exc:
        raise _build_no_token_error(url, "the response is not JSON with an access_token") from exc
    if not isinstance(text, str) or not text.strip():
        raise _build_no_token_error(url, "the access_token in the response is empty or not a string")
    return Token(text, lifetime_s if math.isfinite(lifetime_s) else _DEFAULT_LIFETIME_S)


def warn_plain_http(properties: Mapping[str, str]) -> tuple[Diagnostic, ...]:
    """Warn if the token endpoint uses http:, which exposes the client secret and the token."""
    if urllib.parse.urlsplit(properties.get(_TOKEN_URL_KEY, "").strip()).scheme != "http":
        return ()
    detail = (
        f"{_TOKEN_URL_KEY} is an http:// address, so the client secret and the token can be read on the "
        "network."
    )
    return (warning("plain-http", "Secret sent without encryption", detail, hint="Use an https:// address."),)


def build_token_provider(properties: Mapping[str, str], jaas: Mapping[str, str]) -> TokenProvider:
    """Build the token provider from client properties and JAAS options, without requesting a token.

    Raises KdeclareError.
    """
    retriever = properties.get("sasl.oauthbearer.jwt.retriever.class", "").strip()
    if retriever.rpartition(".")[2] not in _RETRIEVERS:
        raise build_property_error(
            "sasl.oauthbearer.jwt.retriever.class",
            f"kdeclare does not support {retriever}",
            hint="Remove this property. kdeclare requests a token with client credentials, or reads "
            "a token from a file (file:///PATH).",
        )
    url = properties.get(_TOKEN_URL_KEY, "").strip()
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # noqa: B018  raises ValueError for an invalid port
    except ValueError as exc:
        raise build_property_error(_TOKEN_URL_KEY, f"'{url}' is not a URL ({exc})") from exc
    scheme = parts.scheme
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in jaas.items()
        if name.startswith("extension_")
    }
    if scheme == "file":
        path = Path(urllib.parse.unquote(parts.path))
        return TokenProvider(lambda: _read_token_file(path), extensions)
    if scheme not in ("http", "https"):
        raise build_property_error(
            _TOKEN_URL_KEY,
            f"'{url}' is not the URL of a token endpoint" if url else "the property is missing",
            hint="Set the property to an endpoint that issues tokens for client credentials (https://…), or "
            "to a file that contains a token (file:///PATH).",
        )
    endpoint = _build_endpoint(properties, jaas, url)
    return TokenProvider(endpoint.ask, extensions)


def _build_endpoint(properties: Mapping[str, str], jaas: Mapping[str, str], url: str) -> _Endpoint:
    credentials = {
        "clientId": properties.get(f"{_CREDENTIALS_PREFIX}client.id") or jaas.get("clientId"),
        "clientSecret": properties.get(f"{_CREDENTIALS_PREFIX}client.secret") or jaas.get("clientSecret"),
    }
    missing = [name for name, value in credentials.items() if not value]
    if missing:
        raise build_property_error(
            "sasl.jaas.config",
            f"the value has no {' and no '.join(missing)}",
            hint="Add the clientId and the clientSecret that kdeclare uses to request a token.",
        )
    return _Endpoint(
        url,
        str(credentials["clientId"]),
        str(credentials["clientSecret"]),
        properties.get("sasl.oauthbearer.scope") or jaas.get("scope") or "",
        properties.get("sasl.oauthbearer.header.urlencode", "false").strip().lower() == "true",
        _parse_timeout_s(properties),
        {name: value for name, value in jaas.items() if name.startswith("ssl.")},
    )


def _parse_timeout_s(properties: Mapping[str, str]) -> float:
    """Return the timeout for connecting and reading, in seconds.

    The timeout is the longer of Kafka's two timeouts, or 10 s if neither is set.
    """
    names = ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms")
    for name in names:
        text = properties.get(name, "1").strip()
        if (
            not (text.isascii() and text.isdecimal())
            or len(text) > len(str(_MAX_TIMEOUT_MS))
            or int(text) > _MAX_TIMEOUT_MS
        ):
            raise build_property_error(name, f"'{text}' is not a whole number from 0 to {_MAX_TIMEOUT_MS}")
    return max([int(properties[name]) / 1000 for name in names if properties.get(name)], default=10.0)


def _read_token_file(path: Path) -> Token:
    try:
        text = path.read_text("utf-8").strip()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "the file is not UTF-8 text"
        raise _build_no_token_error(f"file {path}", str(reason)) from exc
    if not text:
        raise _build_no_token_error(f"file {path}", "the file is empty")
    return Token(text, _DEFAULT_LIFETIME_S)


def _explain_http_error(exc: urllib.error.HTTPError) -> str:
    """Return the error in the response body (RFC 6749, section 5.2).

    If the body is unreadable, return the HTTP reason phrase.
    """
    try:
        content = json.loads(exc.read(_MAX_RESPONSE_BYTES))
        return ": ".join(str(content[name]) for name in ("error", "error_description") if name in content)
    except (OSError, ValueError, TypeError, RecursionError, http.client.HTTPException):
        return str(exc.reason)


def _build_no_token_error(source: str, reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "no-token",
            "No OAUTHBEARER token",
            f"{source}: {reason}.",
            hint=f"Check the values of {_TOKEN_URL_KEY}, and of clientId and clientSecret in "
            "sasl.jaas.config.",
        )
    )


class _DeadlineReader(io.RawIOBase):
    """Reads a socket until a deadline on the monotonic clock. Raises TimeoutError after the deadline."""

    def __init__(self, sock: socket.socket, raw: io.RawIOBase, deadline: float) -> None:
        self._sock = sock
        self._raw = raw
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        remaining_s = self._deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        self._sock.settimeout(remaining_s)
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _DeadlineResponse(http.client.HTTPResponse):
    """A response whose status, headers and body must all arrive within ``timeout_s``."""

    def __init__(self, sock: socket.socket, *args: Any, timeout_s: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        reader = _DeadlineReader(sock, self.fp.detach(), time.monotonic() + timeout_s)
        self.fp = io.BufferedReader(reader)


def _make_deadline_connection(
    connection_class: type[http.client.HTTPConnection], timeout_s: float, host: str, **kwargs: Any
) -> http.client.HTTPConnection:
    connection = connection_class(host, **kwargs)
    connection.response_class = partial(_DeadlineResponse, timeout_s=timeout_s)  # type: ignore[assignment]
    return connection


class DeadlineHttpHandler(urllib.request.HTTPHandler):
    """Opens ``http:`` URLs. Each response must arrive completely within ``timeout_s`` seconds."""

    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._timeout_s = timeout_s

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(
            partial(_make_deadline_connection, http.client.HTTPConnection, self._timeout_s), req
        )


class DeadlineHttpsHandler(urllib.request.HTTPSHandler):
    """Opens ``https:`` URLs. Each response must arrive completely within ``timeout_s`` seconds."""

    def __init__(self, context: ssl.SSLContext, timeout_s: float) -> None:
        super().__init__(context=context)
        self._ssl_context = context
        self._timeout_s = timeout_s

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        make_connection = partial(_make_deadline_connection, http.client.HTTPSConnection, self._timeout_s)
        return self.do_open(make_connection, req, context=self._ssl_context)
