"""Brokers with policies of their own, and Kafka's tools, once for all tests that need them."""

from collections.abc import Iterator

import pytest

from tests.beds import KafkaBed
from tests.kafka.broker_policies import PolicedBrokers, start_policed_brokers
from tests.kafka.java import KafkaTools


@pytest.fixture(scope="package")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolicedBrokers]:
    """The brokers, and what their policies were shown."""
    with start_policed_brokers(tmp_path_factory.mktemp("policed")) as running:
        yield running


@pytest.fixture
def policed_bed(policies: PolicedBrokers) -> Iterator[KafkaBed]:
    """A client of them."""
    with policies.client() as made:
        yield made


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaTools]:
    """Kafka's tools, started once."""
    started = KafkaTools(tmp_path_factory.mktemp("tools"))
    yield started
    started.close()
