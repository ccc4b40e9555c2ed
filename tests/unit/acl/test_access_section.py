"""Who gains and loses which rights, in plans and in the reviews of plans."""

import json
import re
from collections.abc import Mapping, Sequence

import yaml
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.plan import Plan
from kdeclare.core.resources.ids import ResourceId
from kdeclare.providers.kafka.acl.authorization import is_about
from kdeclare.providers.kafka.acl.binding import Binding, PatternIndex
from kdeclare.providers.kafka.acl.operations import AclArgs
from kdeclare.providers.kafka.acl.plan_section import build_access_section
from kdeclare.report.plan.plan_markdown import plan_markdown
from kdeclare.report.plan.plan_text import plan_text
from tests.engine.test_acls import MONITOR, acl, grant
from tests.engine.world import World
from tests.unit.acl.acl_strategies import NAMES, bindings
from tests.unit.cli.command_line import CommandLine
from tests.unit.cli.conftest import kdeclare as kdeclare
from tests.unit.report.golden_files import check_golden
from tests.unit.report.test_markdown import IDENTITY, check_comment


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
        "+ User:alice gains DESCRIBE on group g (observe)",
        "+ User:alice gains DESCRIBE, DESCRIBE_CONFIGS on all topics (observe)",
        "+ User:alice gains WRITE on topics orders, payments.* (produce)",
        "+ User:alice gains WRITE on transactional ids tx-* (transactions)",
        "+ User:alice gains CREATE_TOKENS on tokens of User:bob",
        "- User:alice is denied READ on topic secrets from 10.0.0.1",
    ]


def test_plan_says_what_each_principal_loses(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["orders"], bindings=[{"topic": "secrets", "deny": ["READ"]}])
    assert kdeclare("apply", "--yes").code == 0
    declare(kdeclare, produce=["returns"])
    assert read_section(kdeclare("plan").out) == [
        "+ User:alice gains WRITE on topic returns (produce)",
        "+ User:alice is no longer denied READ on topic secrets",
        "- User:alice loses WRITE on topic orders (produce)",
    ]


def test_plan_names_role_of_orphaned_binding(kdeclare: CommandLine) -> None:
    """The role is in the state, because the manifest no longer exists."""
    declare(kdeclare, produce=["orders"], bindings=[{"topic": "orders", "allow": ["READ"]}])
    assert kdeclare("apply", "--yes").code == 0
    kdeclare.topic("orders")
    (kdeclare.folder / "manifests" / "a.yaml").unlink()
    assert read_section(kdeclare("plan", "--allow-deletes").out) == [
        "- User:alice loses READ on topic orders",
        "- User:alice loses WRITE on topic orders (produce)",
    ]
    assert kdeclare("apply", "--yes", "--allow-deletes").code == 0
    assert read_section(kdeclare("rollback", "--out", "undo.json").out) == [
        "+ User:alice gains READ on topic orders",
        "+ User:alice gains WRITE on topic orders (produce)",
    ]


def test_plan_names_role_of_binding_that_changed_its_role(kdeclare: CommandLine) -> None:
    """A change of the role sends no request, but the next plans name the new role."""
    declare(kdeclare, bindings=[{"topic": "orders", "allow": ["WRITE"]}])
    assert kdeclare("apply", "--yes").code == 0
    declare(kdeclare, produce=["orders"])
    assert kdeclare("plan", "--detailed-exitcode").code == 0
    assert kdeclare("apply", "--yes").code == 0
    declare(kdeclare)
    assert read_section(kdeclare("plan").out) == ["- User:alice loses WRITE on topic orders (produce)"]


def test_plan_without_acls_has_no_access_section(kdeclare: CommandLine) -> None:
    kdeclare.topic("orders")
    assert "Access:" not in kdeclare("plan").out


def test_reviews_show_the_section(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["payments.*"])
    comment = kdeclare("plan", "--format", "markdown").out
    assert "### Access\n\n- **+** User:alice gains WRITE on topics payments.&#42; (produce)\n" in comment
    assert comment.index("### Access") < comment.index("### Changes")
    page = kdeclare("plan", "--format", "html").out
    assert "User:alice gains WRITE on topics payments.* (produce)" in page


def test_long_section_names_everything(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=[f"t{number:03}" for number in range(600)])
    section = read_section(kdeclare("plan").out)
    assert len(section) == 60
    assert re.findall(r"\bt\d{3}\b", "\n".join(section)) == [f"t{number:03}" for number in range(600)]


