"""Read and change ACL bindings: DescribeAcls, CreateAcls and DeleteAcls (KIP-140, KIP-290).

The controller handles these requests in one thread, and all other changes have to wait. For CreateAcls, the
controller compares each binding of a request with all other bindings of the request. For DeleteAcls, it scans
all bindings of the cluster for each filter. Therefore, kdeclare sends small requests, one at a time. Between
deletions, kdeclare pauses so that the controller has half of its time for other requests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any

from kafka.protocol.admin.acl import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kafka.protocol.admin.cluster import DescribeClusterRequest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    CLUSTER,
    DELEGATION_TOKEN,
    DENY,
    GROUP,
    LITERAL,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    USER,
    Binding,
)
from kdeclare.providers.kafka.client.access.deletion_pace import MEASURED_FROM, DeletionPace
from kdeclare.providers.kafka.client.describe_cluster import read_cluster_rights
from kdeclare.providers.kafka.client.faults import build_fault_from_code, build_unanswered_fault
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire

_MAX_SINGLE_PRINCIPALS = 16
"""The maximum number of principals to describe one by one.

For more principals, one request reads all bindings.
"""
MAX_CREATIONS = 500
"""The maximum number of bindings that one request creates."""

_ANY = 1
"""The code that makes a field of a filter match every value."""


class _Codes:
    """Names and codes of an enumeration in the Kafka protocol."""

    def __init__(self, noun: str, names: Mapping[int, str]) -> None:
        self._noun, self._names = noun, names
        self._codes = {name: code for code, name in names.items()}

    def get_name(self, code: int) -> str:
        """Return the name of a code. If the code is not known, the name contains the code."""
        return self._names.get(code) or f"{self._noun}-{code}"

    def get_code(self, name: str) -> int:
        """Return the code of a name that `get_name` returned."""
        code = self._codes.get(name)
        return int(name.rpartition("-")[2]) if code is None else code


_TYPES = _Codes(
    "resource",
    {2: TOPIC, 3: GROUP, 4: CLUSTER, 5: TRANSACTIONAL_ID, 6: DELEGATION_TOKEN, 7: USER},
)
_PATTERNS = _Codes("pattern", {3: LITERAL, 4: PREFIXED})
_PERMISSIONS = _Codes("PERMISSION", {2: DENY, 3: ALLOW})
OPERATIONS = {
    2: "ALL",
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
    13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS",
    15: "TWO_PHASE_COMMIT",
}
"""The names of operations by code (org.apache.kafka.common.acl.AclOperation)."""
_OPERATION_CODES = _Codes("operation", OPERATIONS)


def describe_acls(wire: Wire, freshness: Freshness, principals: Sequence[str] | None) -> frozenset[Binding]:
    """Return the bindings of these principals, or all bindings if ``principals`` is None. Raises Fault."""
    if principals is not None and not principals:
        return frozenset()
    selects_each = principals is not None and len(principals) <= _MAX_SINGLE_PRINCIPALS
    filters: Sequence[str | None] = principals if principals is not None and selects_each else [None]
    bindings: set[Binding] = set()
    requests = [_build_describe_request(principal) for principal in filters]
    for answer in wire.ask(requests, _read_bindings, changes=False, nodes=freshness.nodes()):
        if isinstance(answer, Fault):
            raise answer
        bindings |= answer
    if principals is None or selects_each:
        return frozenset(bindings)
    named = frozenset(principals)
    return frozenset(binding for binding in bindings if binding.principal in named)


def read_own_cluster_rights(wire: Wire) -> frozenset[str] | None:
    """Return the operations on the cluster that brokers allow this client (KIP-430); None if unknown.

    Raises Fault.
    """
    if wire.get_max_version(DescribeClusterRequest.API_KEY) < 0:
        return None
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    return wire.send_one(request, read_cluster_rights)


class AclWriter:
    """Creates and deletes bindings, one request at a time. Thread-safe."""

    def __init__(self, wire: Wire, pace: DeletionPace | None = None) -> None:
        """Create the object. Requests use the open connections of ``wire``.

        pace: determines the size of deletions and the pauses between them.
        """
        self._wire = wire
        self._lock = Lock()
        self._pace = pace or DeletionPace()

    def create(self, bindings: Sequence[Binding]) -> dict[Binding, Result]:
        """Create bindings, and return a result for each.

        Raises Fault if exactly one request is sent and the request fails.
        """
        results: dict[Binding, Result] = {}
        with self._lock:
            for start in range(0, len(bindings), MAX_CREATIONS):
                batch = bindings[start : start + MAX_CREATIONS]
                request = CreateAclsRequest(creations=[_build_creation(binding) for binding in batch])
                results |= self._send(batch, request, lambda response: response.results, len(bindings))
        return results

    def delete(self, bindings: Sequence[Binding]) -> dict[Binding, Result]:
        """Delete exactly these bindings.

        Return a result for each binding, including bindings that do not exist.

        Raises Fault if exactly one request is sent and the request fails.
        """
        results: dict[Binding, Result] = {}
        with self._lock:
            remaining = list(bindings)
            while remaining:
                batch, remaining = remaining[: self._pace.size], remaining[self._pace.size :]
                request = DeleteAclsRequest(filters=[_build_filter(binding) for binding in batch])
                self._pace.begin()
                try:
                    results |= self._send(
                        batch, request, lambda response: response.filter_results, len(bindings)
                    )
                finally:
                    self._pace.end(len(batch))
                if len(remaining) >= self._pace.size and len(bindings) >= MEASURED_FROM:
                    self._measure_scan(request, results[batch[-1]])
        return results

    def _measure_scan(self, request: Any, result: Result) -> None:
        """Send a successful deletion again if `DeletionPace` must measure the scan time."""
        if result is not None or not self._pace.is_measurement_due:
            return
        self._pace.begin()
        try:
            self._wire.send_one(request, lambda _: None, changes=True)
        except Fault:
            return  # if the problem persists, the next deletion fails, too
        self._pace.end_measurement(len(request.filters))

    def _send(
        self,
        batch: Sequence[Binding],
        request: Any,
        get_items: Callable[[Any], Iterable[Any]],
        total: int,
    ) -> dict[Binding, Result]:
        """Send one request, whose response has one item per binding, in order."""

        def read_results(response: Any) -> dict[Binding, Result]:
            return {
                binding: build_fault_from_code(item.error_code, item.error_message, changes=True)
                if item.error_code
                else None
                for binding, item in zip(batch, get_items(response), strict=False)
            }

        try:
            results = self._wire.send_one(request, read_results, changes=True)
        except Fault as fault:
            if len(batch) == total:
                raise
            return dict.fromkeys(batch, fault)
        if any(fault is not None and fault.kind is FaultKind.RETRIABLE for fault in results.values()):
            self._wire.request_refresh()
        return {binding: results.get(binding, build_unanswered_fault()) for binding in batch} | results


def _build_describe_request(principal: str | None) -> Any:
    return DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=principal,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
    )


def _build_creation(binding: Binding) -> Any:
    return CreateAclsRequest.AclCreation(
        resource_type=_TYPES.get_code(binding.resource_type),
        resource_name=binding.name,
        resource_pattern_type=_PATTERNS.get_code(binding.pattern),
        principal=binding.principal,
        host=binding.host,
        operation=_OPERATION_CODES.get_code(binding.operation),
        permission_type=_PERMISSIONS.get_code(binding.permission),
    )


def _build_filter(binding: Binding) -> Any:
    """Return a filter that matches exactly one binding."""
    return DeleteAclsRequest.DeleteAclsFilter(
        resource_type_filter=_TYPES.get_code(binding.resource_type),
        resource_name_filter=binding.name,
        pattern_type_filter=_PATTERNS.get_code(binding.pattern),
        principal_filter=binding.principal,
        host_filter=binding.host,
        operation=_OPERATION_CODES.get_code(binding.operation),
        permission_type=_PERMISSIONS.get_code(binding.permission),
    )


def _read_bindings(response: Any) -> set[Binding]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    return {
        Binding(
            _TYPES.get_name(resource.resource_type),
            resource.resource_name,
            _PATTERNS.get_name(resource.pattern_type),
            acl.principal,
            acl.host,
            _OPERATION_CODES.get_name(acl.operation),
            _PERMISSIONS.get_name(acl.permission_type),
        )
        for resource in response.resources or ()
        for acl in resource.acls
    }
