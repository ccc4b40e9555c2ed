"""Write ad hoc changes to bindings back into the manifests of the principals.

New bindings are written as entries of ``bindings``, never as roles. Removing a binding that comes from a
role is refused, because the role would still declare the binding.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from kdeclare.core.diagnostics import error
from kdeclare.core.frozen_dataclass import dataclass
from kdeclare.core.jsontypes import JsonObject, as_list, as_object
from kdeclare.core.resources.changes import Change, FieldChange, FieldOp
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath, SpecProblem
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    EntriesEdit,
    ListEntry,
    ManifestEdits,
    Plain,
    SettingEdit,
)
from kdeclare.core.resources.manifest_text import scalar
from kdeclare.core.units import format_names
from kdeclare.providers.kafka.acl.binding import (
    ALLOW,
    CLUSTER,
    DENY,
    Binding,
    sort_bindings,
)
from kdeclare.providers.kafka.acl.diff import parse_field
from kdeclare.providers.kafka.acl.manifests.expansion import Right, parse_acl
from kdeclare.providers.kafka.acl.manifests.export import format_pattern, render_rights
from kdeclare.providers.kafka.acl.spec import AclBody, AclSpec, BindingSpec

BINDINGS = "bindings"
_FIELDS = {ALLOW: "allow", DENY: "deny"}
"""For ALLOW and DENY, the field in which an entry of ``bindings`` lists the operations."""


class _Target(NamedTuple):
    """The resources that an entry of a manifest applies to."""

    resource_type: str
    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of ``bindings`` in a manifest.

    operations: the operations by permission (ALLOW or DENY), in the order of the manifest.
    """

    target: _Target
    hosts: frozenset[str]
    operations: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class _Addition:
    """Operations to declare in one entry."""

    target: _Target
    permission: str
    hosts: frozenset[str]
    operations: tuple[str, ...]


def list_changed_bindings(change: Change) -> tuple[tuple[Binding, ...], tuple[Binding, ...]]:
    """Return the bindings that a change creates, and the bindings that it deletes."""
    created = (b for field in change.fields if field.op is FieldOp.APPEND for b in parse_field(field))
    deleted = (b for field in change.fields if field.op is FieldOp.SUBTRACT for b in parse_field(field))
    return tuple(created), tuple(deleted)


def find_acl_edits(change: Change, declared: DeclaredFields) -> ManifestEdits:
    """Return the edits that make the field ``bindings`` of a manifest match a change."""
    spec = _read_spec(declared)
    return _BindingsEditor(change.id, spec).edit(*list_changed_bindings(change))


def render_acl_spec(change: Change) -> Sequence[str]:
    """Return the lines of a new manifest, which declares the bindings that a change creates."""
    created, _ = list_changed_bindings(change)
    principals = sorted({binding.principal for binding in created})
    lines = (
        [f"principal: {scalar(principals[0])}"]
        if len(principals) == 1
        else [f"principals: [{', '.join(map(scalar, principals))}]"]
    )
    return [*lines, *render_rights(created)]


def is_acl_as_changed(before: AclBody | None, after: AclBody, change: Change) -> bool:
    """Return whether the given change is the only difference between ``before`` and ``after``."""
    created, deleted = list_changed_bindings(change)
    if before is None:
        return after.bindings.keys() == set(created)
    expected = (before.bindings.keys() | set(created)) - set(deleted)
    is_rest_unchanged = (
        before.principals,
        before.remove_unmanaged,
        before.prevent_destroy,
    ) == (after.principals, after.remove_unmanaged, after.prevent_destroy)
    are_roles_unchanged = all(
        after.bindings.get(b) == role for b, role in before.bindings.items() if b in expected
    )
    return is_rest_unchanged and are_roles_unchanged and after.bindings.keys() == expected


