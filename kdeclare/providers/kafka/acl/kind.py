"""The kind `Acl`: permissions of principals, as a set of bindings."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from pydantic import BaseModel

from kdeclare.core.jsontypes import JsonObject, JsonValue, as_object
from kdeclare.core.live.collector import Selections
from kdeclare.core.live.live_codec import DeclaredFacts, LiveKey
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.policies.policy_fields import PolicyField, PolicyWords
from kdeclare.core.resources.audit_rules import Element
from kdeclare.core.resources.changes import Action, Change, FieldChange
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import (
    DesiredResource,
    Difference,
    SpecPath,
    SpecProblem,
    narrow,
    narrow_optional,
)
from kdeclare.core.resources.manifest_capabilities import (
    DeclaredFields,
    Export,
    ExportRequest,
    ManifestEdits,
)
from kdeclare.core.resources.owned_record import OwnedRecord, narrow_record
from kdeclare.providers.kafka.acl.binding import Binding, parse_binding, sort_bindings
from kdeclare.providers.kafka.acl.collector import AclSelection, AclState, read_acls, require_visible
from kdeclare.providers.kafka.acl.diff import assess_bindings, build_absent_record, diff_acl, parse_field
from kdeclare.providers.kafka.acl.fleet import (
    find_acl_key,
    list_acl_elements,
    list_acl_facts,
    list_removed_principals,
)
from kdeclare.providers.kafka.acl.manifests.edits import find_acl_edits, is_acl_as_changed, render_acl_spec
from kdeclare.providers.kafka.acl.manifests.expansion import parse_acl
from kdeclare.providers.kafka.acl.manifests.export import export_acls, locate_binding
from kdeclare.providers.kafka.acl.operations import CREATE, build_acl_operations, list_bindings
from kdeclare.providers.kafka.acl.record import AclRecord, get_owned_bindings, get_owned_roles, merge_bindings
from kdeclare.providers.kafka.acl.spec import AclBody, AclSpec, bind_acl, dump_acl

ACL_WORDS = PolicyWords(
    {
        "bindings": PolicyField(dict[str, object], elements="resources"),
        "principals": PolicyField(list[str]),
    }
)
"""The fields of an Acl for policies.

