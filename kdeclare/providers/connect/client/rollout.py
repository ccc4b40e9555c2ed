"""Changing the overrides of a group: every worker is asked first, then one of them is told."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from kdeclare.core.faults import Fault
from kdeclare.providers.connect.client.port import INVALID, UNREACHABLE, Changes, ConnectWorkers, Validation
from kdeclare.providers.connect.client.reading import told

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one worker says of proposed overrides. reason: why it says nothing; empty if it does."""

    url: str
    validation: Validation | None
    reason: str = ""

    @property
    def is_good(self) -> bool:
        """Whether it could apply them."""
        return self.validation is not None and self.validation.valid

    @property
    def words(self) -> str:
        """What it has against them."""
        if self.validation is None:
            return self.reason
        lines = [
            f"{key}: {message}" if key else message
            for key, messages in self.validation.errors.items()
            for message in messages
        ]
        return "; ".join(line.strip().rstrip(".") for line in lines) or "not valid, without a reason"


def verdicts(workers: ConnectWorkers, changes: Changes) -> tuple[Verdict, ...]:
    """What every worker says of ``changes``; nothing is changed. Raises nothing that a worker can cause."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(workers.urls)), thread_name_prefix="workers") as pool:
        return tuple(pool.map(lambda url: _verdict(workers, url, changes), workers.urls))


def check(workers: ConnectWorkers, changes: Changes) -> None:
    """Raises Fault, naming each worker that could not apply ``changes``, or cannot be asked."""
    said: dict[str, list[str]] = {}
    for verdict in verdicts(workers, changes):
        if not verdict.is_good:
            said.setdefault(verdict.words, []).append(verdict.url)
    if said:
        raise Fault(INVALID, ". ".join(f"{', '.join(urls)}: {words}" for words, urls in said.items()))


def change(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """Check with every worker, then send one PATCH; the overrides as they are then. Raises Fault."""
    check(workers, changes)
    return through_any(workers, changes)


def through_any(workers: ConnectWorkers, changes: Changes) -> Mapping[str, str]:
    """One PATCH through the first worker that can be reached. Raises Fault."""
    last = Fault(UNREACHABLE, "There is no worker to ask.")
    for url in workers.urls:
        try:
            return workers.patch(url, changes)
        except Fault as fault:
            last = Fault(fault.error, f"{url}: {told(fault)}.", fault.kind)
            if fault.error != UNREACHABLE:
                raise last from None
    raise last


def _verdict(workers: ConnectWorkers, url: str, changes: Changes) -> Verdict:
    try:
        return Verdict(url, workers.validate(url, changes))
    except Fault as fault:
        return Verdict(url, None, f"cannot be asked: {told(fault)}")
