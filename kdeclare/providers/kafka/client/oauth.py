"""Obtain and renew tokens for SASL OAUTHBEARER.

Tokens come from the client credentials grant (RFC 6749, KIP-768), a file, a command, or an installed package.
"""

import base64
import http.client
import io
import json
import os
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
from typing import Any

from kafka import errors as client_errors
from kafka.net.sasl.oauth import AbstractTokenProvider

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, warning
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.child_environ import build_child_environ
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.secrets.secret_command import SecretCommandError, run_secret_command
from kdeclare.providers.kafka.client.connection_problems import build_no_token_error, build_property_error
from kdeclare.providers.kafka.client.tls import build_ssl_context
from kdeclare.providers.kafka.client.tokens.installed import (
    fetch_installed_token,
    find_token_provider,
)
from kdeclare.providers.kafka.client.tokens.token import (
    DEFAULT_LIFETIME_S,
    MAX_TOKEN_BYTES,
    Token,
    TokenRequest,
    parse_token,
    parse_token_document,
    read_jwt_lifetime_s,
)
from kdeclare.providers.kafka.property_names import TOKEN_COMMAND_KEY, TOKEN_PROVIDER_KEY

_TOKEN_URL_KEY = "sasl.oauthbearer.token.endpoint.url"
_CREDENTIALS_PREFIX = "sasl.oauthbearer.client.credentials."
_RETRIEVERS = ("", "DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
_REFRESH_FACTOR = 0.8
"""kdeclare renews a token after this fraction of its lifetime (sasl.login.refresh.window.factor)."""
_MAX_TIMEOUT_MS = (1 << 31) - 1
"""The largest timeout that Kafka accepts, in milliseconds."""


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """A token provider for kafka-python that reuses a token for most of its lifetime."""

    def __init__(self, fetch: Callable[[], Token], extensions: Mapping[str, str]) -> None:
        """Create a provider that has no token yet. fetch: requests a token, and can raise KdeclareError."""
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
    """A handler that rejects redirects, so that the client secret is sent only to the configured endpoint."""

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
                content = answer.read(MAX_TOKEN_BYTES + 1)
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
        if len(content) > MAX_TOKEN_BYTES:
            raise _build_no_token_error(self.url, f"the response is larger than {MAX_TOKEN_BYTES} bytes")
        try:
            return parse_token_document(content)
        except ValueError as exc:
            raise _build_no_token_error(self.url, str(exc)) from exc


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
    extensions = {
        name.removeprefix("extension_"): value
        for name, value in jaas.items()
        if name.startswith("extension_")
    }
    fetch = _find_own_source(properties)
    if fetch is not None:
        return TokenProvider(fetch, extensions)
    url = properties.get(_TOKEN_URL_KEY, "").strip()
    try:
        parts = urllib.parse.urlsplit(url)
        parts.port  # noqa: B018  raises ValueError for an invalid port
    except ValueError as exc:
        raise build_property_error(_TOKEN_URL_KEY, f"'{url}' is not a URL ({exc})") from exc
    scheme = parts.scheme
    if scheme == "file":
        path = Path(urllib.parse.unquote(parts.path))
        return TokenProvider(lambda: _read_token_file(path), extensions)
    if scheme not in ("http", "https"):
        raise build_property_error(
            _TOKEN_URL_KEY,
            f"'{url}' is not the URL of a token endpoint" if url else "the property is missing",
            hint="Set the property to an endpoint that issues tokens for client credentials (https://…), or "
            "to a file that contains a token (file:///PATH). You can also set kdeclare.token.command or "
            "kdeclare.token.provider.",
        )
    endpoint = _build_endpoint(properties, jaas, url)
    return TokenProvider(endpoint.ask, extensions)


def _find_own_source(properties: Mapping[str, str]) -> Callable[[], Token] | None:
    """Return a function that gets a token from the source that one of kdeclare's own properties specifies.

    Return None if none of these properties is set. Raises KdeclareError if more than one of them is set.
    """
    keys = [
        key
        for key in (_TOKEN_URL_KEY, TOKEN_COMMAND_KEY, TOKEN_PROVIDER_KEY)
        if properties.get(key, "").strip()
    ]
    if len(keys) > 1:
        raise build_property_error(
            keys[-1], f"{keys[0]} is also set", hint="Keep only the property that you want to use."
        )
    if properties.get(TOKEN_PROVIDER_KEY, "").strip():
        point = find_token_provider(properties[TOKEN_PROVIDER_KEY].strip())
        prefix = f"{TOKEN_PROVIDER_KEY}."
        options = {k.removeprefix(prefix): v for k, v in properties.items() if k.startswith(prefix)}
        servers = tuple(
            part.strip() for part in properties.get("bootstrap.servers", "").split(",") if part.strip()
        )
        return partial(fetch_installed_token, point, TokenRequest(options, servers))
    line = properties.get(TOKEN_COMMAND_KEY, "").strip()
    return partial(_run_token_command, line) if line else None


def _run_token_command(line: str) -> Token:
    try:
        return parse_token(run_secret_command(line, build_child_environ(os.environ)))
    except (SecretCommandError, ValueError) as exc:
        hint = (
            "Run the command in a terminal. It must print a token, or JSON with access_token and expires_in."
        )
        raise build_no_token_error(TOKEN_COMMAND_KEY, str(exc), hint) from None


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

    It is the longer of ``sasl.login.connect.timeout.ms`` and ``sasl.login.read.timeout.ms``, or 10 s if
    neither is set.
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
    lifetime_s = read_jwt_lifetime_s(text)
    # Other programs replace the file before the token expires, so kdeclare reads it again after a while.
    return Token(text, DEFAULT_LIFETIME_S if lifetime_s is None else min(DEFAULT_LIFETIME_S, lifetime_s))


def _explain_http_error(exc: urllib.error.HTTPError) -> str:
    """Return the error in the response body (RFC 6749, section 5.2).

    If the body is unreadable, return the HTTP reason phrase.
    """
    try:
        content = json.loads(exc.read(MAX_TOKEN_BYTES))
        return ": ".join(str(content[name]) for name in ("error", "error_description") if name in content)
    except (OSError, ValueError, TypeError, RecursionError, http.client.HTTPException):
        return str(exc.reason)


def _build_no_token_error(source: str, reason: str) -> KdeclareError:
    hint = f"Check the values of {_TOKEN_URL_KEY}, and of clientId and clientSecret in sasl.jaas.config."
    return build_no_token_error(source, reason, hint)


class _DeadlineReader(io.RawIOBase):
    """A stream that reads from a socket, and raises TimeoutError after a deadline on the monotonic clock."""

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
