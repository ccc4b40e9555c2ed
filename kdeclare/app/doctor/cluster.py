"""The cluster: how it is reached, who it is, what one may do there and what its brokers have."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kdeclare.app.doctor.needs import features, rights
from kdeclare.app.doctor.problems import of_error
from kdeclare.app.workspace import Options, Workspace, surroundings_of
from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.connection import KafkaSettings, read_client_properties, stated_servers
from kdeclare.providers.kafka.examination import Examinable
from kdeclare.providers.kafka.live import Broker, ClusterInfo
from kdeclare.report.doctor_views import Check, Section, Standing
from kdeclare.report.values import plural

Reaching = Callable[[str, Mapping[str, str], float], Examinable]
"""Opens a cluster at addresses (none: those of the properties) with client properties, within seconds.
Raises KdeclareError."""

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


def reach_kafka(servers: str, config: Mapping[str, str], timeout_s: float) -> Examinable:
    """Real brokers. Raises KdeclareError."""
    from kdeclare.providers.kafka.client import connect

    return connect(servers, config, timeout_s=timeout_s)


def cluster_sections(
    workspace: Workspace, options: Options, reaching: Reaching
) -> tuple[list[Section], str | None]:
    """All that concerns the cluster, and its id where it was reached."""
    from kdeclare.providers.kafka.client import provided  # most commands meet no cluster

    try:
        settings = KafkaSettings.model_validate(workspace.project.environment.connection_fields)
        surroundings = surroundings_of(workspace.project, options, workspace.environ)
        config = read_client_properties(settings, surroundings)
        used = provided(config)
    except KdeclareError as problem:
        return [Section("Cluster", (of_error("Client properties", Standing.FAILED, problem),))], None
    stated = stated_servers(settings, surroundings) or ""
    servers = stated or used.get("bootstrap.servers", "")
    if not servers:
        return [Section("Cluster", (NO_CLUSTER,))], None
    timeout_s = options.patience_s

    def one(address: str) -> KdeclareError | None:
        try:
            reaching(address, config, timeout_s).close()
        except KdeclareError as problem:
            return problem
        return None

    try:
        # not by what was found in properties: an address that is none may be a secret, and would be shown
        cluster = reaching(stated, config, timeout_s)
    except KdeclareError as problem:
        return [Section("Cluster", (_not_reached(problem),))], None
    try:
        return _reached(cluster, used, servers, one)
    finally:
        cluster.close()


def _not_reached(problem: KdeclareError) -> Check:
    code = problem.diagnostics[0].code
    name = "Network" if code == _UNREACHABLE else "Client properties"
    return of_error(name, Standing.FAILED, problem)


def _reached(
    cluster: Examinable,
    config: Mapping[str, str],
    servers: str,
    one: Callable[[str], KdeclareError | None],
) -> tuple[list[Section], str | None]:
    properties = _properties(config, cluster)
    try:
        info = cluster.describe()
        found = cluster.examine()
    except Fault as fault:
        refused = Check("Cluster", Standing.FAILED, f"it does not tell who it is: {fault}")
        return [Section("Cluster", (*properties, refused))], None
    network = _network(info, servers, one)
    about = (*properties, _identity(info), *network)
    return [
        Section("Cluster", about),
        Section("Rights", rights(found)),
        Section("Features", features(found)),
    ], info.id


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
    return Check("Cluster", Standing.OK, f"{info.id}, {release}, {plural(len(info.brokers), 'broker')}{who}")


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
    found = of_error("Address", Standing.WARNING, problem)
    return replace(found, hint=f"Another address works, and is used. {found.hint}".rstrip())


def _broker(broker: Broker, problem: KdeclareError | None) -> Check:
    name, address = f"Broker {broker.id}", _address(broker)
    if broker.fenced:
        fenced = f"{address} does not serve: it is down, or has just been started"
        return Check(name, Standing.WARNING, fenced, "its replicas", "Start it, or look at its log.")
    if problem is None:
        return Check(name, Standing.OK, f"{address} answers")
    found = of_error(name, Standing.FAILED, problem, "all that only this broker can tell or do")
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
