"""Thread pools change by at most a factor of two at a time.

DynamicThreadPool.validateReconfiguration; the log cleaner's and the remote log's have rules of their own
that come to the same (docs/kafka-observed.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kdeclare.core.changes import FieldChange, FieldOp
from kdeclare.providers.kafka.config.catalog import catalog
from kdeclare.providers.kafka.config.config_ops import key_of
from kdeclare.providers.kafka.ids import ConfigScope
from kdeclare.providers.kafka.live import ConfigEntry

THREAD_POOLS = frozenset(
    {
        "background.threads",
        "log.cleaner.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
    }
)


def in_steps(
    stages: Sequence[Sequence[FieldChange]], live: Mapping[str, ConfigEntry]
) -> list[list[FieldChange]]:
    """The same stages, and further ones for pools that are to change by more than a factor of two."""
    result: list[list[FieldChange]] = [[] for _ in stages]
    for number, stage in enumerate(stages):
        for field in stage:
            for offset, step in enumerate(_steps(field, live)):
                if number + offset == len(result):
                    result.append([])
                result[number + offset].append(step)
    return result


def _steps(field: FieldChange, live: Mapping[str, ConfigEntry]) -> Iterator[FieldChange]:
    """Doublings or halvings, and the field itself last. A DELETE leads to what lies beneath the override."""
    key = key_of(field)
    if key not in THREAD_POOLS:
        yield field
        return
    info = catalog(ConfigScope.BROKER).get(key)
    default = info.default if info else None
    entry = live.get(key)
    current = _size(entry.value if entry else default)
    beneath = entry.beneath if entry and entry.beneath else default
    wanted = _size(beneath if field.op is FieldOp.DELETE else field.after)
    before = field.before
    while current and wanted and not current // 2 <= wanted <= current * 2:
        current = current * 2 if wanted > current else (current + 1) // 2
        yield FieldChange(field.path, FieldOp.SET, before, str(current))
        before = str(current)
    yield replace(field, before=before)


def _size(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None
