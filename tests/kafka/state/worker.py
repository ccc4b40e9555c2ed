"""A process that uses a state in a topic.

    python -m tests.kafka.state.worker count BOOTSTRAP TOPIC NAME COUNT [PARITY]
    python -m tests.kafka.state.worker hang BOOTSTRAP TOPIC [TIMEOUT]

count: increase a shared counter COUNT times, and create an object for each increase. With a PARITY, wait
until the counter has it, so that two processes alternate. Prints figures as JSON.
hang: write, print a line, and stop before the commit. TIMEOUT: after how many seconds the coordinator aborts
the transaction; by default, as in kdeclare.
"""

import json
import sys
import time

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.storage.conditional_objects import ObjectConflict
from kdeclare.providers.kafka.client.records.transactional_producer import TransactionalProducer
from kdeclare.providers.kafka.state_topic import topic_objects
from tests.kafka.state.topics import StateTopics

COUNTER = "counter.json"


def count(bootstrap: str, topic: str, name: str, times: int, parity: int | None) -> dict[str, float]:
    """Increase the counter. A failure without a known outcome is followed by reading, as a person would."""
    objects = StateTopics(bootstrap).open(topic)
    started_at, conflicts, failures, done = time.monotonic(), 0, 0, 0
    while done < times:
        try:
            stored = objects.get(COUNTER)
            assert stored is not None
            if parity is not None and int(stored.data) % 2 != parity:
                continue
            objects.replace(COUNTER, b"%d" % (int(stored.data) + 1), stored.version)
            objects.create(f"journals/{name}/{done:06}.json", stored.data)
            done += 1
        except ObjectConflict:
            conflicts += 1
        except KdeclareError:
            failures += 1
    objects.close()
    return {
        "conflicts": conflicts,
        "failures": failures,
        "seconds": time.monotonic() - started_at,
    }


def hang(bootstrap: str, topic: str, timeout_s: float | None) -> None:
    """Leave a transaction open."""

    def stop(self: TransactionalProducer) -> None:
        print("written", flush=True)
        time.sleep(600)

    if timeout_s is not None:
        topic_objects.TRANSACTION_TIMEOUT_S = timeout_s  # type: ignore[attr-defined]
    objects = StateTopics(bootstrap).open(topic)
    stored = objects.get(COUNTER)
    assert stored is not None
    TransactionalProducer.commit = stop  # type: ignore[method-assign]
    objects.replace(COUNTER, b"lost", stored.version)


if __name__ == "__main__":
    mode, *arguments = sys.argv[1:]
    if mode == "hang":
        bootstrap, topic, *timeout = arguments
        hang(bootstrap, topic, float(timeout[0]) if timeout else None)
    else:
        bootstrap, topic, name, times, *parity = arguments
        figures = count(bootstrap, topic, name, int(times), int(parity[0]) if parity else None)
        print(json.dumps(figures))
