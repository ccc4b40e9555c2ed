"""What is odd about the racks of a cluster, for people."""

from collections.abc import Sequence

from kdeclare.providers.kafka.live import Broker


def rack_findings(brokers: Sequence[Broker]) -> tuple[str, ...]:
    """A sentence or two for each oddity; nothing where no broker has a rack, since then no rule holds."""
    racks: dict[str, list[int]] = {}
    bare: list[int] = []
    for broker in sorted(brokers, key=lambda broker: broker.id):
        (bare if broker.rack is None else racks.setdefault(broker.rack, [])).append(broker.id)
    if not racks:
        return ()
    return (*_bare(bare), *_unequal(racks))


def _bare(bare: Sequence[int]) -> tuple[str, ...]:
    if not bare:
        return ()
    if len(bare) == 1:
        return (f"Broker {bare[0]} has no rack. It counts as a rack of its own.",)
    return (f"Brokers {_listed(bare)} have no rack. Together they count as one rack.",)


def _unequal(racks: dict[str, list[int]]) -> tuple[str, ...]:
    sizes = {len(ids) for ids in racks.values()}
    if len(sizes) == 1:
        return ()
    named = "; ".join(f"{rack} has {_brokers(ids)}" for rack, ids in sorted(racks.items()))
    small = sorted(rack for rack, ids in racks.items() if len(ids) == min(sizes))
    whose = f"rack {small[0]}" if len(small) == 1 else f"racks {_listed(small)}"
    return (
        f"The racks are of unequal size: {named}. Where replicas are spread over racks, the brokers of "
        f"{whose} will hold more of them than the others.",
    )


def _brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_listed(ids)}"


def _listed(items: Sequence[int] | Sequence[str]) -> str:
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
