"""A branch of a git repository passes the contracts of storages and of stores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.engine.state.port import StateStore
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from tests.conditional_objects import ConditionalObjectsContract
from tests.git_remotes import create_remote, open_git_objects
from tests.state_stores import StateStoreContract


class TestGitBranchObjects(ConditionalObjectsContract):
    @pytest.fixture
    def open_objects(self, tmp_path: Path) -> Iterator[Callable[[], ConditionalObjects]]:
        remote = create_remote(tmp_path / "state.git")
        with ExitStack() as stack:

            def open_objects() -> ConditionalObjects:
                objects = open_git_objects(f"git+file://{remote}")
                stack.callback(objects.close)
                return objects

            yield open_objects


class TestGitBranchStore(StateStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[StateStore]:
        remote = create_remote(tmp_path / "state.git")
        store = SharedStore(lambda: open_git_objects(f"git+file://{remote}"), LeaseTiming(4.0))
        yield store
        store.close()
