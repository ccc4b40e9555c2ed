"""Which rights and which versions of brokers are needed for what. Pure: what brokers tell in, checks out."""

from collections.abc import Mapping
from typing import NamedTuple

from kdeclare.providers.kafka.examination import Examination
from kdeclare.report.doctor_views import Check, Standing
from kdeclare.report.values import plural

_NAMED = 3
"""How many topics are named."""


class Right(NamedTuple):
    """What one may do; operations of Kafka's ACLs that all have to be granted.

    needed: whether nothing works without.
    """

    name: str
    operations: tuple[str, ...]
    why: str
    needed: bool = False


ON_CLUSTER = (
    Right("Read the cluster", ("DESCRIBE", "DESCRIBE_CONFIGS"), "plan, import and audit", needed=True),
    Right("Create topics", ("CREATE",), "new topics, of any name"),
    Right("Alter the cluster", ("ALTER",), "moving replicas, replication factors, electing leaders"),
    Right("Alter brokers' configs", ("ALTER_CONFIGS",), "BrokerConfig, and throttles of moves"),
)
ON_TOPICS = (
    Right("Read topics", ("DESCRIBE", "DESCRIBE_CONFIGS"), "plan, import and audit", needed=True),
    Right("Alter topics' configs", ("ALTER_CONFIGS",), "configs of topics"),
    Right("Add partitions", ("ALTER",), "more partitions"),
    Right("Delete topics", ("DELETE",), "--allow-deletes, and undoing a creation"),
)


class Feature(NamedTuple):
    """What brokers have from a version of an API on, and what is missing without."""

    name: str
    api_key: int
    version: int
    since: str
    why: str
    without: str
    needed: bool = False


_UPGRADE = "Upgrade the brokers to Kafka {since} or later."
FEATURES = (
    Feature(
        "Incremental config changes",
        44,
        0,
        "2.3",
        "configs of topics and brokers, APPEND and SUBTRACT on lists",
        "configs cannot be changed",
        needed=True,
    ),
    Feature(
        "Reassignments", 45, 0, "2.4", "moving replicas, replication factors", "replicas cannot be moved"
    ),
    Feature(
        "Guard of the replication factor",
        45,
        1,
        "4.1",
        "moves that cannot change a replication factor by accident (KIP-860)",
        "moves are refused; with --rf-guard client kdeclare checks them itself, right before the request",
    ),
    Feature("Elections", 43, 0, "2.4", "preferred leaders after a move", "leaders stay where they are"),
    Feature(
        "Log directories",
        34,
        0,
        "1.1",
        "moves between log directories (KIP-113)",
        "replicas stay where they are",
    ),
    Feature(
        "Room on volumes",
        35,
        4,
        "3.3",
        "checking that a move finds enough room (KIP-827)",
        "a move is not checked for room",
    ),
    Feature(
        "Brokers that do not serve",
        60,
        2,
        "4.0",
        "telling a fenced broker from one that was never there (KIP-1073)",
        "a broker that is down looks like one that was never there",
    ),
)
_ELR = "eligible.leader.replicas.version"


def rights(found: Examination) -> tuple[Check, ...]:
    """What one may do."""
    return (
        *(_on_cluster(right, found.on_cluster) for right in ON_CLUSTER),
        *(_on_topics(right, found.on_topics) for right in ON_TOPICS),
    )


def features(found: Examination) -> tuple[Check, ...]:
    """What the brokers have."""
    return (*(_feature(feature, found.versions) for feature in FEATURES), _elr(found.features))


def _on_cluster(right: Right, granted: frozenset[str] | None) -> Check:
    if granted is None:
        return _untold(right)
    missing = [name for name in right.operations if name not in granted]
    if not missing:
        return Check(right.name, Standing.OK, "permitted", right.why)
    what = f"not permitted: {_listed(missing)} on the cluster"
    if right.operations == ("CREATE",):
        what += "; whether it is for topics of certain names, brokers do not tell"
    hint = f"Ask for {_acl(missing)} on the cluster."
    return Check(right.name, _lacking(right), what, right.why, hint)


def _on_topics(right: Right, granted: Mapping[str, frozenset[str]] | None) -> Check:
    if granted is None:
        return _untold(right)
    if not granted:
        return Check(right.name, Standing.SKIPPED, "there are no topics that you may see", right.why)
    without = sorted(name for name, own in granted.items() if not own.issuperset(right.operations))
    if not without:
        return Check(right.name, Standing.OK, f"permitted on {_all(len(granted))}", right.why)
    missing = [name for name in right.operations if any(name not in granted[topic] for topic in without)]
    named = ", ".join(without[:_NAMED]) + (", …" if len(without) > _NAMED else "")
    what = (
        f"not permitted on {len(without):,} of {plural(len(granted), 'topic')} ({named}): {_listed(missing)}"
    )
    hint = f"Ask for {_acl(missing)} on them, or leave them out of what you declare."
    return Check(right.name, _lacking(right), what, right.why, hint)


def _feature(feature: Feature, versions: Mapping[int, int]) -> Check:
    if versions.get(feature.api_key, -1) >= feature.version:
        return Check(feature.name, Standing.OK, "available", feature.why)
    what = f"not available, Kafka has it since {feature.since}: {feature.without}"
    standing = Standing.FAILED if feature.needed else Standing.WARNING
    return Check(feature.name, standing, what, feature.why, _UPGRADE.format(since=feature.since))


def _elr(levels: Mapping[str, int]) -> Check:
    name, why = (
        "Eligible leader replicas",
        "leaders that lose nothing, once none is in sync (KIP-966)",
    )
    if levels.get(_ELR, 0) > 0:
        told = "on: the cluster-wide min.insync.replicas is the cluster's own, and cannot be deleted"
        return Check(name, Standing.OK, told, why)
    return Check(name, Standing.SKIPPED, "not turned on in this cluster; nothing here needs it", why)


def _untold(right: Right) -> Check:
    return Check(right.name, Standing.SKIPPED, "the brokers do not tell", right.why)


def _lacking(right: Right) -> Standing:
    return Standing.FAILED if right.needed else Standing.WARNING


def _all(count: int) -> str:
    return "the one topic" if count == 1 else f"all {count:,} topics"


def _listed(operations: list[str]) -> str:
    return " and ".join(operations)


def _acl(operations: list[str]) -> str:
    """As Kafka's tool for ACLs spells them: DescribeConfigs."""
    return " and ".join(name.title().replace("_", "") for name in operations)
