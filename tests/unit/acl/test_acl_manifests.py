"""Acl manifests: roles and entries that expand to bindings, and everything that brokers never match."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import Severity
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.providers.kafka.acl.binding import PREFIXED
from kdeclare.providers.kafka.acl.manifests.expansion import parse_acl
from kdeclare.providers.kafka.acl.spec import AclBody, AclSpec, bind_acl, dump_acl


def parse(**spec: Any) -> tuple[AclBody, tuple[SpecProblem, ...]]:
    return parse_acl("a", AclSpec.model_validate({"principal": "User:a"} | spec))


def expand(**spec: Any) -> list[str]:
    body, problems = parse(**spec)
    assert not problems
    return [str(binding) for binding in body.bindings]


def find_problems(severity: Severity, **spec: Any) -> dict[SpecPath, str]:
    found = parse(**spec)[1]
    assert all(p.diagnostic.hint and p.diagnostic.detail and p.diagnostic.resource for p in found)
    return {p.path: p.diagnostic.code for p in found if p.diagnostic.severity is severity}


def find_errors(**spec: Any) -> dict[SpecPath, str]:
    return find_problems(Severity.ERROR, **spec)


def find_warnings(**spec: Any) -> dict[SpecPath, str]:
    assert not find_errors(**spec)
    return find_problems(Severity.WARNING, **spec)


def test_roles_expand_to_fewest_bindings() -> None:
    """P-ACL-01."""
    assert set(
        expand(
            principal="User:checkout",
            produce=["orders", "payments.*"],
            consume={"topics": ["orders"], "groups": ["checkout-*"]},
            transactions=["checkout-*"],
            observe={"topics": ["*"], "groups": ["jobs"]},
        )
    ) == {
        "ALLOW User:checkout WRITE topic:orders from *",
        "ALLOW User:checkout WRITE topic:payments.* from *",
        "ALLOW User:checkout READ topic:orders from *",
        "ALLOW User:checkout READ group:checkout-* from *",
        "ALLOW User:checkout WRITE transactionalId:checkout-* from *",
        "ALLOW User:checkout DESCRIBE topic:* from *",
        "ALLOW User:checkout DESCRIBE_CONFIGS topic:* from *",
        "ALLOW User:checkout DESCRIBE group:jobs from *",
    }


def test_streams_expands_to_group_topics_and_transactions() -> None:
    assert set(expand(streams=["app"])) == {
        *(f"ALLOW User:a {o} topic:app-* from *" for o in ("READ", "WRITE", "CREATE", "DELETE")),
        "ALLOW User:a READ group:app from *",
        "ALLOW User:a WRITE transactionalId:app-* from *",
    }


def test_prefix_and_wildcard_are_different_patterns() -> None:
    body, _ = parse(produce=["payments.*", "*"])
    assert {(b.name, b.pattern) for b in body.bindings} == {("payments.", PREFIXED), ("*", "literal")}


def test_principals_and_hosts_multiply_bindings() -> None:
    found = expand(
        principal=None, principals=["User:a", "User:b"], hosts=["10.0.0.1", "10.0.0.2"], produce=["t"]
    )
    assert found == [
        f"ALLOW User:{user} WRITE topic:t from 10.0.0.{host}" for user in "ab" for host in (1, 2)
    ]


def test_entries_allow_and_deny() -> None:
    entries = [
        {"topic": "secrets", "deny": ["READ", "DESCRIBE"]},
        {"cluster": True, "allow": ["DESCRIBE"]},
        {
            "transactionalId": "pay-*",
            "pattern": "literal",
            "allow": ["TWO_PHASE_COMMIT"],
            "hosts": ["10.0.0.7"],
        },
        {"topic": "pay", "pattern": "prefixed", "allow": ["ALL"]},
        {"user": "User:b", "allow": ["CREATE_TOKENS"]},
        {"delegationToken": "t1", "allow": ["DESCRIBE"]},
    ]
    assert set(expand(bindings=entries)) == {
        "DENY User:a READ topic:secrets from *",
        "DENY User:a DESCRIBE topic:secrets from *",
        "ALLOW User:a DESCRIBE cluster:kafka-cluster from *",
        "ALLOW User:a TWO_PHASE_COMMIT transactionalId:pay-%2A from 10.0.0.7",
        "ALLOW User:a ALL topic:pay* from *",
        "ALLOW User:a CREATE_TOKENS user:User:b from *",
        "ALLOW User:a DESCRIBE delegationToken:t1 from *",
    }


def test_binding_of_two_roles_is_declared_once() -> None:
    body, problems = parse(produce=["t"], bindings=[{"topic": "t", "allow": ["WRITE"]}])
    assert not problems
    assert list(body.bindings.values()) == ["produce"]


ERRORS: Mapping[str, tuple[Mapping[str, Any], SpecPath, str]] = {
    "no colon": ({"principal": "alice", "produce": ["t"]}, ("principal",), "illegal-principal"),
    "lower case": ({"principal": "user:alice"}, ("principal",), "illegal-principal"),
    "nameless": ({"principal": "User:"}, ("principal",), "illegal-principal"),
    "no type": ({"principal": ":alice"}, ("principal",), "illegal-principal"),
    "no principal": ({"principal": None}, ("principal",), "illegal-principal"),
    "two principals": ({"principals": ["User:b"]}, ("principal",), "illegal-principal"),
    "second of several": (
        {"principal": None, "principals": ["User:b", "carol"]},
        ("principals", 1),
        "illegal-principal",
    ),
    "host name": ({"hosts": ["example.org"]}, ("hosts", 0), "illegal-host"),
    "range": ({"hosts": ["10.0.0.1", "10.0.0.0/8"]}, ("hosts", 1), "illegal-host"),
    "short address": ({"hosts": ["::1"]}, ("hosts", 0), "illegal-host"),
    "upper-case address": ({"hosts": ["2001:DB8:0:0:0:0:0:7"]}, ("hosts", 0), "illegal-host"),
    "empty host": ({"hosts": [""]}, ("hosts", 0), "illegal-host"),
    "no host": ({"hosts": []}, ("hosts",), "illegal-host"),
    "operation of another type": (
        {"bindings": [{"topic": "t", "allow": ["READ", "CREATE_TOKENS"]}]},
        ("bindings", 0, "allow", 1),
        "illegal-operation",
    ),
    "write on group": (
        {"bindings": [{"group": "g", "deny": ["WRITE"]}]},
        ("bindings", 0, "deny", 0),
        "illegal-operation",
    ),
    "star inside": ({"produce": ["a*b"]}, ("produce", 0), "illegal-resource-name"),
    "star inside prefix": ({"produce": ["a*b*"]}, ("produce", 0), "illegal-resource-name"),
    "star inside group": (
        {"consume": {"groups": ["a*b"]}},
        ("consume", "groups", 0),
        "illegal-resource-name",
    ),
    "literal star": (
        {"bindings": [{"topic": "orders*", "pattern": "literal", "allow": ["READ"]}]},
        ("bindings", 0, "topic"),
        "illegal-resource-name",
    ),
    "prefixed star": (
        {"bindings": [{"topic": "*", "pattern": "prefixed", "allow": ["READ"]}]},
        ("bindings", 0, "topic"),
        "illegal-resource-name",
    ),
    "empty": ({"produce": [""]}, ("produce", 0), "illegal-resource-name"),
    "not a topic": ({"produce": ["a b/c"]}, ("produce", 0), "illegal-resource-name"),
    "long topic": ({"produce": ["t" * 250]}, ("produce", 0), "illegal-resource-name"),
    "dots": ({"produce": [".."]}, ("produce", 0), "illegal-resource-name"),
    "star of application": ({"streams": ["app-*"]}, ("streams", 0), "illegal-resource-name"),
    "user without type": (
        {"bindings": [{"user": "bob", "allow": ["CREATE_TOKENS"]}]},
        ("bindings", 0, "user"),
        "illegal-principal",
    ),
    "prefixed cluster": (
        {"bindings": [{"cluster": True, "pattern": "prefixed", "allow": ["ALTER"]}]},
        ("bindings", 0, "pattern"),
        "illegal-binding",
    ),
    "no resource": ({"bindings": [{"allow": ["READ"]}]}, ("bindings", 0), "illegal-binding"),
    "two resources": (
        {"bindings": [{"topic": "t", "group": "g", "allow": ["READ"]}]},
        ("bindings", 0),
        "illegal-binding",
    ),
    "no operation": ({"bindings": [{"topic": "t"}]}, ("bindings", 0), "illegal-binding"),
    "allowed and denied": (
        {"produce": ["t"], "bindings": [{"topic": "t", "deny": ["WRITE"]}]},
        ("bindings", 0),
        "acl-contradiction",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_binding_that_never_matches_is_an_error(name: str) -> None:
    """P-ACL-07."""
    spec, path, code = ERRORS[name]
    assert find_errors(**spec)[path] == code


@pytest.mark.parametrize("spec", [{"principal": "User:a"}, {"hosts": ["0:0:0:0:0:0:0:1", "10.0.0.1"]}, {}])
def test_valid_manifests_have_no_problems(spec: Mapping[str, Any]) -> None:
    assert parse(**spec, produce=["t"])[1] == ()


def test_unusual_but_possible_manifests_are_warnings() -> None:
    assert find_warnings(principal="Role:a", produce=["t"]) == {("principal",): "principal-type"}
    assert find_warnings(principal="User:*", produce=["t"]) == {("produce", 0): "wildcard-principal"}
    entries = [{"cluster": True, "allow": ["ALL"]}, {"group": "*", "pattern": "prefixed", "allow": ["READ"]}]
    assert find_warnings(bindings=entries) == {
        ("bindings", 0): "all-on-cluster",
        ("bindings", 1, "group"): "prefixed-star",
    }


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "produce": st.lists(st.sampled_from(["t", "u*", "*"])),
            "streams": st.lists(st.sampled_from(["app", "other"])),
            "hosts": st.lists(st.sampled_from(["*", "10.0.0.1"]), min_size=1),
            "unmanagedBindings": st.sampled_from(["keep", "remove"]),
            "lifecycle": st.fixed_dictionaries({"preventDestroy": st.booleans()}),
            "bindings": st.lists(
                st.fixed_dictionaries(
                    {"group": st.sampled_from(["g", "h*"]), "allow": st.just(["READ"])},
                    optional={"deny": st.just(["DELETE"])},
                )
            ),
        },
    )
)
def test_body_is_sorted_and_round_trips(spec: dict[str, Any]) -> None:
    body, _ = parse(**spec)
    assert list(body.bindings) == sorted(body.bindings)
    assert bind_acl(dump_acl(body)) == body
