"""Deletions of topics: by id, and of none that the same plan uses.

Topics are deleted by id (KIP-516), so that a later one of the same name is never deleted instead.
"""

from kdeclare.core.diagnostics import Diagnostic, denied
from kdeclare.core.operations import Operation
from kdeclare.providers.kafka.operations.arguments import DeleteTopicArgs


def deletes_by_name(op: Operation) -> bool:
    """Whether it deletes whatever topic has the name by then, because no id is known."""
    return isinstance(op.args, DeleteTopicArgs) and op.args.topic_id is None


def lacks_topic_id(op: Operation) -> Diagnostic:
    """The cluster has no topic ids, so nothing tells the topic from a later one of the same name."""
    return denied(
        "no-topic-id",
        "The cluster has no topic ids",
        f"{op.resource}: brokers know topic ids from Kafka 2.8 on (KIP-516). Without one, a topic that was "
        "created again under the same name in the meantime would be deleted in its place.",
        hint="Upgrade the brokers, or pass --delete-by-name to delete it by name.",
        resource=str(op.resource),
    )
