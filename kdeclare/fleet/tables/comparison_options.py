"""The inputs that affect all findings: the options of the audit, and the code that compares resources."""

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from kdeclare.core.provider.installed_providers import InstalledProvider, list_providers
from kdeclare.core.provider.package_files import hash_package
from kdeclare.fleet.tables.fingerprints import ComparisonOptions

_OWN_PACKAGE = "kdeclare"
_CEL_DISTRIBUTION = "cel-expr-python"
"""The Python package of the CEL engine, which evaluates policies."""


def build_comparison_options(*, unmanaged_keys: bool) -> ComparisonOptions:
    """Return the inputs that affect all findings of an audit by this process.

    unmanaged_keys: see `ComparisonOptions`.
    """
    providers = list_providers()
    return ComparisonOptions(unmanaged_keys, providers, describe_code(providers))


def describe_code(providers: Sequence[InstalledProvider]) -> str:
    """Return a string that changes whenever a file of kdeclare or of a provider, or the CEL engine, changes.

    Package versions are not enough: the version of a checkout or a fork can stay the same when its code
    changes.
    """
    modules = {provider.reference.partition(":")[0] for provider in providers}
    others = sorted(module for module in modules if module.partition(".")[0] != _OWN_PACKAGE)
    hashes = {module: hash_package(module) for module in (_OWN_PACKAGE, *others)}
    return json.dumps([hashes, _find_version(_CEL_DISTRIBUTION)])


def _find_version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:  # the package was copied without its metadata
        return None
