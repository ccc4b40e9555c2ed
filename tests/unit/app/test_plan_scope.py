"""The scope of a plan as programs state it: options of providers, and Kafka's as fields."""

from dataclasses import replace

import pytest

from kdeclare.api import PlanOptions, Scope
from kdeclare.providers.kafka.plan_options import KafkaPlanOptions, find_kafka_options, with_pace
from kdeclare.providers.kafka.reassignment.pace import Pace


def test_fields_about_kafka_are_options() -> None:
    scope = Scope(client_guard=True, await_moves=True, override_moves=True, delete_by_name=True)
    assert find_kafka_options(scope.options) == KafkaPlanOptions(
        client_guard=True, await_moves=True, override_moves=True, delete_by_name=True
    )
    assert find_kafka_options(Scope().options) == KafkaPlanOptions()


def test_options_hold_beside_the_fields() -> None:
    given = PlanOptions(KafkaPlanOptions(client_guard=True, keep_throttles=True), "another provider's")
    scope = Scope(options=given, await_moves=True)
    assert find_kafka_options(scope.options) == KafkaPlanOptions(
        client_guard=True, await_moves=True, keep_throttles=True
    )
    assert scope.options.get(str) == "another provider's"


def test_what_was_chosen_outlives_a_replacement() -> None:
    paced = with_pace(Scope(await_moves=True).options, Pace(throttle=5))
    scope = replace(Scope(await_moves=True), options=paced, complete=False)
    assert find_kafka_options(scope.options) == KafkaPlanOptions(await_moves=True, pace=Pace(throttle=5))


def test_equal_scopes_are_equal_and_read_as_they_are_written() -> None:
    assert Scope() == Scope()
    assert Scope(await_moves=True) != Scope()
    assert "PlanOptions(KafkaPlanOptions(" in repr(Scope())


def test_fields_have_no_position() -> None:
    with pytest.raises(TypeError):
        Scope(True)  # type: ignore[call-arg]
