"""Read and change SCRAM credentials (DescribeUserScramCredentials, AlterUserScramCredentials, KIP-554)."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka.protocol.admin.users import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest

from kdeclare.core.live.faults import Fault, Result
from kdeclare.providers.kafka.client.faults import build_fault_from_code
from kdeclare.providers.kafka.client.freshness import Freshness
from kdeclare.providers.kafka.client.wire import Wire, send_batches
from kdeclare.providers.kafka.request_values import ScramAlteration
from kdeclare.providers.kafka.scram_user.credential import Credentials, Mechanism

_CODES = {Mechanism.SHA_256: 1, Mechanism.SHA_512: 2}
"""The codes of org.apache.kafka.clients.admin.ScramMechanism."""
_MECHANISMS = {code: mechanism for mechanism, code in _CODES.items()}
_DIGESTS = {Mechanism.SHA_256: "sha256", Mechanism.SHA_512: "sha512"}
_SALT_BYTES = 24
_MAX_SINGLE_USERS = 100
"""The maximum number of users to describe by name. For more users, one request reads all users."""
_RESOURCE_NOT_FOUND = 91


def describe_scram_users(
    wire: Wire, freshness: Freshness, users: Sequence[str] | None
) -> Mapping[str, Credentials]:
    """Return the credentials by user. Users without credentials are omitted. Raises Fault."""
    # Brokers treat an empty list like null: both mean all users. A principal without permission gets an
    # error.
    is_selective = users is not None and len(users) <= _MAX_SINGLE_USERS
    names = [DescribeUserScramCredentialsRequest.UserName(name=name) for name in users or () if is_selective]
    request = DescribeUserScramCredentialsRequest(users=names)
    (answer,) = wire.ask([request], _read_users, changes=False, nodes=freshness.nodes())
    if isinstance(answer, Fault):
        raise answer
    return answer if users is None else {user: answer[user] for user in users if user in answer}


def alter_scram_users(wire: Wire, items: Sequence[ScramAlteration]) -> dict[str, Result]:
    """Set and delete credentials, and return a result for each user. A user can appear only once.

    Raises Fault if exactly one request is sent and the request fails.
    """
    return send_batches(
        wire,
        list(items),
        get_key=lambda item: item.user,
        build_request=_build_alter_request,
        read_codes=_read_codes,
    )


def _build_alter_request(items: Sequence[ScramAlteration]) -> Any:
    request_class = AlterUserScramCredentialsRequest
    return request_class(
        deletions=[
            request_class.ScramCredentialDeletion(name=item.user, mechanism=_CODES[item.mechanism])
            for item in items
            if item.upsertion is None
        ],
        upsertions=[_build_upsertion(item) for item in items if item.upsertion is not None],
    )


def _build_upsertion(item: ScramAlteration) -> Any:
    assert item.upsertion is not None
    salt, iterations = secrets.token_bytes(_SALT_BYTES), item.upsertion.iterations
    password = item.upsertion.password.encode()
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=item.user,
        mechanism=_CODES[item.mechanism],
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(_DIGESTS[item.mechanism], password, salt, iterations),
    )


def _read_users(response: Any) -> dict[str, Credentials]:
    if response.error_code:
        raise build_fault_from_code(response.error_code, response.error_message, changes=False)
    credentials: dict[str, Credentials] = {}
    for result in response.results:
        if result.error_code == _RESOURCE_NOT_FOUND:
            continue
        if result.error_code:
            raise build_fault_from_code(result.error_code, result.error_message, changes=False)
        credentials[result.user] = {
            _MECHANISMS[info.mechanism]: info.iterations
            for info in result.credential_infos
            if info.mechanism in _MECHANISMS
        }
    return credentials


def _read_codes(response: Any) -> Iterable[tuple[str, int, str | None]]:
    for result in response.results:
        yield result.user, result.error_code, result.error_message
