"""ACL requests of the in-memory cluster: what brokers validate, and the permissions of the client.

Modeled on AclApis and AclControlManager of Apache Kafka, which validate very little.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.acl.authorization import AccessRequest, decide_access
from kdeclare.providers.kafka.acl.binding import ALL, CLUSTER, CLUSTER_NAME, LITERAL, Binding, list_operations

HOST = "127.0.0.1"
"""The address that the client connects from."""


STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The value of ``authorizer.class.name`` on brokers with an authorizer."""


@dataclass
class Access:
    """The ACLs that one client of a cluster can read and change.

    principal: the principal of the client. If the client is not authenticated, the principal is None, and
        only bindings for ``User:*`` apply to it.
    """

    bindings: set[Binding]
    has_authorizer: bool
    is_super_user: bool
    principal: str | None

    def describe(self, principals: Sequence[str] | None) -> frozenset[Binding]:
        """Handle DescribeAcls."""
        self._require("DESCRIBE")
        return frozenset(b for b in self.bindings if principals is None or b.principal in principals)

    def create(self, binding: Binding) -> None:
        """Handle CreateAcls for one binding."""
        self._require("ALTER")
        if ":" not in binding.principal:
            raise Fault(
                "INVALID_REQUEST",
                f"Could not parse principal from `{binding.principal}` (no colon is present separating the "
                "principal type from the principal name)",
            )
        if not binding.name:
            raise Fault("INVALID_REQUEST", "Invalid empty resource name")
        if binding.resource_type == CLUSTER and (binding.name, binding.pattern) != (CLUSTER_NAME, LITERAL):
            raise Fault("INVALID_REQUEST", f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        self.bindings.add(binding)

    def delete(self, binding: Binding) -> None:
        """Handle DeleteAcls for one filter that matches exactly one binding."""
        self._require("ALTER")
        self.bindings.discard(binding)

    def find_cluster_rights(self) -> frozenset[str]:
        """Return the authorized operations that DescribeCluster reports."""
        return frozenset(o for o in list_operations(CLUSTER) if o != ALL and self.is_allowed(o))

    def is_allowed(self, operation: str, resource_type: str = CLUSTER, name: str = CLUSTER_NAME) -> bool:
        """Return whether the client may perform an operation. The default resource is the cluster."""
        if self.is_super_user or not self.has_authorizer:
            return True
        principal = self.principal or "User:ANONYMOUS"
        request = AccessRequest(principal, operation, resource_type, name, HOST)
        return decide_access(self.bindings, request).is_allowed

    def _require(self, operation: str) -> None:
        if not self.has_authorizer:
            raise Fault("SECURITY_DISABLED", "No Authorizer is configured.")
        if not self.is_allowed(operation):
            raise Fault("CLUSTER_AUTHORIZATION_FAILED", f"the request needs {operation} on the cluster")
