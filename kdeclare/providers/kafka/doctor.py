"""The cluster for `doctor`: how it is reached, who it is, what one may do there and what its brokers have."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import (
    Check,
    ExaminationRequest,
    Examined,
    Section,
    Standing,
    check_of_error,
)
from kdeclare.providers.kafka.connection import KafkaSettings, read_client_properties, stated_servers
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.providers.kafka.port import Examinable, Examination

NO_CLUSTER = Check(
    "Address",
    Standing.SKIPPED,
    "no cluster is named: its brokers, what you may do there and its features were not looked at",
    hint="Give --bootstrap-server HOST:PORT, or bootstrapServers in the project file.",
)
NOT_LOOKED_AT = Check(
    "Address",
    Standing.SKIPPED,
    "no cluster was looked at, as the project file cannot be used",
    hint="Mend it; or ask where no project is, with --bootstrap-server HOST:PORT.",
)
_AT_ONCE = 16
_UNREACHABLE = "unreachable"


def reach_cluster(servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
    """Connect to brokers at addresses (none: those of the properties). Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect

    return connect(servers, config, timeout_s=timeout_s)


def examine_cluster(request: ExaminationRequest) -> Examined:
    """Look at how the cluster is reached, who it is, what one may do there, and what its brokers have."""
    surroundings = request.surroundings
    if surroundings is None:
        return Examined((Section("Cluster", (NOT_LOOKED_AT,)),))
    from kdeclare.providers.kafka.client import provided  # most commands meet no cluster

    settings = request.settings_of(KafkaSettings)
    try:
        config = read_client_properties(settings, surroundings)
        used = provided(config)
    except KdeclareError as problem:
        failed = check_of_error("Client properties", Standing.FAILED, problem)
        return Examined((Section("Cluster", (failed,)),))
    stated = stated_servers(settings, surroundings) or ""
    servers = stated or used.get("bootstrap.servers", "")
    if not servers:
        return Examined((Section("Cluster", (NO_CLUSTER,)),))

    def one(address: str) -> KdeclareError | None:
        try:
            reach_cluster(address, config, surroundings.timeout_s).close()
        except KdeclareError as problem:
            return problem
        return None

    try:
        # not by what was found in properties: an address that is none may be a secret, and would be shown
        cluster = reach_cluster(stated, config, surroundings.timeout_s)
    except KdeclareError as problem:
        return Examined((Section("Cluster", (_not_reached(problem),)),))
    try:
        return _reached(cluster, used, servers, one)
    finally:
        cluster.close()


def _not_reached(problem: KdeclareError) -> Check:
    code = problem.diagnostics[0].code
    name = "Network" if code == _UNREACHABLE else "Client properties"
    return check_of_error(name, Standing.FAILED, problem)


def _reached(
    cluster: Examinable,
    config: Mapping[str, str],
    servers: str,
    one: Callable[[str], KdeclareError | None],
) -> Examined:
    properties = _properties(config, cluster)
    try:
        info = cluster.describe()
        found = cluster.examine()
    except Fault as fault:
        refused = Check("Cluster", Standing.FAILED, f"it does not tell who it is: {fault}")
        return Examined((Section("Cluster", (*properties, refused)),))
    network = _network(info, servers, one)
    about = (*properties, _identity(info), *network)
    sections = (
        Section("Cluster", about),
        Section("Rights", rights(found)),
        Section("Features", features(found)),
    )
    return Examined(sections, info.id)


def _properties(config: Mapping[str, str], cluster: Examinable) -> tuple[Check, ...]:
    protocol = config.get("security.protocol", "PLAINTEXT").strip().upper()
    login = f", {config.get('sasl.mechanism', '').strip()}" if protocol.startswith("SASL_") else ""
    used = Check("Client properties", Standing.OK, f"{protocol}{login}")
    more = (
        Check("Client properties", Standing.WARNING, found.detail or found.summary, hint=found.hint)
        for found in cluster.diagnostics
    )
    return used, *more


def _identity(info: ClusterInfo) -> Check:
    release = f"Kafka {info.version}" if info.version else "its release is not told"
    who = f"; you are {info.principal}" if info.principal else ""
    return Check("Cluster", Standing.OK, f"{info.id}, {release}, {_plural(len(info.brokers), 'broker')}{who}")


def _network(
    info: ClusterInfo, servers: str, one: Callable[[str], KdeclareError | None]
) -> tuple[Check, ...]:
    given = list(dict.fromkeys(part.strip() for part in servers.split(",") if part.strip()))
    serving = [broker for broker in info.brokers if not broker.fenced]
    addresses = list(dict.fromkeys([*given, *map(_address, serving)]))
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
        seen = dict(zip(addresses, pool.map(one, addresses), strict=True))
    return (
        *(_given(address, seen[address]) for address in given),
        *(_broker(broker, seen.get(_address(broker))) for broker in info.brokers),
    )


def _given(address: str, problem: KdeclareError | None) -> Check:
    if problem is None:
        return Check("Address", Standing.OK, f"{address} answers")
    found = check_of_error("Address", Standing.WARNING, problem)
    return replace(found, hint=f"Another address works, and is used. {found.hint}".rstrip())


def _broker(broker: Broker, problem: KdeclareError | None) -> Check:
    name, address = f"Broker {broker.id}", _address(broker)
    if broker.fenced:
        fenced = f"{address} does not serve: it is down, or has just been started"
        return Check(name, Standing.WARNING, fenced, "its replicas", "Start it, or look at its log.")
    if problem is None:
        return Check(name, Standing.OK, f"{address} answers")
    found = check_of_error(name, Standing.FAILED, problem, "all that only this broker can tell or do")
    return Check(
        name,
        Standing.FAILED,
        f"clients are told to go to {found.what}",
        found.why,
        "Check the broker, the network between, and its advertised.listeners.",
    )


def _address(broker: Broker) -> str:
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return f"{host}:{broker.port}"


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
    Right("Alter brokers' configs", ("ALTER_CONFIGS",), "BrokerConfig, ClientQuota, and throttles of moves"),
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
        f"not permitted on {len(without):,} of {_plural(len(granted), 'topic')} ({named}): {_listed(missing)}"
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


def _plural(count: int, one: str) -> str:
    return f"{count:,} {one if count == 1 else one + 's'}"
