"""Create and delete ACL bindings ad hoc, and read bindings for the other ACL commands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from kdeclare.app.adhoc.ownership import ResourceOwnership, load_ownership
from kdeclare.app.adhoc.run import AdhocCommand, AdhocOptions, AdhocRequest, run_adhoc
from kdeclare.app.apply import ApplyOptions
from kdeclare.app.plan import load_valid_manifests
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError, error, warning
from kdeclare.core.parts import Connections
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource
from kdeclare.engine.planning.planfile import load_plan
from kdeclare.providers.kafka.acl.binding import Binding, sort_bindings
from kdeclare.providers.kafka.acl.collector import read_acls, require_visible
from kdeclare.providers.kafka.acl.manifests.export import make_manifest_name
from kdeclare.providers.kafka.acl.names import check_all_rights, check_cluster_rights
from kdeclare.providers.kafka.acl.operations import CREATE, DELETE, KIND, list_bindings
from kdeclare.providers.kafka.acl.own_access import read_own_access
from kdeclare.providers.kafka.acl.record import get_owned_bindings
from kdeclare.providers.kafka.acl.spec import AclBody
from kdeclare.providers.kafka.commands.acl.acl_manifests import find_manifests
from kdeclare.providers.kafka.connection import KafkaConnection
from kdeclare.report.adhoc import AdhocLabels, AdhocResult

BindingSelector = Callable[[frozenset[Binding]], Sequence[Binding]]
"""A function that selects bindings from all live bindings."""

WORDING = AdhocLabels(look_hint="Check the ACLs with 'kdeclare acl list'.")


def change_acls(
    workspace: Workspace,
    created: Sequence[Binding],
    select_deleted: BindingSelector,
    options: AdhocOptions,
    apply_options: ApplyOptions,
) -> AdhocResult | None:
    """Create and delete bindings. Return the result, or None if the user declined. Raises KdeclareError.

    The plan shows the change to a binding under the id of the declared or owned resource that contains the
    binding. If the change is also written to manifests, the plan shows a new binding under the id of the
    resource whose manifest declares the principal. If no manifest declares the principal, the plan shows the
    creation of a resource, and kdeclare writes a new manifest for the resource.
    """

    def build_request(connections: Connections) -> AdhocRequest:
        live = frozenset(require_visible(read_acls(connections)).bindings)
        deleted = select_deleted(live)
        ownership = load_ownership(workspace)
        names = _find_names(ownership, [*created, *deleted])
        if options.write:
            names |= find_manifests(ownership, created, deleted)
        known = {*ownership.declared, *ownership.owned}
        desired = []
        for name in sorted(set(names.values())):
            own_created = {b: "" for b in sort_bindings(created) if names[b] == name}
            own_deleted = tuple(b for b in sort_bindings(deleted) if names[b] == name)
            principals = tuple(sorted({b.principal for b in (*own_created, *own_deleted)}))
            resource = ResourceId(KIND, name)
            is_new = options.write and not own_deleted and str(resource) not in known
            body = AclBody(principals, own_created, absent=own_deleted, is_partial=not is_new)
            desired.append(DesiredResource(resource, body))
        return AdhocRequest(tuple(desired), diagnostics=tuple(_warn_broad_rights(created, names)))

    return run_adhoc(workspace, AdhocCommand(build_request, words=WORDING), options, apply_options)


def _warn_broad_rights(bindings: Sequence[Binding], names: Mapping[Binding, str]) -> Iterator[Diagnostic]:
    """Warn about broad permissions, as validation does for manifests."""
    for b in sort_bindings(bindings):
        for text, problem in (
            (f"{b.principal} {b.operation}", check_all_rights(b.principal, b.operation, b.permission)),
            ("ALL on the cluster", check_cluster_rights(b.resource_type, b.operation, b.permission)),
        ):
            if problem is not None:
                resource = str(ResourceId(KIND, names[b]))
                detail = f"'{text}' {problem.reason}."
                yield warning(problem.code, problem.summary, detail, problem.hint, resource=resource)


def _find_names(ownership: ResourceOwnership, bindings: Sequence[Binding]) -> dict[Binding, str]:
    """Return, for each binding, the name of the declared or owned resource that contains it.

    If there is no such resource, return a name that is derived from the principal.
    """
    names: dict[Binding, str] = {}
    for text, record in ownership.owned.items():
        if ResourceId.parse(text).kind == KIND:
            names |= dict.fromkeys(get_owned_bindings(record), ResourceId.parse(text).name)
    for item in ownership.declared.values():
        if item.id.kind == KIND:
            names |= dict.fromkeys(item.get_body(AclBody).bindings, item.id.name)
    return {b: names.get(b) or make_manifest_name(b.principal) for b in bindings}


def read_live_bindings(workspace: Workspace) -> tuple[frozenset[Binding], bool]:
    """Return all live bindings, and whether brokers allow all access to resources without ACLs.

    Raises KdeclareError, or Fault if the bindings cannot be read.
    """
    with workspace.open_connections() as connections:
        return _read_bindings(connections)


def _read_bindings(connections: Connections) -> tuple[frozenset[Binding], bool]:
    state = require_visible(read_acls(connections))
    access = read_own_access(connections.get(KafkaConnection).cluster)
    return frozenset(state.bindings), access.allows_everyone == {True}


def read_planned_bindings(workspace: Workspace, file: Path) -> tuple[frozenset[Binding], bool]:
    """Return the bindings that will exist after a saved plan is applied.

    Also return whether brokers allow all access to resources without ACLs. The plan must be for the cluster
    of the environment. Raises KdeclareError or Fault.
    """
    plan = load_plan(file).plan
    with workspace.open_connections() as connections:
        live_id = connections.get(KafkaConnection).cluster.describe().id
        if plan.cluster.id != live_id:
            raise KdeclareError(_report_other_cluster(file, plan.cluster.id, live_id))
        live, allows_everyone = _read_bindings(connections)
    bindings = set(live)
    for op in plan.operations:
        if op.verb == CREATE.name:
            bindings.update(list_bindings(op))
        elif op.verb == DELETE.name:
            bindings.difference_update(list_bindings(op))
    return frozenset(bindings), allows_everyone


def read_declared_bindings(workspace: Workspace) -> frozenset[Binding]:
    """Return the bindings that the manifests of the project declare. Raises KdeclareError."""
    if workspace.project.file is None:
        detail = "--manifests requires a project file, but no project file was found."
        raise KdeclareError(error("no-project", "No project", detail, hint="Pass --project FILE."))
    declared = load_valid_manifests(workspace, ()).desired
    return frozenset(b for d in declared if d.id.kind == KIND for b in d.get_body(AclBody).bindings)


def _report_other_cluster(file: Path, plan_id: str, live_id: str) -> Diagnostic:
    return error(
        "other-cluster",
        "The plan is for another cluster",
        f"The plan in {file} is for cluster {plan_id}, but the environment is connected to {live_id}.",
        hint="Check --env and --bootstrap-server, or make a new plan.",
    )
