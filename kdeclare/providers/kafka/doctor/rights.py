"""The permissions that `kdeclare doctor` checks on the cluster, on topics, and for each declared kind."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import Check, CheckStatus
from kdeclare.core.resources.changes import FieldOp
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.manifest_text import render_manifest, scalar
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    ANY_HOST,
    CLUSTER,
    CLUSTER_NAME,
    LITERAL,
    Binding,
)
from kdeclare.providers.kafka.acl.binding import GROUP as GROUP_RESOURCE
from kdeclare.providers.kafka.acl.manifests.expansion import Right
from kdeclare.providers.kafka.acl.manifests.export import make_manifest_name, render_rights
from kdeclare.providers.kafka.consumer_group.group import KIND as GROUP
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.listed_configs.collector import NOT_PERMITTED
from kdeclare.providers.kafka.port import Examinable, Examination
from kdeclare.providers.kafka.request_values import ConfigAlteration, ConfigOp, ConfigQuery

_MAX_NAMED = 3
"""The maximum number of topics or groups in the result of one check."""
_PROBED_KEY = "consumer.session.timeout.ms"
"""The config that kdeclare deletes in validate-only requests, to test permissions on groups.

Every broker with group configs supports this key. The request succeeds even if the key is not set.
"""


class AccessRight(NamedTuple):
    """The ACL operations that an action of kdeclare requires.

    why: the actions that require the operations.
    needed: whether kdeclare always requires the operations.
    """

    name: str
    operations: tuple[str, ...]
    why: str
    needed: bool = False


ON_CLUSTER = (
    AccessRight("Read the cluster", ("DESCRIBE", "DESCRIBE_CONFIGS"), "plan, import and audit", needed=True),
    AccessRight("Create topics", ("CREATE",), "creating topics with any name"),
    AccessRight(
        "Alter the cluster", ("ALTER",), "moving replicas, changing replication factors, electing leaders"
    ),
    AccessRight("Alter broker configs", ("ALTER_CONFIGS",), "BrokerConfig, and replication throttles"),
)
ON_TOPICS = (
    AccessRight("Read topics", ("DESCRIBE", "DESCRIBE_CONFIGS"), "plan, import and audit", needed=True),
    AccessRight("Alter topic configs", ("ALTER_CONFIGS",), "changing topic configs"),
    AccessRight("Add partitions", ("ALTER",), "increasing partition counts"),
    AccessRight("Delete topics", ("DELETE",), "--allow-deletes, and rolling back a topic creation"),
)
ON_GROUPS = (
    AccessRight("Describe groups", ("DESCRIBE",), "kdeclare group list and describe"),
    AccessRight(
        "Reset offsets", ("READ",), "kdeclare group reset-offsets, which also requires READ on the topics"
    ),
    AccessRight("Delete groups", ("DELETE",), "kdeclare group delete, and resets that delete offsets"),
)
"""The ACL operations that the ``kdeclare group`` commands require on existing groups."""


class MissingRights:
    """Collects the ACL operations that the project requires and that are not granted."""

    def __init__(self) -> None:
        self._rights: set[Right] = set()

    def add(self, resource_type: str, name: str, operation: str, *, is_granted: bool) -> None:
        """Add an operation on a resource, unless it is granted."""
        if not is_granted:
            self._rights.add(Right(resource_type, name, LITERAL, operation, ALLOW))

    def render_manifest(self, principal: str | None) -> str:
        """Return a manifest that grants the missing operations.

        Return an empty string if no operation is missing, or if the principal is unknown.
        """
        if not self._rights or principal is None:
            return ""
        bindings = [
            Binding(
                right.resource_type, right.name, right.pattern, principal, ANY_HOST, right.operation, ALLOW
            )
            for right in sorted(self._rights)
        ]
        spec = [f"principal: {scalar(principal)}", *render_rights(bindings)]
        return render_manifest("Acl", make_manifest_name(principal), spec, _COMMENTS)


_COMMENTS = (
    "The ACLs that kdeclare lacks for this project.",
    "To apply this manifest, you need the Alter permission on the cluster.",
)


class KindRights(NamedTuple):
    """The ACL operations, on the cluster or on groups, that kdeclare needs to plan and apply one kind.

    api_key: the request that reads the objects. Brokers that do not support it cannot store the objects.
    """

    kind: str
    read: str
    write: str
    api_key: int


KINDS_ON_CLUSTER = (
    KindRights("Acl", "DESCRIBE", "ALTER", 29),
    KindRights("ScramUser", "DESCRIBE", "ALTER", 50),
    KindRights("ClientQuota", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", 48),
    KindRights("ClientMetrics", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", 32),
)
GROUP_CONFIG = KindRights("GroupConfig", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", 32)


def check_rights(examination: Examination) -> tuple[Check, ...]:
    """Check the ACL operations that are granted on the cluster and on topics."""
    return (
        *(check_cluster_right(right, examination.on_cluster) for right in ON_CLUSTER),
        *(_check_objects_right(right, examination.on_topics, "topic") for right in ON_TOPICS),
    )


def check_kinds(
    cluster: Examinable,
    examination: Examination,
    desired: Sequence[DesiredResource],
    requested: Collection[str],
    missing: MissingRights,
) -> Iterator[Check]:
    """Check the ACL operations that the declared kinds and the requested kinds require.

    requested: the names of kinds to check even if no manifest declares them. ``Group`` means the
        ``kdeclare group`` commands.
    missing: receives the operations that the declared kinds require and that are not granted.
    """
    on_cluster = examination.on_cluster
    names: dict[str, list[str]] = {}
    for item in desired:
        names.setdefault(item.id.kind, []).append(item.id.name)
    for rights in KINDS_ON_CLUSTER:
        if examination.versions and rights.api_key not in examination.versions:
            if rights.kind in names or rights.kind in requested:
                yield _check_unsupported(rights.kind, is_declared=rights.kind in names)
            continue
        if rights.kind in names or rights.kind in requested:
            yield _check_kind(rights, on_cluster, is_declared=rights.kind in names)
        if rights.kind in names and on_cluster is not None:
            for operation in (rights.read, rights.write):
                missing.add(CLUSTER, CLUSTER_NAME, operation, is_granted=operation in on_cluster)
    if GROUP_CONFIG.kind in names or GROUP_CONFIG.kind in requested:
        yield from _check_group_configs(cluster, sorted(names.get(GROUP_CONFIG.kind, ())), missing)
    if GROUP in requested:
        yield from _check_groups(cluster)


def _check_unsupported(kind: str, *, is_declared: bool) -> Check:
    """Return the check for a kind that brokers do not support. It fails if a manifest declares the kind."""
    return Check(
        kind,
        CheckStatus.FAILED if is_declared else CheckStatus.WARNING,
        "not supported by the brokers",
        "plan and apply",
        "Remove the manifests, and manage the objects with the tools of your Kafka service."
        if is_declared
        else "",
    )


def _check_kind(rights: KindRights, granted: frozenset[str] | None, *, is_declared: bool) -> Check:
    """Check a kind that requires ACL operations on the cluster.

    The check fails if kdeclare cannot read a declared kind.
    """
    if granted is None:
        return build_unknown_check(rights.kind, "plan and apply")
    missing = [name for name in (rights.read, rights.write) if name not in granted]
    if not missing:
        return Check(rights.kind, CheckStatus.OK, "permitted", "plan and apply")
    can_plan = rights.read not in missing
    detail = f"not permitted: {join_operations(missing)} on the cluster"
    standing = CheckStatus.WARNING if can_plan or not is_declared else CheckStatus.FAILED
    return Check(
        rights.kind,
        standing,
        detail,
        "apply" if can_plan else "plan and apply",
        f"Grant kdeclare {format_permissions(missing)} on the cluster.",
    )


def _check_group_configs(
    cluster: Examinable, names: Sequence[str], missing: MissingRights
) -> Iterator[Check]:
    """Check the ACL operations on the declared groups, even if the groups do not exist."""
    kind, why = GROUP_CONFIG.kind, "plan and apply"
    if not names:
        yield Check(kind, CheckStatus.SKIPPED, "no manifest declares a group", why)
        return
    try:
        granted = _examine_group_configs(cluster, names)
    except Fault as fault:
        yield Check(kind, CheckStatus.SKIPPED, f"the brokers did not answer: {fault}", why)
        return
    right = AccessRight(kind, (GROUP_CONFIG.read, GROUP_CONFIG.write), why)
    for name, own in granted.items():
        for operation in right.operations:
            missing.add(GROUP_RESOURCE, name, operation, is_granted=operation in own)
    check = _check_objects_right(right, granted, "group")
    is_hidden = any(GROUP_CONFIG.read not in own for own in granted.values())
    if check.standing is CheckStatus.WARNING and is_hidden:
        check = Check(check.name, CheckStatus.FAILED, check.what, check.why, check.hint)
    yield check


def _examine_group_configs(cluster: Examinable, names: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """Return which operations on the configs of groups are granted. Raises Fault.

    Brokers report no operations for groups that do not exist. The permissions are therefore tested with
    requests that change nothing: reading the configs, and a validate-only request that deletes a config.
    """
    resources = [ConfigResource(ConfigScope.GROUP, name) for name in names]
    answers = cluster.describe_configs_partially([ConfigQuery(r, overrides=True) for r in resources])
    deletion = (ConfigOp(_PROBED_KEY, FieldOp.DELETE, None),)
    results = cluster.alter_configs([ConfigAlteration(r, deletion) for r in resources], validate_only=True)
    granted: dict[str, frozenset[str]] = {}
    for resource in resources:
        asked = {GROUP_CONFIG.read: answers[resource], GROUP_CONFIG.write: results[resource]}
        granted[resource.name] = frozenset(name for name, answer in asked.items() if not _is_refused(answer))
    return granted


def _is_refused(answer: object) -> bool:
    return isinstance(answer, Fault) and answer.error in NOT_PERMITTED


def _check_groups(cluster: Examinable) -> Iterator[Check]:
    """Check the ACL operations on the existing groups that ``kdeclare group`` can change."""
    try:
        granted = cluster.examine_groups()
    except Fault as fault:
        yield Check("Groups", CheckStatus.SKIPPED, f"the brokers did not answer: {fault}", "kdeclare group")
        return
    yield from (_check_objects_right(right, granted, "group") for right in ON_GROUPS)


def check_cluster_right(right: AccessRight, granted: frozenset[str] | None) -> Check:
    """Check operations on the cluster. granted: the granted operations; None if unknown."""
    if granted is None:
        return build_unknown_check(right.name, right.why)
    missing = [name for name in right.operations if name not in granted]
    if not missing:
        return Check(right.name, CheckStatus.OK, "permitted", right.why)
    detail = f"not permitted: {join_operations(missing)} on the cluster"
    if right.operations == ("CREATE",):
        detail += "; brokers do not report whether CREATE is granted for specific topic names"
    hint = f"Grant kdeclare {format_permissions(missing)} on the cluster."
    return Check(right.name, _get_missing_status(right), detail, right.why, hint)


def _check_objects_right(
    right: AccessRight, granted: Mapping[str, frozenset[str]] | None, noun: str
) -> Check:
    """Check the operations on each topic or group. granted: the operations by name; None if unknown."""
    if granted is None:
        return build_unknown_check(right.name, right.why)
    if not granted:
        return Check(right.name, CheckStatus.SKIPPED, f"no {noun}s are visible to this principal", right.why)
    lacking = sorted(name for name, own in granted.items() if not own.issuperset(right.operations))
    if not lacking:
        what = f"the only visible {noun}" if len(granted) == 1 else f"all {len(granted):,} {noun}s"
        return Check(right.name, CheckStatus.OK, f"permitted on {what}", right.why)
    missing = [op for op in right.operations if any(op not in granted[name] for name in lacking)]
    names = ", ".join(lacking[:_MAX_NAMED]) + (", …" if len(lacking) > _MAX_NAMED else "")
    detail = (
        f"not permitted on {len(lacking):,} of {format_count(len(granted), noun)} ({names}): "
        f"{join_operations(missing)}"
    )
    alternative = "" if right in ON_GROUPS else f", or do not declare the {noun}s"
    hint = f"Grant kdeclare {format_permissions(missing)} on these {noun}s{alternative}."
    return Check(right.name, _get_missing_status(right), detail, right.why, hint)


def build_unknown_check(name: str, why: str) -> Check:
    """Build the check for permissions that brokers do not report."""
    return Check(name, CheckStatus.SKIPPED, "not reported by the brokers", why)


def _get_missing_status(right: AccessRight) -> CheckStatus:
    return CheckStatus.FAILED if right.needed else CheckStatus.WARNING


def join_operations(operations: Sequence[str]) -> str:
    """Join the names of ACL operations for a message."""
    return " and ".join(operations)


def format_permissions(operations: Sequence[str]) -> str:
    """Format ACL operations as the kafka-acls tool does, for example ``the DescribeConfigs permission``."""
    names = " and ".join(name.title().replace("_", "") for name in operations)
    return f"the {names} {'permission' if len(operations) == 1 else 'permissions'}"
