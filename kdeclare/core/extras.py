"""Optional packages: which extra of kdeclare installs a package that is missing."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of kdeclare, which pip installs with ``kdeclare[NAME]``.

    purpose: what needs the extra, as the subject of a sentence about several things.
    """

    name: str
    purpose: str


_FLEET = Extra("fleet", "Fleet commands")

_EXTRAS: Mapping[str, tuple[str, Extra]] = {
    "cel_expr_python": ("cel-expr-python", Extra("policies", "The rules of policies")),
    "py4j": ("pyspark", _FLEET),
    "pyarrow": ("pyarrow", _FLEET),
    "pyspark": ("pyspark", _FLEET),
}
"""The package and the extra of each optional module, by its top-level name."""


def explain_missing_extra(problem: ImportError) -> Diagnostic | None:
    """Return the error about a missing optional package; None if something else cannot be imported."""
    package, extra = _EXTRAS.get((problem.name or "").partition(".")[0], ("", None))
    if extra is None or not isinstance(problem, ModuleNotFoundError):
        return None
    return error(
        "extra-missing",
        "Optional package is not installed",
        f"{extra.purpose} need the Python package '{package}', which is not installed.",
        hint=f"Install it with `pip install 'kdeclare[{extra.name}]'`.",
    )
