"""Determine whether settings on command lines are secret, for the history and for messages."""

import re

from kdeclare.core.provider.provider import TypedSetting
from kdeclare.providers.kafka.client_quota.entity import LIMITS
from kdeclare.providers.kafka.config.catalog import is_secret_config
from kdeclare.providers.kafka.scram_user.credential import Mechanism

_HARMLESS_PART = re.compile(r"\[?(iterations=-?[0-9]*|password=\$\{(env|file)\.[^{}]+\}\]?)")
"""A part without secrets: the start of a SCRAM credential (``[iterations=8192``) or a password reference."""


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Return whether the value of a key on the command line is secret; None for an unknown key.

    A positional argument is not a setting, so the result is also None. The value of a SCRAM credential ends
    at the first comma, because settings are separated by commas.
    """
    if not setting.option:
        return None
    if setting.key in LIMITS:
        return False
    if setting.key in {mechanism.value for mechanism in Mechanism}:
        return _HARMLESS_PART.fullmatch(setting.value.strip()) is None
    return is_secret_config(setting.key)
