"""Find the manifests to which ad hoc changes to bindings are written."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kdeclare.app.adhoc.ownership import ResourceOwnership
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.acl.binding import Binding
from kdeclare.providers.kafka.acl.operations import KIND
from kdeclare.providers.kafka.acl.spec import AclBody


def find_manifests(
    ownership: ResourceOwnership, created: Sequence[Binding], deleted: Iterable[Binding]
) -> Mapping[Binding, str]:
    """Return, for each changed binding, the name of the resource whose manifest declares or will declare it.

    Created bindings that require a new manifest, and deleted bindings that no manifest declares, are omitted.
    Raises KdeclareError if there is no manifest that can declare exactly the changed bindings.
    """
    declared = [item for item in ownership.declared.values() if item.id.kind == KIND]
    requested: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for binding in created:
        requested[_get_grant(binding)].add(binding.principal)
    names: dict[Binding, str] = {}
    problems: list[Diagnostic] = []
    for binding in deleted:
        holders = [item for item in declared if binding in item.get_body(AclBody).bindings]
        if len(holders) > 1:
            problems.append(_report_several_holders(binding, holders))
        if holders:
            names[binding] = holders[0].id.name
    for binding in created:
        found = _find_candidates(declared, binding, requested[_get_grant(binding)])
        if isinstance(found, Diagnostic):
            problems.append(found)
        elif found is not None:
            names[binding] = found.id.name
    if problems:
        raise KdeclareError(*dict.fromkeys(problems))
    return names


def _get_grant(binding: Binding) -> tuple[str, ...]:
    """Return the binding without its principal."""
    return (*binding[:3], binding.host, binding.operation, binding.permission)


def _find_candidates(
    declared: Sequence[DesiredResource], binding: Binding, principals: set[str]
) -> DesiredResource | Diagnostic | None:
    """Return the only manifest that can declare a new binding, or None if a new manifest is needed.

    Return an error if there are several such manifests, or if every manifest that declares the principal
    would also apply the binding to other principals.

    principals: the principals for which the same binding is created.
    """
    bodies = {item.id: item.get_body(AclBody) for item in declared}
    holders = [item for item in declared if binding in bodies[item.id].bindings]
    if holders:
        return holders[0]
    of_principal = [item for item in declared if binding.principal in bodies[item.id].principals]
    for candidates in (
        [item for item in of_principal if bodies[item.id].principals == (binding.principal,)],
        [item for item in of_principal if principals.issuperset(bodies[item.id].principals)],
    ):
        if len(candidates) > 1:
            return _report_several_candidates(binding, candidates)
        if candidates:
            return candidates[0]
    return _report_shared(binding, of_principal[0]) if of_principal else None


def _format_places(items: Iterable[DesiredResource]) -> str:
    return format_names(list(_list_places(items)))


def _list_places(items: Iterable[DesiredResource]) -> Iterator[str]:
    for item in items:
        yield f"{item.id} ({item.source})" if item.source is not None else str(item.id)


def _report_several_holders(binding: Binding, holders: Sequence[DesiredResource]) -> Diagnostic:
    return error(
        "several-manifests",
        "Binding declared by several manifests",
        f"{binding} is declared by {_format_places(holders)}. If only one of these manifests is changed, the "
        "next apply creates the binding again.",
        hint="Remove the binding from all of these manifests, and run kdeclare apply.",
        resource=str(holders[0].id),
        subject=str(binding),
    )


def _report_several_candidates(binding: Binding, candidates: Sequence[DesiredResource]) -> Diagnostic:
    return error(
        "several-manifests",
        "Principal declared by several manifests",
        f"{binding.principal} is declared by {_format_places(candidates)}, so it is not clear which manifest "
        "should declare the new binding.",
        hint="Add the binding to one of these manifests, and run kdeclare apply.",
        resource=str(candidates[0].id),
        subject=binding.principal,
    )


def _report_shared(binding: Binding, item: DesiredResource) -> Diagnostic:
    others = [principal for principal in item.get_body(AclBody).principals if principal != binding.principal]
    return error(
        "principals-shared",
        "Manifest declares other principals",
        f"{item.id} declares {binding.principal} together with {format_names(others)}. A binding in this "
        "manifest would apply to all of them.",
        hint=f"Write a manifest for {binding.principal} alone, or name all principals in the command.",
        place=item.source,
        resource=str(item.id),
        subject=binding.principal,
    )
