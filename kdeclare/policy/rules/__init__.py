"""Ready-made rules: policy classes that users configure in the project file."""

from kdeclare.policy.rules.configs import AllowedConfigs, BoundedConfigs, ForbiddenConfigs, RequiredConfigs
from kdeclare.policy.rules.impact import NoDeleteWithReaders, NoLossOfUnreadRecords
from kdeclare.policy.rules.lifelong import CreationRuleForLife
from kdeclare.policy.rules.replicas import MinInsyncReplicas, MinRacks
from kdeclare.policy.rules.topics import (
    NamePattern,
    NoCompactedPartitionIncrease,
    NoDelete,
    NoDeleteWithRecords,
    NoPartitionIncrease,
    PartitionBounds,
    PartitionBudget,
    ReplicationFactorBounds,
)

__all__ = [
    "AllowedConfigs",
    "BoundedConfigs",
    "CreationRuleForLife",
    "ForbiddenConfigs",
    "MinInsyncReplicas",
    "MinRacks",
    "NamePattern",
    "NoCompactedPartitionIncrease",
    "NoDelete",
    "NoDeleteWithReaders",
    "NoDeleteWithRecords",
    "NoLossOfUnreadRecords",
    "NoPartitionIncrease",
    "PartitionBounds",
    "PartitionBudget",
    "ReplicationFactorBounds",
    "RequiredConfigs",
]
