"""Quotas as the controller checks and keeps them.

After ClientQuotaControlManager of Apache Kafka.
"""

import ipaddress
from collections.abc import Mapping

from kdeclare.core.faults import Fault
from kdeclare.providers.kafka.client_quota.entity import EntityType, QuotaEntity
from kdeclare.providers.kafka.client_quota.limits import LIMITS

_EPSILON = 1e-6
_LONGEST = 2**63


def check_quota(entity: QuotaEntity, limits: Mapping[str, float | None]) -> None:
    """Check what is asked for one entity. Raises Fault."""
    _check_entity(entity)
    for key, value in limits.items():
        if value is None:
            continue  # what is removed need not be a key
        info = LIMITS.get(key)
        if info is None or info.of_ips is not entity.is_ip:
            raise _invalid(f"Invalid configuration key {key}")
        if value <= 0:
            raise _invalid(f"Quota {key} must be greater than 0")
        if info.is_whole and _LONGEST > value != value // 1 and abs(round(value) - value) > _EPSILON:
            raise _invalid(f"{key} cannot be a fractional value.")


def _check_entity(entity: QuotaEntity) -> None:
    names = dict(entity.parts)
    if not names:
        raise _invalid("Invalid empty client quota entity")
    for type_, name in entity.parts:
        if name == "":
            raise _invalid(f"Empty {type_} not supported")
    if entity.is_ip and len(names) > 1:
        raise _invalid(
            "Invalid quota entity combination, IP entity should not be combined with User or ClientId"
        )
    address = names.get(EntityType.IP)
    if address is not None and address != "localhost" and not _is_address(address):
        raise _invalid(f"{address} is not a valid IP or resolvable host.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _invalid(message: str) -> Fault:
    return Fault("INVALID_REQUEST", message)
