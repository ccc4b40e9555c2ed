"""Measure the time to hash the secrets of a plan: slow hashes on one thread or all processors, and HMACs.

    python -m benchmarks.secrets [COUNT]

Each round hashes different values, because a process caches its hashes. The rounds of the three methods
alternate. The output contains the median seconds of each method, and the ratio to one thread. Then COUNT
broker passwords are compared with a state that contains all of them, as in every plan after the first apply.
"""

import statistics
import sys
import time
from functools import partial

from kdeclare.core.progress import ignore_progress
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, narrow
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.secrets.secret_hashes import SecretHasher, read_keys
from kdeclare.core.secrets.secret_refs import Secret
from kdeclare.engine.planning.secret_digests import hash_secrets
from kdeclare.providers.kafka.broker_config import BrokerConfigRecord
from kdeclare.providers.kafka.config.configs_kind import ConfigsBody

COUNT = 1_000
_ROUNDS = 3
_KEY = "listener.name.internal.ssl.keystore.password"


def _secret_of(item: DesiredResource) -> Secret:
    return narrow(item.get_body(ConfigsBody).configs[_KEY], Secret)


def brokers(count: int, salt: str) -> list[DesiredResource]:
    """Return the configs of ``count`` brokers, each with one password."""
    kind = KINDS["BrokerConfig"]
    found = []
    for number in range(count):
        spec = kind.spec.model_validate({"configs": {_KEY: f"password {salt} {number}"}})
        body, _ = kind.parse(str(number), spec)
        found.append(DesiredResource(ResourceId("BrokerConfig", str(number)), body))
    return found


def hash_one_by_one(hasher: SecretHasher, items: list[DesiredResource]) -> None:
    """Hash on one thread, as in kdeclare 0.1."""
    for item in items:
        hasher.make_hash(str(item.id), _KEY, _secret_of(item).value)


def hash_all(hasher: SecretHasher, items: list[DesiredResource]) -> None:
    """Hash on all processors, as in a plan."""
    hash_secrets(items, {}, hasher, ignore_progress)


def compare_again(hasher: SecretHasher, items: list[DesiredResource]) -> float:
    """Return the seconds to compare all secrets with their hashes in a state, without cached hashes."""
    sealed = hash_secrets(items, {}, hasher, ignore_progress)
    owned: dict[str, OwnedRecord] = {
        str(item.id): BrokerConfigRecord({_KEY: _secret_of(item).ref}) for item in sealed
    }
    from kdeclare.core.secrets import secret_hashes

    secret_hashes._hash_with.cache_clear()
    began = time.perf_counter()
    again = hash_secrets(items, owned, hasher, ignore_progress)
    seconds = time.perf_counter() - began
    assert all(_secret_of(item).stored for item in again)
    return seconds


def main() -> None:
    """Measure and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    slow = SecretHasher("benchmark")
    keyed = SecretHasher("benchmark", read_keys({"KDECLARE_SECRET_KEY": "the key of a benchmark"}))
    ways = {
        "PBKDF2, one thread": partial(hash_one_by_one, slow),
        "PBKDF2, all processors": partial(hash_all, slow),
        "HMAC with a key": partial(hash_all, keyed),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(_ROUNDS):
        for name, way in ways.items():
            items = brokers(count, f"{name} {number}")
            began = time.perf_counter()
            way(items)
            seconds[name].append(time.perf_counter() - began)
    base = statistics.median(seconds["PBKDF2, one thread"])
    for name, found in seconds.items():
        median = statistics.median(found)
        print(f"{name:24} {count:,} secrets  {median:7.2f} s  ratio {median / base:.3f}")
    for name, hasher in (("PBKDF2", slow), ("HMAC", keyed)):
        again = compare_again(hasher, brokers(count, "again"))
        print(f"compare again, {name:9} {count:,} secrets  {again:7.2f} s")


if __name__ == "__main__":
    main()
