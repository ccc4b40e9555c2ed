"""The installed providers, found through the entry points of their Python packages.

kdeclare's own providers are found in the same way. No provider is imported until a kind or an operation type
is used.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.provider.deferred_provider import (
    AnyProvider,
    DeferredProvider,
    KindSource,
    list_kind_names,
    list_operation_type_names,
)
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points
from kdeclare.core.provider.kind_group import DeferredKindGroup, KindGroup
from kdeclare.core.provider.provider import CONTRACT, ChecksItsProvider, ListedParts, Provider

GROUP = "kdeclare.providers"
"""The entry point group. Each entry point refers to a `Provider` and has the provider's name."""

_Loaded = TypeVar("_Loaded")

_API_VERSION = re.compile(r"[a-z0-9][a-z0-9.-]*/v[0-9][a-z0-9]*")


@dataclass(frozen=True, slots=True)
class InstalledProvider:
    """One installed provider, not imported yet.

    distribution, version: the Python package of the provider; empty if the package has no metadata.
    reference: ``module:attribute``.
    """

    name: str
    distribution: str
    version: str
    reference: str


@cache
def find_providers() -> tuple[InstalledProvider, ...]:
    """Find the installed providers, sorted by name, without importing them."""
    installed = (
        InstalledProvider(point.name, point.distribution, point.version, point.value)
        for point in find_entry_points(GROUP)
    )
    return tuple(sorted(dict.fromkeys(installed), key=lambda item: (item.name, item.distribution)))


@dataclass(slots=True)
class _ProviderChoice:
    """The providers that this process must use; None means the installed providers."""

    providers: tuple[InstalledProvider, ...] | None = None


_provider_choice = _ProviderChoice()


def list_providers() -> tuple[InstalledProvider, ...]:
    """Return the providers that `use_providers` has set; by default, the installed providers."""
    return find_providers() if _provider_choice.providers is None else _provider_choice.providers


def find_raising_provider(exception: BaseException) -> InstalledProvider | None:
    """Return the provider whose package raised an exception directly or in code that the package called.

    Return None if no frame of the traceback belongs to a provider outside kdeclare. If several frames belong
    to providers, return the provider of the innermost of these frames. Imports no module.
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
    """Make this process use only these providers; None means the installed providers.

    Spark tasks call this function with the providers of the driver. Raises KdeclareError if a package is not
    installed for this process or has a different version, because a task with different code might return
    different results.
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
    from importlib.metadata import (
        PackageNotFoundError,
        version,
    )  # imported here because only fleet tasks need it

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
            "Provider missing on a Spark executor",
            f"This command uses the provider {_format_provider(provider)}, but the Python environment of a "
            f"Spark task {mismatch}.",
            hint=f"Install {provider.distribution}=={provider.version} on every executor.",
        )
    )


def load_provider(installed: InstalledProvider) -> AnyProvider:
    """Import a provider, or the outline of a deferred provider.

    Raises KdeclareError if the provider cannot be used by this version of kdeclare.
    """
    provider = _run_import(installed, InstalledEntryPoint(GROUP, installed.name, installed.reference).load)
    if not isinstance(provider, AnyProvider):
        raise KdeclareError(
            _report_broken_provider(installed, f"{installed.reference} is a {type(provider).__name__}")
        )
    if provider.contract != CONTRACT:
        raise KdeclareError(
            error(
                "provider-contract",
                "Incompatible provider",
                f"The provider {_format_provider(installed)} implements "
                f"version {provider.contract} of the "
                f"provider contract, but this version of kdeclare requires version {CONTRACT}.",
                hint="Install a version of the provider for this version of kdeclare, "
                "or uninstall the provider.",
            )
        )
    if provider.name != installed.name:
        raise KdeclareError(
            _report_broken_provider(installed, f"its name '{provider.name}' differs from its entry point")
        )
    if not _API_VERSION.fullmatch(provider.api_version):
        reason = (
            f"its api_version '{provider.api_version}' does not have the form GROUP/VERSION, such as "
            "flags.example/v1"
        )
        raise KdeclareError(_report_broken_provider(installed, reason))
    return provider


@cache
def load_providers() -> tuple[AnyProvider, ...]:
    """Import all providers, in dependency order. Only the outlines of deferred providers are imported.

    Raises KdeclareError if an import fails, if two providers define the same name, or if two packages use the
    same API group.
    """
    return load_selected_providers(list_providers())


def load_selected_providers(installed: Sequence[InstalledProvider]) -> tuple[AnyProvider, ...]:
    """Import and check these providers in the same way as `load_providers` does. Raises KdeclareError."""
    _validate_unique_names(
        installed, "provider", {f"{item.distribution}/{item.name}": [item.name] for item in installed}
    )
    providers = {item.name: load_provider(item) for item in installed}
    _validate_api_groups(installed, providers)
    _validate_unique_names(installed, "kind", {p.name: list_kind_names(p) for p in providers.values()})
    _validate_unique_names(
        installed, "operation type", {p.name: list_operation_type_names(p) for p in providers.values()}
    )
    kinds = _collect_kind_names(providers.values())
    for item in installed:
        provider = providers[item.name]
        if isinstance(provider, Provider):
            _validate_kinds(item, provider, kinds)
    return tuple(providers[name] for name in _order_providers(providers) if name in providers)


