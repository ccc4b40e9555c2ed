"""Determine whether settings on command lines are secret, so that the history and messages can hide them."""

import re

from kdeclare.core.provider.provider import TypedSetting
from kdeclare.providers.kafka.client_quota.entity import LIMITS
from kdeclare.providers.kafka.config.catalog import is_secret_config
from kdeclare.providers.kafka.scram_user.credential import Mechanism

_HARMLESS_PART = re.compile(r"\[?(iterations=-?[0-9]*|password=\$\{(env|file)\.[^{}]+\}\]?)")
"""Matches the parts of a SCRAM credential that contain no secret.

These parts are the start of the value, such as ``[iterations=8192``, and a password that is only a reference.
"""


def is_secret_setting(setting: TypedSetting) -> bool | None:
    """Return whether a setting on the command line has a secret value; None if its key is unknown.

    The result is also None for a positional argument, which is not a setting. The value of a SCRAM credential
    ends at the first comma, because settings are separated by commas.
    """
    if not setting.option:
        return None
    if setting.key in LIMITS:
        return False
    if setting.key in {mechanism.value for mechanism in Mechanism}:
        return _HARMLESS_PART.fullmatch(setting.value.strip()) is None
    return is_secret_config(setting.key)
