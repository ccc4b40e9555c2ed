"""ACLs through the `Cluster` protocol (KIP-140, KIP-290): what brokers store, refuse, and silently accept."""

from collections.abc import Iterator, Sequence

import pytest

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from tests.beds import AnyBed, get_error, get_message


class Acls:
    """Creates bindings for a test, and deletes them at the end."""

    def __init__(self, bed: AnyBed) -> None:
        self.bed = bed
        self.user = f"User:{bed.name()}"
        self._created: set[Binding] = set()

    def parse(self, *texts: str) -> list[Binding]:
        """Return bindings of the test's own principal, which texts call ``User:me``."""
        return [
            binding._replace(principal=self.user) if binding.principal == "User:me" else binding
            for binding in map(parse_binding, texts)
        ]

    def create(self, bindings: Sequence[Binding]) -> None:
        self._created |= set(bindings)
        assert set(self.bed.cluster.create_acls(bindings).values()) == {None}

    def delete(self, bindings: Sequence[Binding]) -> None:
        assert set(self.bed.cluster.delete_acls(bindings).values()) == {None}

    def expect(self, bindings: Sequence[Binding], user: str | None = None) -> None:
        def check() -> None:
            assert self.bed.cluster.acls([user or self.user]) == frozenset(bindings)

        self.bed.eventually(check)

    def clean(self) -> None:
        if self._created:
            self.delete(sorted(self._created))


@pytest.fixture
def acls(secured_bed: AnyBed) -> Iterator[Acls]:
    made = Acls(secured_bed)
    yield made
    made.clean()


ALL_TYPES = (
    "ALLOW User:me READ topic:orders from *",
    "DENY User:me ALTER_CONFIGS topic:orders* from 10.0.0.1",
    "ALLOW User:me ALL topic:* from *",
    "ALLOW User:me DELETE group:g from *",
    "ALLOW User:me IDEMPOTENT_WRITE cluster:kafka-cluster from *",
    "ALLOW User:me TWO_PHASE_COMMIT transactionalId:pay* from *",
    "ALLOW User:me DESCRIBE delegationToken:t from *",
    "ALLOW User:me CREATE_TOKENS user:User:bob from *",
)


def test_bindings_of_all_types_are_created_described_and_deleted(acls: Acls) -> None:
    bindings = acls.parse(*ALL_TYPES)
    acls.expect([])
    acls.create(bindings)
    acls.expect(bindings)
    assert frozenset(bindings) <= acls.bed.cluster.acls()
    acls.delete(bindings[:3])
    acls.expect(bindings[3:])


def test_deletion_deletes_exactly_the_binding(acls: Acls) -> None:
    bindings = acls.parse(
        "ALLOW User:me READ topic:orders from *",
        "DENY User:me READ topic:orders from *",
        "ALLOW User:me READ topic:orders* from *",
        "ALLOW User:me READ topic:* from *",
        "ALLOW User:me READ topic:** from *",
        "ALLOW User:me READ topic:orders%2A from *",
        "ALLOW User:me READ topic:orders from 10.0.0.1",
        "ALLOW User:me READ group:orders from *",
        "ALLOW User:me WRITE topic:orders from *",
    )
    acls.create(bindings)
    for number, binding in enumerate(bindings):
        acls.delete([binding])
        acls.expect(bindings[number + 1 :])


def test_creation_and_deletion_are_idempotent(acls: Acls) -> None:
    bindings = acls.parse("ALLOW User:me READ topic:orders from *")
    acls.create(bindings)
    acls.create(bindings)
    acls.expect(bindings)
    acls.delete(bindings)
    acls.delete(bindings)
    acls.expect([])


def test_principals_are_described_separately(acls: Acls) -> None:
    other = f"{acls.user}-other"
    mine = acls.parse("ALLOW User:me READ topic:orders from *")
    others = [mine[0]._replace(principal=other)]
    acls.create([*mine, *others])
    acls.expect(mine)
    acls.expect(others, other)
    assert acls.bed.cluster.acls([other, acls.user]) == frozenset([*mine, *others])
    many = [f"{acls.user}-{n}" for n in range(20)]
    assert acls.bed.cluster.acls([*many, acls.user]) == frozenset(mine)
    assert acls.bed.cluster.acls([]) == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "ALLOW user:alice READ topic:t from *",
        "ALLOW User: READ topic:t from *",
        "ALLOW User:me READ topic:a%20b/c from *",
        "ALLOW User:me CREATE_TOKENS topic:t from *",
        "ALLOW User:me READ topic:t from example.org",
        "ALLOW User:me READ topic:t from 10.0.0.0/8",
        "ALLOW User:me READ topic:t from %",
        "ALLOW Role:x READ topic:t from *",
    ],
)
def test_brokers_accept_bindings_that_never_match(acls: Acls, text: str) -> None:
    bindings = acls.parse(text)
    acls.create(bindings)
    acls.expect(bindings, bindings[0].principal)


@pytest.mark.parametrize(
    ("binding", "message"),
    [
        (Binding("topic", "t", "literal", "alice", "*", "READ", "ALLOW"), "no colon is present"),
        (Binding("cluster", "other", "literal", "User:a", "*", "ALTER", "ALLOW"), "only valid name"),
        (Binding("topic", "", "literal", "User:a", "*", "READ", "ALLOW"), "Invalid empty resource name"),
    ],
)
def test_refused_binding_does_not_stop_others(acls: Acls, binding: Binding, message: str) -> None:
    (good,) = acls.parse("ALLOW User:me READ topic:orders from *")
    results = acls.bed.cluster.create_acls([binding, good])
    assert get_error(results[binding]) == "INVALID_REQUEST"
    assert message in get_message(results[binding])
    assert results[good] is None
    acls.expect([good])
    acls.delete([good])


def test_many_bindings_are_created_and_deleted(acls: Acls) -> None:
    (one,) = acls.parse("ALLOW User:me READ topic:orders from *")
    bindings = [one._replace(name=f"t-{n:04}") for n in range(1200)]
    acls.create(bindings)
    acls.expect(bindings)
    acls.delete(bindings[:300])
    acls.expect(bindings[300:])


def test_super_user_has_all_rights_on_the_cluster(acls: Acls) -> None:
    rights = acls.bed.cluster.find_cluster_rights()
    assert rights is not None
    assert rights >= {"ALTER", "DESCRIBE", "CREATE", "CLUSTER_ACTION"}


def test_brokers_without_authorizer_refuse_acl_requests(bed: AnyBed) -> None:
    if hasattr(bed, "memory"):
        bed.memory.has_authorizer = False
    with pytest.raises(Fault) as refused:
        bed.cluster.acls()
    assert (refused.value.error, refused.value.kind) == ("SECURITY_DISABLED", FaultKind.REFUSED)
    binding = parse_binding("ALLOW User:a READ topic:t from *")
    for results in (bed.cluster.create_acls([binding]), bed.cluster.delete_acls([binding])):
        assert get_error(results[binding]) == "SECURITY_DISABLED"
