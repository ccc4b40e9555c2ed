"""``python -m benchmarks.policies``: evaluate rules about thousands of topics, in CEL and in Python."""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence

from benchmarks.changes import changes
from kdeclare.core.parts import Connections
from kdeclare.core.plans.plan import Plan, Verdict, VerdictOutcome
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.policy import PolicyViolation, RequestMetadata, TopicActionsPolicy, TopicState
from kdeclare.policy.cel.manifest import PolicyKind
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.evaluation import evaluate_operations
from kdeclare.policy.subjects import PolicyContext
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.providers.kafka.testing import MemoryCluster

Ask = Callable[[RequestMetadata], bool]

RULES: Sequence[tuple[str, Ask]] = (
    ("post.partitions >= 1 && post.partitions <= 48", lambda r: 1 <= _post(r).num_partitions <= 48),
    (
        "post.replicationFactor >= 3 || labels.tier == 'bronze'",
        lambda r: _post(r).replication_factor >= 3 or r.labels["tier"] == "bronze",
    ),
    (
        "topic.startsWith('topic-') && size(topic) < 80",
        lambda r: r.topic[:6] == "topic-" and len(r.topic) < 80,
    ),
    ("'team' in labels && size(labels.team) > 2", lambda r: len(r.labels.get("team", "")) > 2),
    (
        "!('min.insync.replicas' in post.configs) || "
        "int(post.configs['min.insync.replicas']) < post.replicationFactor",
        lambda r: int(_post(r).configs.get("min.insync.replicas", 0)) < _post(r).replication_factor,
    ),
    (
        "!('retention.ms' in post.configs) || int(post.configs['retention.ms']) <= 2592000000",
        lambda r: int(_post(r).configs.get("retention.ms", 0)) <= 2592000000,
    ),
    (
        "post.configs.all(key, !key.startsWith('message.') || key == 'message.timestamp.type')",
        lambda r: all(k[:8] != "message." or k == "message.timestamp.type" for k in _post(r).configs),
    ),
    (
        "action != 'MODIFY' || !('partitions' in changed) || labels.keyed != 'true'",
        lambda r: r.action != "MODIFY" or "partitions" not in r.changed or r.labels["keyed"] != "true",
    ),
    (
        "pre == null || post.partitions >= pre.partitions",
        lambda r: (
            r.pre_request_state is None or _post(r).num_partitions >= r.pre_request_state.num_partitions
        ),
    ),
    (
        "principal == null || principal.startsWith('User:')",
        lambda r: r.principal is None or r.principal[:5] == "User:",
    ),
)
"""Ten typical rules of a platform team, each in CEL and in Python."""


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    gc.set_threshold(500_000)  # as the command does
    plan, cluster, labels = changes(options.topics)
    classes = [ConfiguredPolicy(str(n), _Asks(ask), bounded=True) for n, (_, ask) in enumerate(RULES)]
    every = [
        ("CEL, all topics comply", _in_cel([rule for rule, _ in RULES])),
        (
            "CEL, one denies every topic",
            _in_cel([*(rule for rule, _ in RULES[:-1]), "post.partitions > 100"]),
        ),
        ("Python, all topics comply", classes),
        ("Python, empty classes", _idle()),
    ]
    print("| topics | rules | by | s | µs per rule and topic | denied |\n|---:|---:|---|---:|---:|---:|")
    for name, policies in every:
        seconds, verdicts = _measured(policies, plan, cluster, labels, options.rounds)
        denied = sum(v.outcome is VerdictOutcome.DENY for v in verdicts)
        each = seconds / len(verdicts) * 1e6
        print(f"| {options.topics:,} | {len(policies)} | {name} | {seconds:.2f} | {each:.1f} | {denied:,} |")


def _measured(
    policies: Sequence[ConfiguredPolicy],
    plan: Plan,
    cluster: MemoryCluster,
    labels: dict[str, dict[str, str]],
    rounds: int,
) -> tuple[float, tuple[Verdict, ...]]:
    """Return the median CPU seconds to evaluate the whole plan once, and the verdicts."""
    taken = []
    verdicts: tuple[Verdict, ...] = ()

    by_id = {ResourceId("Topic", name): found for name, found in labels.items()}
    context = PolicyContext(Connections(KafkaConnection(cluster)), labels=by_id)
    for _ in range(rounds):
        begun = time.process_time()
        verdicts = evaluate_operations(policies, plan.operations, context).verdicts
        taken.append(time.process_time() - begun)
    return statistics.median(taken), verdicts


def _in_cel(rules: Sequence[str]) -> list[ConfiguredPolicy]:
    kind = PolicyKind()
    found = []
    for number, rule in enumerate(rules):
        spec = kind.spec.model_validate({"rule": rule, "actions": ["CREATE", "MODIFY"]})
        body, problems = kind.parse(f"rule-{number}", spec)
        assert not problems, problems
        found.append(kind.configured(DesiredResource(ResourceId("Policy", f"rule-{number}"), body)))
    return found


def _idle() -> list[ConfiguredPolicy]:
    return [ConfiguredPolicy(str(n), _Asks(lambda _: True), bounded=True) for n in range(len(RULES))]


def _post(request: RequestMetadata) -> TopicState:
    state = request.post_request_state
    assert state is not None
    return state


class _Asks(TopicActionsPolicy):
    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> None:
        """Deny the request if the rule, a Python function, returns False."""
        if not self._ask(request):
            raise PolicyViolation("no")


if __name__ == "__main__":
    main()
