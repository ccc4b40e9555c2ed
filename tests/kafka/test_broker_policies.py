"""Brokers with policies of their own: what is answered when those deny."""

from collections.abc import Iterator

import pytest

from kdeclare.cluster.port import Alteration, ConfigOp, Fault, FaultKind, Result
from tests.beds import CLUSTER_WIDE, SET, KafkaBed, message, topic_resource
from tests.kafka.broker_policies import (
    CRASH,
    CRASH_VALUE,
    DENIED,
    DENIED_VALUE,
    SILENT,
    SILENT_VALUE,
    Policed,
    alter,
    new,
    one,
    policed,
)

pytestmark = pytest.mark.kafka

BACKOFF = "log.cleaner.backoff.ms"


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Policed]:
    """The brokers, and what their policies were shown."""
    with policed(tmp_path_factory.mktemp("policed")) as running:
        yield running


@pytest.fixture
def bed(policies: Policed) -> Iterator[KafkaBed]:
    """A client of them."""
    with policies.client() as made:
        yield made


def refused(found: Result) -> tuple[str, str, FaultKind]:
    """What a broker has against it."""
    assert isinstance(found, Fault)
    return found.error, found.message, found.kind


def not_called(name: str) -> tuple[str, str, FaultKind]:
    """What the policy says of a new topic with a name that it denies."""
    return "POLICY_VIOLATION", f"No topic is called {name} here", FaultKind.REFUSED


def not_valued(name: str) -> tuple[str, str, FaultKind]:
    """What the policy says of a config value that it denies."""
    return "POLICY_VIOLATION", f"No config of {name} has that value here", FaultKind.REFUSED


@pytest.mark.parametrize("validate_only", [True, False])
def test_a_denied_topic_is_refused_alone_and_the_others_are_created(
    bed: KafkaBed, validate_only: bool
) -> None:
    first, bad, last = bed.name(), bed.name(DENIED), bed.name()
    items = [new(first), new(bad), new(last)]
    found = bed.cluster.create_topics(items, validate_only=validate_only)
    assert found.keys() == {first, bad, last}
    assert found[first] is found[last] is None
    assert refused(found[bad]) == not_called(bad)
    made = set() if validate_only else {first, last}
    bed.eventually(lambda: _expect_of(bed, [first, bad, last], made))


def _expect_of(bed: KafkaBed, names: list[str], there: set[str]) -> None:
    assert bed.cluster.topics(names).keys() == there


def test_the_policy_for_configs_denies_creations_as_well_and_first(policies: Policed, bed: KafkaBed) -> None:
    fine, bad, configs = bed.name(), bed.name(DENIED), {"retention.ms": DENIED_VALUE}
    with policies.watched() as lines:
        found = bed.cluster.create_topics([new(bad, configs), new(fine)])
    assert lines == [alter(bad, configs), one(fine)]
    assert found[fine] is None
    assert refused(found[bad]) == not_valued(bad)
    assert bed.cluster.topics([bad]) == {}


@pytest.mark.parametrize("validate_only", [True, False])
def test_a_denied_resource_keeps_all_its_configs_and_the_others_change(
    bed: KafkaBed, validate_only: bool
) -> None:
    bad, fine = (topic_resource(bed.create(configs={"retention.ms": "5"})) for _ in range(2))
    changes = {
        bad: (ConfigOp("segment.ms", SET, "99"), ConfigOp("retention.ms", SET, DENIED_VALUE)),
        fine: (ConfigOp("retention.ms", SET, "6"),),
        CLUSTER_WIDE: (ConfigOp(BACKOFF, SET, DENIED_VALUE),),
    }
    items = [Alteration(resource, ops) for resource, ops in changes.items()]
    found = bed.cluster.alter_configs(items, validate_only=validate_only)
    assert found.keys() == changes.keys()
    assert found[fine] is None
    assert refused(found[bad]) == not_valued(bad.name)
    assert refused(found[CLUSTER_WIDE]) == not_valued("")
    bed.expect_overrides(fine, {"retention.ms": "5" if validate_only else "6"})
    assert bed.overrides(bad) == {"retention.ms": "5"}
    assert BACKOFF not in bed.overrides(CLUSTER_WIDE)


@pytest.mark.parametrize(
    ("word", "value", "answer"),
    [
        # no message of its own: the client is sent none
        (SILENT, SILENT_VALUE, ("POLICY_VIOLATION", "", FaultKind.REFUSED)),
        # whatever else it throws: the client cannot tell what happened, nor why
        (CRASH, CRASH_VALUE, ("UNKNOWN_SERVER_ERROR", "", FaultKind.UNKNOWN)),
    ],
)
def test_a_policy_that_does_not_say_what_is_wrong(
    bed: KafkaBed, word: str, value: str, answer: tuple[str, str, FaultKind]
) -> None:
    bad, there = bed.name(word), bed.create(configs={"retention.ms": "5"})
    assert refused(bed.cluster.create_topics([new(bad)])[bad]) == answer
    assert refused(bed.alter(topic_resource(there), ("retention.ms", SET, value))) == answer
    assert message(bed.alter(topic_resource(there), ("retention.ms", SET, value), validate_only=True)) == ""
    assert bed.cluster.topics([bad]) == {}
    assert bed.overrides(topic_resource(there)) == {"retention.ms": "5"}


# kdeclare's own commands at these brokers: here
