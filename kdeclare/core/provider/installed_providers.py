"""The providers that are installed, found by the entry points of their distributions.

kdeclare's own are found in the same way. Nothing is imported before a kind or an operation type is asked for.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points
from kdeclare.core.provider.provider import CONTRACT, ChecksItsProvider, ListedParts, Provider

GROUP = "kdeclare.providers"
"""The group of entry points. Each leads to a `Provider`; its name is the provider's name."""

_API_VERSION = re.compile(r"[a-z0-9][a-z0-9.-]*/v[0-9][a-z0-9]*")


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
    installed = (
        InstalledProvider(point.name, point.distribution, point.version, point.value)
        for point in find_entry_points(GROUP)
    )
    return tuple(sorted(dict.fromkeys(installed), key=lambda item: (item.name, item.distribution)))


@dataclass(slots=True)
class _ProviderChoice:
    """The providers that this process was told to use; None where it uses what is installed."""

    providers: tuple[InstalledProvider, ...] | None = None


_provider_choice = _ProviderChoice()


def list_providers() -> tuple[InstalledProvider, ...]:
    """Return what this process uses: what it was told to, else what is installed. Imports nothing."""
    return find_providers() if _provider_choice.providers is None else _provider_choice.providers


def find_raising_provider(exception: BaseException) -> InstalledProvider | None:
    """Return the provider in whose package an exception was raised, or that called what raised it.

    None where no frame is of a provider outside kdeclare. Of several, it is the innermost. Imports nothing.
    """
    packages = {
        provider.reference.partition(":")[0].partition(".")[0]: provider for provider in list_providers()
    }
    packages.pop("kdeclare", None)
    raiser, traceback = None, exception.__traceback__
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        raiser, traceback = packages.get(package, raiser), traceback.tb_next
    return raiser


def use_providers(providers: Sequence[InstalledProvider] | None) -> None:
    """Have this process use these providers and no others; None is what is installed.

    Tasks of Spark call it with what their driver uses. Raises KdeclareError where a distribution is missing
    here, or is there in another version: a task with other code would answer something else than its driver.
    """
    selected = None if providers is None else tuple(providers)
    if selected == _provider_choice.providers:
        return
    for provider in selected or ():
        _validate_installed_version(provider)
    _provider_choice.providers = selected
    load_providers.cache_clear()


def _validate_installed_version(provider: InstalledProvider) -> None:
    if not provider.distribution:
        return
    from importlib.metadata import PackageNotFoundError, version  # here: only tasks of fleets ask for it

    try:
        installed_version: str | None = version(provider.distribution)
    except PackageNotFoundError:
        installed_version = None
    if installed_version == provider.version:
        return
    mismatch = "does not have it" if installed_version is None else f"has version {installed_version}"
    raise KdeclareError(
        error(
            "provider-missing",
            "A provider is missing where a task runs",
            f"This command uses the provider {_format_provider(provider)}, and "
            f"the Python of a task {mismatch}.",
            hint=f"Install {provider.distribution}=={provider.version} on every executor.",
        )
    )


def load_provider(installed: InstalledProvider) -> Provider:
    """Import one. Raises KdeclareError where that fails, or where it is for another contract."""
    try:
        provider = InstalledEntryPoint(GROUP, installed.name, installed.reference).load()
    except Exception as cause:  # whatever the code of a provider raises
        raise KdeclareError(_report_broken_provider(installed, f"{type(cause).__name__}: {cause}")) from cause
    if not isinstance(provider, Provider):
        raise KdeclareError(
            _report_broken_provider(installed, f"{installed.reference} is a {type(provider).__name__}")
        )
    if provider.contract != CONTRACT:
        raise KdeclareError(
            error(
                "provider-contract",
                "Provider is for another kdeclare",
                f"The provider {_format_provider(installed)} is written for "
                f"version {provider.contract} of the "
                f"provider contract; this kdeclare has version {CONTRACT}.",
                hint="Install a version of the provider for this kdeclare, or uninstall it.",
            )
        )
    if provider.name != installed.name:
        raise KdeclareError(
            _report_broken_provider(installed, f"it calls itself '{provider.name}', unlike its entry point")
        )
    if not _API_VERSION.fullmatch(provider.api_version):
        reason = f"its api_version '{provider.api_version}' is not like flags.example/v1"
        raise KdeclareError(_report_broken_provider(installed, reason))
    return provider


