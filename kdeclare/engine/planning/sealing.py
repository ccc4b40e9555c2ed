"""Give the secrets of a request their hashes, for which the state has a salt and earlier hashes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

from kdeclare.core.ids import ResourceId
from kdeclare.core.jsontypes import Json
from kdeclare.core.kind import Desired
from kdeclare.core.references import Referenced
from kdeclare.core.registry import KINDS
from kdeclare.core.secret_hashes import SecretHasher, matches
from kdeclare.core.secrets import Secret, is_secret
from kdeclare.engine.planning.preflight import Progress
from kdeclare.providers.kafka.config.catalog import Catalog, catalog
from kdeclare.providers.kafka.config.wishes import Whole, Wish, as_secret

_SHOWN_FROM = 100
"""Fewer secrets take less than two seconds: no progress is shown."""
_EVERY = 20

_Place = tuple[ResourceId, str]


@dataclass(frozen=True, slots=True)
class _Task:
    """A secret to seal. stored: the state's hash of this config, empty where it has none."""

    place: _Place
    secret: Secret
    stored: str


def has_secrets(desired: Iterable[Desired]) -> bool:
    """Whether anything is declared that is secret, or may turn out to be."""
    return any(True for item in desired for _ in _secrets_of(item))


def seal(
    desired: Sequence[Desired],
    owned: Mapping[str, Json],
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
    places = {id_ for id_, _ in sealed}
    return tuple(_with_hashes(item, sealed) if item.id in places else item for item in desired)


def known_values(desired: Iterable[Desired]) -> dict[str, str]:
    """The values of sealed secrets by hash."""
    found: dict[str, str] = {}
    for item in desired:
        for wish in _wishes_of(item).values():
            secret = wish.hidden if isinstance(wish, Whole) else wish
            if isinstance(secret, Secret):
                found |= dict.fromkeys((secret.digest, secret.stored or secret.digest), secret.value)
    return found


def _sealed(hasher: SecretHasher, portable: bool, task: _Task) -> Secret:
    (id_, key), secret = task.place, task.secret
    if portable and secret.doubtful:
        hasher = replace(hasher, key_id=None)
    stored = task.stored if task.stored and matches(task.stored, secret.value) else ""
    if stored and hasher.is_current(stored):
        return replace(secret, digest=stored, stored=stored)
    return replace(secret, digest=hasher.make_hash(str(id_), key, secret.value), stored=stored)


def stored_hashes(owned: Mapping[str, Json]) -> Iterator[str]:
    """All hashes of secrets in records of ownership."""
    for record in owned.values():
        for item in ((record or {}).get("configs") or {}).values():
            if is_secret(item):
                yield item["secret"]


def _tasks_of(item: Desired, owned: Mapping[str, Json]) -> Iterator[_Task]:
    records = (owned.get(str(item.id)) or {}).get("configs", {})
    for key, secret in _secrets_of(item):
        record = records.get(key)
        yield _Task((item.id, key), secret, record["secret"] if is_secret(record) else "")


def _secrets_of(item: Desired) -> Iterator[tuple[str, Secret]]:
    """Secrets by key, and what may turn out to be one: no key that the catalogue knows hides its value."""
    scope = KINDS[item.id.kind].config_scope
    for key, wish in _wishes_of(item).items():
        if isinstance(wish, Secret):
            yield key, wish
        elif isinstance(wish, Whole) and scope is not None and _may_be_hidden(key, wish, catalog(scope)):
            yield key, as_secret(wish, doubtful=True)


def _may_be_hidden(key: str, wish: Whole, known: Catalog) -> bool:
    """Whether the cluster may hide it; a reference also where the catalogue takes the key for an open one."""
    return known.get(key) is None or (known.hides_unknown and isinstance(wish.value, Referenced))


def _wishes_of(item: Desired) -> Mapping[str, Wish]:
    wishes: Mapping[str, Wish] = getattr(item.body, "configs", {})
    return wishes


def _with_hashes(item: Desired, sealed: Mapping[_Place, Secret]) -> Desired:
    configs: dict[str, Wish] = {}
    for key, wish in _wishes_of(item).items():
        secret = sealed.get((item.id, key))
        configs[key] = secret or wish if isinstance(wish, Secret) else wish
        if secret is not None and isinstance(wish, Whole):
            configs[key] = replace(wish, hidden=secret)
    return replace(item, body=replace(item.body, configs=configs))
