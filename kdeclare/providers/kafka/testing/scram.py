"""The SCRAM credentials of the in-memory cluster, modeled on ScramControlManager of Apache Kafka."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kdeclare.core.live.faults import Fault
from kdeclare.providers.kafka.request_values import ScramAlteration, ScramUpsertion
from kdeclare.providers.kafka.scram_user.credential import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    Credentials,
    Mechanism,
)


@dataclass
class ScramStore:
    """The SCRAM credentials by user and mechanism. Passwords are stored, so that tests can log in."""

    users: dict[str, dict[Mechanism, ScramUpsertion]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Return whether any user has a credential."""
        return bool(self.users)

    def list_users(self, users: Sequence[str] | None) -> Mapping[str, Credentials]:
        """Handle DescribeUserScramCredentials."""
        names = self.users if users is None else users
        return {
            name: {mechanism: item.iterations for mechanism, item in self.users[name].items()}
            for name in names
            if name in self.users
        }

    def alter(self, item: ScramAlteration) -> None:
        """Handle AlterUserScramCredentials for one credential. Raises Fault."""
        if not item.user:
            raise Fault("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")
        credentials = self.users.setdefault(item.user, {})
        try:
            if item.upsertion is not None:
                _validate(item.upsertion)
                credentials[item.mechanism] = item.upsertion
            elif credentials.pop(item.mechanism, None) is None:
                raise Fault("RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist")
        finally:
            if not credentials:
                del self.users[item.user]

    def can_log_in(self, user: str, mechanism: Mechanism, password: str) -> bool:
        """Return whether a client can log in with this password."""
        credential = self.users.get(user, {}).get(mechanism)
        return credential is not None and credential.password == password

    def describe(self) -> dict[str, dict[str, int]]:
        """Return the iterations by user and mechanism."""
        return {
            name: {mechanism.value: item.iterations for mechanism, item in sorted(credentials.items())}
            for name, credentials in sorted(self.users.items())
        }


def _validate(upsertion: ScramUpsertion) -> None:
    if upsertion.iterations < MIN_ITERATIONS:
        raise Fault("UNACCEPTABLE_CREDENTIAL", "Too few iterations")
    if upsertion.iterations > MAX_ITERATIONS:
        raise Fault("UNACCEPTABLE_CREDENTIAL", "Too many iterations")
