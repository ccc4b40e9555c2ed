"""Redact the secrets in command lines, for the history and for messages."""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

REDACTED = "(sensitive)"
"""The placeholder for a redacted value. Plans use the same placeholder."""

_PROGRAM = "kdeclare"
_SETTING_OPTIONS = frozenset({"--config", "--add-config", "--append-config", "--subtract-config"})
"""Options whose values are settings, such as ``k=v`` or ``k=v,k=[v,v]``."""
_SPARK_OPTION = "--conf"
"""The option for Spark settings. A Spark setting is secret if its name contains a word of `_SECRET_WORDS`."""
_SECRET_WORDS = ("access", "credential", "key", "password", "secret", "token")
_SERVER_PARAMETER = re.compile(rf"(;[^;=]*(?:{'|'.join(_SECRET_WORDS)})[^;=]*=)[^;]*", re.IGNORECASE)
"""Matches a secret parameter in the address of a Spark Connect server, such as ``sc://host/;token=…``."""
_SECRET_OPTIONS = ("credential", "passphrase", "password", "secret", "token")
"""Words that identify options with secret values. Options whose names end with ``-file`` are not secret."""


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `REDACTED` in place of the values of secret settings.

    Providers decide which settings are secret. A setting that no provider knows is redacted too, because the
    system may treat it as a secret. References (``${env.NAME}``) are not redacted, because they reveal no
    values.
    """
    return list(_redact_each(arguments))


def has_secret(arguments: Sequence[str]) -> bool:
    """Return whether the arguments contain a value that `redact_arguments` would redact."""
    return redact_arguments(arguments) != list(arguments)


def _redact_each(arguments: Sequence[str]) -> Iterator[str]:
    # in a kdeclare shell, the name of the program is optional
    words = arguments[1:] if list(arguments[:1]) == [_PROGRAM] else arguments
    command = tuple(takewhile(lambda word: not word.startswith("-") and "=" not in word, words))
    pending_option = ""
    for argument in map(_redact_server_address, arguments):
        option, separator, value = argument.partition("=")
        if pending_option:
            yield _redact_value(command, pending_option, argument)
            pending_option = ""
        elif not option.startswith("-"):
            is_hidden = (
                bool(separator) and not _is_reference(value) and _is_secret(command, "", option, value)
            )
            yield f"{option}={REDACTED}" if is_hidden else argument
        elif separator and _has_settings(option):
            yield f"{option}={_redact_value(command, option, value)}"
        else:
            pending_option = option if _has_settings(option) else ""
            yield argument


def _redact_server_address(argument: str) -> str:
    return _SERVER_PARAMETER.sub(rf"\1{REDACTED}", argument) if "sc://" in argument else argument


def _has_settings(option: str) -> bool:
    return option in _SETTING_OPTIONS or option == _SPARK_OPTION or _is_secret_option(option)


def _is_secret_option(option: str) -> bool:
    return any(word in option for word in _SECRET_OPTIONS) and not option.endswith("-file")


def _redact_value(command: tuple[str, ...], option: str, text: str) -> str:
    if _is_secret_option(option):
        return text if _is_reference(text) else REDACTED
    redacted_parts: list[str] = []
    is_hidden = False
    for element in text.split(","):  # brackets are ignored: redacting too much is safe
        key, separator, value = element.partition("=")
        if not separator and is_hidden:
            continue  # the rest of a redacted value that contains commas
        is_hidden = (
            bool(separator) and not _is_reference(value) and _is_secret(command, option, key.strip(), value)
        )
        redacted_parts.append(f"{key}={REDACTED}" if is_hidden else element)
    return ",".join(redacted_parts)


def _is_reference(value: str) -> bool:
    from kdeclare.manifests.syntax.substitution import is_single_reference

    return is_single_reference(value.strip().removeprefix("[").removesuffix("]"))


def _is_secret(command: tuple[str, ...], option: str, key: str, value: str) -> bool:
    if option == _SPARK_OPTION:
        return any(word in key.lower() for word in _SECRET_WORDS)
    from kdeclare.core.diagnostics import KdeclareError
    from kdeclare.core.provider.provider import TypedSetting
    from kdeclare.core.provider.provider_queries import is_secret_setting

    try:
        is_known_secret = is_secret_setting(TypedSetting(command, option, key, value))
    except KdeclareError:  # the setting may be a secret of a provider that cannot be loaded
        return True
    # An unknown KEY=VALUE counts as a setting only if it is the value of an option.
    return bool(option) if is_known_secret is None else is_known_secret
