"""Answer requests about configs: DescribeConfigs, IncrementalAlterConfigs, ListConfigResources."""

from collections.abc import Callable
from typing import Any

import kafka.protocol.admin as admin

from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.client.decoding.configs_decoder import RESOURCE_TYPES
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, Configs
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.providers.kafka.testing.definitions import BROKER_KEYS, TOPIC_KEYS
from kdeclare.providers.kafka.testing.listed_configs import LISTED_KEYS
from tests.served.results import get_code, get_message, send_items

_SCOPES = {code: scope for scope, code in RESOURCE_TYPES.items()}
_SOURCES = {
    ConfigSource.TOPIC: 1,
    ConfigSource.BROKER: 2,
    ConfigSource.CLUSTER: 3,
    ConfigSource.STATIC: 4,
    ConfigSource.DEFAULT: 5,
    ConfigSource.BROKER_LOGGER: 6,
    ConfigSource.CLIENT_METRICS: 7,
    ConfigSource.GROUP: 8,
}
_STRING = 2
_TYPES = {ConfigType.SCALAR: _STRING, ConfigType.LIST: 7, ConfigType.PASSWORD: 9}
_OPS = {0: FieldOp.SET, 1: FieldOp.DELETE, 2: FieldOp.APPEND, 3: FieldOp.SUBTRACT}
_KEYS = {ConfigScope.TOPIC: frozenset(TOPIC_KEYS), ConfigScope.BROKER: frozenset(BROKER_KEYS)} | {
    scope: frozenset(keys) for scope, keys in LISTED_KEYS.items()
}


class ConfigApis:
    """The answers of one broker to requests about configs."""

    def __init__(self, memory: MemoryCluster) -> None:
        self._memory = memory
        self.answers: dict[int, Callable[[Any], Any]] = {
            32: self._describe,
            44: self._alter,
            74: self._list_resources,
        }

    def _describe(self, request: Any) -> Any:
        queries = [
            ConfigQuery(
                _read_resource(item),
                # null means all keys, whether they are overrides or not
                _KEYS[_SCOPES[item.resource_type]]
                if item.configuration_keys is None
                else frozenset(item.configuration_keys),
                overrides=item.configuration_keys is None,
            )
            for item in request.resources
        ]
        try:
            found = self._memory.describe_configs_partially(queries)
        except Fault as fault:
            found = dict.fromkeys((query.resource for query in queries), fault)
        missing = Fault("UNKNOWN_TOPIC_OR_PARTITION", "")
        kind = admin.DescribeConfigsResponse
        return kind(
            throttle_time_ms=0,
            results=[
                _build_result(query.resource, found.get(query.resource, missing), request.include_synonyms)
                for query in queries
            ],
        )

    def _alter(self, request: Any) -> Any:
        items = [
            ConfigAlteration(
                _read_resource(item),
                tuple(
                    ConfigOp(config.name, _OPS[config.config_operation], config.value)
                    for config in item.configs
                ),
            )
            for item in request.resources
        ]
        results = send_items(
            [item.resource for item in items],
            lambda: self._memory.alter_configs(items, validate_only=request.validate_only),
        )
        kind = admin.IncrementalAlterConfigsResponse
        return kind(
            throttle_time_ms=0,
            responses=[
                kind.AlterConfigsResourceResponse(
                    error_code=get_code(result),
                    error_message=get_message(result),
                    resource_type=RESOURCE_TYPES[resource.scope],
                    resource_name=resource.name,
                )
                for resource, result in results.items()
            ],
        )

    def _list_resources(self, request: Any) -> Any:
        kind = admin.ListConfigResourcesResponse
        try:
            found = [
                resource
                for code in request.resource_types
                for resource in self._memory.list_config_resources(_SCOPES[code])
            ]
        except Fault as fault:
            return kind(throttle_time_ms=0, error_code=get_code(fault), config_resources=[])
        return kind(
            throttle_time_ms=0,
            error_code=0,
            config_resources=[
                kind.ConfigResource(resource_name=resource.name, resource_type=RESOURCE_TYPES[resource.scope])
                for resource in found
            ],
        )


def _read_resource(item: Any) -> ConfigResource:
    return ConfigResource(_SCOPES[item.resource_type], item.resource_name)


def _build_result(resource: ConfigResource, found: Configs | Fault, with_synonyms: bool) -> Any:
    fault = found if isinstance(found, Fault) else None
    entries = {} if isinstance(found, Fault) else found
    return admin.DescribeConfigsResponse.DescribeConfigsResult(
        error_code=get_code(fault),
        error_message=get_message(fault),
        resource_type=RESOURCE_TYPES[resource.scope],
        resource_name=resource.name,
        configs=[_build_entry(key, entry, with_synonyms) for key, entry in entries.items()],
    )


def _build_entry(key: str, entry: ConfigEntry, with_synonyms: bool) -> Any:
    kind = admin.DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult
    values = [(entry.value, entry.source)]
    if entry.beneath is not None:
        values.append((entry.beneath, ConfigSource.DEFAULT))
    synonym = kind.DescribeConfigsSynonym
    return kind(
        name=key,
        value=entry.value,
        read_only=entry.read_only,
        config_source=_SOURCES[entry.source],
        is_sensitive=entry.sensitive,
        synonyms=[
            synonym(name=key, value=value, source=_SOURCES[source])
            for value, source in values
            if with_synonyms
        ],
        config_type=_TYPES[entry.type],
        documentation=None,
    )