def resolve_provider(provider: AnyProvider) -> Provider:
    """Return the definition of a provider. The definition of a deferred provider is imported on first use.

    Raises KdeclareError if the definition cannot be used.
    """
    return _load_definition(provider) if isinstance(provider, DeferredProvider) else provider


@cache
def _load_definition(provider: DeferredProvider) -> Provider:
    installed = _find_installed(provider.name, provider.package)
    definition = _run_import(installed, provider.load)
    _validate_kinds(installed, definition, _collect_kind_names(load_providers()))
    return definition


def _run_import(installed: InstalledProvider, load: Callable[[], _Loaded]) -> _Loaded:
    """Return the result of ``load``. Raises KdeclareError for each exception of the provider."""
    try:
        return load()
    except Exception as cause:  # provider code can raise any exception
        raise KdeclareError(_report_broken_provider(installed, f"{type(cause).__name__}: {cause}")) from cause


def _find_installed(name: str, package: str) -> InstalledProvider:
    unknown = InstalledProvider(name, "", "", package)
    return next((item for item in list_providers() if item.name == name), unknown)


def resolve_source(source: KindSource) -> Provider | KindGroup:
    """Return the definition of a provider or of a group of kinds, which is imported on first use.

    Raises KdeclareError if the definition cannot be used.
    """
    return resolve_group(source) if isinstance(source, DeferredKindGroup) else resolve_provider(source)


@cache
def resolve_group(group: DeferredKindGroup) -> KindGroup:
    """Return the definition of a group of kinds, which is imported on first use.

    Raises KdeclareError if the definition cannot be used.
    """
    providers = load_providers()
    owner = next((p for p in providers if isinstance(p, Provider) and group in p.kind_groups), None)
    installed = _find_installed(owner.name if owner is not None else "", group.package)
    definition = _run_import(installed, group.load)
    _validate_kinds(installed, definition, _collect_kind_names(providers))
    return definition


def resolve_completely(provider: AnyProvider) -> Provider:
    """Return the definition of a provider, including the definitions of its groups of kinds.

    Raises KdeclareError if a definition cannot be used.
    """
    definition = resolve_provider(provider)
    groups = [resolve_group(group) for group in definition.kind_groups]
    return replace(
        definition,
        kinds=(*definition.kinds, *(kind for group in groups for kind in group.kinds)),
        operation_types=(
            *definition.operation_types,
            *(operation_type for group in groups for operation_type in group.operation_types),
        ),
        collectors=(
            *definition.collectors,
            *(collector for group in groups for collector in group.collectors),
        ),
        kind_groups=(),
    )


def _collect_kind_names(providers: Iterable[AnyProvider]) -> frozenset[str]:
    return frozenset(name for provider in providers for name in list_kind_names(provider))


def _validate_kinds(
    installed: InstalledProvider, definition: Provider | KindGroup, kinds: frozenset[str]
) -> None:
    listed_parts = ListedParts(kinds, definition.operation_types, definition.collectors)
    for kind in definition.kinds:
        if isinstance(kind, ChecksItsProvider):
            for mistake in kind.find_mistakes(listed_parts):
                raise KdeclareError(_report_broken_provider(installed, f"kind {kind.name}: {mistake}"))


def _order_providers(providers: Mapping[str, AnyProvider]) -> list[str]:
    try:
        return list(TopologicalSorter({p.name: p.builds_on for p in providers.values()}).static_order())
    except CycleError as cycle:
        names = " → ".join(cycle.args[1])
        raise KdeclareError(
            error(
                "provider-cycle",
                "Circular provider dependency",
                f"The 'builds_on' attributes of these providers form a cycle: {names}.",
                hint="Uninstall one of these providers, or ask its author to remove the dependency.",
            )
        ) from None


def _validate_api_groups(
    installed: Sequence[InstalledProvider], providers: Mapping[str, AnyProvider]
) -> None:
    """Check that each API group belongs to only one Python package, which can contain several providers."""
    groups: dict[str, list[str]] = {}
    for item in installed:
        if item.distribution:  # without metadata, there is no package to uninstall
            group = providers[item.name].api_version.partition("/")[0]
            groups.setdefault(f"{item.distribution}/", []).append(group)
    hint = (
        "Set the provider's api_version to a group of its own, such as flags.example/v1 (the default is "
        "kdeclare/v1), or uninstall one of the packages."
    )
    _validate_unique_names(installed, "API group", groups, hint)


def _validate_unique_names(
    installed: Sequence[InstalledProvider],
    part_name: str,
    names: Mapping[str, Sequence[str]],
    hint: str = "Uninstall one of the packages.",
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
                        "Two providers define the same name",
                        f"The {part_name} '{name}' is defined by both {origins}.",
                        hint=hint,
                    )
                )


def _describe_origin(installed: Sequence[InstalledProvider], owner: str) -> str:
    distributions = {item.name: item.distribution for item in installed}
    return f"the package {distributions.get(owner) or owner.partition('/')[0]}"


def _report_broken_provider(installed: InstalledProvider, reason: str) -> Diagnostic:
    return error(
        "provider-broken",
        "Provider cannot be loaded",
        f"The provider {_format_provider(installed)} cannot be loaded: {reason}.",
        hint="Install a different version of the provider's package, or uninstall the package. "
        "If you are the author of the provider, set KDECLARE_DEBUG=1 to see the traceback.",
    )


def _format_provider(installed: InstalledProvider) -> str:
    return f"'{installed.name}' ({installed.distribution} {installed.version})"
