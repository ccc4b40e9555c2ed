"""List the installed providers."""

from dataclasses import dataclass

from kdeclare.core.diagnostics import KdeclareError, gist
from kdeclare.core.installed_providers import InstalledProvider, find_providers, load_provider


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """One installed provider.

    kinds: of resources; empty where it cannot be loaded. problem: why it cannot, otherwise None.
    """

    installed: InstalledProvider
    kinds: tuple[str, ...] = ()
    problem: str | None = None


def list_providers() -> tuple[ProviderStatus, ...]:
    """List all of them by name, also those that cannot be loaded."""
    return tuple(map(_status, find_providers()))


def _status(installed: InstalledProvider) -> ProviderStatus:
    try:
        provider = load_provider(installed)
    except KdeclareError as problem:
        return ProviderStatus(installed, problem=gist(problem.diagnostics))
    return ProviderStatus(installed, tuple(kind.name for kind in provider.kinds))
