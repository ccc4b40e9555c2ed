"""List the installed providers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from kdeclare.core.diagnostics import KdeclareError, summarize_diagnostics
from kdeclare.core.documents import build_document
from kdeclare.core.provider.deferred_provider import list_kind_names
from kdeclare.core.provider.installed_providers import (
    InstalledProvider,
    find_providers,
    load_provider,
    load_selected_providers,
    resolve_provider,
)
from kdeclare.report.provider_list import ProviderStatus


def list_providers() -> tuple[ProviderStatus, ...]:
    """List all installed providers by name, including those that cannot be used."""
    statuses = {installed: _build_status(installed) for installed in find_providers()}
    conflicts = _find_conflicts(
        [installed for installed, status in statuses.items() if status.problem is None]
    )
    return tuple(
        replace(status, problem=status.problem or conflicts.get(installed))
        for installed, status in statuses.items()
    )


def _build_status(installed: InstalledProvider) -> ProviderStatus:
    try:
        provider = resolve_provider(load_provider(installed))
    except KdeclareError as problem:
        return build_document(ProviderStatus, installed, problem=summarize_diagnostics(problem.diagnostics))
    kinds = list_kind_names(provider)
    return build_document(ProviderStatus, installed, api_version=provider.api_version, kinds=kinds)


def _find_conflicts(usable: Sequence[InstalledProvider]) -> dict[InstalledProvider, str]:
    conflicts: dict[InstalledProvider, str] = {}
    for pair in combinations(usable, 2):
        try:
            load_selected_providers(pair)
        except KdeclareError as problem:
            conflicts |= dict.fromkeys(pair, summarize_diagnostics(problem.diagnostics))
    return conflicts
