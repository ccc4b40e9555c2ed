"""What policies see of quotas: whom they are for, and limits by key."""

from collections.abc import Mapping

from kdeclare.core.jsontypes import Json
from kdeclare.core.policy_subjects import PolicyField, PolicyWords
from kdeclare.providers.kafka.client_quota.entity import QuotaEntity
from kdeclare.providers.kafka.client_quota.limits import LIMITS

DEFAULT = ""
"""What policies see in place of the name of a default: no entity has the empty name."""


def _list_names() -> Mapping[str, type]:
    return {"user": str, "clientId": str, "ip": str}


def _list_limits() -> Mapping[str, type]:
    return dict.fromkeys(LIMITS, object)


QUOTA_WORDS = PolicyWords(
    {
        "entity": PolicyField(dict[str, str], keys=_list_names, elements="names"),
        "limits": PolicyField(dict[str, object], keys=_list_limits, elements="limits"),
    },
    subject="quota",
)


def describe_quota(entity: QuotaEntity, limits: Mapping[str, Json]) -> Mapping[str, object]:
    """Return the state of an entity with these limits; None is no limit."""
    return {
        "entity": {field: DEFAULT if name is None else name for field, name in entity.to_json().items()},
        "limits": {key: value for key, value in limits.items() if value is not None},
    }
