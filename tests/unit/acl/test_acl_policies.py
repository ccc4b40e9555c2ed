"""Ready-made policies for ACLs, and CEL rules about ACLs, in plans."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.kafka.acl.binding import parse_binding
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare

MODULE = "kdeclare.providers.kafka.acl.policies"


def use(kdeclare: CommandLine, name: str, config: Mapping[str, Any] | None = None) -> None:
    entry = {
        "name": "rule",
        "class": f"{MODULE}:{name}",
        "selector": {"kind": "Acl"},
        **({"config": config} if config else {}),
    }
    kdeclare.write(
        "kdeclare.yaml",
        "Project",
        "shop",
        environments={"lab": {"bootstrapServers": "lab:9092"}},
        policies=[entry],
    )


def declare(kdeclare: CommandLine, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Acl",
        "metadata": {"name": "a", **({"labels": labels} if labels else {})},
        "spec": {"principal": "User:a"} | spec,
    }
    (kdeclare.folder / "manifests" / "a.yaml").write_text(yaml.safe_dump(document))


BAD: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any], Mapping[str, str], str]] = {
    "everyone": (
        "NoWildcardPrincipal",
        {},
        {"principal": "User:*", "produce": ["t"]},
        {},
        "The change allows every principal: ALLOW User:* WRITE topic:t from *.",
    ),
    "all": (
        "NoAllOperations",
        {},
        {"bindings": [{"topic": "t", "allow": ["ALL"]}]},
        {},
        "The change allows ALL operations",
    ),
    "cluster": (
        "NoClusterOperations",
        {},
        {"bindings": [{"cluster": True, "allow": ["DESCRIBE", "ALTER"]}]},
        {},
        "The change allows ALTER on the cluster",
    ),
    "all hosts": ("BoundedHosts", {}, {"produce": ["t"]}, {}, "allows all hosts instead of single addresses"),
    "other host": (
        "BoundedHosts",
        {"allowed": ["10.0.0.1"]},
        {"produce": ["t"], "hosts": ["10.0.0.2"]},
        {},
        "allows 10.0.0.2 instead of 10.0.0.1",
    ),
    "other prefix": (
        "OwnPrefixes",
        {},
        {"produce": ["shop.orders", "bank.orders"]},
        {"team": "shop"},
        "outside the prefixes of shop (shop., shop-): ALLOW User:a WRITE topic:bank.orders from *.",
    ),
    "everything": ("OwnPrefixes", {}, {"produce": ["*"]}, {"team": "shop"}, "outside the prefixes of shop"),
    "no label": ("OwnPrefixes", {}, {"produce": ["shop.orders"]}, {}, "has no label 'team'"),
}
GOOD: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any], Mapping[str, str]]] = {
    "denial of everyone": (
        "NoWildcardPrincipal",
        {},
        {"principal": "User:*", "bindings": [{"topic": "t", "deny": ["READ"]}]},
        {},
    ),
    "named operations": ("NoAllOperations", {}, {"produce": ["t"]}, {}),
    "description": ("NoClusterOperations", {}, {"bindings": [{"cluster": True, "allow": ["DESCRIBE"]}]}, {}),
    "one host": ("BoundedHosts", {}, {"produce": ["t"], "hosts": ["10.0.0.1"]}, {}),
    "own prefix": ("OwnPrefixes", {}, {"produce": ["shop.*"], "streams": ["shop-app"]}, {"team": "shop"}),
    "configured prefix": (
        "OwnPrefixes",
        {"label": "owner", "prefixes": {"shop": ["orders"]}},
        {"produce": ["orders*"]},
        {"owner": "shop"},
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_violation_is_denied_with_its_bindings(kdeclare: CommandLine, name: str) -> None:
    rule, config, spec, labels, message = BAD[name]
    use(kdeclare, rule, config)
    declare(kdeclare, labels, **spec)
    root = parse_binding("ALLOW User:root ALL cluster:kafka-cluster from *")
    kdeclare.cluster.create_acls([root])
    ran = kdeclare("plan", "--format", "json")
    assert ran.code == ExitCode.DENIED, ran
    assert message in ran.out
    assert kdeclare("apply", "--yes").code == ExitCode.DENIED
    assert kdeclare.cluster.acls() == {root}


@pytest.mark.parametrize("name", GOOD)
def test_permitted_change_passes(kdeclare: CommandLine, name: str) -> None:
    rule, config, spec, labels = GOOD[name]
    use(kdeclare, rule, config)
    declare(kdeclare, labels, **spec)
    kdeclare.cluster.create_acls([parse_binding("ALLOW User:root ALL cluster:kafka-cluster from *")])
    ran = kdeclare("apply", "--yes")
    assert ran.code == 0, ran


def test_existing_violation_does_not_deny_other_changes(kdeclare: CommandLine) -> None:
    declare(kdeclare, bindings=[{"topic": "t", "allow": ["ALL"]}])
    assert kdeclare("apply", "--yes").code == 0
    use(kdeclare, "NoAllOperations")
    declare(kdeclare, bindings=[{"topic": "t", "allow": ["ALL"]}], produce=["u"])
    assert kdeclare("apply", "--yes").code == 0
    assert kdeclare("policy", "check", "--live").code == ExitCode.DENIED


def test_cel_rules_see_bindings(kdeclare: CommandLine) -> None:
    rule = "!after.bindings.exists(r, after.bindings[r].exists(b, b.startsWith('ALLOW User:a WRITE')))"
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Policy",
        "metadata": {"name": "no-writers"},
        "spec": {
            "selector": {"kind": "Acl"},
            "actions": ["CREATE", "MODIFY"],
            "rule": rule,
            "message": "No writers.",
        },
    }
    (kdeclare.folder / "manifests" / "p.yaml").write_text(yaml.safe_dump(document))
    declare(kdeclare, consume={"topics": ["t"]})
    ran = kdeclare("apply", "--yes")
    assert ran.code == 0, ran
    declare(kdeclare, consume={"topics": ["t"]}, produce=["t"])
    ran = kdeclare("plan")
    assert (ran.code, "No writers." in ran.out) == (ExitCode.DENIED, True), ran
