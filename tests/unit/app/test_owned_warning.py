"""The hint of the warning about ad hoc changes to resources that a manifest declares."""

import pytest

from kdeclare.app.adhoc.ownership import _build_owned_warning
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.planning.adhoc import ClaimedChange


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("Topic", "Pass --write-manifest to write the change into the manifest."),
        ("ScramUser", "Change the manifest, too."),
        ("Reassignment", "Change the manifest, too."),
    ],
)
def test_edit_is_suggested_only_for_kinds_with_edits(kind: str, hint: str) -> None:
    change = Change(ResourceId(kind, "x"), Action.UPDATE, Reason.ASKED, Risk.SAFE)
    claimed = ClaimedChange(change, ("x",), SourcePosition("x.yaml", 1, 1))
    assert _build_owned_warning(claimed).hint == hint
