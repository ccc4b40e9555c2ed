"""Answer requests about ACLs, client quotas and SCRAM credentials."""

from collections.abc import Callable, Sequence
from typing import Any

import kafka.protocol.admin as admin

from kdeclare.core.live.faults import Fault, Outcome
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.client.access.acls import _OPERATION_CODES, _PATTERNS, _PERMISSIONS, _TYPES
from kdeclare.providers.kafka.client.access.scram import _CODES, _MECHANISMS
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.testing import MemoryCluster
from tests.served.results import get_code, get_message, send_items

_RESOURCE_NOT_FOUND = Fault("RESOURCE_NOT_FOUND", "Attempt to describe a user credential that does not exist")


class AccessApis:
    """The answers of one broker to requests about ACLs, quotas and credentials."""

    def __init__(self, memory: MemoryCluster) -> None:
        self._memory = memory
        self.answers: dict[int, Callable[[Any], Any]] = {
            29: self._describe_acls,
            30: self._create_acls,
            31: self._delete_acls,
            48: self._describe_quotas,
            49: self._alter_quotas,
            50: self._describe_scram_users,
            51: self._alter_scram_users,
        }

    def _describe_acls(self, request: Any) -> Any:
        kind = admin.DescribeAclsResponse
        principal = request.principal_filter
        try:
            bindings = self._memory.acls(None if principal is None else [principal])
        except Fault as fault:
            return kind(
                throttle_time_ms=0,
                error_code=get_code(fault),
                error_message=get_message(fault),
                resources=[],
            )
        return kind(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            resources=[
                kind.DescribeAclsResource(
                    resource_type=_TYPES.get_code(binding.resource_type),
                    resource_name=binding.name,
                    pattern_type=_PATTERNS.get_code(binding.pattern),
                    acls=[
                        kind.DescribeAclsResource.AclDescription(
                            principal=binding.principal,
                            host=binding.host,
                            operation=_OPERATION_CODES.get_code(binding.operation),
                            permission_type=_PERMISSIONS.get_code(binding.permission),
                        )
                    ],
                )
                for binding in sorted(bindings)
            ],
        )

    def _create_acls(self, request: Any) -> Any:
        bindings = [
            _build_binding(
                item,
                item.resource_type,
                item.resource_name,
                item.resource_pattern_type,
                item.principal,
                item.host,
            )
            for item in request.creations
        ]
        kind = admin.CreateAclsResponse
        results = send_items(bindings, lambda: self._memory.create_acls(bindings))
        return kind(
            throttle_time_ms=0,
            results=_build_codes(kind.AclCreationResult, [results[binding] for binding in bindings]),
        )

    def _delete_acls(self, request: Any) -> Any:
        """Delete the binding of each filter; kdeclare sends only filters that match one binding."""
        bindings = [
            _build_binding(
                item,
                item.resource_type_filter,
                item.resource_name_filter,
                item.pattern_type_filter,
                item.principal_filter,
                item.host_filter,
            )
            for item in request.filters
        ]
        kind = admin.DeleteAclsResponse
        results = send_items(bindings, lambda: self._memory.delete_acls(bindings))
        return kind(
            throttle_time_ms=0,
            filter_results=_build_codes(
                kind.DeleteAclsFilterResult, [results[binding] for binding in bindings], matching_acls=[]
            ),
        )

    def _describe_quotas(self, request: Any) -> Any:
        kind = admin.DescribeClientQuotasResponse
        entities = [QuotaEntity.of({EntityType(part.entity_type): part.match for part in request.components})]
        try:
            found = self._memory.quotas(entities if request.components else None)
        except Fault as fault:
            return kind(
                throttle_time_ms=0, error_code=get_code(fault), error_message=get_message(fault), entries=None
            )
        return kind(
            throttle_time_ms=0,
            error_code=0,
            error_message=None,
            entries=[
                kind.EntryData(
                    entity=_build_entity(kind.EntryData.EntityData, entity),
                    values=[kind.EntryData.ValueData(key=key, value=value) for key, value in limits.items()],
                )
                for entity, limits in found.items()
            ],
        )

    def _alter_quotas(self, request: Any) -> Any:
        items = {
            QuotaEntity.of({EntityType(part.entity_type): part.entity_name for part in entry.entity}): {
                op.key: None if op.remove else op.value for op in entry.ops
            }
            for entry in request.entries
        }
        results = send_items(
            items, lambda: self._memory.alter_quotas(items, validate_only=request.validate_only)
        )
        kind = admin.AlterClientQuotasResponse
        return kind(
            throttle_time_ms=0,
            entries=[
                kind.EntryData(
                    error_code=get_code(result),
                    error_message=get_message(result),
                    entity=_build_entity(kind.EntryData.EntityData, entity),
                )
                for entity, result in results.items()
            ],
        )

    def _describe_scram_users(self, request: Any) -> Any:
        names = [item.name for item in request.users or ()]
        kind = admin.DescribeUserScramCredentialsResponse
        result_kind = kind.DescribeUserScramCredentialsResult
        try:
            found = self._memory.scram_users(names or None)
        except Fault as fault:
            return kind(
                throttle_time_ms=0, error_code=get_code(fault), error_message=get_message(fault), results=[]
            )
        results = []
        for name in names or found:
            result = None if name in found else _RESOURCE_NOT_FOUND
            results.append(
                result_kind(
                    user=name,
                    error_code=get_code(result),
                    error_message=get_message(result),
                    credential_infos=[
                        result_kind.CredentialInfo(mechanism=_CODES[mechanism], iterations=iterations)
                        for mechanism, iterations in found.get(name, {}).items()
                    ],
                )
            )
        return kind(throttle_time_ms=0, error_code=0, error_message=None, results=results)

    def _alter_scram_users(self, request: Any) -> Any:
        """Change credentials. The request contains salted passwords, which replace the passwords here."""
        items = [ScramAlteration(item.name, _MECHANISMS[item.mechanism]) for item in request.deletions]
        items += [
            ScramAlteration(
                item.name,
                _MECHANISMS[item.mechanism],
                ScramUpsertion(item.iterations, item.salted_password.hex()),
            )
            for item in request.upsertions
        ]
        results = send_items([item.user for item in items], lambda: self._memory.alter_scram_users(items))
        kind = admin.AlterUserScramCredentialsResponse
        return kind(
            throttle_time_ms=0,
            results=[
                kind.AlterUserScramCredentialsResult(
                    user=user, error_code=get_code(result), error_message=get_message(result)
                )
                for user, result in results.items()
            ],
        )


def _build_binding(item: Any, type_: int, name: str, pattern: int, principal: str, host: str) -> Binding:
    return Binding(
        _TYPES.get_name(type_),
        name,
        _PATTERNS.get_name(pattern),
        principal,
        host,
        _OPERATION_CODES.get_name(item.operation),
        _PERMISSIONS.get_name(item.permission_type),
    )


def _build_codes(kind: Any, results: Sequence[Outcome], **fields: object) -> list[Any]:
    return [
        kind(error_code=get_code(result), error_message=get_message(result), **fields) for result in results
    ]


def _build_entity(kind: Any, entity: QuotaEntity) -> list[Any]:
    return [kind(entity_type=type_.value, entity_name=name) for type_, name in entity.parts]
