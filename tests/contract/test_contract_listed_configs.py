"""Configs of groups and client metrics subscriptions through the `Cluster` protocol (KIP-848, KIP-714)."""

from collections.abc import Iterator, Mapping

import pytest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.core.resources.changes import FieldOp
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import LISTED_SCOPES
from kdeclare.providers.kafka.live import ConfigEntry, ConfigSource, ConfigType
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery
from tests.beds import AnyBed, get_error

GROUP, METRICS = ConfigScope.GROUP, ConfigScope.CLIENT_METRICS
SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
SET, DELETE, APPEND, SUBTRACT = FieldOp.SET, FieldOp.DELETE, FieldOp.APPEND, FieldOp.SUBTRACT


class ListedConfigs:
    """Changes configs for a test, and removes them at the end."""

    def __init__(self, bed: AnyBed) -> None:
        self.bed = bed
        self._touched: set[ConfigResource] = set()

    def make_resource(self, scope: ConfigScope) -> ConfigResource:
        return ConfigResource(scope, self.bed.name())

    def alter(self, resource: ConfigResource, *ops: ConfigOp, validate_only: bool = False) -> Result:
        self._touched.add(resource)
        alteration = ConfigAlteration(resource, ops)
        return self.bed.cluster.alter_configs([alteration], validate_only=validate_only)[resource]

    def set(
        self, resource: ConfigResource, values: Mapping[str, str], *, validate_only: bool = False
    ) -> Result:
        ops = (ConfigOp(key, SET, value) for key, value in values.items())
        return self.alter(resource, *ops, validate_only=validate_only)

    def read(self, resource: ConfigResource, *keys: str) -> Mapping[str, ConfigEntry]:
        query = ConfigQuery(resource, frozenset(keys), overrides=True)
        return self.bed.cluster.configs([query])[resource]

    def expect(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Wait until the resource has these overrides, and is listed if it has any."""

        def check() -> None:
            assert {key: entry.value for key, entry in self.read(resource).items()} == values
            listed = self.bed.cluster.list_config_resources(resource.scope)
            assert (resource in listed) is bool(values)

        self.bed.eventually(check)

    def clean(self) -> None:
        for resource in self._touched:
            if resource.name and (entries := self.read(resource)):
                assert self.alter(resource, *(ConfigOp(key, DELETE, None) for key in entries)) is None


@pytest.fixture
def configs(bed: AnyBed) -> Iterator[ListedConfigs]:
    made = ListedConfigs(bed)
    yield made
    made.clean()


def test_group_configs_are_set_changed_and_removed_by_key(configs: ListedConfigs) -> None:
    group = configs.make_resource(GROUP)
    configs.expect(group, {})
    assert configs.set(group, {SESSION: "50000", "share.isolation.level": "read_committed"}) is None
    configs.expect(group, {SESSION: "50000", "share.isolation.level": "read_committed"})
    assert configs.set(group, {SESSION: "60000"}) is None
    configs.expect(group, {SESSION: "60000", "share.isolation.level": "read_committed"})
    assert configs.alter(group, *(ConfigOp(key, DELETE, None) for key in configs.read(group))) is None
    configs.expect(group, {})


def test_subscription_exists_as_long_as_it_has_configs(configs: ListedConfigs) -> None:
    resource = configs.make_resource(METRICS)
    values = {"metrics": "org.a.,org.b.", "match": "client_id=app-.*", "interval.ms": "30000"}
    assert configs.set(resource, values) is None
    configs.expect(resource, values)
    assert configs.alter(resource, ConfigOp("metrics", DELETE, None)) is None
    configs.expect(resource, {key: values[key] for key in ("match", "interval.ms")})
    assert configs.alter(resource, *(ConfigOp(key, DELETE, None) for key in values)) is None
    configs.expect(resource, {})


@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_unset_keys_are_described_with_their_defaults(configs: ListedConfigs, scope: ConfigScope) -> None:
    key, default = {GROUP: (SESSION, "45000"), METRICS: ("interval.ms", "300000")}[scope]
    resource = configs.make_resource(scope)
    assert configs.read(resource, key, "no.such.key") == {key: ConfigEntry(default, ConfigSource.DEFAULT)}


def test_lists_of_subscriptions_are_described_as_lists(configs: ListedConfigs) -> None:
    resource = configs.make_resource(METRICS)
    assert configs.set(resource, {"metrics": "a, b"}) is None
    configs.expect(resource, {"metrics": "a,b"})
    assert configs.read(resource)["metrics"].type is ConfigType.LIST
    assert configs.read(resource)["metrics"].source is ConfigSource.CLIENT_METRICS


@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_names_can_contain_any_characters(configs: ListedConfigs, scope: ConfigScope) -> None:
    resource = ConfigResource(scope, f"{configs.bed.name()} a/b ü")
    values = {GROUP: {SESSION: "50000"}, METRICS: {"metrics": "*"}}[scope]
    assert configs.set(resource, values) is None
    configs.expect(resource, values)


@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_removal_of_unset_or_unknown_keys_succeeds(configs: ListedConfigs, scope: ConfigScope) -> None:
    resource = configs.make_resource(scope)
    key = {GROUP: SESSION, METRICS: "metrics"}[scope]
    assert configs.alter(resource, ConfigOp(key, DELETE, None), ConfigOp("nope", DELETE, None)) is None
    configs.expect(resource, {})


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("nope", "1", "INVALID_CONFIG"),
        (SESSION, "x", "INVALID_CONFIG"),
        (SESSION, "", "INVALID_CONFIG"),
        (SESSION, "44999", "INVALID_CONFIG"),
        (SESSION, "60001", "INVALID_CONFIG"),
        (HEARTBEAT, "4999", "INVALID_CONFIG"),
        (HEARTBEAT, "15001", "INVALID_CONFIG"),
        ("consumer.assignment.interval.ms", "-1", "INVALID_CONFIG"),
        ("share.auto.offset.reset", "sometime", "INVALID_CONFIG"),
        ("share.auto.offset.reset", "EARLIEST", "INVALID_CONFIG"),
        ("share.isolation.level", "bad", "INVALID_CONFIG"),
        ("share.delivery.count.limit", "1", "INVALID_CONFIG"),
        ("share.delivery.count.limit", "11", "INVALID_CONFIG"),
        ("share.partition.max.record.locks", "99", "INVALID_CONFIG"),
        ("share.record.lock.duration.ms", "999", "INVALID_CONFIG"),
        ("share.renew.acknowledge.enable", "maybe", "INVALID_CONFIG"),
        ("streams.num.standby.replicas", "3", "INVALID_CONFIG"),
        ("streams.initial.rebalance.delay.ms", "-1", "INVALID_CONFIG"),
    ],
)
def test_group_configs_are_validated(configs: ListedConfigs, key: str, value: str, error: str) -> None:
    group = configs.make_resource(GROUP)
    for validate_only in (True, False):
        assert get_error(configs.set(group, {key: value}, validate_only=validate_only)) == error
    configs.expect(group, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("consumer.assignment.interval.ms", "0"),
        ("share.auto.offset.reset", "by_duration:P1DT2H"),
        ("share.renew.acknowledge.enable", "TRUE"),
        ("share.delivery.count.limit", "2"),
        ("streams.num.standby.replicas", "2"),
        (SESSION, "60000"),
    ],
)
def test_group_configs_accept_values_at_the_limits(configs: ListedConfigs, key: str, value: str) -> None:
    assert configs.set(configs.make_resource(GROUP), {key: value}, validate_only=True) is None


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("nope", "1", "INVALID_REQUEST"),
        ("interval.ms", "99", "INVALID_REQUEST"),
        ("interval.ms", "3600001", "INVALID_REQUEST"),
        ("interval.ms", "x", "INVALID_CONFIG"),
        ("metrics", "a,,b", "INVALID_CONFIG"),
        ("match", "client_id=(", "INVALID_CONFIG"),
        ("match", "nope=a", "INVALID_CONFIG"),
        ("match", "client_id", "INVALID_CONFIG"),
        ("match", "client_id=a=b", "INVALID_CONFIG"),
        ("match", "client_id=", "INVALID_CONFIG"),
    ],
)
def test_subscriptions_are_validated(configs: ListedConfigs, key: str, value: str, error: str) -> None:
    resource = configs.make_resource(METRICS)
    for validate_only in (True, False):
        assert get_error(configs.set(resource, {key: value}, validate_only=validate_only)) == error
    configs.expect(resource, {})


@pytest.mark.parametrize("op", [APPEND, SUBTRACT])
@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_elements_cannot_be_appended_or_subtracted(
    configs: ListedConfigs, scope: ConfigScope, op: FieldOp
) -> None:
    """DescribeConfigs calls ``metrics`` a LIST, but the controller refuses to patch it."""
    key = {GROUP: "share.auto.offset.reset", METRICS: "metrics"}[scope]
    result = configs.alter(configs.make_resource(scope), ConfigOp(key, op, "latest"))
    assert isinstance(result, Fault)
    assert result.error == "INVALID_CONFIG"
    assert result.message == f"Can't {op.value} to key {key} because its type is not LIST."


@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_empty_names_are_refused(configs: ListedConfigs, scope: ConfigScope) -> None:
    value = {GROUP: {SESSION: "50000"}, METRICS: {"metrics": "*"}}[scope]
    assert get_error(configs.set(ConfigResource(scope, ""), value)) == "INVALID_REQUEST"


@pytest.mark.parametrize("scope", LISTED_SCOPES)
def test_repeated_and_missing_values_are_refused(configs: ListedConfigs, scope: ConfigScope) -> None:
    key, value = {GROUP: (SESSION, "50000"), METRICS: ("metrics", "*")}[scope]
    resource = configs.make_resource(scope)
    twice = configs.alter(resource, ConfigOp(key, SET, value), ConfigOp(key, SET, value))
    assert get_error(twice) == "INVALID_REQUEST"
    assert get_error(configs.alter(resource, ConfigOp(key, SET, None))) == "INVALID_REQUEST"
    configs.expect(resource, {})
