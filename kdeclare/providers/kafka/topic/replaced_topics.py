"""Check, before a plan deletes and re-creates a topic, that brokers would accept the new topic."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import Diagnostic, error, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.argument_binding import get_arguments
from kdeclare.core.operations.operation import Operation
from kdeclare.core.resources.plan_capabilities import find_replacements
from kdeclare.providers.kafka.error_names import POLICY_VIOLATION
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import NewTopic

_PROBE = "kdeclare-replacement-check"
_INVALID = "INVALID_"
"""The prefix of the codes for errors in the settings of a topic. These errors do not depend on its name."""


def check_replaced_topics(
    operations: Sequence[Operation], cluster: Cluster, existing: Collection[str]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each topic that brokers would refuse to create again after its deletion.

    Brokers refuse to validate a topic whose name exists. Therefore, the settings of the new topic are
    validated under another name.

    existing: the names of all topics.

    Raises Fault.
    """
    replacements = find_replacements(operations)
    probes = {
        _find_free_name(number, existing): op
        for number, op in enumerate(op for op in operations if op.id in replacements)
        if isinstance(op.args, NewTopic)
    }
    if not probes:
        return
    topics = [replace(get_arguments(op, NewTopic), topic=name) for name, op in probes.items()]
    results = cluster.create_topics(topics, validate_only=True)
    for name, op in probes.items():
        fault = results.get(name)
        if not isinstance(fault, Fault):
            continue
        reason = f"{fault.message or 'no reason given'} ({fault.error})"
        if fault.error.startswith(_INVALID):
            yield error(
                "refused-by-cluster",
                "The cluster refuses this change",
                f"The brokers would refuse the new {op.resource} after the deletion: {reason}.",
                hint="Correct the manifest. Nothing was changed.",
                resource=str(op.resource),
            )
        elif fault.error == POLICY_VIOLATION:
            yield warning(
                "replacement-unchecked",
                "A broker policy may deny the new topic",
                f"To check whether {op.resource} can be created again, kdeclare asked the brokers to "
                "validate a topic with the same settings and a different name. A broker policy denies that "
                f"topic: {reason}. If the policy also denies the real name, apply deletes the topic but "
                "cannot create it again.",
                hint="Check the policy of the brokers before you apply the plan.",
                resource=str(op.resource),
            )


def _find_free_name(number: int, existing: Collection[str]) -> str:
    name = f"{_PROBE}-{number}"
    while name in existing:
        name += "x"
    return name
