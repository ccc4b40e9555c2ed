"""Whether two rows have in common what a resource in order has, as hashes that Spark compares by itself."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import Json


def proves_order(
    declared: Mapping[str, Json], live: Mapping[str, Json], *, unmanaged_keys: bool = True
) -> bool:
    """Whether the facts of two rows show that the diff would find nothing; null shows nothing.

    unmanaged_keys: whether a key that is neither declared nor owned is to be found.
    False says nothing at all. `fleet.spark` has the same rule in SQL; a test holds the two together.
    """
    hashes = [
        declared["need"],
        declared["forbid"],
        declared["keys" if unmanaged_keys else "gone"],
        live["has"],
        live["keys"],
    ]
    if declared["alone"] is not True or declared["always"] is not False or live["error"] is not None:
        return False
    if any(column is None for column in hashes):
        return False
    need, forbid, keys, has, overridden = map(frozenset, hashes)
    expected = overridden <= keys if unmanaged_keys else not overridden & keys
    return need <= has and not forbid & has and expected