def _read_spec(declared: DeclaredFields) -> AclSpec:
    """Return the spec of a valid manifest, with its overlays but without Defaults."""
    document = dict(as_object(declared.read_value(()) or {}))
    document.pop("lifecycle", None)
    entries = [_restore_cluster(as_object(entry)) for entry in as_list(document.get(BINDINGS) or [])]
    return AclSpec.model_validate({**document, BINDINGS: entries})


def _restore_cluster(entry: JsonObject) -> JsonObject:
    return {**entry, CLUSTER: True} if CLUSTER in entry else entry


class _BindingsEditor:
    """Computes the edits of one manifest."""

    def __init__(self, resource: ResourceId, spec: AclSpec) -> None:
        self._resource, self._spec = resource, spec
        self._body, _ = parse_acl(resource.name, spec)
        without_entries = spec.model_copy(update={BINDINGS: []})
        self._roles = parse_acl(resource.name, without_entries)[0].bindings
        self._entries = [self._read_entry(entry) for entry in spec.bindings]
        self._left: list[dict[str, tuple[str, ...]]] = [dict(entry.operations) for entry in self._entries]
        self._additions: list[_Addition] = []
        self._problems: list[SpecProblem] = []

    def edit(self, created: Sequence[Binding], deleted: Sequence[Binding]) -> ManifestEdits:
        """Return the edits for creating and deleting bindings."""
        declared = self._body.bindings
        self._delete({binding for binding in deleted if binding in declared})
        self._create(binding for binding in created if binding not in declared)
        if self._problems:
            return ManifestEdits(problems=tuple(self._problems))
        remaining_additions = [addition for addition in self._additions if not self._extend_entry(addition)]
        removed = tuple(n for n, operations in enumerate(self._left) if not any(operations.values()))
        entries = tuple(map(self._build_entry, remaining_additions))
        list_edit = (EntriesEdit((BINDINGS,), entries, removed),) if entries or removed else ()
        return ManifestEdits((*self._list_operation_edits(removed), *list_edit))

    def _read_entry(self, entry: BindingSpec) -> _Entry:
        """Parse an entry of ``bindings``. Read its resource and hosts from the bindings that it declares."""
        alone = self._spec.model_copy(
            update={
                "produce": [],
                "consume": AclSpec().consume,
                "transactions": [],
                "streams": [],
                "observe": AclSpec().observe,
                BINDINGS: [entry],
            }
        )
        bindings = parse_acl(self._resource.name, alone)[0].bindings
        first = next(iter(bindings))
        return _Entry(
            _Target(*first[:3]),
            frozenset(binding.host for binding in bindings),
            {ALLOW: tuple(entry.allow), DENY: tuple(entry.deny)},
        )

    def _delete(self, deleted: Set[Binding]) -> None:
        from_roles = [binding for binding in sort_bindings(deleted) if binding in self._roles]
        if from_roles:
            self._problems += [self._report_role(binding) for binding in from_roles]
            return
        for number, entry in enumerate(self._entries):
            for permission, operations in entry.operations.items():
                self._delete_operations(number, permission, operations, deleted)

    def _delete_operations(
        self, number: int, permission: str, operations: Sequence[str], deleted: Set[Binding]
    ) -> None:
        entry, principals = self._entries[number], self._body.principals
        kept: list[str] = []
        moved: dict[frozenset[str], list[str]] = defaultdict(list)
        for operation in operations:
            deleted_hosts = {
                principal: frozenset(
                    host
                    for host in entry.hosts
                    if Binding(*entry.target, principal, host, operation, permission) in deleted
                )
                for principal in principals
            }
            hosts = frozenset.union(*deleted_hosts.values())
            if not hosts:
                kept.append(operation)
            elif set(deleted_hosts.values()) != {hosts}:
                own = [principal for principal in principals if deleted_hosts[principal]]
                self._problems.append(self._report_shared(own, (BINDINGS, number)))
            elif hosts != entry.hosts:
                moved[entry.hosts - hosts].append(operation)
        self._left[number][permission] = tuple(kept)
        self._additions += [
            _Addition(entry.target, permission, hosts, tuple(moved_operations))
            for hosts, moved_operations in moved.items()
        ]

    def _create(self, created: Iterable[Binding]) -> None:
        principals_by_grant: dict[tuple[_Target, str, str, str], set[str]] = defaultdict(set)
        for b in created:
            principals_by_grant[_Target(*b[:3]), b.permission, b.host, b.operation].add(b.principal)
        hosts_by_right: dict[tuple[_Target, str, str], set[str]] = defaultdict(set)
        for (target, permission, host, operation), principals in principals_by_grant.items():
            if principals != set(self._body.principals):
                self._problems.append(self._report_shared(sorted(principals), ("principals",)))
                return
            hosts_by_right[target, permission, operation].add(host)
        operations_by_hosts: dict[tuple[_Target, str, frozenset[str]], list[str]] = defaultdict(list)
        for (target, permission, operation), hosts in hosts_by_right.items():
            operations_by_hosts[target, permission, frozenset(hosts)].append(operation)
        self._additions += [
            _Addition(target, permission, hosts, tuple(sorted(operations)))
            for (target, permission, hosts), operations in sorted(operations_by_hosts.items(), key=str)
        ]

    def _extend_entry(self, addition: _Addition) -> bool:
        """Add operations to an existing entry for the same resources and hosts, if there is such an entry."""
        for number, entry in enumerate(self._entries):
            own = self._left[number][addition.permission]
            if own and (entry.target, entry.hosts) == (addition.target, addition.hosts):
                self._left[number][addition.permission] = (*own, *addition.operations)
                return True
        return False

    def _list_operation_edits(self, removed: Sequence[int]) -> Iterator[SettingEdit]:
        for number, entry in enumerate(self._entries):
            for permission, field in _FIELDS.items() if number not in removed else ():
                before, after = entry.operations[permission], self._left[number][permission]
                if before != after:
                    path: SpecPath = (BINDINGS, number, field)
                    op = FieldOp.SET if after else FieldOp.DELETE
                    name = ".".join(map(str, path))
                    yield SettingEdit(path, (FieldChange(name, op, None, list(after) or None),))

    def _build_entry(self, addition: _Addition) -> ListEntry:
        target, operations = addition.target, list(addition.operations)
        entry: dict[str, Plain | list[Plain]] = {}
        text = format_pattern(Right(*target, ""))
        if target.resource_type == CLUSTER:
            entry[CLUSTER] = True
        elif text is not None:
            entry[target.resource_type] = text
        else:
            entry |= {target.resource_type: target.name, "pattern": target.pattern}
        entry[_FIELDS[addition.permission]] = [*operations]
        if addition.hosts != frozenset(self._spec.hosts):
            entry["hosts"] = [*sorted(addition.hosts)]
        return entry

    def _report_role(self, binding: Binding) -> SpecProblem:
        role = self._roles[binding]
        diagnostic = error(
            "declared-by-role",
            "Binding comes from a role",
            f"{self._resource} declares {binding} with the role '{role}'. A role is declared as a whole, so "
            "the manifest cannot declare the role without this binding.",
            hint=f"Change '{role}' in the manifest, or replace the role with entries of 'bindings'. Then run "
            "kdeclare apply.",
            resource=str(self._resource),
            subject=str(binding),
        )
        return SpecProblem((role,), diagnostic)

    def _report_shared(self, principals: Sequence[str], path: SpecPath) -> SpecProblem:
        others = [principal for principal in self._body.principals if principal not in principals]
        declared = f"the same bindings for {format_names(self._body.principals)}"
        reason = (
            f"so a change for {format_names(principals)} alone cannot be written"
            if others
            else f"so a change for {format_names(principals)} cannot be written"
        )
        diagnostic = error(
            "principals-shared",
            "Manifest declares other principals",
            f"{self._resource} declares {declared}, {reason}.",
            hint=f"Write a separate manifest for {format_names(principals)}, or name all principals of this "
            "manifest in the command.",
            resource=str(self._resource),
        )
        return SpecProblem(path, diagnostic)
