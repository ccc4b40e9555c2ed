"""Thread pools change by at most a factor of two at a time (DynamicThreadPool.validateReconfiguration)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from kdeclare.kinds.catalog import catalog
from kdeclare.kinds.config_ops import key_of
from kdeclare.model.changes import FieldChange, FieldOp
from kdeclare.model.ids import ConfigScope
from kdeclare.model.live import ConfigEntry

THREAD_POOLS = frozenset(
    {
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.alter.log.dirs.threads",
        "num.replica.fetchers",
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
    key = key_of(field)
    current = _size(key, live)
    if key not in THREAD_POOLS or field.op is not FieldOp.SET or not current:
        yield field
        return
    before, wanted = field.before, int(field.after)
    while not current // 2 <= wanted <= current * 2:
        current = current * 2 if wanted > current else max(1, (current + 1) // 2)
        yield replace(field, before=before, after=str(current))
        before = str(current)
    yield replace(field, before=before)


def _size(key: str, live: Mapping[str, ConfigEntry]) -> int | None:
    entry = live.get(key)
    info = catalog(ConfigScope.BROKER).get(key)
    text = (entry and entry.value) or (info and info.default)
    return int(text) if text and text.isdigit() else None
