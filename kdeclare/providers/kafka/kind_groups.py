"""The kinds that few commands need, which are imported on first use.

Each group is a folder. Its module ``definition`` imports all other modules of the folder.
"""

from kdeclare.core.provider.kind_group import DeferredKindGroup, KindGroup


def _import_replica_moves() -> KindGroup:
    from kdeclare.providers.kafka.reassignment import definition

    return definition.REPLICA_MOVES


def _import_client_quotas() -> KindGroup:
    from kdeclare.providers.kafka.client_quota import definition

    return definition.CLIENT_QUOTAS


def _import_listed_configs() -> KindGroup:
    from kdeclare.providers.kafka.listed_configs import definition

    return definition.LISTED_CONFIGS


def _import_scram_users() -> KindGroup:
    from kdeclare.providers.kafka.scram_user import definition

    return definition.SCRAM_USERS


def _import_acls() -> KindGroup:
    from kdeclare.providers.kafka.acl import definition

    return definition.ACLS


def _import_consumer_groups() -> KindGroup:
    from kdeclare.providers.kafka.consumer_group import definition

    return definition.CONSUMER_GROUPS


REPLICA_MOVES = DeferredKindGroup(
    f"{__package__}.reassignment",
    kinds=("Reassignment",),
    operation_types=(
        "partitions.reassign",
        "throttle.set",
        "throttle.clear",
        "leaders.elect",
        "moves.cancel",
        "replicas.relocate",
        "moves.await",
    ),
    import_definition=_import_replica_moves,
)
CLIENT_QUOTAS = DeferredKindGroup(
    f"{__package__}.client_quota",
    kinds=("ClientQuota",),
    operation_types=("quota.alter",),
    import_definition=_import_client_quotas,
)
LISTED_CONFIGS = DeferredKindGroup(
    f"{__package__}.listed_configs",
    kinds=("GroupConfig", "ClientMetrics"),
    operation_types=(),  # operations that alter configs serve other kinds, too
    import_definition=_import_listed_configs,
)
SCRAM_USERS = DeferredKindGroup(
    f"{__package__}.scram_user",
    kinds=("ScramUser",),
    operation_types=("scram.upsert", "scram.delete"),
    import_definition=_import_scram_users,
)
ACLS = DeferredKindGroup(
    f"{__package__}.acl",
    kinds=("Acl",),
    operation_types=("acls.create", "acls.delete"),
    import_definition=_import_acls,
)
CONSUMER_GROUPS = DeferredKindGroup(
    f"{__package__}.consumer_group",
    kinds=(),  # only commands act on groups
    operation_types=("group.alter-offsets", "group.delete"),
    import_definition=_import_consumer_groups,
)

KIND_GROUPS = (REPLICA_MOVES, CLIENT_QUOTAS, LISTED_CONFIGS, SCRAM_USERS, ACLS, CONSUMER_GROUPS)
