"""Client quotas through the `Cluster` protocol (KIP-546): entities, keys, numbers, and refusals."""

from collections.abc import Iterator, Mapping

import pytest

from kdeclare.core.live.faults import Fault, FaultKind, Result
from kdeclare.providers.kafka.client_quota.entity import DEFAULT_PAIR, DEFAULT_USER, EntityType, QuotaEntity
from tests.beds import AnyBed, get_error

USER, CLIENT, IP = EntityType.USER, EntityType.CLIENT_ID, EntityType.IP
DEFAULT_CLIENT = QuotaEntity.of({CLIENT: None})
DEFAULT_IP = QuotaEntity.of({IP: None})
BYTES, PERCENT, CONNECTIONS = "producer_byte_rate", "request_percentage", "connection_creation_rate"


class Quotas:
    """Changes quotas for a test, and removes them at the end."""

    def __init__(self, bed: AnyBed) -> None:
        self.bed = bed
        self._touched: dict[QuotaEntity, set[str]] = {}

    def new_user(self) -> QuotaEntity:
        return QuotaEntity.of({USER: self.bed.name()})

    def alter(
        self, entity: QuotaEntity, limits: Mapping[str, float | None], *, validate_only: bool = False
    ) -> Result:
        return self.alter_all({entity: limits}, validate_only=validate_only)[entity]

    def alter_all(
        self, items: Mapping[QuotaEntity, Mapping[str, float | None]], *, validate_only: bool = False
    ) -> Mapping[QuotaEntity, Result]:
        for entity, limits in items.items():
            self._touched.setdefault(entity, set()).update(limits)
        return self.bed.cluster.alter_quotas(items, validate_only=validate_only)

    def expect(self, entity: QuotaEntity, limits: Mapping[str, float]) -> None:
        def check() -> None:
            assert self.bed.cluster.quotas([entity]).get(entity, {}) == limits

        self.bed.eventually(check)

    def clean(self) -> None:
        held = self.bed.cluster.quotas()
        left = {
            entity: dict.fromkeys(keys & held[entity].keys())
            for entity, keys in self._touched.items()
            if entity in held
        }
        assert not [r for r in self.bed.cluster.alter_quotas(left).values() if r is not None]


@pytest.fixture
def quotas(bed: AnyBed) -> Iterator[Quotas]:
    made = Quotas(bed)
    yield made
    made.clean()


def test_limits_are_set_changed_and_removed_by_key(quotas: Quotas) -> None:
    user = quotas.new_user()
    quotas.expect(user, {})
    assert quotas.alter(user, {BYTES: 1024.0, PERCENT: 50.5}) is None
    quotas.expect(user, {BYTES: 1024.0, PERCENT: 50.5})
    assert quotas.alter(user, {BYTES: 2048.0}) is None
    quotas.expect(user, {BYTES: 2048.0, PERCENT: 50.5})
    assert quotas.alter(user, {BYTES: None, PERCENT: None}) is None
    quotas.expect(user, {})
    assert user not in quotas.bed.cluster.quotas()


def test_entities_with_shared_names_have_separate_limits(quotas: Quotas) -> None:
    name = quotas.bed.name()
    entities = [
        QuotaEntity.of({USER: name}),
        QuotaEntity.of({CLIENT: name}),
        QuotaEntity.of({USER: name, CLIENT: name}),
        QuotaEntity.of({USER: name, CLIENT: None}),
        QuotaEntity.of({USER: None, CLIENT: name}),
    ]
    limits = {entity: {BYTES: 1000.0 + n} for n, entity in enumerate(entities)}
    assert set(quotas.alter_all(limits).values()) == {None}
    for entity in entities:
        quotas.expect(entity, limits[entity])
    found = quotas.bed.cluster.quotas()
    assert {entity: found[entity] for entity in entities} == limits
    assert quotas.bed.cluster.quotas(entities[:2]) == {entity: limits[entity] for entity in entities[:2]}


@pytest.mark.parametrize("entity", [DEFAULT_USER, DEFAULT_PAIR, DEFAULT_CLIENT, DEFAULT_IP], ids=str)
def test_default_entities_have_separate_limits(quotas: Quotas, entity: QuotaEntity) -> None:
    key = CONNECTIONS if entity.is_ip else PERCENT
    assert quotas.alter(entity, {key: 9_000_000.0}) is None
    quotas.expect(entity, {key: 9_000_000.0})


