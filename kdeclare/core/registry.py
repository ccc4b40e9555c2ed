"""All kinds and operation types of the installed providers, by name."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TypeVar

from kdeclare.core.installed_providers import load_providers
from kdeclare.core.kind import Kind
from kdeclare.core.operation_type import Verb
from kdeclare.core.provider import Collects
from kdeclare.core.unknown_operation import UnknownVerb

_Value = TypeVar("_Value", covariant=True)


class _Loaded(Mapping[str, _Value]):
    """A mapping that is made when it is first looked at."""

    def __init__(self, load: Callable[[], Mapping[str, _Value]]) -> None:
        self._load = cache(load)

    def __getitem__(self, name: str) -> _Value:
        return self._load()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def __contains__(self, name: object) -> bool:
        return name in self._load()


class _Verbs(dict[str, Verb]):
    """By name. A name that is not there (``in`` says so) stands for a verb that does nothing."""

    def __missing__(self, name: str) -> Verb:
        return UnknownVerb(name)


KINDS: Mapping[str, Kind] = _Loaded(lambda: {kind.name: kind for p in load_providers() for kind in p.kinds})
VERBS: Mapping[str, Verb] = _Loaded(
    lambda: _Verbs({verb.name: verb for p in load_providers() for verb in p.operation_types})
)


def load_collectors() -> tuple[Collects, ...]:
    """Return the collectors of all installed providers. Raises KdeclareError where one cannot be used."""
    return tuple(collector for provider in load_providers() for collector in provider.collectors)