For each resource (``topic:orders*``), ``bindings`` contains a list of strings such as ``ALLOW User:a READ
from *``.
"""


def describe_bindings(bindings: Iterable[Binding], principals: Iterable[str] = ()) -> Mapping[str, object]:
    """Return the fields of bindings for policies."""
    by_resource: dict[str, list[str]] = {}
    names: dict[str, None] = dict.fromkeys(principals)
    for binding in sort_bindings(bindings):
        by_resource.setdefault(binding.resource, []).append(binding.element)
        names[binding.principal] = None
    return {"bindings": by_resource, "principals": list(names)}


class AclKind:
    """The kind `Acl`. Each binding is owned, adopted and compared separately."""

    name = "Acl"
    spec: type[BaseModel] = AclSpec
    record: type[OwnedRecord] = AclRecord
    policy_words: PolicyWords = ACL_WORDS
    individual_fields: frozenset[str] = frozenset(AclSpec.model_fields)

    def parse(self, name: str, spec: BaseModel) -> tuple[AclBody, tuple[SpecProblem, ...]]:
        """See `Kind`."""
        return parse_acl(name, narrow(spec, AclSpec))

    def select(self, name: str, body: object | None, owned: OwnedRecord | None) -> Selections:
        """Select the principals of all declared and owned bindings."""
        body = narrow_optional(body, AclBody)
        bindings = [*(body.bindings if body is not None else ()), *get_owned_bindings(owned)]
        bindings += body.absent if body is not None else ()
        principals = {*(body.principals if body is not None else ()), *(b.principal for b in bindings)}
        return (AclSelection(frozenset(principals)),)

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        """See `Kind`."""
        return diff_acl(resource, desired, live.get(AclState), narrow_record(owned, AclRecord))

    def build_absent_record(
        self, desired: DesiredResource, live: LiveState, owned: OwnedRecord | None
    ) -> OwnedRecord | None:
        """See `DeletesByRecord`."""
        record = narrow_record(owned, AclRecord)
        return build_absent_record(desired.get_body(AclBody), live.get(AclState), record)

    def assess_field(self, action: Action, field: FieldChange) -> FieldChange:
        """Rate new denials and deleted grants as disruptive."""
        return assess_bindings(field)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        """Plan the operations, in the order of the field changes."""
        declared = desired.get_body(AclBody).bindings if desired is not None else {}
        return build_acl_operations(change, {**get_owned_roles(owned), **declared})

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        """See `Kind`."""
        if all_done:
            return after
        if not done:
            return before
        created = [b for op in done if op.verb == CREATE.name for b in list_bindings(op)]
        deleted = [b for op in done if op.verb != CREATE.name for b in list_bindings(op)]
        return merge_bindings(before, after, created, deleted)

    def list_exclusive_settings(self, name: str, body: object) -> JsonObject:
        """Return ALLOW or DENY for each declared combination of principal, operation, resource and host.

        A manifest must not allow what another manifest denies.
        """
        return {
            f"{b.principal} {b.operation} on {b.resource} from {b.host}": b.permission
            for b in narrow(body, AclBody).bindings
        }

    def describe_declared(self, desired: DesiredResource) -> Mapping[str, object]:
        """Return the declared bindings."""
        body = desired.get_body(AclBody)
        return describe_bindings(body.bindings, body.principals)

    def describe_live(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
    ) -> Mapping[str, object] | None:
        """Return the live bindings that the resource declares or owns.

        If the resource is neither declared nor owned, its name is one live binding in text format.
        """
        state = require_visible(live.get(AclState))
        body = desired.get_body(AclBody) if desired is not None else None
        if body is None and owned is None:
            try:
                binding = parse_binding(resource.name)
            except ValueError:
                return None
            return describe_bindings([binding]) if state.has(binding) else None
        bindings = {*(body.bindings if body is not None else ()), *get_owned_bindings(owned)}
        principals = body.principals if body is not None else ()
        return describe_bindings(filter(state.has, bindings), principals)

    def select_every(self) -> Selections:
        """Return an empty selection: whenever live bindings are listed, those of all principals are read."""
        return (AclSelection(),)

    def list_live(self, live: LiveState) -> Collection[str]:
        """Return all bindings in text format. Raises Fault if they could not be read."""
        return [str(binding) for binding in require_visible(live.get(AclState)).bindings]

    def is_self_contained(self, name: str, body: object) -> bool:
        """Return True: an audit compares each binding separately."""
        return True

    def find_live_key(self, name: str, body: object | None, owned: OwnedRecord | None) -> LiveKey | None:
        """Return the key of the first declared or owned binding; None if there is no such binding."""
        return find_acl_key(narrow_optional(body, AclBody), owned)

    def list_elements(self, name: str, body: object | None, owned: OwnedRecord | None) -> Iterable[Element]:
        """Split an Acl into its declared and owned bindings, so that an audit can compare each binding."""
        return list_acl_elements(narrow_optional(body, AclBody), narrow_record(owned, AclRecord))

    def list_removed_groups(self, name: str, body: object) -> Mapping[str, AclBody]:
        """Return, for each principal whose unmanaged bindings are to be deleted, a body without bindings."""
        return list_removed_principals(narrow(body, AclBody))

    def list_facts(self, body: object, owned: OwnedRecord | None) -> DeclaredFacts | None:
        """Return the facts of the bindings that the body declares; None if it declares no binding."""
        return list_acl_facts(narrow(body, AclBody))

    def find_edits(self, change: Change, declared: DeclaredFields) -> ManifestEdits:
        """See `providers.kafka.acl.manifests.edits`."""
        return find_acl_edits(change, declared)

    def render_spec_lines(self, change: Change) -> Sequence[str]:
        """See `providers.kafka.acl.manifests.edits`."""
        return render_acl_spec(change)

    def is_same_value(self, path: SpecPath, text: str, value: JsonValue) -> bool:
        """Compare two strings exactly, because a value in a binding can be written in only one way."""
        return text == value

    def is_as_changed(self, name: str, before: object | None, after: object, change: Change) -> bool:
        """See `providers.kafka.acl.manifests.edits`."""
        return is_acl_as_changed(narrow_optional(before, AclBody), narrow(after, AclBody), change)

    def is_field_claimed(self, field: FieldChange, stated: JsonObject) -> bool:
        """Return whether a body or record contains a binding that a field change creates or deletes.

        Also return True if the body or the record has ``removeUnmanaged``.
        """
        bindings = stated.get("bindings", ())
        texts = set(as_object(bindings) if isinstance(bindings, Mapping) else bindings)  # type: ignore[arg-type]
        is_claimed = any(str(binding) in texts for binding in parse_field(field))
        return is_claimed or bool(stated.get("removeUnmanaged"))

    def locate_field(self, path: str) -> Sequence[SpecPath]:
        """Return the paths in a manifest that can declare a binding."""
        return locate_binding(path)

    def to_json(self, name: str, body: object) -> JsonObject:
        """See `BodyCodec`."""
        return dump_acl(narrow(body, AclBody))

    def from_json(self, json: JsonObject) -> AclBody:
        """See `BodyCodec`."""
        return bind_acl(json)

    def export(self, connections: Connections, request: ExportRequest) -> Export:
        """Return one manifest for each principal that has bindings."""
        return export_acls(read_acls(connections), request)
