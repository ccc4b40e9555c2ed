"""A kind implements only the mandatory methods; generic code has defaults for the rest."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from kdeclare.core.live.collector import Selections
from kdeclare.core.operations.operation import Operation
from kdeclare.core.parts import Connections, LiveState, PlanContext
from kdeclare.core.provider.registry import KINDS
from kdeclare.core.resources import fleet_capabilities, manifest_capabilities, plan_capabilities
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Risk
from kdeclare.core.resources.fleet_capabilities import (
    decode_body,
    encode_body,
    is_fleet_comparable,
    is_self_contained,
)
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, Kind, SpecProblem
from kdeclare.core.resources.manifest_capabilities import (
    Export,
    ExportRequest,
    export_manifests,
    find_exclusive_fields,
)
from kdeclare.core.resources.owned_record import NoRecord, OwnedRecord
from kdeclare.core.resources.plan_capabilities import (
    assess_field,
    find_static_diagnostics,
    find_undeletable,
    forget_identity,
    list_exclusive_settings,
    record_identity,
)


class LampSpec(BaseModel):
    on: bool = True


class LampKind:
    """The smallest possible kind."""

    name = "Lamp"
    spec: type[BaseModel] = LampSpec
    record: type[OwnedRecord] = NoRecord

    def parse(self, name: str, spec: Any) -> tuple[Any, tuple[SpecProblem, ...]]:
        return spec, ()

    def select(self, name: str, body: Any | None, owned: OwnedRecord | None) -> Selections:
        return ()

    def diff(
        self,
        resource: ResourceId,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> Difference:
        return Difference(None)

    def plan_operations(
        self,
        change: Change,
        desired: DesiredResource | None,
        live: LiveState,
        owned: OwnedRecord | None,
        context: PlanContext,
    ) -> tuple[Operation, ...]:
        return ()

    def merge_ownership(
        self,
        before: OwnedRecord | None,
        after: OwnedRecord | None,
        done: tuple[Operation, ...],
        all_done: bool,
    ) -> OwnedRecord | None:
        return after


LAMP: Kind = LampKind()
KITCHEN = DesiredResource(ResourceId("Lamp", "kitchen"), LampSpec())


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Kind]:
    known = {**KINDS, "Lamp": LAMP}
    for module in (fleet_capabilities, manifest_capabilities, plan_capabilities):
        monkeypatch.setattr(module, "KINDS", known)
    return known


def test_kind_protocol_has_eight_mandatory_members() -> None:
    stated = {*vars(Kind), *Kind.__annotations__} - {*vars(object)}
    assert {member for member in stated if not member.startswith("_")} == {
        "name",
        "spec",
        "record",
        "parse",
        "select",
        "diff",
        "plan_operations",
        "merge_ownership",
    }


def test_kind_without_capabilities_uses_defaults() -> None:
    field = FieldChange("on", FieldOp.CHANGE, False, True)
    assert assess_field("Lamp", Action.UPDATE, field) is field
    assert find_static_diagnostics(KITCHEN) == ()
    assert list_exclusive_settings(KITCHEN) == {}
    assert find_exclusive_fields(LAMP) == {}
    every = ExportRequest(lambda selections: LiveState(), bool, lambda id_: True)
    assert export_manifests(LAMP, Connections(), every) == Export({})
    assert encode_body(KITCHEN) == {}
    assert (is_fleet_comparable("Lamp"), is_self_contained(KITCHEN)) == (False, False)
    assert record_identity("Lamp", NoRecord(), (), {}) == forget_identity("Lamp", NoRecord()) == NoRecord()
    assert find_undeletable("Lamp", {"kitchen"}, LiveState()) == {}
    with pytest.raises(LookupError, match="bodies of Lamp"):
        decode_body("Lamp", {})


def test_unknown_kind_has_no_capabilities() -> None:
    field = FieldChange("on", FieldOp.CHANGE, False, True)
    assert assess_field("Toaster", Action.UPDATE, field) is field
    assert not is_fleet_comparable("Toaster")
    assert find_undeletable("Toaster", {"kitchen"}, LiveState()) == {}


def test_built_in_kinds_have_expected_capabilities() -> None:
    comparable = {name for name in KINDS if is_fleet_comparable(name)}
    importable = {name for name, kind in KINDS.items() if isinstance(kind, manifest_capabilities.Exportable)}
    settings = {"BrokerConfig", "ClientQuota", "GroupConfig", "ClientMetrics", "ScramUser", "Acl"}
    others = {"Topic", "Reassignment", "Connector", "Schema", "ConnectWorkerConfig"}
    assert comparable == {*others, *settings}
    assert importable == {"Topic", "Connector", "Schema", *settings}
    shrink = FieldChange("configs.retention.ms", FieldOp.SET, "604800000", "1000")
    assert assess_field("Topic", Action.UPDATE, shrink).risk is not Risk.SAFE
