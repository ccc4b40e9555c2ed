"""A cluster's refusal of a whole request, as an error for people."""

from collections.abc import Iterator
from contextlib import contextmanager

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.faults import Fault, FaultKind
from kdeclare.providers.connect.client.port import ERRORS as ABOUT_WORKERS
from kdeclare.providers.kafka.port import QUOTA_EXCEEDED, QUOTA_HINT


@contextmanager
def explained(cluster_name: str) -> Iterator[None]:
    """Turn a Fault that reaches here into a KdeclareError."""
    try:
        yield
    except Fault as fault:
        raise KdeclareError(_problem(cluster_name, fault)) from fault


def _problem(cluster_name: str, fault: Fault) -> Diagnostic:
    if fault.error in ABOUT_WORKERS:
        return error(
            "workers-unreachable",
            "Connect workers do not do as asked",
            f"{fault.message or 'No reason is given'} ({fault.error}).",
            hint="Check that they run, with kdeclare's plug-in, and how they are to be reached.",
        )
    if fault.error.endswith("AUTHORIZATION_FAILED"):
        return error(
            "not-authorized",
            "Not permitted",
            f"{cluster_name} does not permit this: {fault.message or fault.error} ({fault.error}).",
            hint="Ask for the permission: reading wants Describe and DescribeConfigs on topics and cluster.",
        )
    if fault.error == QUOTA_EXCEEDED:
        return error(
            "quota-exceeded",
            "Mutation quota exceeded",
            f"{cluster_name}: {fault.message} ({fault.error}).",
            hint=QUOTA_HINT,
        )
    if fault.kind is not FaultKind.REFUSED:
        return error(
            "cluster-lost",
            "The cluster does not answer any more",
            f"{cluster_name}: {fault.message or fault.error} ({fault.error}).",
            hint="Look at its brokers; then kdeclare status says whether anything is left unfinished.",
        )
    return error(
        "refused-by-cluster",
        "The cluster refuses the request",
        f"{cluster_name}: {fault.message or 'no reason given'} ({fault.error}).",
    )
