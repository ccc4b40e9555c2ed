"""Explain rack layouts for which replicas cannot be spread evenly."""

from collections.abc import Sequence

from kdeclare.providers.kafka.live import Broker


def explain_rack_layout(brokers: Sequence[Broker]) -> tuple[str, ...]:
    """Explain the effects of brokers without a rack and of racks of unequal size.

    The result is empty if no broker has a rack, because rack rules then have no effect.
    """
    racks: dict[str, list[int]] = {}
    rackless_ids: list[int] = []
    for broker in sorted(brokers, key=lambda broker: broker.id):
        (rackless_ids if broker.rack is None else racks.setdefault(broker.rack, [])).append(broker.id)
    if not racks:
        return ()
    return (*_explain_missing_racks(rackless_ids), *_explain_unequal_racks(racks))


def _explain_missing_racks(rackless_ids: Sequence[int]) -> tuple[str, ...]:
    if not rackless_ids:
        return ()
    if len(rackless_ids) == 1:
        return (f"Broker {rackless_ids[0]} has no rack. kdeclare treats the broker as a separate rack.",)
    return (
        f"Brokers {_format_list(rackless_ids)} have no rack. kdeclare treats these brokers as a single rack.",
    )


def _explain_unequal_racks(racks: dict[str, list[int]]) -> tuple[str, ...]:
    sizes = {len(ids) for ids in racks.values()}
    if len(sizes) == 1:
        return ()
    sizes_text = "; ".join(f"{rack} has {_format_brokers(ids)}" for rack, ids in sorted(racks.items()))
    smallest_racks = sorted(rack for rack, ids in racks.items() if len(ids) == min(sizes))
    racks_text = (
        f"rack {smallest_racks[0]}" if len(smallest_racks) == 1 else f"racks {_format_list(smallest_racks)}"
    )
    return (
        f"The racks have unequal sizes: {sizes_text}. When replicas are spread over racks, the brokers of "
        f"{racks_text} hold more replicas than the brokers of other racks.",
    )


def _format_brokers(ids: Sequence[int]) -> str:
    return f"broker {ids[0]}" if len(ids) == 1 else f"brokers {_format_list(ids)}"


def _format_list(items: Sequence[int] | Sequence[str]) -> str:
    texts = [str(item) for item in items]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
