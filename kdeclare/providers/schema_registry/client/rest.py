"""`RestRegistry`, which implements `SchemaRegistry` over HTTP and HTTPS."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar
from urllib.parse import quote, urlencode

from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.core.operations.retry import RetryPolicy
from kdeclare.http.client import HttpClient, HttpErrorCodes, Method, open_http_client
from kdeclare.http.target import HttpTarget
from kdeclare.providers.schema_registry.client import port, responses
from kdeclare.providers.schema_registry.client.port import (
    CompatibilityLevel,
    CompatibilityResult,
    Mode,
    RegisteredSchema,
    Registration,
    RegistryInfo,
    SchemaContent,
    SchemaType,
    SubjectLevel,
    SubjectVersion,
)

CODES = HttpErrorCodes(port.UNREACHABLE, port.NOT_TRUSTED, port.LOST, port.BAD_RESPONSE)
"""The error codes for faults that the HTTP client detects in requests to registries."""

_CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
_ACCEPT = f"{_CONTENT_TYPE}, application/json;q=0.9"

_MAX_RESPONSE_BYTES = 16 << 20
_MAX_LIST_BYTES = 256 << 20
"""The maximum size of a list with the contents of many schemas, in bytes."""
_PAGE_SIZE = 1000
"""The number of items per page. By default, registries send no larger pages."""
_CHANGE_S = 60.0
"""The time limit of a change, in seconds. The registry responds after it has written the change to Kafka."""

_ABSENT = frozenset({port.SUBJECT_NOT_FOUND, port.VERSION_NOT_FOUND, port.SCHEMA_NOT_FOUND})
_NO_OWN_LEVEL = frozenset({port.SUBJECT_NOT_FOUND, port.LEVEL_NOT_SET})

_PROBED_SUBJECT = "kdeclare-probe-of-an-absent-subject"
_PROBED_SUBJECTS = 5

_Item = TypeVar("_Item")
_Parsed = TypeVar("_Parsed")


class RestRegistry:
    """A schema registry, accessed over HTTP. Use `open_rest_registry` to create an instance.

    A request is sent to the first URL. If that server is unreachable, the request is sent to the next URL. A
    change whose response was lost is not sent again.
    """

    def __init__(self, urls: tuple[str, ...], client: HttpClient, retry: RetryPolicy) -> None:
        """Create the object without connecting to a server.

        retry: the policy for requests that certainly had no effect.
        """
        self._urls = tuple(url.rstrip("/") for url in urls)
        self._client = client
        self._retry = retry
        # Whether a response has shown so far that the registry distinguishes own levels.
        self._distinguishes_own_levels = False

    def identify(self) -> RegistryInfo:
        """See `SchemaRegistry.identify`."""
        registry_id = self._read_optional("/v1/metadata/id", responses.parse_id)
        version = self._read_optional("/v1/metadata/version", responses.parse_product_version)
        level = self.read_global_level()
        mode = self.read_mode()
        self._probe_levels(level)
        return RegistryInfo(registry_id, version or "", level, mode, self._distinguishes_own_levels)

    def list_subjects(self, *, include_deleted: bool = False) -> frozenset[str]:
        """See `SchemaRegistry.list_subjects`."""
        query = {"deleted": "true"} if include_deleted else {}
        return frozenset(self._read_pages("/subjects", query, responses.parse_names))

    def list_versions(self, subject: str, *, include_deleted: bool = False) -> tuple[int, ...]:
        """See `SchemaRegistry.list_versions`."""
        query = {"deleted": "true"} if include_deleted else {}
        try:
            pages = self._read_pages(f"{_subject_path(subject)}/versions", query, responses.parse_numbers)
        except Fault as fault:
            if fault.error in _ABSENT:
                return ()
            raise
        return tuple(sorted(pages))

    def read_version(
        self, subject: str, version: int | None = None, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """See `SchemaRegistry.read_version`."""
        path = f"{_subject_path(subject)}/versions/{'latest' if version is None else version}"
        try:
            body = self._send("GET", path, {"deleted": "true"} if include_deleted else {})
        except Fault as fault:
            if fault.error in _ABSENT:
                return None
            raise
        return responses.parse_schema(body)

    def find_version(
        self, subject: str, content: SchemaContent, *, include_deleted: bool = False
    ) -> RegisteredSchema | None:
        """See `SchemaRegistry.find_version`."""
        query = {"deleted": "true"} if include_deleted else {}
        try:
            body = self._send("POST", _subject_path(subject), query, _dump_content(content), is_change=False)
        except Fault as fault:
            if fault.error in _ABSENT:
                return None
            raise
        return responses.parse_schema(body, content)

    def list_latest(self) -> Mapping[str, RegisteredSchema] | None:
        """See `SchemaRegistry.list_latest`."""
        try:
            schemas = self._read_pages(
                "/schemas", {"latestOnly": "true"}, responses.parse_schemas, _MAX_LIST_BYTES
            )
        except Fault as fault:
            if fault.error == port.NOT_A_REGISTRY:
                return None
            raise
        return {schema.subject: schema for schema in schemas}

    def register(self, subject: str, content: SchemaContent) -> Registration:
        """See `SchemaRegistry.register`."""
        path = f"{_subject_path(subject)}/versions"
        body = self._send("POST", path, {}, _dump_content(content))
        registration = _parse_change(responses.parse_registration, body)
        if registration.version is not None:
            return registration
        try:
            registered = self.find_version(subject, content)
        except Fault:  # The schema is registered, so a failure of the look-up is not a failure.
            return registration
        return Registration(registration.id, registered.version if registered is not None else None)

    def check_compatibility(
        self, subject: str, content: SchemaContent, *, level: CompatibilityLevel | None = None
    ) -> CompatibilityResult:
        """See `SchemaRegistry.check_compatibility`."""
        if level is None:
            level = self.read_level(subject).effective
        path = f"/compatibility{_subject_path(subject)}/versions"
        # Without a version, one registry checks all versions at every level. Another registry does not
        # support requests without a version, and checks all versions at transitive levels even if a version
        # is named.
        if level.is_transitive:
            try:
                return self._check_compatibility(path, content)
            except Fault as fault:
                if fault.error != port.NOT_A_REGISTRY:
                    raise
        return self._check_compatibility(f"{path}/latest", content)

    def read_level(self, subject: str, *, global_level: CompatibilityLevel | None = None) -> SubjectLevel:
        """See `SchemaRegistry.read_level`."""
        reported = self._read_reported_level(subject)
        if reported is not None and self._distinguishes_own_levels:
            return SubjectLevel(reported, reported)
        if global_level is None:
            global_level = self.read_global_level()
        if reported is None:
            return SubjectLevel(global_level, None)
        if reported == global_level:
            return SubjectLevel(reported, None, is_own_known=False)
        if reported is not CompatibilityLevel.NONE:
            return SubjectLevel(reported, reported)
        # One registry reports NONE for a subject without a level of its own.
        effective = responses.parse_level(
            self._send("GET", _config_path(subject), {"defaultToGlobal": "true"})
        )
        if effective == reported:
            return SubjectLevel(reported, reported)
        return SubjectLevel(effective or global_level, None)

    def read_global_level(self) -> CompatibilityLevel:
        """See `SchemaRegistry.read_global_level`."""
        level = responses.parse_level(self._send("GET", "/config"))
        if level is None:
            raise Fault(port.BAD_RESPONSE, "its response contains no global compatibility level")
        return level

    def set_level(self, subject: str | None, level: CompatibilityLevel) -> None:
        """See `SchemaRegistry.set_level`."""
        self._send("PUT", _config_path(subject), {}, {"compatibility": level.value})

    def delete_level(self, subject: str) -> None:
        """See `SchemaRegistry.delete_level`."""
        try:
            self._send("DELETE", _config_path(subject))
        except Fault as fault:
            if fault.error not in _NO_OWN_LEVEL:
                raise

    def read_mode(self, subject: str | None = None) -> Mode | None:
        """See `SchemaRegistry.read_mode`."""
        path = "/mode" if subject is None else f"/mode/{quote(subject, safe='')}"
        try:
            body = self._send("GET", path, {} if subject is None else {"defaultToGlobal": "true"})
        except Fault as fault:
            if fault.error == port.NOT_A_REGISTRY:
                return None
            if subject is not None and fault.error == port.SUBJECT_NOT_FOUND:
                return self.read_mode()
            raise
        return responses.parse_mode(body)

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> None:
        """See `SchemaRegistry.delete_version`."""
        query = {"permanent": "true"} if permanent else {}
        self._send("DELETE", f"{_subject_path(subject)}/versions/{version}", query)

    def delete_subject(self, subject: str, *, permanent: bool = False) -> tuple[int, ...]:
        """See `SchemaRegistry.delete_subject`."""
        body = self._send("DELETE", _subject_path(subject), {"permanent": "true"} if permanent else {})
        return tuple(sorted(_parse_change(responses.parse_numbers, body)))

    def list_referrers(self, subject: str, version: int) -> tuple[SubjectVersion, ...]:
        """See `SchemaRegistry.list_referrers`."""
        path = f"{_subject_path(subject)}/versions/{version}/referencedby"
        try:
            ids = responses.parse_numbers(self._send("GET", path))
        except Fault as fault:
            if fault.error in _ABSENT:
                return ()
            raise
        bodies = (self._send("GET", f"/schemas/ids/{schema_id}/versions") for schema_id in ids)
        referrers = {referrer for body in bodies for referrer in responses.parse_subject_versions(body)}
        return tuple(sorted(referrers, key=lambda one: (one.subject, one.version)))

    def close(self) -> None:
        """See `SchemaRegistry.close`."""
        self._client.close()

    def _check_compatibility(self, path: str, content: SchemaContent) -> CompatibilityResult:
        try:
            body = self._send("POST", path, {"verbose": "true"}, _dump_content(content), is_change=False)
        except Fault as fault:
            if fault.error in _ABSENT:
                return CompatibilityResult(True, is_checked=False)
            if fault.error == port.INVALID_SCHEMA and content.references:
                return CompatibilityResult(True, (fault.message,), is_checked=False)
            raise
        return responses.parse_compatibility(body)

    def _read_reported_level(self, subject: str) -> CompatibilityLevel | None:
        """Return the level that the registry reports for a subject; None if it reports none.

        If the response shows that the registry distinguishes a subject's own level from the inherited level,
        remember this.
        """
        try:
            return responses.parse_level(self._send("GET", _config_path(subject)))
        except Fault as fault:
            if fault.error == port.LEVEL_NOT_SET:
                self._distinguishes_own_levels = True
            if fault.error in _NO_OWN_LEVEL:
                return None
            raise

    def _probe_levels(self, global_level: CompatibilityLevel) -> None:
        """Find out whether the registry reports that a subject has no level of its own. Sends few requests.

        Some registries report that a subject has no level of its own, even if the subject does not exist. For
        these registries, one request is enough. For other registries, this method must find a subject without
        a level of its own.
        """
        if self._distinguishes_own_levels:
            return
        self._read_reported_level(_PROBED_SUBJECT)
        if self._distinguishes_own_levels:
            return
        for subject in sorted(self.list_subjects())[:_PROBED_SUBJECTS]:
            if self._read_reported_level(subject) is None or self._distinguishes_own_levels:
                return

    def _read_optional(self, path: str, parse: Callable[[bytes], _Parsed]) -> _Parsed | None:
        """Send a read request that some registries do not support.

        Return None if this registry does not support it.
        """
        try:
            return parse(self._send("GET", path))
        except Fault as fault:
            if fault.error in (port.NOT_A_REGISTRY, port.NOT_AUTHORIZED, port.BAD_RESPONSE):
                return None
            raise

    def _read_pages(
        self,
        path: str,
        query: Mapping[str, str],
        parse: Callable[[bytes], Iterable[_Item]],
        max_bytes: int = _MAX_RESPONSE_BYTES,
    ) -> tuple[_Item, ...]:
        """Read all pages of a list.

        A registry without paging returns the whole list as every page. Therefore, reading ends when a page
        contains no new items.
        """
        items: dict[_Item, None] = {}
        while True:
            page_query = {**query, "limit": str(_PAGE_SIZE), **({"offset": str(len(items))} if items else {})}
            page = tuple(parse(self._send("GET", path, page_query, max_bytes=max_bytes)))
            known_count = len(items)
            items.update(dict.fromkeys(page))
            if len(page) != _PAGE_SIZE or len(items) == known_count:
                return tuple(items)

    def _send(
        self,
        method: Method,
        path: str,
        query: Mapping[str, str] | None = None,
        document: JsonValue = None,
        *,
        is_change: bool | None = None,
        max_bytes: int = _MAX_RESPONSE_BYTES,
    ) -> bytes:
        """Send a request with retries, and return the body of the response. Raises Fault."""
        if is_change is None:
            is_change = method != "GET"
        content = None if document is None else json.dumps(document).encode()
        target = path + (f"?{urlencode(query)}" if query else "")
        return self._retry.whole(
            f"{method} {path}",
            lambda: self._send_to_any(method, target, content, is_change=is_change, max_bytes=max_bytes),
        )

    def _send_to_any(
        self, method: Method, target: str, content: bytes | None, *, is_change: bool, max_bytes: int
    ) -> bytes:
        """Send a request to the first reachable server."""
        last_fault = Fault(port.UNREACHABLE, "it has no URL")
        for url in self._urls:
            try:
                response = self._client.send(
                    method,
                    url + target,
                    content,
                    is_change=is_change,
                    timeout_s=_CHANGE_S if is_change else None,
                    max_bytes=max_bytes,
                )
            except Fault as fault:
                last_fault = fault
                if fault.error == port.UNREACHABLE or fault.kind is FaultKind.RETRIABLE:
                    continue
                raise
            if response.is_success:
                return response.body
            raise responses.build_fault(response, is_change=is_change)
        raise last_fault


def open_rest_registry(
    target: HttpTarget, timeout_s: float = 10.0, retry: RetryPolicy | None = None
) -> RestRegistry:
    """Return the registry at the URLs of ``target`` without sending a request.

    timeout_s: how long to wait for the response to a read request, in seconds.

    Raises KdeclareError if a file or header cannot be used.
    """
    client = open_http_client(
        target, timeout_s, CODES, accept=_ACCEPT, content_type=_CONTENT_TYPE, keeps_connections=True
    )
    return RestRegistry(target.urls, client, retry or RetryPolicy())


def _subject_path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _config_path(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{quote(subject, safe='')}"


def _dump_content(content: SchemaContent) -> JsonValue:
    """Return the request body for a schema. Without a type, registries assume Avro."""
    document: dict[str, JsonValue] = {"schema": content.text}
    if content.type is not SchemaType.AVRO:
        document["schemaType"] = content.type.value
    if content.references:
        document["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in content.references
        ]
    return document


def _parse_change(parse: Callable[[bytes], _Parsed], body: bytes) -> _Parsed:
    """Parse the response to a change.

    If the response is malformed, raise a Fault of the kind UNKNOWN, because the change might have been made.
    """
    try:
        return parse(body)
    except Fault as fault:
        raise Fault(fault.error, fault.message, FaultKind.UNKNOWN) from None
