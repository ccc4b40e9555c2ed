"""The CEL library, which is an optional package. Its import is slow."""

from functools import cache
from typing import Any

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.extras import explain_missing_extra


@cache
def load_cel() -> Any:
    """Import and return the CEL library. Raises KdeclareError ``extra-missing``."""
    try:
        from cel_expr_python import cel
    except ModuleNotFoundError as problem:
        diagnostic = explain_missing_extra(problem)
        if diagnostic is None:
            raise
        raise KdeclareError(diagnostic) from problem
    return cel
