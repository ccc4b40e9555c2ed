"""Command lines without the secrets that were typed into them: for histories and messages."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

SHOWN = "(sensitive)"
"""What stands for a value; plans say the same."""

_PROGRAM = "kdeclare"
_OPTIONS = frozenset({"--config", "--add-config", "--append-config", "--subtract-config"})
"""Whose values are settings: ``k=v``, or ``k=v,k=[v,v]``."""
_SPARK = "--conf"
"""Settings of Spark are known by no provider: one is kept from view when its name tells what it is."""
_TELLING = ("access", "credential", "key", "password", "secret", "token")
_SECRET_OPTIONS = ("credential", "passphrase", "password", "secret", "token")
"""By these words in its name an option has a value to keep from view, unless it is that of a file."""


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The same arguments, with `SHOWN` for each literal value of a setting that a provider keeps secret.

    So for a setting that no provider knows: systems take it, and may never show its value. References
    (``${env.NAME}``) stay, as they give nothing away.
    """
    return list(_redacted(arguments))


def holds_secret(arguments: Sequence[str]) -> bool:
    """Whether there is anything to be kept from view."""
    return without_secrets(arguments) != list(arguments)


def _redacted(arguments: Sequence[str]) -> Iterator[str]:
    words = arguments[1:] if list(arguments[:1]) == [_PROGRAM] else arguments  # at a prompt, both are typed
    command = tuple(takewhile(lambda word: not word.startswith("-") and "=" not in word, words))
    before = ""
    for argument in arguments:
        option, sign, value = argument.partition("=")
        if before:
            yield _hidden(command, before, argument)
            before = ""
        elif not option.startswith("-"):
            hides = bool(sign) and not _is_reference(value) and _is_secret(command, "", option, value)
            yield f"{option}={SHOWN}" if hides else argument
        elif sign and _holds_settings(option):
            yield f"{option}={_hidden(command, option, value)}"
        else:
            before = option if _holds_settings(option) else ""
            yield argument


def _holds_settings(option: str) -> bool:
    return option in _OPTIONS or option == _SPARK or _is_secret_option(option)


def _is_secret_option(option: str) -> bool:
    return any(word in option for word in _SECRET_OPTIONS) and not option.endswith("-file")


def _hidden(command: tuple[str, ...], option: str, text: str) -> str:
    if _is_secret_option(option):
        return text if _is_reference(text) else SHOWN
    shown: list[str] = []
    hiding = False
    for element in text.split(","):  # whatever brackets mean to others: what may be a secret is none to show
        key, sign, value = element.partition("=")
        if not sign and hiding:
            continue  # the rest of a value that has commas
        hiding = bool(sign) and not _is_reference(value) and _is_secret(command, option, key.strip(), value)
        shown.append(f"{key}={SHOWN}" if hiding else element)
    return ",".join(shown)


def _is_reference(value: str) -> bool:
    from kdeclare.manifests.syntax.substitution import is_single

    return is_single(value.strip().removeprefix("[").removesuffix("]"))


def _is_secret(command: tuple[str, ...], option: str, key: str, value: str) -> bool:
    if option == _SPARK:
        return any(word in key.lower() for word in _TELLING)
    from kdeclare.core.diagnostics import KdeclareError
    from kdeclare.core.provider.provider import TypedSetting
    from kdeclare.core.provider.registry import is_secret_setting

    try:
        found = is_secret_setting(TypedSetting(command, option, key, value))
    except KdeclareError:  # a provider cannot be loaded, and may know it
        return True
    # an argument that no provider knows as a setting is none
    return bool(option) if found is None else found
