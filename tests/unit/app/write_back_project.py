"""A small project on the disk, and ad hoc changes to write into it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdeclare.app.authoring.write_back import PreparedEdits, prepare_edits
from kdeclare.app.connections import PendingConnections
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.manifests.project import open_project
from kdeclare.report.manifest.manifest_diff import render_manifest_diff
from tests.jsontypes import Json

HEAD = "apiVersion: kdeclare/v1\nkind: {}\nmetadata: {{name: {}}}\n"

PROJECT = """\
apiVersion: kdeclare/v1
kind: Project
metadata: {name: p}
spec:
  manifests: [manifests]
  defaultEnvironment: dev
  environments:
    dev:
      variables: {retention: 604800000}
      overlays: [overlays/dev, overlays/more]
"""


@dataclass(frozen=True)
class WriteBackProject:
    """A folder with a project; it is the working folder."""

    environ: Mapping[str, str]

    def workspace(self, env: str | None = None) -> Workspace:
        def connect() -> PendingConnections:
            raise AssertionError("nothing is asked of a cluster")

        project = open_project(None, env, self.environ)
        return Workspace(project, MemoryStore(), "memory", connect, self.environ)

    def prepare(self, *changes: Change, env: str | None = None) -> PreparedEdits:
        return prepare_edits(self.workspace(env), changes)

    def render_diff(self, *changes: Change) -> str:
        """Return the changed lines, without their positions."""
        lines = render_manifest_diff(self.prepare(*changes).files).splitlines(keepends=True)
        return "".join(line for line in lines if line[0] in "+-" and line[:3] not in ("---", "+++"))

    def list_refusals(self, *changes: Change) -> list[Diagnostic]:
        try:
            self.prepare(*changes)
        except KdeclareError as refused:
            return list(refused.diagnostics)
        raise AssertionError("nothing is refused")


def put_file(file: str, text: str) -> None:
    """Write a file of the project."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text(text, encoding="utf-8")


def format_topic(name: str, spec: str) -> str:
    """Return the text of a topic's manifest; ``spec`` has the lines below ``spec:``."""
    return HEAD.format("Topic", name) + "spec:\n" + spec


def make_change(
    name: str, *fields: FieldChange, action: Action = Action.UPDATE, kind: str = "Topic"
) -> Change:
    """Build a change of one resource."""
    return Change(ResourceId(kind, name), action, Reason.ASKED, Risk.SAFE, fields)


def put_key(key: str, after: Json, before: Json = None) -> FieldChange:
    """Build a SET change of a config."""
    return FieldChange(f"configs.{key}", FieldOp.SET, before, after)


def drop_key(key: str) -> FieldChange:
    """Build a DELETE change of a config."""
    return FieldChange(f"configs.{key}", FieldOp.DELETE, "?", None)


def append(key: str, *elements: str, after: Json = None) -> FieldChange:
    """Build an APPEND change of a config."""
    return FieldChange(f"configs.{key}", FieldOp.APPEND, [], after or [*elements], [*elements])


def subtract(key: str, *elements: str, after: Json = None) -> FieldChange:
    """Build a SUBTRACT change of a config."""
    return FieldChange(f"configs.{key}", FieldOp.SUBTRACT, [], after or [], [*elements])


def make_field_change(path: str, after: Json, before: Json = None) -> FieldChange:
    """Build a change of a field that is not a config."""
    return FieldChange(path, FieldOp.CHANGE, before, after)
