"""Choose the named endpoint of a resource, and report resources whose endpoint is missing or unreachable."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from kdeclare.core.diagnostics import ENDPOINT_UNREACHABLE, Diagnostic, KdeclareError, error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.resources.kind import DesiredResource, Difference
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.suggestions import format_suggestion


@dataclass(frozen=True, slots=True)
class EndpointChoice:
    """The endpoint that a resource uses, or the reason why there is none.

    name: the name of the endpoint within its provider (``eu``); None if no endpoint can be chosen.
    problem: a sentence that explains why no endpoint can be chosen; empty if one was chosen.
    hint: what the user can do.
    """

    name: str | None
    problem: str = ""
    hint: str = ""


def choose_endpoint(declared: str | None, configured: Collection[str], setting: str) -> EndpointChoice:
    """Return the endpoint with the declared name, or the only endpoint if the resource declares no name.

    configured: the names of the endpoints that the environment configures.
    setting: the field of the environment that contains the endpoints, for messages.
    """
    names = sorted(configured)
    example = (
        f"Add the endpoint to the environment in the project file: {setting}: "
        f"{{{declared or 'NAME'}: {{urls: …}}}}."
    )
    if declared is None:
        if len(names) == 1:
            return EndpointChoice(names[0])
        if not names:
            return EndpointChoice(None, f"The environment has no endpoints under '{setting}'.", example)
        listed = ", ".join(names)
        return EndpointChoice(
            None,
            f"The environment has several endpoints under '{setting}': {listed}. The resource names none.",
            "Name one of these endpoints in the manifest.",
        )
    if declared in configured:
        return EndpointChoice(declared)
    detail = f"The environment has no endpoint '{declared}' under '{setting}'."
    if not names:
        return EndpointChoice(None, detail, example)
    return EndpointChoice(
        None, detail, format_suggestion(declared, names) or f"Use one of the endpoints {', '.join(names)}."
    )


def list_requested_endpoints(
    declared: str | None, configured: Collection[str], choose: Callable[[str | None], EndpointChoice]
) -> Sequence[str]:
    """Return the requested endpoint or, if none is requested, all endpoints of the environment, sorted.

    choose: chooses one endpoint, see `choose_endpoint`. Raises KdeclareError if there is none.
    """
    if declared is None and configured:
        return sorted(configured)
    choice = choose(declared)
    if choice.name is None:
        raise KdeclareError(report_missing_endpoint(choice))
    return [choice.name]


def report_missing_endpoint(choice: EndpointChoice, resource: str | None = None) -> Diagnostic:
    """Return the error about a resource whose endpoint the environment does not configure."""
    return error(
        "endpoint-not-configured",
        "Endpoint is not configured",
        choice.problem,
        hint=choice.hint,
        resource=resource,
    )


def explain_unreachable_endpoint(name: str, problem: str) -> str:
    """Return a sentence that explains why an endpoint did not respond.

    name: the full name of the endpoint, such as ``connect/eu``. problem: see `EndpointStatus`.
    """
    return f"{name} did not respond: {problem.rstrip('.')}."


def report_unreachable_endpoint(name: str, problem: str, resource: str) -> Diagnostic:
    """Return the error about a resource whose endpoint did not respond. The error blocks only this resource.

    name: the full name of the endpoint, such as ``connect/eu``. problem: see `EndpointStatus`.
    """
    return error(
        ENDPOINT_UNREACHABLE,
        "Endpoint did not respond",
        explain_unreachable_endpoint(name, problem),
        hint="Check that the system is running and that its settings in the environment are correct. Then "
        "plan again.",
        resource=resource,
        subject=name,
    )


def withhold_resource(
    diagnostic: Diagnostic, desired: DesiredResource | None, owned: OwnedRecord | None
) -> Difference:
    """Return the result of `PlanHooks.withhold` for a resource that cannot be compared.

    A resource that is no longer declared stays owned.
    """
    place = desired.source if desired is not None else None
    return Difference(None, owned, diagnostics=(replace(diagnostic, place=place),))
