"""A command of another provider: found, run, shown and undone as those of kdeclare's own."""

import json

import pytest
from kdeclare_flags.provider import CLIENT

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import SpecPath
from kdeclare.core.resources.manifest_capabilities import (
    SettingEdit,
    ValueEdit,
)
from kdeclare.core.secrets.secret_refs import SENSITIVE_MASK
from kdeclare.manifests.editing.fields import validate_not_secret
from tests.unit.cli.command_line import CommandLine


def test_provider_command_changes_its_system(kdeclare: CommandLine) -> None:
    assert "Change feature flags ad hoc." in kdeclare("--help").out
    ran = kdeclare("flag", "set", "dark-mode", "25", "--yes")
    assert ran.code == 0, ran.err
    assert "Flag/dark-mode" in ran.out
    assert "created" in ran.out
    done = kdeclare("flag", "set", "dark-mode", "50", "--yes", "--format", "json")
    document = json.loads(done.out)
    (item,) = document["results"]
    assert item["result"] == "altered"
    assert kdeclare("rollback", "--yes").code == 0
    again = kdeclare("flag", "set", "dark-mode", "25", "--yes")
    assert "already up to date" in again.out
    assert kdeclare("flag", "set", "dark-mode", "101").code == 64


def test_provider_command_writes_manifest(kdeclare: CommandLine) -> None:
    """A field in place, a new manifest, and a refusal."""
    manifest = kdeclare.write("manifests/dark-mode.yaml", "Flag", "dark-mode", rollout=10)
    manifest.write_text(manifest.read_text().replace("rollout: 10", "rollout: 10  # in percent"))
    assert kdeclare("flag", "set", "dark-mode", "25", "--yes", "--write-manifest").code == 0
    assert "rollout: 25  # in percent" in manifest.read_text()
    assert kdeclare("flag", "set", "search", "5", "--yes", "--write-manifest").code == 0
    assert "rollout: 5" in manifest.with_name("search.yaml").read_text()
    assert "2 resources up to date" in kdeclare("plan").out


def test_find_edits_writes_only_plain_values_and_lists() -> None:
    """A list of references and a text are; a secret and a mapping are refused."""
    fields = (
        FieldChange("flags", FieldOp.CHANGE, None, ["dark-mode"]),
        FieldChange("token", FieldOp.CHANGE, None, SENSITIVE_MASK),
        FieldChange("limits", FieldOp.CHANGE, None, {"a": 1}),
    )
    change = Change(ResourceId("FlagClient", "web"), Action.UPDATE, Reason.CHANGED, Risk.SAFE, fields)
    edits = CLIENT.find_edits(change, NoDeclaredFields())
    assert edits.edits == (ValueEdit(("flags",), ["dark-mode"]), SettingEdit(("token",), (fields[1],)))
    assert [problem.diagnostic.code for problem in edits.problems] == ["field-not-written"]
    with pytest.raises(KdeclareError, match="sensitive"):
        validate_not_secret(change.id, fields[1], "token")


class NoDeclaredFields:
    """A manifest that declares nothing."""

    def is_declared(self, path: SpecPath) -> bool:
        return False

    def read_value(self, path: SpecPath) -> JsonValue:
        return None
