"""What a cluster can do, and what one may do there: for whoever wants to know before trying."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kdeclare.core.diagnostics import Diagnostic
from kdeclare.providers.kafka.live import ClusterInfo


@dataclass(frozen=True, slots=True)
class Examination:
    """What brokers tell of themselves and of the client.

    versions: the highest version of each API that a broker has, by API key; absent: it has none.
    features: the levels of finalized features (KIP-584) by name.
    on_cluster, on_topics: the operations (org.apache.kafka.common.acl.AclOperation) that ACLs grant
        (KIP-430), of topics by name, those that may be seen. None where it is not told.
    """

    versions: Mapping[int, int] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    on_cluster: frozenset[str] | None = None
    on_topics: Mapping[str, frozenset[str]] | None = None


class Examinable(Protocol):
    """An open connection to a cluster. diagnostics: what was found in its client properties."""

    diagnostics: tuple[Diagnostic, ...]

    def describe(self) -> ClusterInfo:
        """See `providers.kafka.port.Cluster.describe`."""

    def examine(self) -> Examination:
        """Ask. Raises Fault."""

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""
