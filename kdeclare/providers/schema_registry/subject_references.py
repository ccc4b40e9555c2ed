"""Observe which subjects in live registries are named after topics that a plan deletes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from kdeclare.core.live.faults import Fault
from kdeclare.core.operations.operation import Operation
from kdeclare.core.plans.live_references import attempt_read, build_unknown_references, read_systems
from kdeclare.core.plans.observation import Observation, ObservationLevel
from kdeclare.core.plans.plan_hooks import PlanInputs
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.units import format_count, format_names
from kdeclare.providers.schema_registry.client.port import NOT_AUTHORIZED
from kdeclare.providers.schema_registry.connection import RegistryClients
from kdeclare.providers.schema_registry.schema.arguments import DeleteArgs
from kdeclare.providers.schema_registry.schema.checks import TOPIC, find_topic
from kdeclare.providers.schema_registry.schema.live import SchemaState
from kdeclare.providers.schema_registry.schema.spec import SchemaBody


def observe_topic_references(
    inputs: PlanInputs, operations: Sequence[Operation], topics: Sequence[str]
) -> Iterator[Observation]:
    """Yield observations about undeclared subjects that will remain after their topics have been deleted.

    Lists the subjects of each registry that the environment configures, unless the plan has already listed
    the subjects of this registry. For a registry that cannot be read, yield one observation that says so.

    topics: the topics that the plan deletes, at least one.
    """
    first = f"{TOPIC}/{topics[0]}"
    clients = attempt_read(lambda: inputs.connections.find(RegistryClients))
    if isinstance(clients, Fault):
        what = "which schemas are named after the deleted topics"
        yield build_unknown_references(first, what, _explain_fault(clients))
        return
    if clients is None:
        return
    skipped = _list_declared(clients, inputs.desired) | _list_deleted(operations)
    answers = read_systems({name: partial(_list_subjects, inputs, clients, name) for name in clients.names})
    for name, subjects in answers.items():
        if isinstance(subjects, Fault):
            what = f"which subjects of schema registry '{name}' are named after the deleted topics"
            yield build_unknown_references(first, what, _explain_fault(subjects))
            continue
        others = sorted(subject for subject in subjects if (name, subject) not in skipped)
        yield from _observe_registry(name, others, topics)


def _list_declared(clients: RegistryClients, desired: Iterable[DesiredResource]) -> set[tuple[str, str]]:
    """Return the declared subjects, each with the name of its registry."""
    bodies = [item.body for item in desired if isinstance(item.body, SchemaBody)]
    return {(clients.choose(body.registry).name or "", body.subject) for body in bodies}


def _list_deleted(operations: Iterable[Operation]) -> set[tuple[str, str]]:
    """Return the subjects that a plan deletes, each with the name of its registry."""
    arguments = [op.args for op in operations]
    return {
        (args.endpoint, args.subject) for args in arguments if isinstance(args, DeleteArgs) and args.whole
    }


def _list_subjects(inputs: PlanInputs, clients: RegistryClients, name: str) -> frozenset[str]:
    """Return the subjects of a registry. Raises Fault and KdeclareError.

    If the registry could not be read earlier while the plan was made, the same error is raised again, and no
    request is sent.
    """
    snapshot = (inputs.live.find(SchemaState) or SchemaState()).get(name)
    if snapshot.problem is not None:
        raise snapshot.problem
    return snapshot.names if snapshot.names is not None else clients.open(name).list_subjects()


def _explain_fault(fault: Fault) -> str:
    reason = (fault.message or fault.error).rstrip(".")
    return f"kdeclare has no permission to list them ({reason})" if fault.error == NOT_AUTHORIZED else reason


def _observe_registry(name: str, subjects: Iterable[str], topics: Sequence[str]) -> Iterator[Observation]:
    deleted = frozenset(topics)
    by_topic: dict[str, list[str]] = defaultdict(list)
    for subject in subjects:
        topic = find_topic(subject)
        if topic in deleted:
            by_topic[topic].append(subject)
    for topic, own in by_topic.items():
        verb = "is" if len(own) == 1 else "are"
        text = (
            f"{format_count(len(own), 'subject')} of schema registry '{name}' {verb} named after this topic: "
            f"{format_names(own)}."
        )
        figures = {"registry": name, "subjects": list(own)}
        yield Observation(f"{TOPIC}/{topic}", "references", ObservationLevel.INFO, text, None, figures)
