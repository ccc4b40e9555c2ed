"""Read kdeclare's own principal and rights in a cluster. Brokers report only some of this information."""

from collections.abc import Iterable
from enum import StrEnum

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope
from kdeclare.providers.kafka.live import ClusterInfo
from kdeclare.providers.kafka.port import Cluster
from kdeclare.providers.kafka.request_values import ConfigQuery, Configs

ALLOW_EVERYONE = "allow.everyone.if.no.acl.found"
_AUTHORIZER_CLASS = "authorizer.class.name"
_STANDARD_AUTHORIZERS = frozenset(
    {
        "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "kafka.security.authorizer.AclAuthorizer",  # of clusters with ZooKeeper; the rules are the same
    }
)


class Authorizer(StrEnum):
    """The type of authorizer that the brokers use."""

    STANDARD = "standard"
    CUSTOM = "custom"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class OwnAccess:
    """The information that kdeclare has about its own access to a cluster.

    principal: the principal that kdeclare connects as; None if unknown.
    rights: the operations on the cluster that the brokers allow kdeclare to perform; None if unknown.
    allows_everyone: the possible values of ``allow.everyone.if.no.acl.found`` on the brokers.
    """

    principal: str | None
    rights: frozenset[str] | None
    allows_everyone: frozenset[bool]
    authorizer: Authorizer = Authorizer.STANDARD


def read_own_access(cluster: Cluster) -> OwnAccess:
    """Read kdeclare's own access. Raises Fault if the cluster does not respond."""
    info = cluster.describe()
    described = _describe_brokers(cluster, info, ALLOW_EVERYONE, _AUTHORIZER_CLASS)
    return OwnAccess(
        info.principal, cluster.find_cluster_rights(), _parse_flags(described), _parse_authorizers(described)
    )


def read_allows_everyone(cluster: Cluster, info: ClusterInfo) -> frozenset[bool]:
    """Return the possible values of ``allow.everyone.if.no.acl.found``.

    If a broker does not report its value, both true and false are possible.

    Raises Fault if the cluster does not respond.
    """
    return _parse_flags(_describe_brokers(cluster, info, ALLOW_EVERYONE))


def _describe_brokers(cluster: Cluster, info: ClusterInfo, *keys: str) -> list[Configs | Fault]:
    resources = [ConfigResource(ConfigScope.BROKER, str(b.id)) for b in info.brokers if not b.fenced]
    queries = [ConfigQuery(resource, frozenset(keys)) for resource in resources]
    return list(cluster.describe_configs_partially(queries).values())


def _parse_flags(described: Iterable[Configs | Fault]) -> frozenset[bool]:
    possible: set[bool] = set()
    for configs in described:
        if isinstance(configs, Fault):
            possible |= {True, False}
        else:
            # Brokers describe the key only if it is set, and hide its value: KafkaConfig does not know the
            # keys of authorizers, so brokers treat them as sensitive.
            entry = configs.get(ALLOW_EVERYONE)
            possible |= {False} if entry is None else _parse_flag(entry.value)
    return frozenset(possible or {True, False})


def _parse_flag(value: str | None) -> frozenset[bool]:
    return frozenset({True, False} if value is None else {value.strip().lower() == "true"})


def _parse_authorizers(described: Iterable[Configs | Fault]) -> Authorizer:
    entries = [c.get(_AUTHORIZER_CLASS) for c in described if not isinstance(c, Fault)]
    classes = {entry.value.strip() for entry in entries if entry is not None and entry.value}
    if not classes:
        return Authorizer.UNKNOWN
    return Authorizer.STANDARD if classes <= _STANDARD_AUTHORIZERS else Authorizer.CUSTOM
