"""Errors about a state in a Kafka topic."""

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.live.faults import Fault

_TOPIC_RIGHTS = "Describe, DescribeConfigs, Read and Write on the topic (and Create if it does not exist yet)"
_ID_RIGHTS = "Describe and Write on the transactional id"


def build_fault_error(fault: Fault, topic: str, transactional_id: str) -> KdeclareError:
    """Return the error for a failed request about the topic."""
    reason = f"{fault.message or 'no reason given'} ({fault.error})"
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        is_about_id = fault.error.startswith("TRANSACTIONAL_ID")
        name = f"transactional id '{transactional_id}'" if is_about_id else f"topic '{topic}'"
        rights = _ID_RIGHTS if is_about_id else _TOPIC_RIGHTS
        return KdeclareError(
            error(
                "state-no-access",
                "No access to the state",
                f"The cluster does not permit kdeclare to use the state's {name}: {reason}.",
                hint=f"Grant kdeclare's principal {rights}. docs/state-kafka.md lists all permissions.",
            )
        )
    return build_storage_error(
        f"A request for the state in the topic '{topic}' failed: {reason}.",
        "Check that the brokers are running and that the topic and '__transaction_state' have enough in-sync "
        "replicas. Then run the command again.",
    )


def build_blocked_error(topic: str, seconds: float) -> KdeclareError:
    """Return the error about a transaction that stays open, so that later records cannot be read."""
    return build_storage_error(
        f"The state in the topic '{topic}' could not be read to the end within {seconds:.0f} s, probably "
        "because of an open transaction of another process.",
        "Wait a minute, and run the command again: brokers abort a transaction whose process died. If the "
        "problem remains, run `kafka-transactions.sh --bootstrap-server HOST:PORT find-hanging --topic "
        f"{topic}`, and abort the transaction that it lists.",
    )


def build_contention_error(topic: str, seconds: float) -> KdeclareError:
    """Return the error about other processes that prevented this process from writing."""
    return build_storage_error(
        f"For {seconds:.0f} s, other processes with the same transactional id interrupted every write to the "
        f"topic '{topic}'.",
        "Wait until the other runs of this project and environment end, and run the command again.",
    )


def build_storage_error(detail: str, hint: str) -> KdeclareError:
    """Return the error about a topic that does not respond, or that refuses a request."""
    return KdeclareError(error("state-storage", "The state's topic cannot be used", detail, hint=hint))


def build_recreated_error(topic: str) -> KdeclareError:
    """Return the error about a topic that was deleted during the command."""
    return KdeclareError(
        error(
            "state-storage-replaced",
            "The state's topic was replaced",
            f"The topic '{topic}' was deleted or created again while this command was running. The state "
            "that this command has read no longer exists.",
            hint="Make sure that no other process uses the topic, and restore its records from a backup if "
            "they are lost. Then run the command again.",
        )
    )


def build_setting_problem(topic: str, name: str, value: str, expected: str, hint: str) -> Diagnostic:
    """Return the diagnostic about one topic setting that does not protect the records."""
    return error(
        "state-storage-unsafe",
        "The storage cannot protect the state",
        f"The topic '{topic}' has {name}={value}. It must be {expected}.",
        hint=hint,
    )
