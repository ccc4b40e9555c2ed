"""Ready-made rules: policies that a project names and sets, without code of its own."""

from kdeclare.policy.rules.budgets import PartitionBudget
from kdeclare.policy.rules.configs import AllowedConfigs, BoundedConfigs, ForbiddenConfigs, RequiredConfigs
from kdeclare.policy.rules.deletion import NoDelete, NoDeleteWithRecords
from kdeclare.policy.rules.lifelong import CreationRuleForLife
from kdeclare.policy.rules.names import NamePattern
from kdeclare.policy.rules.replicas import MinInsyncReplicas, MinRacks
from kdeclare.policy.rules.sizes import NoPartitionIncrease, PartitionBounds, ReplicationFactorBounds

__all__ = [
    "AllowedConfigs",
    "BoundedConfigs",
    "CreationRuleForLife",
    "ForbiddenConfigs",
    "MinInsyncReplicas",
    "MinRacks",
    "NamePattern",
    "NoDelete",
    "NoDeleteWithRecords",
    "NoPartitionIncrease",
    "PartitionBounds",
    "PartitionBudget",
    "ReplicationFactorBounds",
    "RequiredConfigs",
]
