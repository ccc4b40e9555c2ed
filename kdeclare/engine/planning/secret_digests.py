"""Hash the secrets of a plan request. Use the salt of the state, and keep earlier hashes that still match."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.progress import Progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import SecretHasher, is_hash_of
from kdeclare.core.secrets.secret_refs import (
    Secret,
    ValuePath,
    find_records,
    find_secrets,
    has_secret,
    replace_secrets,
)

_PROGRESS_THRESHOLD = 100
"""The minimum number of secrets for which progress is shown.

Hashing fewer secrets takes less than two seconds.
"""
_PROGRESS_INTERVAL = 20

_SecretLocation = tuple[ResourceId, ValuePath]


@dataclass(frozen=True, slots=True)
class _SealTask:
    """A secret to hash. stored: the hash in the state for the same field; empty if there is none."""

    place: _SecretLocation
    secret: Secret
    stored: str


def has_secrets(desired: Iterable[DesiredResource]) -> bool:
    """Whether a declared value is a secret, or might be a secret that only the cluster can identify."""
    return any(has_secret(item.body) for item in desired)


def hash_secrets(
    desired: Sequence[DesiredResource],
    owned: Mapping[str, OwnedRecord],
    hasher: SecretHasher,
    progress: Progress,
    *,
    portable: bool = False,
) -> tuple[DesiredResource, ...]:
    """Return the resources with hashed secrets. Slow hashes are computed on all processors.

    If a secret matches its hash in the state, the hash is kept, unless its method is outdated. If only the
    cluster can tell whether a value is a secret, the value is kept together with its hash.

    portable: whether values that only the cluster can identify as secret will be compared on a machine
        without the key. If so, their hashes are made without the key.
    """
    tasks = [task for item in desired for task in _list_tasks(item, owned)]
    sealed_secrets: dict[_SecretLocation, Secret] = {}
    with ThreadPoolExecutor() as pool:  # hashlib releases the interpreter lock
        for done, secret in enumerate(pool.map(partial(_hash_secret, hasher, portable), tasks)):
            sealed_secrets[tasks[done].place] = secret
            if len(tasks) >= _PROGRESS_THRESHOLD and done % _PROGRESS_INTERVAL == 0:
                progress("Hashing secrets", done, len(tasks))
    by_resource: dict[ResourceId, dict[ValuePath, Secret]] = {}
    for (id_, path), secret in sealed_secrets.items():
        by_resource.setdefault(id_, {})[path] = secret
    return tuple(
        replace(item, body=replace_secrets(item.body, by_resource[item.id]))
        if item.id in by_resource
        else item
        for item in desired
    )


def collect_secret_values(desired: Iterable[DesiredResource]) -> dict[str, str]:
    """Return a mapping from the hash of each declared secret to the value of the secret."""
    values_by_hash: dict[str, str] = {}
    for item in desired:
        for _, secret in find_secrets(item.body):
            values_by_hash |= dict.fromkeys((secret.digest, secret.stored or secret.digest), secret.value)
    return values_by_hash


def _hash_secret(hasher: SecretHasher, portable: bool, task: _SealTask) -> Secret:
    (id_, path), secret = task.place, task.secret
    if portable and secret.doubtful:
        hasher = replace(hasher, key_id=None)
    stored = task.stored if task.stored and is_hash_of(task.stored, secret.value) else ""
    if stored and hasher.is_current(stored):
        return replace(secret, digest=stored, stored=stored)
    return replace(
        secret, digest=hasher.make_hash(str(id_), ".".join(map(str, path)), secret.value), stored=stored
    )


def list_stored_hashes(owned: Mapping[str, OwnedRecord]) -> Iterator[str]:
    """Yield all hashes of secrets in the ownership records."""
    for record in owned.values():
        for _, secret in find_records(record):
            yield secret.secret


def _list_tasks(desired: DesiredResource, owned: Mapping[str, OwnedRecord]) -> Iterator[_SealTask]:
    secrets = list(find_secrets(desired.body))
    if not secrets:
        return
    records = dict(find_records(owned.get(str(desired.id))))
    for path, secret in secrets:
        yield _SealTask((desired.id, path), secret, records[path].secret if path in records else "")
