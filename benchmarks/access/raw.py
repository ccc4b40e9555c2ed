"""Send the bare requests through kafka-python: ``raw BOOTSTRAP KIND COUNT STEP…``.

Prints a JSON object with the seconds of each step. A step is ``read``, ``create``, ``delete=COUNT`` (the last
COUNT items) or ``clear``.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from benchmarks.access import resources
from kdeclare.sandbox.security import ADMIN, get_password

BATCH = 500
DELETED_ACLS = 50
"""The number of filters in one deletion request. For each filter, the controller scans all ACLs."""
_ITERATIONS = 6144
"""The average of the random numbers of iterations that kdeclare chooses for passwords."""


def get_connection(bootstrap: str) -> dict[str, Any]:
    """Return the arguments with which kafka-python's clients connect as the user ``admin``."""
    return {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": ADMIN,
        "sasl_plain_password": get_password(ADMIN),
    }


def connect(bootstrap: str) -> Any:
    """Connect as the user ``admin``."""
    return KafkaAdminClient(**get_connection(bootstrap), request_timeout_ms=120_000)


class AclRequests:
    """The requests for ACLs."""

    def __init__(self, client: Any, count: int) -> None:
        self._client = client
        self._patterns = [
            (principal, ResourceType[type_.upper()], name, ACLOperation[operation])
            for principal, type_, name, operation in resources.list_bindings(count)
        ]

    def read(self) -> None:
        """Read all ACLs."""
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        self._client.describe_acls(ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, everything))

    def create(self) -> None:
        """Create all ACLs."""
        for batch in _batches(self._patterns, BATCH):
            answer = self._client.create_acls(
                [
                    ACL(principal, "*", operation, ACLPermissionType.ALLOW, ResourcePattern(type_, name))
                    for principal, type_, name, operation in batch
                ]
            )
            assert not answer["failed"], answer["failed"][:3]

    def delete(self, count: int) -> None:
        """Delete the last ``count`` ACLs with one filter for each."""
        for batch in _batches(self._patterns[-count:], DELETED_ACLS):
            filters = [
                ACLFilter(
                    principal,
                    "*",
                    operation,
                    ACLPermissionType.ALLOW,
                    ResourcePatternFilter(type_, name, ACLResourcePatternType.LITERAL),
                )
                for principal, type_, name, operation in batch
            ]
            for _, matches, _ in self._client.delete_acls(filters):
                assert len(matches) == 1

    def clear(self) -> None:
        """Delete all ACLs of each principal with one filter."""
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        for principal in dict.fromkeys(principal for principal, *_ in self._patterns):
            self._client.delete_acls(
                [ACLFilter(principal, None, ACLOperation.ANY, ACLPermissionType.ANY, everything)]
            )


class ScramRequests:
    """The requests for SCRAM credentials."""

    def __init__(self, client: Any, count: int) -> None:
        self._client = client
        self._users = [resources.name_of(number) for number in range(count)]

    def read(self) -> None:
        """Read all credentials."""
        self._client.describe_user_scram_credentials()

    def create(self) -> None:
        """Set a password for each user. kafka-python hashes the passwords."""
        for batch in _batches(self._users, BATCH):
            self._client.alter_user_scram_credentials(
                [
                    UserScramCredentialUpsertion(user, "SCRAM-SHA-512", f"password-{user}", _ITERATIONS)
                    for user in batch
                ]
            )

    def delete(self, count: int) -> None:
        """Delete the last ``count`` credentials."""
        for batch in _batches(self._users[-count:], BATCH):
            self._client.alter_user_scram_credentials(
                [UserScramCredentialDeletion(user, "SCRAM-SHA-512") for user in batch]
            )


class QuotaRequests:
    """The requests for client quotas. KafkaAdminClient has no methods for them."""

    def __init__(self, client: Any, count: int) -> None:
        self._send: Callable[[Any], Any] = lambda request: client._manager.run(client._manager.send, request)
        self._users = [resources.name_of(number) for number in range(count)]

    def read(self) -> None:
        """Read all limits."""
        self._send(DescribeClientQuotasRequest(components=[], strict=False))

    def create(self) -> None:
        """Set the limits of each user."""
        self._alter(self._users, remove=False)

    def delete(self, count: int) -> None:
        """Remove the limits of the last ``count`` users."""
        self._alter(self._users[-count:], remove=True)

    def _alter(self, users: Sequence[str], *, remove: bool) -> None:
        entry = AlterClientQuotasRequest.EntryData
        for batch in _batches(users, BATCH):
            entries = [
                entry(
                    entity=[entry.EntityData(entity_type="user", entity_name=user)],
                    ops=[
                        entry.OpData(key=key, value=float(value), remove=remove)
                        for key, value in resources.LIMITS.items()
                    ],
                )
                for user in batch
            ]
            answer = self._send(AlterClientQuotasRequest(entries=entries, validate_only=False))
            assert not any(item.error_code for item in answer.entries)


def _batches(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


_REQUESTS = {resources.ACL: AclRequests, resources.SCRAM: ScramRequests, resources.QUOTA: QuotaRequests}


def main(bootstrap: str, kind: str, count: str, *steps: str) -> None:
    """Connect, run the steps one after another, and print the seconds of each."""
    client = connect(bootstrap)
    requests = _REQUESTS[kind](client, int(count))
    figures: dict[str, float] = {}
    for step in steps:
        name, _, number = step.partition("=")
        begun = time.perf_counter()
        getattr(requests, name)(*([int(number)] if number else []))
        figures[name] = time.perf_counter() - begun
    client.close()
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
