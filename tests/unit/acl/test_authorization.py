"""The evaluation of bindings, as `StandardAuthorizer` does it. tests/kafka compares both."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.kafka.acl.authorization import AccessReason, AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding
from tests.unit.acl.acl_strategies import bindings, requests

READ = AccessRequest("User:alice", "READ", "topic", "orders", "10.0.0.1")


def decide(text: str, request: AccessRequest = READ) -> bool:
    found = [parse_binding(line.strip()) for line in text.split(";") if line.strip()]
    return decide_access(found, request).is_allowed


def describe(resource_type: str = "topic", name: str = "orders") -> AccessRequest:
    return AccessRequest("User:alice", "DESCRIBE", resource_type, name, "10.0.0.1")


@pytest.mark.parametrize(
    "allowing",
    [
        "ALLOW User:alice READ topic:orders from *",
        "ALLOW User:alice READ topic:ord* from 10.0.0.1",
        "ALLOW User:* READ topic:* from *",
        "ALLOW User:alice ALL topic:orders from *",
    ],
)
def test_matching_binding_allows(allowing: str) -> None:
    assert decide(allowing)
    assert not decide(f"{allowing}; DENY User:alice READ topic:* from *")
    assert not decide(f"{allowing}; DENY User:* ALL topic:o* from 10.0.0.1")
    assert decide(f"{allowing}; DENY User:alice WRITE topic:orders from *")
    assert decide(f"{allowing}; DENY User:alice READ topic:orders from 10.0.0.2")


@pytest.mark.parametrize(
    "not_matching",
    [
        "",
        "ALLOW user:alice READ topic:orders from *",
        "ALLOW User:Alice READ topic:orders from *",
        "ALLOW User:alice READ topic:ord%2A from *",
        "ALLOW User:alice READ topic:** from *",
        "ALLOW User:alice READ group:orders from *",
        "ALLOW User:alice READ topic:orders from 10.0.0.2",
        "ALLOW User:alice READ topic:orders from 10.0.0.0/8",
        "ALLOW User:alice WRITE topic:orders from *",
        "ALLOW User:alice READ topic:orders- from *",
    ],
)
def test_other_bindings_allow_nothing(not_matching: str) -> None:
    assert not decide(not_matching)


@pytest.mark.parametrize("operation", ["READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL"])
def test_some_operations_imply_describe(operation: str) -> None:
    assert decide(f"ALLOW User:alice {operation} topic:orders from *", describe())


@pytest.mark.parametrize("operation", ["CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"])
def test_other_operations_do_not_imply_describe(operation: str) -> None:
    assert not decide(f"ALLOW User:alice {operation} topic:orders from *", describe())


def test_denied_describe_is_not_implied_by_read() -> None:
    texts = "ALLOW User:alice READ topic:orders from *; DENY User:alice DESCRIBE topic:orders from *"
    assert not decide(texts, describe())
    assert decide(texts)


def test_denial_implies_nothing() -> None:
    texts = "ALLOW User:alice ALL topic:orders from *; DENY User:alice READ topic:orders from *"
    assert decide(texts, describe())


def test_decision_without_acl_depends_on_broker_config() -> None:
    other = [parse_binding("ALLOW User:bob READ topic:orders from *")]
    assert decide_access([], READ, allow_if_no_acl=True).is_allowed
    assert not decide_access([], READ).is_allowed
    assert not decide_access(other, READ, allow_if_no_acl=True).is_allowed
    assert decide_access([], READ).reason is AccessReason.NO_ACL
    assert decide_access(other, READ).reason is AccessReason.NO_MATCH


@given(st.lists(bindings(), max_size=8), requests(), bindings())
def test_denials_only_take_and_grants_only_give(
    given_bindings: list[Binding], request: AccessRequest, more: Binding
) -> None:
    before = decide_access(given_bindings, request).is_allowed
    after = decide_access([*given_bindings, more], request).is_allowed
    assert after >= before if more.is_allow else after <= before


@given(st.lists(bindings(), max_size=8), requests(), st.randoms())
def test_order_does_not_matter(
    given_bindings: list[Binding],
    request: AccessRequest,
    random: "st.random.Random",  # type: ignore[name-defined]
) -> None:
    shuffled = list(given_bindings)
    random.shuffle(shuffled)
    one, other = decide_access(given_bindings, request), decide_access(shuffled, request)
    assert (one.is_allowed, one.reason) == (other.is_allowed, other.reason)


@given(st.lists(bindings(), max_size=8), requests())
def test_named_binding_decides_alone(given_bindings: list[Binding], request: AccessRequest) -> None:
    decision = decide_access(given_bindings, request)
    if decision.binding is not None:
        assert decide_access([decision.binding], request).is_allowed is decision.is_allowed
    else:
        assert not decision.is_allowed
