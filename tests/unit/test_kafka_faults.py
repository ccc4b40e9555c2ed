"""Kafka's error codes and kafka-python's exceptions as Faults."""

import pytest
from kafka import errors as client

from kdeclare.core.live.faults import Fault, FaultKind
from kdeclare.providers.kafka.client.faults import (
    build_fault_from_code,
    build_fault_from_exception,
    get_error_name,
)

REFUSED, RETRIABLE, UNKNOWN = FaultKind.REFUSED, FaultKind.RETRIABLE, FaultKind.UNKNOWN


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (17, "INVALID_TOPIC_EXCEPTION"),
        (29, "TOPIC_AUTHORIZATION_FAILED"),
        (31, "CLUSTER_AUTHORIZATION_FAILED"),
        (35, "UNSUPPORTED_VERSION"),
        (36, "TOPIC_ALREADY_EXISTS"),
        (37, "INVALID_PARTITIONS"),
        (38, "INVALID_REPLICATION_FACTOR"),
        (39, "INVALID_REPLICA_ASSIGNMENT"),
        (40, "INVALID_CONFIG"),
        (41, "NOT_CONTROLLER"),
        (42, "INVALID_REQUEST"),
        (44, "POLICY_VIOLATION"),
        (60, "REASSIGNMENT_IN_PROGRESS"),
        (85, "NO_REASSIGNMENT_IN_PROGRESS"),
        (89, "THROTTLING_QUOTA_EXCEEDED"),
        (4242, "ERROR_4242"),
    ],
)
def test_error_names_are_those_of_kafka_tools(code: int, name: str) -> None:
    assert get_error_name(code) == name


@pytest.mark.parametrize(
    ("code", "of_a_read", "of_a_change"),
    [
        (40, REFUSED, REFUSED),
        (29, REFUSED, REFUSED),
        (3, REFUSED, REFUSED),
        (44, REFUSED, REFUSED),
        (41, RETRIABLE, RETRIABLE),
        (89, RETRIABLE, RETRIABLE),
        (5, RETRIABLE, RETRIABLE),
        (7, RETRIABLE, UNKNOWN),
        (13, RETRIABLE, UNKNOWN),
        (-1, RETRIABLE, UNKNOWN),
    ],
)
def test_fault_kind_follows_error_code(code: int, of_a_read: FaultKind, of_a_change: FaultKind) -> None:
    assert build_fault_from_code(code, "why", changes=False).kind is of_a_read
    assert build_fault_from_code(code, "why", changes=True).kind is of_a_change
    assert ("quota" in build_fault_from_code(code, None, changes=True).message) is (code == 89)


@pytest.mark.parametrize(
    "exc", [client.KafkaConnectionError("gone"), client.Cancelled(), client.NodeNotReadyError(1)]
)
def test_client_exception_is_unknown_only_for_sent_change(exc: Exception) -> None:
    kinds = {
        (sent, changes): build_fault_from_exception(exc, sent=sent, changes=changes).kind
        for sent in (False, True)
        for changes in (False, True)
    }
    assert kinds.pop((True, True)) is UNKNOWN
    assert set(kinds.values()) == {RETRIABLE}


def test_exception_message_is_kept_without_class_name() -> None:
    fault = build_fault_from_exception(
        client.KafkaConnectionError("broker 1 at a:9092: gone"), sent=False, changes=True
    )
    assert (fault.error, fault.message) == ("NETWORK_EXCEPTION", "broker 1 at a:9092: gone")
    fault = build_fault_from_exception(client.RequestTimedOutError("after 10 ms"), sent=True, changes=True)
    assert (fault.error, fault.message, fault.kind) == ("REQUEST_TIMED_OUT", "after 10 ms", UNKNOWN)
    fault = build_fault_from_exception(client.KafkaTimeoutError("x"), sent=False, changes=True)
    assert (fault.error, fault.kind) == ("REQUEST_TIMED_OUT", RETRIABLE)


def test_version_and_authentication_errors_are_refused() -> None:
    fault = build_fault_from_exception(client.IncompatibleBrokerVersion("no"), sent=False, changes=True)
    assert (fault.error, fault.kind) == ("UNSUPPORTED_VERSION", REFUSED)
    fault = build_fault_from_exception(client.SaslAuthenticationFailedError("no"), sent=False, changes=True)
    assert (fault.error, fault.kind) == ("SASL_AUTHENTICATION_FAILED", REFUSED)


def test_fault_from_fault_is_same_object() -> None:
    fault = Fault("X", "y", UNKNOWN)
    assert build_fault_from_exception(fault, sent=False, changes=False) is fault
