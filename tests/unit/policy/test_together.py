"""Rules that are evaluated together give the same verdicts as one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.policies.policy_request import PolicyRequest
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation
from tests.unit.policy.doubles import Request, State, make_creation, record_reads

RULES = (
    "post.partitions <= 3",
    "post.replicationFactor >= 2 // and a comment",
    "'team' in labels || topic == 'x'",
    "post.configs['retention.ms'] == '5'",
    "labels.team == 'blue'",
    "action == 'CREATE' || pre != null",
    "principal == null || principal.startsWith('User:')",
    "post.configs.all(key, key != 'segment.ms')",
    "1 / (post.partitions - 2) > -5",
)


def make_policies(rules: list[str]) -> list[ConfiguredPolicy]:
    kind = PolicyKind()
    found = []
    for number, rule in enumerate(rules):
        spec = kind.spec.model_validate({"rule": rule, "actions": ["CREATE", "MODIFY"]})
        body, problems = kind.parse(f"r{number}", spec)
        assert not problems, problems
        found.append(kind.configured(DesiredResource(ResourceId("Policy", f"r{number}"), body)))
    return found


def evaluate_alone(item: ConfiguredPolicy, request: PolicyRequest) -> bool:
    try:
        item.policy.validate(request)
    except PolicyViolation:
        return False
    return True


def evaluate_together(items: list[ConfiguredPolicy], request: PolicyRequest) -> bool:
    group = items[0].group
    assert group is not None
    assert all(item.group is group for item in items)
    return group.passes([item.policy for item in items], request)


@given(
    st.lists(st.sampled_from(RULES), min_size=1, unique=True),
    st.integers(1, 4),
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["retention.ms", "segment.ms"]), st.sampled_from(["5", "6"])),
    st.dictionaries(st.just("team"), st.sampled_from(["blue", "red"])),
)
def test_group_passes_if_each_rule_passes(
    rules: list[str], partitions: int, factor: int, configs: dict[str, str], labels: dict[str, str]
) -> None:
    state = State(num_partitions=partitions, replication_factor=factor, configs=configs)
    request = Request(Action.CREATE, post_request_state=state, labels=labels)
    items = make_policies(rules)
    assert evaluate_together(items, request) == all(evaluate_alone(item, request) for item in items)


def test_group_reads_same_fields_as_single_rules() -> None:
    items = make_policies(["post.partitions <= 3", "topic == 'orders'"])

    class Both:
        def validate(self, request: PolicyRequest) -> None:
            evaluate_together(items, request)

    assert record_reads(Both(), make_creation(State(num_partitions=1))) == {  # type: ignore[arg-type]
        *record_reads(items[0].policy, make_creation(State(num_partitions=1))),
        *record_reads(items[1].policy, make_creation(State(num_partitions=1))),
    }


@pytest.mark.slow
def test_group_too_large_for_one_expression_is_evaluated_one_by_one() -> None:
    items = make_policies([f"post.partitions != {n} && topic != '{'x' * 3000}'" for n in range(100, 400)])
    request = make_creation(State(num_partitions=1))
    assert not evaluate_together(items, request)
    assert all(evaluate_alone(item, request) for item in items)
