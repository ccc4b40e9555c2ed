"""Token providers of installed Python packages: entry points in the group ``kdeclare.token_providers``."""

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.extras import explain_missing_extra
from kdeclare.core.provider.entry_points import InstalledEntryPoint, find_entry_points
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.client.connection_problems import build_no_token_error, build_property_error
from kdeclare.providers.kafka.client.tokens.token import Token, TokenRequest
from kdeclare.providers.kafka.property_names import TOKEN_PROVIDER_KEY

GROUP = "kdeclare.token_providers"
_HINT = "Check the properties that start with 'kdeclare.token.provider', and the package of the provider."


def find_token_provider(name: str) -> InstalledEntryPoint:
    """Return the entry point of the token provider, without importing it. Raises KdeclareError."""
    points = {point.name: point for point in reversed(find_entry_points(GROUP))}
    if name not in points:
        raise build_property_error(
            TOKEN_PROVIDER_KEY,
            f"no installed Python package has the token provider '{name}'",
            hint=f"Install the package of this token provider, or use {format_names(sorted(points))}.",
        )
    return points[name]


def fetch_installed_token(point: InstalledEntryPoint, request: TokenRequest) -> Token:
    """Load the token provider, and request a token. Raises KdeclareError.

    A token provider is a function that accepts a `TokenRequest` and returns a `Token`.
    """
    source = f"token provider '{point.name}'"
    try:
        provide = point.load()
        if not callable(provide):
            raise TypeError(f"{point.value} is not a function")
        token: object = provide(request)
    except KdeclareError:
        raise
    except Exception as exc:
        # A token provider is foreign code, which can raise any exception.
        missing_extra = explain_missing_extra(exc) if isinstance(exc, ImportError) else None
        if missing_extra is not None:
            raise KdeclareError(missing_extra) from exc
        raise build_no_token_error(source, f"{type(exc).__name__}: {exc}".rstrip("."), _HINT) from exc
    if not isinstance(token, Token) or not isinstance(token.text, str) or not token.text.strip():
        raise build_no_token_error(source, f"{point.value} did not return a token", _HINT)
    return token
