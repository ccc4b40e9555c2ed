"""Give the secrets of a request their hashes, for which the state has a salt and earlier hashes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from kdeclare.core.frozen import dataclass
from kdeclare.core.progress import Progress
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import Desired
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import SecretHasher, matches
from kdeclare.core.secrets.secret_refs import (
    Secret,
    Steps,
    find_records,
    find_secrets,
    holds_secret,
    replace_secrets,
)

_SHOWN_FROM = 100
"""Fewer secrets take less than two seconds: no progress is shown."""
_EVERY = 20

_Place = tuple[ResourceId, Steps]


@dataclass(frozen=True, slots=True)
class _Task:
    """A secret to seal. stored: the state's hash of what is at this place, empty where it has none."""

    place: _Place
    secret: Secret
    stored: str


def has_secrets(desired: Iterable[Desired]) -> bool:
    """Whether anything is declared that is secret, or may turn out to be."""
    return any(holds_secret(item.body) for item in desired)


def seal(
    desired: Sequence[Desired],
    owned: Mapping[str, OwnedRecord],
    hasher: SecretHasher,
    progress: Progress,
    *,
    portable: bool = False,
) -> tuple[Desired, ...]:
    """The same with hashes; slow hashes are made on all processors.

    A secret whose value is that of the state's hash keeps this hash, unless it is of an earlier kind. Values
    that only the cluster can tell to be secret have a hash beside them.

    portable: whether the latter are compared where there is no key: they get hashes without one.
    """
    tasks = [task for item in desired for task in _tasks_of(item, owned)]
    sealed: dict[_Place, Secret] = {}
    with ThreadPoolExecutor() as pool:  # hashlib releases the interpreter lock
        for done, secret in enumerate(pool.map(partial(_sealed, hasher, portable), tasks)):
            sealed[tasks[done].place] = secret
            if len(tasks) >= _SHOWN_FROM and done % _EVERY == 0:
                progress("Hashing secrets", done, len(tasks))
    by_resource: dict[ResourceId, dict[Steps, Secret]] = {}
    for (id_, at), secret in sealed.items():
        by_resource.setdefault(id_, {})[at] = secret
    return tuple(
        replace(item, body=replace_secrets(item.body, by_resource[item.id]))
        if item.id in by_resource
        else item
        for item in desired
    )


def known_values(desired: Iterable[Desired]) -> dict[str, str]:
    """The values of sealed secrets by hash."""
    found: dict[str, str] = {}
    for item in desired:
        for _, secret in find_secrets(item.body):
            found |= dict.fromkeys((secret.digest, secret.stored or secret.digest), secret.value)
    return found


def _sealed(hasher: SecretHasher, portable: bool, task: _Task) -> Secret:
    (id_, at), secret = task.place, task.secret
    if portable and secret.doubtful:
        hasher = replace(hasher, key_id=None)
    stored = task.stored if task.stored and matches(task.stored, secret.value) else ""
    if stored and hasher.is_current(stored):
        return replace(secret, digest=stored, stored=stored)
    return replace(
        secret, digest=hasher.make_hash(str(id_), ".".join(map(str, at)), secret.value), stored=stored
    )


def stored_hashes(owned: Mapping[str, OwnedRecord]) -> Iterator[str]:
    """All hashes of secrets in records of ownership."""
    for record in owned.values():
        for _, secret in find_records(record):
            yield secret.secret


def _tasks_of(item: Desired, owned: Mapping[str, OwnedRecord]) -> Iterator[_Task]:
    found = list(find_secrets(item.body))
    if not found:
        return
    records = dict(find_records(owned.get(str(item.id))))
    for at, secret in found:
        yield _Task((item.id, at), secret, records[at].secret if at in records else "")
