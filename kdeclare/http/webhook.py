"""Send a message to a webhook. The URL of a webhook is a secret."""

import email.utils
import ssl
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

import httpx

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER, Scrubber
from kdeclare.http.client import explain_exception
from kdeclare.http.target import HttpTarget
from kdeclare.http.transport import DeadlineTransport, start_deadline

ATTEMPTS = 4
"""The maximum number of attempts to send a message."""
MAX_WAIT_S = 60.0
"""The longest wait before the next attempt that a server can request, in seconds."""
_MAX_EXPLANATION = 200
_MAX_READ = 16_384
"""The maximum number of bytes of a response that are read for an explanation."""
_MIN_SECRET_SEGMENT = 16
"""The minimum length of a path segment that is treated as a secret. Shorter segments are words or numbers."""
_RETRIED_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


class WebhookError(Exception):
    """Raised if a message was not delivered, or if it is unknown whether the message was delivered.

    The text of the exception is the reason, without the URL.
    """


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A message for a webhook.

    target: the URL, the headers and the TLS files. body: the message.
    timeout_s: how long to wait for a response to each attempt, in seconds.
    """

    target: HttpTarget
    body: str
    content_type: str
    timeout_s: float = 10.0


def explain_webhook_problem(url: str, *, allow_http: bool) -> str | None:
    """Return why a message cannot be sent to a URL, without repeating the URL; None if it can be sent."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return "the URL contains spaces, control characters or non-ASCII characters"
    try:
        parts = urlsplit(url)
        has_bad_port = parts.port == 0
    except ValueError:
        return "it is not a URL"
    if parts.scheme not in ("https", "http") or not parts.hostname or has_bad_port:
        return "it is not a URL that starts with https://"
    if "@" in parts.netloc:
        return "the URL contains credentials; use 'headers' instead"
    if parts.scheme == "http" and not allow_http and not _is_loopback(parts.hostname):
        return "messages to http:// URLs are not encrypted; use https://, or set 'allowHttp: true'"
    return None


