"""Pause the garbage collector while many manifests are loaded."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Disable the garbage collector inside a ``with`` block.

    Loading many manifests then takes up to a fifth less time. The loaded objects do not need the garbage
    collector, because they form no reference cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
