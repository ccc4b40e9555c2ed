"""Check, before object storage is first used, that it rejects conditional writes whose condition is false.

Some servers that implement an object storage protocol ignore the conditions. Two runs would then overwrite
each other's state without an error, so kdeclare refuses to use such storage.
"""

import secrets
from collections.abc import Callable

from kdeclare.core.diagnostics import KdeclareError, error
from kdeclare.core.storage.conditional_objects import ConditionalObjects, ObjectConflict

PROBES_FOLDER = "probes/"


def probe_storage(objects: ConditionalObjects) -> None:
    """Write, replace and delete one object. Raises KdeclareError if the storage accepts a stale write."""
    key = f"{PROBES_FOLDER}{secrets.token_hex(8)}"
    first = objects.create(key, b"first")
    try:
        second = objects.replace(key, b"second", first)
        if _accepts(lambda: objects.create(key, b"a stale creation")):
            raise _build_unsafe_error(objects, "it accepted the creation of an object that already existed")
        if _accepts(lambda: objects.replace(key, b"a stale update", first)):
            raise _build_unsafe_error(
                objects, "it replaced an object although the given version was outdated"
            )
        stored = objects.get(key)
        if stored is None or stored.data != b"second" or stored.version != second:
            raise _build_unsafe_error(objects, "it did not return the last write")
    finally:
        objects.delete([key])


def _accepts(write: Callable[[], object]) -> bool:
    try:
        write()
    except ObjectConflict:
        return False
    return True


def _build_unsafe_error(objects: ConditionalObjects, reason: str) -> KdeclareError:
    return KdeclareError(
        error(
            "state-storage-unsafe",
            "The storage cannot protect the state",
            f"{objects.get_location('')} does not enforce conditional writes: {reason}.",
            hint="Use storage that supports conditional writes (If-None-Match and If-Match), or another "
            "location for the state; see docs/state.md.",
        )
    )
