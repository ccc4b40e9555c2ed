"""The checks of `kdeclare doctor` for a Kafka cluster: connection, identity, permissions, features."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.live.faults import Fault
from kdeclare.core.provider.provider import (
    Check,
    CheckSection,
    CheckStatus,
    ExaminationRequest,
    ExaminationResult,
    build_error_check,
)
from kdeclare.providers.kafka.connection import KafkaSettings, find_servers, read_client_properties
from kdeclare.providers.kafka.doctor.declared import check_declared, has_topics_or_broker_configs
from kdeclare.providers.kafka.doctor.rights import MissingRights, check_kinds, check_rights
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.providers.kafka.port import Examinable, Examination

NO_CLUSTER = Check(
    "Address",
    CheckStatus.SKIPPED,
    "no cluster is configured; brokers, permissions and features were not checked",
    hint="Pass --bootstrap-server HOST:PORT, or set bootstrapServers in the project file.",
)
NOT_EXAMINED = Check(
    "Address",
    CheckStatus.SKIPPED,
    "no cluster was checked, because the project file cannot be used",
    hint="Fix the project file, or run doctor outside the project with --bootstrap-server HOST:PORT.",
)
_MAX_CONNECTIONS = 16
_UNREACHABLE_CODE = "unreachable"


def reach_cluster(servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
    """Connect to ``servers`` or, if empty, to the addresses in the client properties.

    Raises KdeclareError.
    """
    from kdeclare.providers.kafka.client import connect

    return connect(servers, config, timeout_s=timeout_s)


def examine_cluster(request: ExaminationRequest) -> ExaminationResult:
    """Check the connection, identity, permissions and broker features of the cluster."""
    surroundings = request.surroundings
    if surroundings is None:
        return ExaminationResult((CheckSection("Cluster", (NOT_EXAMINED,)),))
    # Imported here, because most commands do not connect to a cluster.
    from kdeclare.providers.kafka.client import resolve_config_providers

    settings = request.get_settings(KafkaSettings)
    try:
        config = read_client_properties(settings, surroundings)
        resolved_config = resolve_config_providers(config)
    except KdeclareError as problem:
        failed_check = build_error_check("Client properties", CheckStatus.FAILED, problem)
        return ExaminationResult((CheckSection("Cluster", (failed_check,)),))
    stated_servers = find_servers(settings, surroundings) or ""
    servers = stated_servers or resolved_config.get("bootstrap.servers", "")
    if not servers:
        return ExaminationResult((CheckSection("Cluster", (NO_CLUSTER,)),))

    def try_address(address: str) -> KdeclareError | None:
        try:
            reach_cluster(address, config, surroundings.timeout_s).close()
        except KdeclareError as problem:
            return problem
        return None

    try:
        # Do not use the resolved servers: errors would show a malformed address, which can be a secret.
        cluster = reach_cluster(stated_servers, config, surroundings.timeout_s)
    except KdeclareError as problem:
        return ExaminationResult((CheckSection("Cluster", (_check_unreachable(problem),)),))
    try:
        return _examine_reached(cluster, request, resolved_config, servers, try_address)
    finally:
        cluster.close()


def _check_unreachable(problem: KdeclareError) -> Check:
    code = problem.diagnostics[0].code
    name = "Network" if code == _UNREACHABLE_CODE else "Client properties"
    return build_error_check(name, CheckStatus.FAILED, problem)


def _examine_reached(
    cluster: Examinable,
    request: ExaminationRequest,
    config: Mapping[str, str],
    servers: str,
    try_address: Callable[[str], KdeclareError | None],
) -> ExaminationResult:
    property_checks = _check_properties(config, cluster)
    try:
        info = cluster.describe()
        examination = cluster.examine()
    except Fault as fault:
        refused_check = Check("Cluster", CheckStatus.FAILED, f"describing the cluster failed: {fault}")
        return ExaminationResult((CheckSection("Cluster", (*property_checks, refused_check)),))
    network_checks = _check_network(info, servers, try_address)
    cluster_checks = (*property_checks, _check_identity(info), *network_checks)
    missing = MissingRights()
    right_checks = (
        tuple(check_declared(cluster, examination, request.desired, missing))
        if has_topics_or_broker_configs(request.desired)
        else check_rights(examination)
    )
    kind_checks = check_kinds(cluster, examination, request.desired, request.kinds, missing)
    permission_checks = (*right_checks, *kind_checks)
    sections = (
        CheckSection("Cluster", cluster_checks),
        CheckSection("Permissions", permission_checks, missing.render_manifest(info.principal)),
        CheckSection("Features", check_features(examination)),
    )
    return ExaminationResult(sections, info.id)


def _check_properties(config: Mapping[str, str], cluster: Examinable) -> tuple[Check, ...]:
    protocol = config.get("security.protocol", "PLAINTEXT").strip().upper()
    login = f", {config.get('sasl.mechanism', '').strip()}" if protocol.startswith("SASL_") else ""
    protocol_check = Check("Client properties", CheckStatus.OK, f"{protocol}{login}")
    warnings = (
        Check("Client properties", CheckStatus.WARNING, found.detail or found.summary, hint=found.hint)
        for found in cluster.diagnostics
    )
    return protocol_check, *warnings


def _check_identity(info: ClusterInfo) -> Check:
    release = f"Kafka {info.version}" if info.version else "unknown Kafka release"
    principal_text = f"; authenticated as {info.principal}" if info.principal else ""
    return Check(
        "Cluster",
        CheckStatus.OK,
        f"{info.id}, {release}, {_format_count(len(info.brokers), 'broker')}{principal_text}",
    )


def _check_network(
    info: ClusterInfo, servers: str, try_address: Callable[[str], KdeclareError | None]
) -> tuple[Check, ...]:
    configured_addresses = list(dict.fromkeys(part.strip() for part in servers.split(",") if part.strip()))
    serving = [broker for broker in info.brokers if not broker.fenced]
    addresses = list(dict.fromkeys([*configured_addresses, *map(_format_address, serving)]))
    with ThreadPoolExecutor(max_workers=_MAX_CONNECTIONS) as pool:
        problems_by_address = dict(zip(addresses, pool.map(try_address, addresses), strict=True))
    return (
        *(_check_address(address, problems_by_address[address]) for address in configured_addresses),
        *(_check_broker(broker, problems_by_address.get(_format_address(broker))) for broker in info.brokers),
    )


def _check_address(address: str, problem: KdeclareError | None) -> Check:
    if problem is None:
        return Check("Address", CheckStatus.OK, f"{address} responds")
    check = build_error_check("Address", CheckStatus.WARNING, problem)
    return replace(
        check,
        hint=f"Correct or remove this address. kdeclare connected to a different address. "
        f"{check.hint}".rstrip(),
    )


def _check_broker(broker: Broker, problem: KdeclareError | None) -> Check:
    name, address = f"Broker {broker.id}", _format_address(broker)
    if broker.fenced:
        detail = f"{address} is fenced: the broker is down or has just been started"
        return Check(
            name,
            CheckStatus.WARNING,
            detail,
            "its replicas",
            "Start the broker, or check the log of the broker.",
        )
    if problem is None:
        return Check(name, CheckStatus.OK, f"{address} responds")
    check = build_error_check(name, CheckStatus.FAILED, problem, "requests that only this broker can serve")
    return Check(
        name,
        CheckStatus.FAILED,
        f"the advertised address cannot be used: {check.what}",
        check.why,
        "Check the broker, the network to it, and its advertised.listeners.",
    )


def _format_address(broker: Broker) -> str:
    host = f"[{broker.host}]" if ":" in broker.host else broker.host
    return f"{host}:{broker.port}"


class Feature(NamedTuple):
    """A feature of brokers that kdeclare uses.

    api_key, version: the API version that the feature requires.
    since: the first Kafka release with the feature.
    why: what kdeclare uses the feature for.
    consequence: what happens without the feature.
    needed: whether kdeclare always requires the feature.
    """

    name: str
    api_key: int
    version: int
    since: str
    why: str
    consequence: str
    needed: bool = False


_UPGRADE = (
    "Upgrade the brokers to Kafka {since} or later. Some managed services do not offer the feature in any "
    "release."
)
FEATURES = (
    Feature(
        "Incremental config changes",
        44,
        0,
        "2.3",
        "topic and broker configs, APPEND and SUBTRACT on lists",
        "configs cannot be changed",
        needed=True,
    ),
    Feature(
        "Reassignments",
        45,
        0,
        "2.4",
        "moving replicas, changing replication factors",
        "replicas cannot be moved",
    ),
    Feature(
        "Replication factor guard",
        45,
        1,
        "4.1",
        "reassignments that cannot change a replication factor by accident (KIP-860)",
        "kdeclare refuses reassignments; with --rf-guard client, kdeclare checks the replication factor "
        "itself, "
        "right before the request",
    ),
    Feature(
        "Preferred leader election",
        43,
        0,
        "2.4",
        "electing the preferred leaders after a reassignment",
        "partition leaders do not change",
    ),
    Feature(
        "Log directories",
        34,
        0,
        "1.1",
        "moving replicas between log directories (KIP-113)",
        "replicas stay in their log directories",
    ),
    Feature(
        "Disk capacity",
        35,
        4,
        "3.3",
        "checking that there is enough disk space for a reassignment (KIP-827)",
        "kdeclare does not check disk space before a reassignment",
    ),
    Feature(
        "Fenced brokers",
        60,
        2,
        "4.0",
        "distinguishing a fenced broker from one that never existed (KIP-1073)",
        "a broker that is down looks like one that never existed",
    ),
)
_ELR = "eligible.leader.replicas.version"


def check_features(examination: Examination) -> tuple[Check, ...]:
    """Check the features of the brokers."""
    return (
        *(_check_feature(feature, examination.versions) for feature in FEATURES),
        _check_elr(examination.features),
    )


def _check_feature(feature: Feature, versions: Mapping[int, int]) -> Check:
    if versions.get(feature.api_key, -1) >= feature.version:
        return Check(feature.name, CheckStatus.OK, "available", feature.why)
    detail = f"not available (requires Kafka {feature.since} or later): {feature.consequence}"
    standing = CheckStatus.FAILED if feature.needed else CheckStatus.WARNING
    return Check(feature.name, standing, detail, feature.why, _UPGRADE.format(since=feature.since))


def _check_elr(levels: Mapping[str, int]) -> Check:
    name, why = (
        "Eligible leader replicas",
        "electing a leader without data loss when no replica is in sync (KIP-966)",
    )
    if levels.get(_ELR, 0) > 0:
        detail = "enabled; the cluster-wide min.insync.replicas cannot be deleted"
        return Check(name, CheckStatus.OK, detail, why)
    return Check(name, CheckStatus.SKIPPED, "not enabled; kdeclare does not require this feature", why)


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun if count == 1 else noun + 's'}"
