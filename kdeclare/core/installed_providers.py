"""The providers that are installed, found by the entry points of their distributions.

kdeclare's own are found in the same way. Nothing is imported before a kind or an operation type is asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import EntryPoint, entry_points

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.provider import CONTRACT, Provider

GROUP = "kdeclare.providers"
"""The group of entry points. Each leads to a `Provider`; its name is the provider's name."""


@dataclass(frozen=True, slots=True)
class InstalledProvider:
    """One entry point, not imported yet.

    distribution, version: of the package that brings it; empty where it has no metadata.
    reference: ``module:attribute``.
    """

    name: str
    distribution: str
    version: str
    reference: str


@cache
def find_providers() -> tuple[InstalledProvider, ...]:
    """Find what is installed, by name. Imports nothing."""
    found = {_described(point): None for point in entry_points(group=GROUP)}
    return tuple(sorted(found, key=lambda item: (item.name, item.distribution)))


def load_provider(installed: InstalledProvider) -> Provider:
    """Import one. Raises KdeclareError where that fails, or where it is for another contract."""
    try:
        provider = EntryPoint(installed.name, installed.reference, GROUP).load()
    except Exception as cause:  # whatever the code of a provider raises
        raise KdeclareError(_broken(installed, f"{type(cause).__name__}: {cause}")) from cause
    if not isinstance(provider, Provider):
        raise KdeclareError(_broken(installed, f"{installed.reference} is a {type(provider).__name__}"))
    if provider.contract != CONTRACT:
        raise KdeclareError(
            error(
                "provider-contract",
                "Provider is for another kdeclare",
                f"The provider {_titled(installed)} is written for version {provider.contract} of the "
                f"provider contract; this kdeclare has version {CONTRACT}.",
                hint="Install a version of the provider for this kdeclare, or uninstall it.",
            )
        )
    return provider


@cache
def load_providers() -> tuple[Provider, ...]:
    """Import all; those that others build on come first. Raises KdeclareError, also for two of one name."""
    found = find_providers()
    _refuse_twins(found, "provider", {f"{item.distribution}/{item.name}": [item.name] for item in found})
    providers = {item.name: load_provider(item) for item in found}
    _refuse_twins(found, "kind", {p.name: [kind.name for kind in p.kinds] for p in providers.values()})
    _refuse_twins(
        found, "operation type", {p.name: [t.name for t in p.operation_types] for p in providers.values()}
    )
    return tuple(providers[name] for name in _in_order(providers) if name in providers)


def _described(point: EntryPoint) -> InstalledProvider:
    distribution = point.dist
    if distribution is None:
        return InstalledProvider(point.name, "", "", point.value)
    return InstalledProvider(point.name, distribution.name, distribution.version, point.value)


def _in_order(providers: Mapping[str, Provider]) -> list[str]:
    try:
        return list(TopologicalSorter({p.name: p.builds_on for p in providers.values()}).static_order())
    except CycleError as cycle:
        names = " → ".join(cycle.args[1])
        raise KdeclareError(
            error("provider-cycle", "Providers build on each other", f"The circle is {names}.")
        ) from None


def _refuse_twins(found: Sequence[InstalledProvider], what: str, names: Mapping[str, Sequence[str]]) -> None:
    owners: dict[str, str] = {}
    for owner, own in names.items():
        for name in own:
            if owners.setdefault(name, owner) != owner:
                both = " and ".join(sorted((_origin(found, owners[name]), _origin(found, owner))))
                raise KdeclareError(
                    error(
                        "provider-collision",
                        "Two providers have the same name for something",
                        f"The {what} '{name}' comes from both {both}.",
                        hint="Uninstall one of them.",
                    )
                )


def _origin(found: Sequence[InstalledProvider], owner: str) -> str:
    """The distribution of a provider, which is what somebody can uninstall."""
    by_name = {item.name: item.distribution for item in found}
    return f"the distribution {by_name.get(owner) or owner.partition('/')[0]}"


def _broken(installed: InstalledProvider, why: str) -> Diagnostic:
    return error(
        "provider-broken",
        "Provider cannot be loaded",
        f"The provider {_titled(installed)} cannot be loaded: {why}.",
        hint="Install another version of its distribution, or uninstall it.",
    )


def _titled(installed: InstalledProvider) -> str:
    return f"'{installed.name}' ({installed.distribution} {installed.version})"