@cache
def load_providers() -> tuple[Provider, ...]:
    """Import all; those that others build on come first.

    Raises KdeclareError, also where two have the same name for something or share an API group.
    """
    return load_selected_providers(list_providers())


def load_selected_providers(installed: Sequence[InstalledProvider]) -> tuple[Provider, ...]:
    """Import these, as `load_providers` does with all. Raises KdeclareError."""
    _validate_unique_names(
        installed, "provider", {f"{item.distribution}/{item.name}": [item.name] for item in installed}
    )
    providers = {item.name: load_provider(item) for item in installed}
    _validate_api_groups(installed, providers)
    _validate_unique_names(
        installed, "kind", {p.name: [kind.name for kind in p.kinds] for p in providers.values()}
    )
    _validate_unique_names(
        installed, "operation type", {p.name: [t.name for t in p.operation_types] for p in providers.values()}
    )
    kinds = frozenset(kind.name for provider in providers.values() for kind in provider.kinds)
    for item in installed:
        _validate_kinds(item, providers[item.name], kinds)
    return tuple(providers[name] for name in _order_providers(providers) if name in providers)


def _validate_kinds(installed: InstalledProvider, provider: Provider, kinds: frozenset[str]) -> None:
    listed_parts = ListedParts(kinds, provider.operation_types, provider.collectors)
    for kind in provider.kinds:
        if isinstance(kind, ChecksItsProvider):
            for mistake in kind.find_mistakes(listed_parts):
                raise KdeclareError(_report_broken_provider(installed, f"kind {kind.name}: {mistake}"))


def _order_providers(providers: Mapping[str, Provider]) -> list[str]:
    try:
        return list(TopologicalSorter({p.name: p.builds_on for p in providers.values()}).static_order())
    except CycleError as cycle:
        names = " → ".join(cycle.args[1])
        raise KdeclareError(
            error("provider-cycle", "Providers build on each other", f"The circle is {names}.")
        ) from None


def _validate_api_groups(installed: Sequence[InstalledProvider], providers: Mapping[str, Provider]) -> None:
    """An API group belongs to one distribution, which may have several providers in it."""
    groups: dict[str, list[str]] = {}
    for item in installed:
        if item.distribution:  # the others are in no distribution that could be uninstalled
            group = providers[item.name].api_version.partition("/")[0]
            groups.setdefault(f"{item.distribution}/", []).append(group)
    hint = (
        "State a group of its own as the provider's api_version, such as flags.example/v1 (the default is "
        "kdeclare/v1), or uninstall one of them."
    )
    _validate_unique_names(installed, "API group", groups, hint)


def _validate_unique_names(
    installed: Sequence[InstalledProvider],
    part_name: str,
    names: Mapping[str, Sequence[str]],
    hint: str = "Uninstall one of them.",
) -> None:
    owners: dict[str, str] = {}
    for owner, owned_names in names.items():
        for name in owned_names:
            if owners.setdefault(name, owner) != owner:
                origins = " and ".join(
                    sorted((_describe_origin(installed, owners[name]), _describe_origin(installed, owner)))
                )
                raise KdeclareError(
                    error(
                        "provider-collision",
                        "Two providers have the same name for something",
                        f"The {part_name} '{name}' comes from both {origins}.",
                        hint=hint,
                    )
                )


def _describe_origin(installed: Sequence[InstalledProvider], owner: str) -> str:
    """The distribution of a provider, which is what somebody can uninstall."""
    distributions = {item.name: item.distribution for item in installed}
    return f"the distribution {distributions.get(owner) or owner.partition('/')[0]}"


def _report_broken_provider(installed: InstalledProvider, reason: str) -> Diagnostic:
    return error(
        "provider-broken",
        "Provider cannot be loaded",
        f"The provider {_format_provider(installed)} cannot be loaded: {reason}.",
        hint="Install another version of its distribution, or uninstall it. If you write it yourself, set "
        "KDECLARE_DEBUG=1 to see where it fails.",
    )


def _format_provider(installed: InstalledProvider) -> str:
    return f"'{installed.name}' ({installed.distribution} {installed.version})"
