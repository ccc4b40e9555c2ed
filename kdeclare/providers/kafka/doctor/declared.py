"""The permissions that ``kdeclare doctor`` checks for the topics and broker configs that a project declares.

Brokers report the permissions on existing topics that the principal can describe (KIP-430). The permissions
on all other topics are tested with requests that change nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import Check, CheckStatus
from kdeclare.core.resources.changes import FieldOp
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.acl.binding import CLUSTER, CLUSTER_NAME, TOPIC
from kdeclare.providers.kafka.doctor.rights import (
    AccessRight,
    MissingRights,
    build_unknown_check,
    check_cluster_right,
    format_permissions,
    join_operations,
)
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.port import Examinable, Examination
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery, NewTopic
from kdeclare.providers.kafka.topic.spec import TopicBody

_REFUSED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
_PROBED_KEY = "retention.ms"
"""The config that kdeclare deletes in validate-only requests, to test permissions on topics.

Every broker supports this key. The request succeeds even if the key is not set.
"""
_TESTED = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "CREATE"})
"""The ACL operations that kdeclare tests on topics that do not exist."""
_MAX_NAMED = 3
"""The maximum number of topics in the result of one check."""

_READ = AccessRight("Read declared topics", ("DESCRIBE", "DESCRIBE_CONFIGS"), "plan", needed=True)
_CREATE = AccessRight("Create declared topics", ("CREATE",), "apply")
_CONFIGS = AccessRight("Alter topic configs", ("ALTER_CONFIGS",), "changing topic configs")
_PARTITIONS = AccessRight("Add partitions", ("ALTER",), "increasing partition counts")
_DELETE = AccessRight("Delete topics", ("DELETE",), "topics with lifecycle: {state: absent}")
_SEE_MOVES = AccessRight("Read the cluster", ("DESCRIBE",), "seeing reassignments that are in progress")
_MOVE = AccessRight(
    "Move replicas", ("ALTER", "ALTER_CONFIGS"), "declared assignments and placements, and their throttle"
)
_READ_BROKERS = AccessRight("Read broker configs", ("DESCRIBE_CONFIGS",), "plan", needed=True)
_ALTER_BROKERS = AccessRight("Alter broker configs", ("ALTER_CONFIGS",), "apply")


@dataclass(frozen=True, slots=True)
class _DeclaredTopics:
    """The declared topics, and the operations that are granted on each of them.

    granted: the granted operations by topic. existing: the topics that the principal can describe. missing:
        the topics that do not exist or that the principal cannot describe. absent: the topics that are
        declared as absent.
    """

    granted: Mapping[str, frozenset[str]]
    existing: Sequence[str]
    missing: Sequence[str]
    absent: Sequence[str] = field(default=())


def has_topics_or_broker_configs(desired: Sequence[DesiredResource]) -> bool:
    """Return whether the project declares topics or broker configs."""
    return any(item.id.kind in ("Topic", "BrokerConfig") for item in desired)


def check_declared(
    cluster: Examinable,
    examination: Examination,
    desired: Sequence[DesiredResource],
    missing: MissingRights,
) -> Iterator[Check]:
    """Check the permissions that the declared topics and broker configs require.

    missing: receives the operations that are not granted.
    """
    topics = [item for item in desired if item.id.kind == "Topic"]
    if topics:
        yield from _check_topics(cluster, examination, topics, missing)
    rights = [_SEE_MOVES] if topics else []
    if any(_declares_replicas(item) for item in topics if not item.is_absent):
        rights.append(_MOVE)
    if any(item.id.kind == "BrokerConfig" for item in desired):
        rights += [_READ_BROKERS, _ALTER_BROKERS]
    for right in rights:
        yield check_cluster_right(right, examination.on_cluster)
        granted = examination.on_cluster
        for operation in right.operations if granted is not None else ():
            missing.add(CLUSTER, CLUSTER_NAME, operation, is_granted=operation in (granted or ()))


def _declares_replicas(item: DesiredResource) -> bool:
    body = item.get_body(TopicBody)
    return body.assignments is not None or body.strategy is not None or bool(body.racks)


def _check_topics(
    cluster: Examinable,
    examination: Examination,
    topics: Sequence[DesiredResource],
    missing: MissingRights,
) -> Iterator[Check]:
    if examination.on_topics is None:
        yield from (build_unknown_check(right.name, right.why) for right in (_READ, _CREATE, _CONFIGS))
        return
    try:
        declared = _examine_topics(cluster, examination.on_topics, topics)
    except Fault as fault:
        yield Check(_READ.name, CheckStatus.SKIPPED, f"the brokers did not answer: {fault}", _READ.why)
        return
    present = [item.id.name for item in topics if not item.is_absent]
    for right, names in (
        (_READ, present),
        (_CREATE, [name for name in declared.missing if name in present]),
        (_CONFIGS, present),
        (_PARTITIONS, [name for name in declared.existing if name in present]),
        (_DELETE, [name for name in declared.existing if name in declared.absent]),
    ):
        if names:
            yield _check_right(right, names, declared.granted)
        for name in names:
            for operation in right.operations:
                missing.add(TOPIC, name, operation, is_granted=operation in declared.granted[name])
    for name in declared.missing:
        # ALTER is not tested on these topics. Add ALTER to the manifest if another permission is missing.
        if name in present and not declared.granted[name] >= _TESTED:
            missing.add(TOPIC, name, "ALTER", is_granted=False)


def _examine_topics(
    cluster: Examinable, visible: Mapping[str, frozenset[str]], topics: Sequence[DesiredResource]
) -> _DeclaredTopics:
    """Return the operations that are granted on the declared topics. Raises Fault."""
    names = sorted(item.id.name for item in topics)
    granted = {name: visible[name] for name in names if name in visible}
    missing = [name for name in names if name not in visible]
    if missing:
        hidden = cluster.find_hidden_topics(missing)
        resources = {name: ConfigResource(ConfigScope.TOPIC, name) for name in missing}
        deletion = (ConfigOp(_PROBED_KEY, FieldOp.DELETE, None),)
        answers = {
            "DESCRIBE_CONFIGS": cluster.describe_configs_partially(
                [ConfigQuery(resource, overrides=True) for resource in resources.values()]
            ),
            "ALTER_CONFIGS": cluster.alter_configs(
                [ConfigAlteration(resource, deletion) for resource in resources.values()], validate_only=True
            ),
        }
        created = cluster.create_topics(
            [NewTopic(n, None, None, None, {}) for n in missing], validate_only=True
        )
        for name, resource in resources.items():
            operations = {op for op, by_resource in answers.items() if _is_granted(by_resource.get(resource))}
            operations |= {"CREATE"} if _is_granted(created.get(name)) else set()
            granted[name] = frozenset(operations | (set() if name in hidden else {"DESCRIBE"}))
    return _DeclaredTopics(
        granted,
        [name for name in names if name in visible],
        missing,
        [item.id.name for item in topics if item.is_absent],
    )


def _is_granted(answer: object) -> bool:
    return not (isinstance(answer, Fault) and answer.error in _REFUSED)


def _check_right(right: AccessRight, names: Sequence[str], granted: Mapping[str, frozenset[str]]) -> Check:
    lacking = [name for name in names if not granted[name].issuperset(right.operations)]
    if not lacking:
        return Check(right.name, CheckStatus.OK, f"permitted on {_format_topics(names)}", right.why)
    operations = [op for op in right.operations if any(op not in granted[name] for name in lacking)]
    return Check(
        right.name,
        CheckStatus.FAILED if right.needed else CheckStatus.WARNING,
        f"not permitted on {_format_topics(lacking)}: {join_operations(operations)}",
        right.why,
        f"Grant kdeclare {format_permissions(operations)} on "
        f"{'this topic' if len(lacking) == 1 else 'these topics'}.",
    )


def _format_topics(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    return f"{format_count(len(names), 'topic')} ({listed})"
