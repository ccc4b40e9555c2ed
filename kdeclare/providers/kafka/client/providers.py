"""Kafka's config providers (KIP-297, KIP-421): ``${NAME:[PATH:]KEY}`` in client properties."""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from kdeclare.providers.kafka.client.problems import problem
from kdeclare.providers.kafka.client.properties_file import read_properties

_PACKAGE = "org.apache.kafka.common.config.provider."
_PLACEHOLDER = re.compile(r"\$\{([^}:]*):(?:([^}]*?):)?([^}]*)\}")
"""``path`` ends at the first colon, as in org.apache.kafka.common.config.ConfigTransformer."""

Provider = Callable[[str, str], str | None]
"""From path and key to a value; None where there is none."""


def provided(properties: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The properties, with what stands for something else replaced by it; values are not looked into again.

    A placeholder of a provider that ``config.providers`` does not name is left as it is, as Kafka does.
    environ: default: that of the process. Raises KdeclareError for a provider that is not one of Kafka's
    own, and where there is no such value.
    """
    environ = os.environ if environ is None else environ
    known = {"EnvVar": lambda path, key: environ.get(key), "File": _from_file, "Directory": _from_folder}
    names = [name.strip() for name in properties.get("config.providers", "").split(",") if name.strip()]
    providers = {name: _provider(properties, name, known) for name in names}
    own = re.compile(r"config\.providers(\..*)?")
    return {
        name: _transformed(name, value, providers)
        for name, value in properties.items()
        if not own.fullmatch(name)
    }


def _provider(properties: Mapping[str, str], name: str, known: Mapping[str, Provider]) -> Provider:
    key = f"config.providers.{name}.class"
    kind = properties.get(key, "")
    found = known.get(kind.removeprefix(_PACKAGE).removesuffix("ConfigProvider"))
    if found is None or not kind.startswith(_PACKAGE):
        raise problem(
            key,
            f"'{kind}' is not a provider that kdeclare has" if kind else "it is missing",
            hint=f"There are {', '.join(f'{_PACKAGE}{one}ConfigProvider' for one in known)}.",
        )
    return found


def _transformed(name: str, value: str, providers: Mapping[str, Provider]) -> str:
    def one(match: re.Match[str]) -> str:
        provider = providers.get(match[1])
        if provider is None:
            return match[0]
        try:
            found = provider(match[2] or "", match[3])
        except OSError as exc:
            raise problem(name, f"{match[0]}: {exc.strerror}") from exc
        except ValueError as exc:  # a path with a zero byte in it, or what is no UTF-8
            raise problem(name, f"{match[0]}: it is not text") from exc
        if found is None:
            raise problem(name, f"{match[0]}: there is no such value")
        return found

    return _PLACEHOLDER.sub(one, value)


def _from_file(path: str, key: str) -> str | None:
    if not Path(path).is_file():
        raise FileNotFoundError(2, "No such file", path)
    return read_properties(path).get(key)


def _from_folder(path: str, key: str) -> str | None:
    """A file a key, as Kubernetes mounts secrets."""
    file = Path(path, key)
    if file.parent != Path(path) or not file.is_file():
        return None
    return file.read_text("utf-8")