def test_json_and_saved_plan_keep_roles(kdeclare: CommandLine) -> None:
    declare(kdeclare, produce=["orders"], bindings=[{"topic": "raw", "allow": ["READ"]}])
    plan = json.loads(kdeclare("plan", "--format", "json", "--out", "it.plan").out)
    (operation,) = plan["operations"]
    assert operation["args"]["roles"] == {"ALLOW User:alice WRITE topic:orders from *": "produce"}
    assert "gains WRITE on topic orders (produce)" in kdeclare("show", "it.plan").out
    assert kdeclare("apply", "it.plan", "--yes").code == 0
    assert "User:alice loses READ on topic raw" in kdeclare("rollback", "--yes").out
    assert kdeclare.cluster.acls() == frozenset()


def make_op(verb: str, texts: Sequence[str], roles: Mapping[str, str] | None = None) -> Operation:
    return Operation(verb, verb, ResourceId("Acl", "a"), AclArgs(tuple(texts), roles=roles or {}), {})


def describe(
    create: Sequence[str] = (), delete: Sequence[str] = (), roles: Mapping[str, str] | None = None
) -> list[str]:
    operations = [make_op("acls.create", create, roles)] if create else []
    operations += [make_op("acls.delete", delete)] if delete else []
    section = build_access_section(operations)
    return [] if section is None else [f"{line.sign} {line.text}" for line in section.lines]


def build_plan() -> Plan:
    """A plan that gives, takes, keeps and denies rights."""
    world = World()
    bob = acl("bob", consume={"topics": ["orders"], "groups": ["bob"]}, produce=["audit"])
    assert world.apply(bob, acl("ops", bindings=[{"topic": "old", "deny": ["READ"]}])).complete
    grant(world, "ALLOW User:alice ALTER topic:x from *", MONITOR)
    return world.plan(
        acl(
            "alice",
            produce=["payments.*", "orders"],
            consume={"topics": ["payments.*"], "groups": ["pay-*"]},
            transactions=["pay-1"],
            streams=["app"],
            observe={"topics": ["*"]},
            bindings=[
                {"topic": "payments.secret", "deny": ["READ", "DESCRIBE"]},
                {"cluster": True, "allow": ["DESCRIBE"], "hosts": ["10.0.0.7"]},
            ],
        ),
        acl("bob", produce=["aud*"]),
        acl("ops"),
    )


def test_plan_text_matches_golden_file() -> None:
    check_golden("plan-access", plan_text(build_plan()))


def test_plan_markdown_matches_golden_file() -> None:
    text = plan_markdown(build_plan(), IDENTITY)
    check_comment(text)
    check_golden("plan-access", text, "md")


def test_denials_are_losses() -> None:
    denial = "DENY User:a READ topic:t from *"
    assert describe(create=[denial]) == ["- User:a is denied READ on topic t"]
    assert describe(delete=[denial]) == ["+ User:a is no longer denied READ on topic t"]


def test_replaced_rights_are_kept() -> None:
    narrow, broad = "ALLOW User:a READ topic:orders from *", "ALLOW User:a ALL topic:ord* from *"
    assert describe(create=[broad], delete=[narrow]) == [
        "+ User:a gains ALL on topics ord*",
        "= User:a keeps READ on topic orders",
    ]
    assert describe(create=[narrow], delete=[broad]) == [
        "- User:a loses ALL on topics ord*",
        "= User:a keeps READ on topic orders",
    ]


def test_right_of_every_principal_is_named() -> None:
    assert describe(create=["ALLOW User:* READ topic:* from *"]) == [
        "+ every principal (User:*) gains READ on all topics"
    ]
    assert describe(
        create=["ALLOW User:* READ topic:t from *"], delete=["ALLOW User:a READ topic:t from 10.0.0.1"]
    ) == [
        "+ every principal (User:*) gains READ on topic t",
        "= User:a keeps READ on topic t from 10.0.0.1",
    ]


@given(bindings(), st.lists(bindings(), max_size=4))
def test_covered_pattern_matches_no_other_names(binding: Binding, others: list[Binding]) -> None:
    covers = PatternIndex(others).covers(binding)
    names = (*NAMES, "abcd", "c", "kafka-cluster")
    own = [name for name in names if is_about(binding, binding.resource_type, name)]
    by_other = [{n for n in names if is_about(o, binding.resource_type, n)} for o in others]
    if covers:
        assert any(set(own) <= found for found in by_other)
    if any(o[:3] == binding[:3] for o in others):
        assert covers
