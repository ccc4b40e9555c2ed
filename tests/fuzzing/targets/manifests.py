"""YAML: manifests, project files and fleet files, as 'kdeclare validate' and 'kdeclare fleet' read them."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kdeclare.app.authoring.schema import build_manifest_schema
from kdeclare.app.authoring.validate import validate
from kdeclare.core.diagnostics import SourcePosition
from kdeclare.manifests.fleet.accepted_drift import find_acceptance, select_valid
from kdeclare.manifests.fleet.accepted_drift_file import load_accepted_drift
from kdeclare.manifests.fleet.fleet_definition import Fleet
from kdeclare.manifests.fleet.fleet_file import open_fleet
from kdeclare.report.elements.diagnostics_text import render_diagnostics
from tests.fuzzing.mutations import has_aliases, make_yaml_mutator
from tests.fuzzing.target import Mutator, Target
from tests.fuzzing.targets.plans import ROOT

_ENVIRON = {"X": "x", "A_PASSWORD": "secret-of-a-test"}
_PROJECT = (
    "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\nspec:\n  environments:\n    lab: {}\n"
)
_ITEMS = """\
orders: {team: shop, partitions: 12, environments: [lab], configs: {retention.ms: 7d}}
returns: {team: shop, partitions: 3, environments: [prod], configs: {cleanup.policy: compact}}
"""
_GENERATED = """\
apiVersion: kdeclare/v1
kind: Topic
forEach: %s
metadata:
  name: events.${each.key}
  labels: {team: "${each.value.team}"}
  only: ${each.value.environments}
spec:
  partitions: ${each.value.partitions}
  replicationFactor: 1
  configs: ${each.value.configs}
"""
_GENERATED_FROM_LIST = """\
apiVersion: kdeclare/v1
kind: ClientQuota
forEach: %s
metadata: {name: "u${each.key}", labels: {of: "${each.value}"}}
spec: {entity: {user: "${each.value}"}, limits: {consumer_byte_rate: 1}}
"""
_FOR_EACH_SEEDS = (
    _GENERATED % "../items.yaml",
    _GENERATED % "{a: {team: '${env.X}', partitions: 1, environments: [lab], configs: {retention.ms: 1d}}}",
    _GENERATED_FROM_LIST % "[a, 1, true]",
    _GENERATED_FROM_LIST % "${var.topics}",
)


@cache
def _make_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="fuzz-manifests-"))
    variables = "  variables:\n    topics: {type: list, default: [a, b]}\n"
    (folder / "kdeclare.yaml").write_text(_PROJECT + variables)
    (folder / "items.yaml").write_text(_ITEMS)
    (folder / "manifests").mkdir()
    return folder


def read_manifest(data: bytes) -> None:
    """Validate a project with one manifest."""
    folder = _make_folder()
    (folder / "manifests" / "m.yaml").write_bytes(data)
    render_diagnostics(validate(folder / "kdeclare.yaml", None, (), _ENVIRON).diagnostics)


def read_project_file(data: bytes) -> None:
    """Validate a project without manifests.

    Projects that name folders elsewhere are left out: reading the files of this machine takes its time.
    """
    if _names_other_folders(data):
        return
    folder = _make_folder()
    (folder / "other.yaml").write_bytes(data)
    (folder / "manifests" / "m.yaml").write_bytes(b"")
    render_diagnostics(validate(folder / "other.yaml", None, (folder / "manifests",), _ENVIRON).diagnostics)


def _names_other_folders(data: bytes) -> bool:
    if has_aliases(data):
        return b"/" in data or b".." in data
    with suppress(yaml.YAMLError, ValueError, TypeError, RecursionError):
        for document in yaml.safe_load_all(data):
            spec = document.get("spec") if isinstance(document, dict) else None
            paths = spec.get("manifests") if isinstance(spec, dict) else None
            if isinstance(paths, list) and any(str(path).startswith(("/", "..")) for path in paths):
                return True
    return False


def read_fleet(data: bytes) -> None:
    """Read a fleet file."""
    file = _make_folder() / "fleet.yaml"
    file.write_bytes(data)
    open_fleet(file, _ENVIRON)


def read_accepted_drift(data: bytes) -> None:
    """Read documents of kind AcceptedDrift, and compare them with findings."""
    file = _make_folder() / "accepted.yaml"
    file.write_bytes(data)
    fleet = Fleet("f", file, file.parent, (), accepted_drift={file: SourcePosition("fleet.yaml", 1, 1)})
    accepted = load_accepted_drift(fleet)
    valid = select_valid(accepted, datetime(2026, 1, 1, tzinfo=UTC))
    find_acceptance(valid, "eu-1", "Topic", "shop.tmp", "changed", "configs.retention.ms")


def make_manifests() -> Sequence[bytes]:
    """Return the manifests of the cases and examples, and manifests for many resources."""
    files = [*ROOT.glob("tests/cases/*/manifests/**/*.yaml"), *ROOT.glob("examples/**/manifests/**/*.yaml")]
    files += ROOT.glob("examples/policies/policies/*.yaml")
    return [*(file.read_bytes() for file in sorted(files)), *map(str.encode, _FOR_EACH_SEEDS)]


def make_projects() -> Sequence[bytes]:
    """Return the project files of the examples."""
    return [_PROJECT.encode(), *(file.read_bytes() for file in sorted(ROOT.glob("examples/*/kdeclare.yaml")))]


def make_fleets() -> Sequence[bytes]:
    """Return the fleet files of the examples."""
    return [file.read_bytes() for file in sorted(ROOT.glob("examples/*/fleet.yaml"))]


def make_accepted_drift() -> Sequence[bytes]:
    """Return the documents of the examples."""
    return [file.read_bytes() for file in sorted(ROOT.glob("examples/*/accepted/*.yaml"))]


def list_words() -> list[Any]:
    """Return the names and the fixed values in the schema of manifests, and the values in the examples."""
    words: dict[str, Any] = {}
    documents = [build_manifest_schema(None)]
    for seed in (*make_manifests(), *make_projects(), *make_fleets(), *make_accepted_drift()):
        with suppress(yaml.YAMLError):  # ${var.NAME} without quotes
            documents += [] if has_aliases(seed) else yaml.safe_load_all(seed)
    remaining: list[Any] = list(documents)
    while remaining:
        value = remaining.pop()
        if isinstance(value, dict):
            remaining += [*value, *value.values()]
        elif isinstance(value, list):
            remaining += value
        elif not (isinstance(value, str) and (" " in value or len(value) > 60)):  # texts for people
            words.setdefault(repr(value), value)
    return list(words.values())


def _mutate(data: bytes, seed: int) -> bytes:
    return _make_mutator()(data, seed)


@cache
def _make_mutator() -> Mutator:
    others = [*make_manifests(), *make_projects(), *make_fleets(), *make_accepted_drift()]
    return make_yaml_mutator(list_words(), others)


TARGETS = (
    Target("manifest", read_manifest, make_manifests, _mutate),
    Target("accepted-drift", read_accepted_drift, make_accepted_drift, _mutate),
    Target("project-file", read_project_file, make_projects, _mutate),
    Target("fleet-file", read_fleet, make_fleets, _mutate),
)
