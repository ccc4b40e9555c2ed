"""SCRAM credentials through the `Cluster` protocol (KIP-554): iterations, names, and refusals."""

from collections.abc import Iterator, Mapping

import pytest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism
from tests.beds import AnyBed, get_error

SHA_256, SHA_512 = Mechanism.SHA_256, Mechanism.SHA_512


class Users:
    """Changes credentials for a test, and deletes them at the end."""

    def __init__(self, bed: AnyBed) -> None:
        self.bed = bed
        self._names: set[str] = set()

    def new_user(self, suffix: str = "") -> str:
        name = self.bed.name(suffix)
        self._names.add(name)
        return name

    def upsert(self, user: str, iterations: int = 4096, mechanism: Mechanism = SHA_512) -> Result:
        item = ScramAlteration(user, mechanism, ScramUpsertion(iterations, "correct horse"))
        return self.bed.cluster.alter_scram_users([item])[user]

    def delete(self, user: str, mechanism: Mechanism = SHA_512) -> Result:
        return self.bed.cluster.alter_scram_users([ScramAlteration(user, mechanism)])[user]

    def expect(self, user: str, credentials: Credentials) -> None:
        def check() -> None:
            assert self.bed.cluster.scram_users([user]).get(user, {}) == credentials

        self.bed.eventually(check)

    def clean(self) -> None:
        found: Mapping[str, Credentials] = self.bed.cluster.scram_users(sorted(self._names))
        for user, credentials in found.items():
            assert [r for m in credentials if (r := self.delete(user, m)) is not None] == []


@pytest.fixture
def users(bed: AnyBed) -> Iterator[Users]:
    made = Users(bed)
    yield made
    made.clean()


def test_credentials_are_set_changed_and_deleted_by_mechanism(users: Users) -> None:
    user = users.new_user()
    users.expect(user, {})
    assert users.upsert(user, 4096) is None
    users.expect(user, {SHA_512: 4096})
    assert users.upsert(user, 16384, SHA_256) is None
    users.expect(user, {SHA_256: 16384, SHA_512: 4096})
    assert users.upsert(user, 5003) is None
    users.expect(user, {SHA_256: 16384, SHA_512: 5003})
    assert users.delete(user) is None
    users.expect(user, {SHA_256: 16384})
    assert users.delete(user, SHA_256) is None
    users.expect(user, {})
    assert user not in users.bed.cluster.scram_users()


def test_all_users_are_listed(users: Users) -> None:
    names = [users.new_user() for _ in range(3)]
    items = [ScramAlteration(name, SHA_256, ScramUpsertion(4096 + n, "p")) for n, name in enumerate(names)]
    assert set(users.bed.cluster.alter_scram_users(items).values()) == {None}
    for n, name in enumerate(names):
        users.expect(name, {SHA_256: 4096 + n})
    found = users.bed.cluster.scram_users()
    assert [found[name] for name in names] == [{SHA_256: 4096 + n} for n in range(3)]


@pytest.mark.parametrize("suffix", ["-A", "=b,c d", "-Ärger", "%/\\"])
def test_user_names_are_free(users: Users, suffix: str) -> None:
    user = users.new_user(suffix)
    assert users.upsert(user) is None
    users.expect(user, {SHA_512: 4096})
    users.expect(user.swapcase(), {})


@pytest.mark.parametrize("iterations", [4095, 16385, 1])
def test_iterations_out_of_range_are_refused(users: Users, iterations: int) -> None:
    user = users.new_user()
    assert get_error(users.upsert(user, iterations)) == "UNACCEPTABLE_CREDENTIAL"
    users.expect(user, {})


def test_empty_user_name_is_refused(users: Users) -> None:
    assert get_error(users.upsert("")) == "UNACCEPTABLE_CREDENTIAL"


def test_absent_credential_cannot_be_deleted(users: Users) -> None:
    user = users.new_user()
    assert get_error(users.delete(user)) == "RESOURCE_NOT_FOUND"
    assert users.upsert(user) is None
    users.expect(user, {SHA_512: 4096})
    assert get_error(users.delete(user, SHA_256)) == "RESOURCE_NOT_FOUND"
    users.expect(user, {SHA_512: 4096})


def test_user_twice_in_one_request_is_refused(users: Users) -> None:
    user, other = users.new_user(), users.new_user()
    upsertion = ScramUpsertion(4096, "p")
    items = [
        ScramAlteration(user, SHA_256, upsertion),
        ScramAlteration(user, SHA_512, upsertion),
        ScramAlteration(other, SHA_512, upsertion),
    ]
    results = users.bed.cluster.alter_scram_users(items)
    assert isinstance(results[user], Fault)
    assert get_error(results[user]) == "DUPLICATE_RESOURCE"
    assert results[other] is None
    users.expect(user, {})
    users.expect(other, {SHA_512: 4096})