def send_to_webhook(
    request: WebhookRequest, environ: Mapping[str, str], sleep: Callable[[float], None]
) -> None:
    """Send a message, with retries after errors that may be temporary.

    Redirects are not followed. The variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY of ``environ`` select a
    proxy. A retry can deliver a message twice if a server delivered it and did not respond.

    Raises WebhookError if the message was not accepted, and KdeclareError if a TLS file or a header cannot be
    used.
    """
    url = request.target.urls[0]
    SCRUBBER.register(url)
    redact = _build_redactor(url)
    headers = {
        "Content-Type": f"{request.content_type}; charset=utf-8",
        "Accept-Encoding": "identity",
        "User-Agent": "kdeclare",
        **request.target.build_headers(),
    }
    transport = _create_transport(request.target.create_tls_context(), _find_proxy(url, environ))
    with httpx.Client(
        headers=headers, timeout=request.timeout_s, transport=transport, trust_env=False
    ) as client:
        for attempt in range(1, ATTEMPTS + 1):
            outcome = _attempt(client, url, request, redact)
            if outcome is None:
                return
            wait_s = max(outcome.wait_s, 2.0 ** (attempt - 1))
            if not outcome.may_retry or attempt == ATTEMPTS:
                raise WebhookError(redact(outcome.reason))
            if wait_s > MAX_WAIT_S:
                raise WebhookError(f"{redact(outcome.reason)}, and asked to wait for {wait_s:,.0f} s")
            sleep(wait_s)


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failed attempt. wait_s: the wait that the server requests before the next attempt, in seconds."""

    reason: str
    may_retry: bool
    wait_s: float = 0.0


def _create_transport(context: ssl.SSLContext, proxy_url: str | None) -> DeadlineTransport:
    try:
        if proxy_url is not None and urlsplit(proxy_url).scheme not in ("http", "https"):
            raise ValueError
        return DeadlineTransport(context, 0, proxy_url)
    except (ValueError, httpx.InvalidURL):  # the text can contain a part of the password
        raise WebhookError("the proxy URL cannot be used") from None


def _build_redactor(url: str) -> Callable[[str], str]:
    """Return a function that removes secrets, including the parts of the URL, from a message about a request.

    All other output keeps the parts of the URL, because they can be ordinary words, such as ``message``.
    """
    parts = urlsplit(url)
    segments = [text for text in parts.path.split("/") if len(text) >= _MIN_SECRET_SEGMENT]
    values = [value for _, value in parse_qsl(parts.query)]
    scrubber = Scrubber()
    for text in (url, parts.query, *segments, *map(unquote, segments), *values):
        scrubber.register(text)
    return lambda text: scrubber.scrub(SCRUBBER.scrub(text))


def _attempt(
    client: httpx.Client, url: str, request: WebhookRequest, redact: Callable[[str], str]
) -> _Failure | None:
    try:
        with (
            start_deadline(),
            client.stream("POST", url, content=request.body.encode()) as response,
        ):
            if response.is_success:
                return None  # the message was accepted, whatever the body says
            return _explain_response(response, redact)
    except httpx.HTTPError as problem:
        tls_error = _find_certificate_error(problem)
        if tls_error is not None:
            return _Failure(f"its certificate is not trusted ({tls_error.verify_message})", may_retry=False)
        if isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout):
            return _Failure(f"it is unreachable ({explain_exception(problem)})", may_retry=True)
        if isinstance(problem, httpx.ProxyError):
            return _Failure("the proxy refused the connection", may_retry=True)
        reason = f"it did not respond ({explain_exception(problem)}), and may have delivered the message"
        return _Failure(reason, may_retry=True)
    except httpx.InvalidURL:
        return _Failure("its URL has invalid characters", may_retry=False)


def _explain_response(response: httpx.Response, redact: Callable[[str], str]) -> _Failure:
    status = f"it responded with {response.status_code}"
    if response.is_redirect:
        return _Failure(f"{status}, a redirect, which is not followed", may_retry=False)
    explanation = _read_explanation(response, redact)
    wait_s = _parse_retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
    may_retry = response.status_code in _RETRIED_STATUSES
    return _Failure(f"{status}{f' ({explanation})' if explanation else ''}", may_retry, wait_s)


def _read_explanation(response: httpx.Response, redact: Callable[[str], str]) -> str:
    """Return the beginning of the body, such as ``invalid_blocks``; empty if it cannot be read."""
    body, is_complete = b"", False
    try:
        for part in response.iter_raw():
            body += part
            if len(body) > _MAX_READ:
                break
        else:
            is_complete = True
    except httpx.HTTPError:
        pass
    text = body.decode(errors="replace")
    if not is_complete:  # the last word can be the beginning of a secret
        text = "".join(text.rsplit(maxsplit=1)[:-1])
    if text.lstrip().startswith("<"):
        return ""  # pages of proxies explain nothing
    return " ".join(redact(text).split())[:_MAX_EXPLANATION]  # a secret that is cut would not be recognized


def _parse_retry_after(text: str | None, now: datetime) -> float:
    """Return the wait in seconds that a server requests, as a number or as a date; 0 if it requests none."""
    if text is None:
        return 0.0
    if text.strip().isascii() and text.strip().isdigit():
        return float(text.strip()[:9])
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return 0.0
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    return max(0.0, (moment - now).total_seconds())


def _find_certificate_error(problem: BaseException | None) -> ssl.SSLCertVerificationError | None:
    while problem is not None:
        if isinstance(problem, ssl.SSLCertVerificationError):
            return problem
        problem = problem.__cause__ or problem.__context__
    return None


def _find_proxy(url: str, environ: Mapping[str, str]) -> str | None:
    parts = urlsplit(url)
    host, name = parts.hostname or "", f"{parts.scheme}_proxy"
    proxy_url = environ.get(name) or environ.get(name.upper())
    excluded = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    if not proxy_url or _is_loopback(host) or proxy_bypass_environment(host, {"no": excluded}):
        return None
    SCRUBBER.register(proxy_url)
    return proxy_url if "://" in proxy_url else f"http://{proxy_url}"


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
