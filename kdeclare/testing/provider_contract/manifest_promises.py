"""Tests of a provider's promises about the validation, import and write-back of manifests."""

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.jsontypes import JsonValue
from kdeclare.core.provider.installed_providers import resolve_completely
from kdeclare.core.provider.registry import KINDS, find_api_version, get_operation_type
from kdeclare.core.resources.changes import Action
from kdeclare.core.resources.manifest_capabilities import (
    ExportRequest,
    complete_change,
    export_manifests,
    find_editable,
)
from kdeclare.engine.observation import observe
from kdeclare.engine.planning.request import PlanScope
from kdeclare.manifests.editing.project_edits import build_project_edits
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import MANIFESTS_FOLDER, PROJECT_FILE, Project, open_project
from kdeclare.testing.provider_contract.bench import ALLOW_DELETES, Bench, ContractBase
from kdeclare.testing.world import declare


class ManifestPromises(ContractBase):
    """Specs are strict, bodies can be stored, and imported or edited manifests match the live state."""

    def test_misspelt_fields_are_refused(self) -> None:
        """A spec rejects unknown fields, so that kdeclare reports misspelled fields."""
        for item in (*self.before, *self.after):
            with pytest.raises(ValidationError):
                KINDS[item.kind].spec.model_validate({**self._resolve_spec(item.spec), "noSuchField": 1})

    def test_bodies_can_be_pickled(self) -> None:
        """Bodies can be pickled, so that Spark can send them to tasks."""
        for desired in self._declare((*self.before, *self.after)):
            assert pickle.loads(pickle.dumps(desired)) == desired, desired.id

    def test_bodies_read_back_have_the_same_diff(self, make_bench: Callable[[], Bench]) -> None:
        """A plan stays the same if bodies are converted to plain data and back, without secret values."""
        bench = self._apply_before(make_bench)
        for declared in (self.before, self.after):
            plain = bench.plan(self._declare(declared))
            read_back = bench.world.plan_as_read_back(*self._declare(declared), scope=ALLOW_DELETES)
            assert read_back.changes == plain.changes
            assert read_back.operations == plain.operations

    # Import.

    def test_what_is_exported_changes_nothing_when_it_is_declared(
        self, make_bench: Callable[[], Bench]
    ) -> None:
        """After an import, a plan has no changes. Manifests contain references instead of secrets."""
        bench = self._apply_before(make_bench)
        connections = bench.world.connect()
        request = ExportRequest(lambda selections: observe(connections, selections), bool, lambda id_: True)
        for kind in resolve_completely(self.provider).kinds:
            for name, text in export_manifests(kind, connections, request).manifests.items():
                document = yaml.safe_load(text)
                assert (document["kind"], document["metadata"]["name"]) == (kind.name, name)
                if "${" in text.replace("$${", "") and not any(ref in text for ref in self.secrets):
                    continue  # the value of the secret is unknown
                redeclared = declare(kind.name, name, self._resolve_spec(document["spec"]))
                scope = PlanScope(targets=frozenset({redeclared.id}))
                assert not bench.world.plan(redeclared, scope=scope).operations, text

    # Write-back.

    def test_what_is_written_back_changes_nothing_when_it_is_planned(
        self, make_bench: Callable[[], Bench], tmp_path: Path
    ) -> None:
        """If an ad hoc change is written back to manifests, they match the live state.

        A kind refuses a change that it cannot write to a manifest.
        """
        bench = self._apply_before(make_bench)
        plan = bench.plan(self._declare(self.after))
        assert bench.apply(self._declare(self.after)).complete
        project, environ = self._write_project(tmp_path)
        for planned in plan.changes:
            if planned.action not in (Action.CREATE, Action.UPDATE) or find_editable(planned.id.kind) is None:
                continue
            operations = [op for op in plan.operations if op.resource == planned.id]
            change = complete_change(
                planned, [op for op in operations if not get_operation_type(op).is_auxiliary]
            )
            try:
                files = build_project_edits(project, environ, [change]).files
            except KdeclareError:
                continue
            loaded = load_project_manifests(
                project, (), KINDS, environ, replacements={edit.file: edit.after for edit in files}
            )
            assert not [d for d in loaded.diagnostics if d.is_error], files
            (written,) = (item for item in loaded.desired if item.id == change.id)
            scope = PlanScope(targets=frozenset({change.id}))
            assert not bench.world.plan(written, scope=scope).operations, files

    def _write_project(self, folder: Path) -> tuple[Project, Mapping[str, str]]:
        """Write a project with the manifests of ``before``.

        Return the project and its environment variables.
        """
        file = folder / PROJECT_FILE
        file.write_text("apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: test}\nspec: {}\n")
        manifests = folder / MANIFESTS_FOLDER
        manifests.mkdir()
        for number, item in enumerate(self.before):
            document = {
                "apiVersion": find_api_version(item.kind),
                "kind": item.kind,
                "metadata": {"name": item.name, "labels": dict(item.labels)},
                "spec": _parse_number_keys(item.spec),
            }
            (manifests / f"{number}.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        environ = {text.removeprefix("${env.").rstrip("}"): value for text, value in self.secrets.items()}
        return open_project(file, None, environ), environ


def _parse_number_keys(value: JsonValue) -> object:
    """Convert numeric keys to integers, because JSON has only string keys."""
    if isinstance(value, Mapping):
        return {int(key) if key.isdecimal() else key: _parse_number_keys(item) for key, item in value.items()}
    return [_parse_number_keys(item) for item in value] if isinstance(value, list) else value
