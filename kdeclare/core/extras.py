"""Explain a missing Python module: it needs an extra of kdeclare, or a different operating system."""

from collections.abc import Mapping

from kdeclare.core.diagnostics import Diagnostic, error
from kdeclare.core.frozen_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of kdeclare, which pip installs with ``kdeclare[NAME]``.

    purpose: the features that need the extra, as the plural subject of a sentence.
    alternative: a sentence about another extra that a user might need instead; empty if there is none.
    """

    name: str
    purpose: str
    alternative: str = ""


_FLEET_PURPOSE = "Fleet commands"
_FLEET = Extra("fleet", _FLEET_PURPOSE)

_EXTRAS: Mapping[str, tuple[str, Extra]] = {
    "aws_msk_iam_sasl_signer": (
        "aws-msk-iam-sasl-signer-python",
        Extra("msk-iam", "Logins to Amazon MSK with IAM"),
    ),
    "cel_expr_python": ("cel-expr-python", Extra("policies", "The rules of policies")),
    "gssapi": ("gssapi", Extra("kerberos", "Logins with Kerberos")),
    "py4j": ("pyspark", _FLEET),
    "pyarrow": (
        "pyarrow",
        Extra(
            "fleet-local",
            _FLEET_PURPOSE,
            "For fleets that do not fit into the memory of one machine, install 'kdeclare[fleet]' instead, "
            "which contains Spark.",
        ),
    ),
    "pyspark": ("pyspark", _FLEET),
}
"""The package and the extra that install each optional module, by the module's top-level name."""


def explain_missing_extra(problem: ImportError) -> Diagnostic | None:
    """Return the error to show for a failed import; None if the cause is not known.

    Known causes are a missing optional package, and Windows, where Python has no module ``fcntl``.
    """
    package, extra = _EXTRAS.get((problem.name or "").partition(".")[0], ("", None))
    if problem.name == "fcntl":
        return error(
            "unsupported-system",
            "Operating system is not supported",
            "kdeclare locks files with flock, which Windows does not have.",
            hint="Run kdeclare in the Windows Subsystem for Linux or in a container.",
        )
    if extra is None or not isinstance(problem, ModuleNotFoundError):
        return None
    return error(
        "extra-missing",
        "Optional package is not installed",
        f"{extra.purpose} need the Python package '{package}', which is not installed.",
        hint=f"Install it with `pip install 'kdeclare[{extra.name}]'`. {extra.alternative}".strip(),
    )
