"""The contracts of storages and of stores, with a state in a topic."""

from collections.abc import Callable, Iterator

import pytest

from kdeclare.core.storage.conditional_objects import ConditionalObjects
from kdeclare.engine.state.shared.lease import LeaseTiming
from kdeclare.engine.state.shared.store import SharedStore
from tests.conditional_objects import ConditionalObjectsContract
from tests.state_stores import StateStoreContract

pytestmark = pytest.mark.kafka


class TestTopicObjects(ConditionalObjectsContract):
    pass


class TestTopicStore(StateStoreContract):
    @pytest.fixture
    def store(self, open_objects: Callable[[], ConditionalObjects]) -> Iterator[SharedStore]:
        opened = SharedStore(open_objects, LeaseTiming(4.0))
        yield opened
        opened.close()
