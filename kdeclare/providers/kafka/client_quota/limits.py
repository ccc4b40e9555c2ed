"""The limits that a quota can set: which entity has which, and which numbers brokers take."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kdeclare.core.jsontypes import Json
from kdeclare.core.units import as_bare_number, describe_amount

LARGEST = 2**53
"""Brokers keep limits as floating-point numbers: whole numbers beyond this one are rounded."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class LimitInfo:
    """One key of a quota (org.apache.kafka.server.config.QuotaConfig).

    of_ips: whether it limits IP addresses; otherwise users and client ids. is_whole: whether brokers refuse
    fractions. unit: what one is, for people.
    """

    of_ips: bool
    is_whole: bool
    unit: str


LIMITS: Mapping[str, LimitInfo] = {
    "producer_byte_rate": LimitInfo(of_ips=False, is_whole=True, unit="bytes/s"),
    "consumer_byte_rate": LimitInfo(of_ips=False, is_whole=True, unit="bytes/s"),
    "request_percentage": LimitInfo(of_ips=False, is_whole=False, unit="%"),
    "controller_mutation_rate": LimitInfo(of_ips=False, is_whole=False, unit="mutations/s"),
    "connection_creation_rate": LimitInfo(of_ips=True, is_whole=True, unit="connections/s"),
}


def allowed_limits(*, of_ips: bool) -> list[str]:
    """Return the keys that brokers take for IP addresses, or for users and client ids."""
    return [key for key, info in LIMITS.items() if info.of_ips is of_ips]


def parse_limit(key: str, stated: int | float | str) -> int | float:
    """Return the number that a manifest states. Raises ValueError, in words, for one that brokers refuse.

    The words do not repeat a text: it may come from outside the manifest.
    """
    number: int | float | None = None
    if not isinstance(stated, str):
        number = stated
    elif _NUMBER.fullmatch(stated.strip()):
        number = float(stated)
    elif key.endswith("byte_rate"):
        number = as_bare_number("bytes", stated.strip().removesuffix("/s"))
    if number is None:
        amounts = ", or an amount such as 10MiB" if key.endswith("byte_rate") else ""
        raise ValueError(f"takes a number{amounts}")
    if math.isnan(number) or not 0 < number <= LARGEST:
        raise ValueError(f"must be more than 0 and at most {LARGEST:,}")
    if number == int(number):
        return int(number)
    if LIMITS[key].is_whole:
        raise ValueError(f"must be a whole number, as it is in {LIMITS[key].unit}")
    return number


def encode_limit(value: float) -> Json:
    """Return a live limit as plans have it: a whole number without a fraction.

    Brokers also take ``inf`` and ``nan``, which JSON does not know: these are texts.
    """
    if not math.isfinite(value):
        return str(value)
    return int(value) if value == int(value) else value


def describe_limit(key: str, value: Json) -> str:
    """Return a limit with its unit, for people: ``10 MiB/s``."""
    info = LIMITS.get(key)
    if info is None or isinstance(value, str):
        return str(value)
    if info.unit == "bytes/s":
        return f"{describe_amount('bytes', int(value))}/s"
    return f"{value:,} {info.unit}"