def test_user_named_default_differs_from_default_user(quotas: Quotas) -> None:
    """P-QUO-03."""
    named = QuotaEntity.of({USER: "<default>"})
    results = quotas.alter_all({named: {PERCENT: 10.0}, DEFAULT_USER: {PERCENT: 900_000.0}})
    assert set(results.values()) == {None}
    quotas.expect(named, {PERCENT: 10.0})
    quotas.expect(DEFAULT_USER, {PERCENT: 900_000.0})


@pytest.mark.parametrize("address", ["10.1.2.3", "2001:db8::7", "localhost"])
def test_ip_addresses_limit_connections(quotas: Quotas, address: str) -> None:
    entity = QuotaEntity.of({IP: address})
    assert quotas.alter(entity, {CONNECTIONS: 9000.0}) is None
    quotas.expect(entity, {CONNECTIONS: 9000.0})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "limits"),
    [
        ({}, {BYTES: 1.0}),
        ({USER: ""}, {BYTES: 1.0}),
        ({CLIENT: ""}, {BYTES: 1.0}),
        ({IP: "10.1.2.3", USER: "a"}, {CONNECTIONS: 1.0}),
        ({IP: "10.1.2.3", CLIENT: None}, {CONNECTIONS: 1.0}),
        ({IP: "10.1.2.0/24"}, {CONNECTIONS: 1.0}),
        ({IP: "10.1.2.3"}, {BYTES: 1.0}),
        ({USER: "a"}, {CONNECTIONS: 1.0}),
        ({USER: "a"}, {"producer_byterate": 1.0}),
        ({USER: "a"}, {BYTES: 0.0}),
        ({USER: "a"}, {BYTES: -1.0}),
        ({USER: "a"}, {BYTES: 10.5}),
        ({USER: "a"}, {PERCENT: 0.0}),
        ({IP: "10.1.2.3"}, {CONNECTIONS: 1.5}),
        ({USER: "a"}, {PERCENT: 50.0, BYTES: 10.5}),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_invalid_quotas_are_refused(
    quotas: Quotas, names: Mapping[EntityType, str | None], limits: Mapping[str, float], validate_only: bool
) -> None:
    entity = QuotaEntity.of(names)
    before = quotas.bed.cluster.quotas()
    found = quotas.bed.cluster.alter_quotas({entity: limits}, validate_only=validate_only)[entity]
    assert isinstance(found, Fault)
    assert (found.error, found.kind) == ("INVALID_REQUEST", FaultKind.REFUSED)
    assert quotas.bed.cluster.quotas() == before


def test_refused_entity_does_not_stop_others(quotas: Quotas) -> None:
    good, bad, last = quotas.new_user(), quotas.new_user(), quotas.new_user()
    results = quotas.alter_all({good: {BYTES: 1.0}, bad: {BYTES: 0.5}, last: {PERCENT: 0.5}})
    assert [get_error(results[entity]) for entity in (good, bad, last)] == [None, "INVALID_REQUEST", None]
    quotas.expect(good, {BYTES: 1.0})
    quotas.expect(bad, {})
    quotas.expect(last, {PERCENT: 0.5})


def test_validate_only_changes_nothing(quotas: Quotas) -> None:
    user = quotas.new_user()
    assert quotas.alter(user, {BYTES: 1024.0}, validate_only=True) is None
    quotas.expect(user, {})


@pytest.mark.parametrize("key", [BYTES, "no_such_key"])
def test_removal_of_unset_limit_does_nothing(quotas: Quotas, key: str) -> None:
    user = quotas.new_user()
    assert quotas.alter(user, {key: None}) is None
    quotas.expect(user, {})


def test_limit_values_round_trip(quotas: Quotas) -> None:
    user = quotas.new_user()
    limits = {BYTES: float(2**53), "consumer_byte_rate": 1.0, PERCENT: 0.1, "controller_mutation_rate": 2.5}
    assert quotas.alter(user, limits) is None
    quotas.expect(user, limits)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_brokers_accept_meaningless_limit_values(quotas: Quotas, value: float) -> None:
    user = quotas.new_user()
    assert quotas.alter(user, {PERCENT: value}) is None

    def check() -> None:
        assert str(quotas.bed.cluster.quotas([user])[user][PERCENT]) == str(value)

    quotas.bed.eventually(check)


def test_many_entities_are_changed_in_one_request(quotas: Quotas) -> None:
    name = quotas.bed.name()
    entities = [QuotaEntity.of({USER: name, CLIENT: f"app-{n}"}) for n in range(600)]
    assert set(quotas.alter_all({e: {BYTES: 1.0, PERCENT: 2.0} for e in entities}).values()) == {None}

    def check() -> None:
        assert quotas.bed.cluster.quotas(entities) == {e: {BYTES: 1.0, PERCENT: 2.0} for e in entities}

    quotas.bed.eventually(check)
