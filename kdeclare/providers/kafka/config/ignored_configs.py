"""Configs that ``lifecycle.ignoreChanges`` lists."""

from collections.abc import Collection, Iterable, Sequence

from kdeclare.core.resources.ignored_changes import check_ignored_paths
from kdeclare.core.resources.kind import SpecProblem
from kdeclare.providers.kafka.config.catalog import Catalog

_PREFIX = "configs."


def find_ignored_keys(ignored: Iterable[str]) -> frozenset[str]:
    """Return the config keys among ignored paths."""
    return frozenset(path.removeprefix(_PREFIX) for path in ignored if path.startswith(_PREFIX))


def check_ignored_configs(
    resource: str,
    paths: Sequence[str],
    catalog: Catalog,
    declared_keys: Collection[str],
    other_fields: Sequence[str] = (),
) -> tuple[SpecProblem, ...]:
    """Return an error for each ignored path that is neither a config key nor one of ``other_fields``.

    declared_keys: the keys in the manifest. They are valid even if the catalog does not contain them.
    """
    keys = sorted({*catalog.keys, *declared_keys}) if paths else ()
    return check_ignored_paths(
        resource,
        paths,
        (*other_fields, *(f"{_PREFIX}{key}" for key in keys)),
        lambda path: path.startswith(_PREFIX) and catalog.get(path.removeprefix(_PREFIX)) is not None,
    )
