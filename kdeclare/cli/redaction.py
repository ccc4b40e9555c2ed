"""Command lines without the secrets that were typed into them: for histories and messages."""

from collections.abc import Iterator, Sequence

SHOWN = "(sensitive)"
"""What stands for a value; plans say the same."""

_OPTIONS = frozenset({"--config", "--add-config", "--append-config", "--subtract-config"})
"""Whose values are config keys with values: ``k=v``, or ``k=v,k=[v,v]``."""
_SPARK = "--conf"
"""Settings of Spark are known by no catalogue: one is kept from view when its name tells what it is."""
_WORKERS = ("connect", "worker-config")
"""Whose arguments are config keys with values."""
_TELLING = ("access", "credential", "key", "password", "secret", "token")


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The same arguments, with `SHOWN` for each literal value of a config key that Kafka keeps secret.

    So for a key that is unknown: brokers take it, and never show its value. References (``${env.NAME}``)
    stay, as they give nothing away.
    """
    return list(_redacted(arguments))


def holds_secret(arguments: Sequence[str]) -> bool:
    """Whether there is anything to be kept from view."""
    return without_secrets(arguments) != list(arguments)


def _redacted(arguments: Sequence[str]) -> Iterator[str]:
    before = ""
    workers = tuple(arguments[:2]) == _WORKERS
    for argument in arguments:
        option, sign, value = argument.partition("=")
        if before in _OPTIONS or before == _SPARK:
            yield _hidden(argument, before)
            before = ""
            continue
        before = argument
        if workers and sign and not option.startswith("-"):
            yield f"{option}={SHOWN}" if _is_workers_secret(option, value) else argument
            continue
        yield f"{option}={_hidden(value, option)}" if sign and option in (*_OPTIONS, _SPARK) else argument


def _hidden(text: str, option: str) -> str:
    shown: list[str] = []
    hiding = False
    for element in text.split(","):  # whatever brackets mean to others: what may be a secret is none to show
        key, sign, value = element.partition("=")
        if not sign and hiding:
            continue  # the rest of a value that has commas
        hiding = bool(sign) and not _is_reference(value) and _is_secret(key.strip(), option)
        shown.append(f"{key}={SHOWN}" if hiding else element)
    return ",".join(shown)


def _is_reference(value: str) -> bool:
    from kdeclare.manifests.substitution import is_single

    return is_single(value.strip().removeprefix("[").removesuffix("]"))


def _is_secret(key: str, option: str) -> bool:
    if option == _SPARK:
        return any(word in key.lower() for word in _TELLING)
    from kdeclare.providers.kafka.config.catalog import catalog
    from kdeclare.providers.kafka.ids import ConfigScope

    known = [info for scope in ConfigScope if (info := catalog(scope).get(key))]
    return not known or any(info.is_secret for info in known)


def _is_workers_secret(key: str, value: str) -> bool:
    """Of Connect's workers, whose placeholders are no secret either."""
    from kdeclare.providers.connect.workers.values import is_placeholder, is_sensitive

    return is_sensitive(key) and not is_placeholder(value) and not _is_reference(value)
