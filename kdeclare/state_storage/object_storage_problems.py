"""Errors about object storage, derived from the text with which the client library reports a problem.

URLs in the text are never shown, because they can contain signatures.
"""

import re

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.secrets.scrubber import SCRUBBER
from kdeclare.core.storage.location import build_location_error
from kdeclare.state_storage.object_settings import ObjectSettings

_DEBUG = "\n\nDebug source:\n"  # obstore appends the structure of the error after this line

_URL = re.compile(r"https?://\S+")
_STATUS = re.compile(r"status code: (\d{3} [A-Za-z -]+)")
_SERVICE_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_SERVICE_MESSAGE = re.compile(r"<Message>([^<\n]{1,200})")
_HTTP_KIND = re.compile(r"HttpError \{\s+kind: (\w+)")
_SYSTEM_MESSAGE = re.compile(r'(?:message|error): "([^"]{1,200})"')
_CREDENTIALS_REQUEST = re.compile(
    r"/latest/api/token|/latest/meta-data/|/computeMetadata/|/v2/credentials/|token (?:request|response|file)"
    r"|service account file|az account get-access-token|CreateSession|AssumeRole"
    r"|Generic S3 error: Error performing POST REDACTED"  # to the service that exchanges identity tokens
)
_MISSING_CONTAINER = frozenset({"NoSuchBucket", "ContainerNotFound", "ContainerBeingDeleted"})
_MISSING_OBJECT = frozenset({"NoSuchKey", "BlobNotFound"})
_EXPIRED = frozenset({"ExpiredToken", "InvalidToken", "TokenRefreshRequired"})  # S3 responds with 400
_WRONG_REGION = frozenset(
    {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException"}
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The information in an error message of the client library.

    status: the status of the response, such as ``403 Forbidden``; empty if there was no response.
    service_code, service_message: the error code and the message of the service.
    http_kind: what failed if there was no response, such as ``Timeout`` or ``Connect``.
    system_message: the reason that the operating system gave.
    reason: the text of an error that has neither a status nor a kind. It contains no URL.
    """

    status: str
    service_code: str
    service_message: str
    http_kind: str
    system_message: str
    reason: str
    is_about_credentials: bool
    is_redirect: bool
    has_untrusted_certificate: bool

    @property
    def has_unknown_outcome(self) -> bool:
        """Whether a write or a deletion may have taken effect."""
        return not self.is_about_credentials and (not self.status or self.status.startswith("5"))

    @property
    def is_missing_container(self) -> bool:
        """Whether the bucket or the container does not exist."""
        return self.service_code in _MISSING_CONTAINER

    @property
    def is_missing_object(self) -> bool:
        """Whether the object does not exist.

        The error code decides, not the status 404: if the endpoint is wrong, another server may also respond
        with 404, and kdeclare must not mistake this response for an empty state.
        """
        return self.service_code in _MISSING_OBJECT


def classify_failure(cause: Exception) -> Failure:
    """Extract the information from an exception of the client library."""
    text, _, debug = SCRUBBER.scrub(str(cause)).partition(_DEBUG)
    return Failure(
        status=_find(_STATUS, text).strip(),
        service_code=_find(_SERVICE_CODE, text),
        service_message=_find(_SERVICE_MESSAGE, text).strip(),
        http_kind=_find(_HTTP_KIND, debug),
        system_message=_find(_SYSTEM_MESSAGE, debug),
        reason=_URL.sub("…", text.partition(" error: ")[2].partition("\n")[0])[:200],
        is_about_credentials=_CREDENTIALS_REQUEST.search(text) is not None,
        is_redirect="Received redirect" in text,
        has_untrusted_certificate="InvalidCertificate" in debug,
    )


def _find(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def build_storage_error(
    cause: Exception, settings: ObjectSettings, action: str, key: str, timeout_s: float
) -> KdeclareError:
    """Return the error about a failed request. action: "read", "write", "delete" or "list"."""
    failure, service = classify_failure(cause), settings.service
    place = f"Cannot {action} {settings.build_url(key)}"
    if failure.is_about_credentials:
        return _build_error(
            "state-no-access",
            "No credentials for the state storage",
            f"{place}: credentials for {service.name} are not set, and a request for temporary ones failed: "
            f"{_describe(failure, timeout_s)}.",
            f"Set credentials: {service.credentials}.",
        )
    if failure.is_missing_container:
        return build_missing_container_error(settings)
    if failure.is_redirect or failure.service_code in _WRONG_REGION:
        return _build_error(
            "state-storage",
            "State storage is in another region",
            f"{place}: the {service.container} '{settings.container}' is in a different region.",
            "Add ?region=NAME to the URL of the state, or set AWS_REGION.",
        )
    if failure.status[:3] in ("401", "403") or failure.service_code in _EXPIRED:
        return _build_error(
            "state-no-access",
            "No access to the state",
            f"{place}: {_describe(failure, timeout_s)}.",
            f"Check the credentials: {service.credentials}. They need {service.permissions}.",
        )
    if failure.status.startswith("501"):
        reason = f"it does not support the request ({_describe(failure, timeout_s)})"
        return build_unsafe_error(settings, reason)
    if failure.has_untrusted_certificate:
        return _build_error(
            "state-storage",
            "State storage cannot be trusted",
            f"{place}: {_describe(failure, timeout_s)}.",
            f"Check {_describe_address(settings)}. If a private authority issued its certificate, set "
            "SSL_CERT_FILE to a file with the certificate of this authority.",
        )
    written = (
        " It is not known whether the object was written."
        if action == "write" and failure.has_unknown_outcome
        else ""
    )
    if failure.status.startswith("4"):
        return _build_error(
            "state-storage",
            "State storage refused a request",
            f"{place}: {_describe(failure, timeout_s)}.",
            f"Check the URL of the state, and the settings of the {service.container} "
            f"'{settings.container}' at {_describe_address(settings)}.",
        )
    no_response, failed = "State storage did not respond", "State storage failed"
    return _build_error(
        "state-storage",
        no_response if failure.http_kind else failed,
        f"{place}: {_describe(failure, timeout_s)}.{written}",
        f"Check that {_describe_address(settings)} is available and can be reached from this machine, then "
        "run the command again. The stored data is intact.",
    )


def _describe(failure: Failure, timeout_s: float) -> str:
    if failure.status:
        answer = ": ".join(filter(None, (failure.service_code, failure.service_message)))
        return f"the response was {failure.status}" + (f" ({answer})" if answer else "")
    if failure.http_kind == "Timeout":
        return f"there was no response within {timeout_s:g} s"
    if failure.has_untrusted_certificate:
        return "the TLS certificate is not valid for this address, or its issuer is unknown"
    if failure.http_kind == "Connect":
        return f"the connection failed ({failure.system_message or 'no TCP or TLS connection'})"
    if failure.http_kind:
        return "the connection ended before the response"
    return (
        f"the response cannot be used: {failure.reason}" if failure.reason else "the response cannot be used"
    )


def _describe_address(settings: ObjectSettings) -> str:
    if settings.endpoint is not None:
        return f"the endpoint '{settings.endpoint}'"
    return f"{settings.service.name}"


def build_client_error(cause: Exception, settings: ObjectSettings) -> KdeclareError:
    """Return the error about settings and credentials that the client library does not accept."""
    reason = classify_failure(cause).reason or type(cause).__name__
    return build_location_error(
        f"The client for {settings.service.name} does not accept the settings: {reason}.",
        f"Check the URL of the state, and the credentials: {settings.service.credentials}.",
    )


def build_missing_container_error(settings: ObjectSettings) -> KdeclareError:
    """Return the error about a bucket or a container that does not exist."""
    container = settings.service.container
    return build_location_error(
        f"The {container} '{settings.container}' does not exist.",
        f"Create the {container}, or correct the URL of the state. kdeclare does not create it.",
    )


def build_missing_library_error(scheme: str) -> KdeclareError:
    """Return the error about an installation without the client library."""
    return _build_error(
        "state-storage",
        "Package for the state storage is missing",
        f"A state at '{scheme}://…' needs the Python package 'obstore', which is not installed.",
        "Install it with `pip install 'kdeclare[object-storage]'`.",
    )


def build_foreign_object_error(settings: ObjectSettings, key: str) -> KdeclareError:
    """Return the error about an object that kdeclare did not write."""
    return _build_error(
        "state-corrupt",
        "Stored state is damaged",
        f"{settings.build_url(key)}: it does not start with the line that kdeclare writes.",
        "Restore the object, with its first line, from an earlier version or a backup.",
    )


def build_unsafe_error(settings: ObjectSettings, reason: str) -> KdeclareError:
    """Return the error about a service without conditional writes."""
    return _build_error(
        "state-storage-unsafe",
        "The storage cannot protect the state",
        f"{settings.build_url('')}: {reason}.",
        "Use object storage that supports conditional writes (If-None-Match and If-Match), or another "
        "location for the state; see docs/state.md.",
    )


def _build_error(code: str, summary: str, detail: str, hint: str) -> KdeclareError:
    return KdeclareError(error(code, summary, detail, hint=hint))
