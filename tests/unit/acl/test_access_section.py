"""Who gains and loses which rights, in plans and in the reviews of plans."""

import json

import yaml

from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare


def declare(kdeclare: CommandLine, **spec: object) -> None:
    document = {
        "apiVersion": "kdeclare/v1",
        "kind": "Acl",
        "metadata": {"name": "a"},
        "spec": {"principal": "User:alice"} | spec,
    }
    (kdeclare.folder / "manifests" / "a.yaml").write_text(yaml.safe_dump(document))


def read_section(text: str) -> list[str]:
    """Return the lines below the title 'Access:'."""
    lines = text.partition("\nAccess:\n")[2].splitlines()
    return [line.strip() for line in lines[: lines.index("")]]


def test_plan_says_what_each_principal_gains_and_from_which_role(kdeclare: CommandLine) -> None:
    declare(
        kdeclare,
        produce=["orders", "payments.*"],
        observe={"topics": ["*"], "groups": ["g"]},
        transactions=["tx-*"],
        bindings=[
            {"topic": "secrets", "deny": ["READ"], "hosts": ["10.0.0.1"]},
            {"user": "User:bob", "allow": ["CREATE_TOKENS"]},
        ],
    )
    assert read_section(kdeclare("plan").out) == [
        "User:alice gains DESCRIBE, DESCRIBE_CONFIGS on all topics (observe)",
        "User:alice gains DESCRIBE on group g (observe)",
        "User:alice gains CREATE_TOKENS on tokens of User:bob",
        "User:alice gains WRITE on topic orders (produce)",
        "User:alice gains WRITE on topics payments.* (produce)",
        "User:alice gains WRITE on transactional ids tx-* (transactions)",
        "User:alice is denied READ on topic secrets from 10.0.0.1",
    ]


def test_plan_says_what_each_principal_loses(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["orders"], bindings=[{"topic": "secrets", "deny": ["READ"]}])
    assert kdeclare("apply", "--yes").code == 0
    declare(kdeclare, produce=["returns"])
    assert read_section(kdeclare("plan").out) == [
        "User:alice gains WRITE on topic returns (produce)",
        "User:alice is no longer denied READ on topic secrets",
        "User:alice loses WRITE on topic orders",
    ]


def test_plan_without_acls_has_no_access_section(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert "Access:" not in kdeclare("plan").out


def test_reviews_show_the_section(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["payments.*"])
    comment = kdeclare("plan", "--format", "markdown").out
    assert "### Access\n\n- User:alice gains WRITE on topics payments.&#42; (produce)\n" in comment
    assert comment.index("### Access") < comment.index("### Changes")
    page = kdeclare("plan", "--format", "html").out
    assert "User:alice gains WRITE on topics payments.* (produce)" in page


def test_long_section_counts_the_rest(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=[f"t{number:03}" for number in range(60)])
    section = read_section(kdeclare("plan").out)
    assert len(section) == 51
    assert section[-1] == "… and 10 more lines"


def test_json_and_saved_plan_keep_roles(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["orders"], bindings=[{"topic": "raw", "allow": ["READ"]}])
    plan = json.loads(kdeclare("plan", "--format", "json", "--out", "it.plan").out)
    (operation,) = plan["operations"]
    assert operation["args"]["roles"] == {"ALLOW User:alice WRITE topic:orders from *": "produce"}
    assert "gains WRITE on topic orders (produce)" in kdeclare("show", "it.plan").out
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert "User:alice loses READ on topic raw" in kdeclare("rollback", "--yes").out
    assert kdeclare.cluster.acls() == frozenset()
