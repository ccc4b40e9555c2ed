"""The values of flags as Kafka's own tools write them (TopicCommand, ConfigCommand)."""

import re
from collections.abc import Iterable, Mapping

import typer

Configs = Mapping[str, object]
"""As in a manifest's ``configs``: a value, ``{append, subtract}``, or None for no override."""

_OUTSIDE_BRACKETS = re.compile(r",(?=[^\]]*(?:\[|$))")
"""ConfigCommand's own way of telling the commas between pairs from those in ``[a,b]``."""


def replica_assignment(text: str | None) -> dict[int, tuple[int, ...]]:
    """``1:2,2:3``: the brokers of partition 0, of partition 1 … Raises BadParameter."""
    if text is None:
        return {}
    parts = [part.strip() for part in text.split(",")]
    return {n: _brokers(part, text) for n, part in enumerate(parts)}


def _brokers(part: str, text: str) -> tuple[int, ...]:
    ids = [broker.strip() for broker in part.split(":")]
    if not all(broker.isascii() and broker.isdigit() for broker in ids):
        raise typer.BadParameter(
            f"'{text}' is not of the form BROKER:BROKER,BROKER:BROKER, a list of brokers for each partition.",
            param_hint="--replica-assignment",
        )
    if len(set(ids)) != len(ids):
        raise typer.BadParameter(
            f"'{part}' names a broker twice; a partition has one replica on a broker.",
            param_hint="--replica-assignment",
        )
    return tuple(map(int, ids))


def single_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """``--config KEY=VALUE``, once a key: the value may hold commas (TopicCommand). Raises BadParameter."""
    return _paired(option, texts or ())


def listed_pairs(option: str, texts: Iterable[str] | None) -> dict[str, str]:
    """``k=v,k=[a,b]``: pairs, brackets round values with commas (ConfigCommand). Raises BadParameter."""
    found = _paired(option, (pair for text in texts or () for pair in _OUTSIDE_BRACKETS.split(text)))
    return {key: _bare(value) for key, value in found.items()}


def _bare(value: str) -> str:
    in_brackets = value.startswith("[") and value.endswith("]")
    return value[1:-1].strip() if in_brackets else value


def _paired(option: str, pairs: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        key, sign, value = pair.partition("=")
        if not (key.strip() and sign):  # not repeated: it can be the rest of a password that has a comma
            raise typer.BadParameter(
                f"part {number} is not of the form KEY=VALUE, as in retention.ms=604800000; "
                "brackets go round values with commas.",
                param_hint=option,
            )
        if key.strip() in found:
            raise typer.BadParameter(f"'{key.strip()}' is given twice.", param_hint=option)
        found[key.strip()] = value.strip()
    return found


def keys(texts: Iterable[str] | None) -> tuple[str, ...]:
    """``k1,k2``, as often as it was given."""
    return tuple(dict.fromkeys(k.strip() for text in texts or () for k in text.split(",") if k.strip()))


def config_changes(
    values: Mapping[str, str],
    deleted: Iterable[str],
    appended: Mapping[str, str],
    subtracted: Mapping[str, str],
) -> Configs:
    """All of it as configs. A key stands in one of them; only appended and subtracted go together.

    Raises BadParameter.
    """
    parts: dict[str, object] = {
        key: {
            name: [element.strip() for element in given[key].split(",") if element.strip()]
            for name, given in (("append", appended), ("subtract", subtracted))
            if key in given
        }
        for key in {**appended, **subtracted}
    }
    configs: dict[str, object] = dict(values)
    _joined(configs, dict.fromkeys(deleted), "--delete-config")
    _joined(configs, parts, "--append-config and --subtract-config")
    return configs


def _joined(configs: dict[str, object], more: Configs, option: str) -> None:
    both = sorted(configs.keys() & more.keys())
    if both:
        raise typer.BadParameter(
            f"'{both[0]}' is to be changed in another way, too; Kafka takes one change of a key at a time.",
            param_hint=option,
        )
    configs.update(more)
