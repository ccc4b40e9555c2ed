"""Which files of a folder are manifests: JSON files, path patterns, and files that look like manifests."""

import fnmatch
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.core.diagnostics import Severity, SourcePosition
from kdeclare.manifests.editing.documents import EditRejected, rewrite_file
from kdeclare.manifests.editing.edits import PutEdit
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import Project, open_project
from kdeclare.manifests.syntax.path_patterns import expand_path_pattern
from tests.unit.manifests.small_kinds import KINDS

_MANIFEST = {
    "apiVersion": "kdeclare/v1",
    "kind": "Topic",
    "metadata": {"name": "orders"},
    "spec": {"partitions": 1},
}
_YAML = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {name: orders}\nspec: {partitions: 1}\n"


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


def write_topic(path: str) -> None:
    """Write a topic whose name is the name of its file without suffixes."""
    write(path, _YAML.replace("orders", Path(path).name.partition(".")[0]))


def load_folder() -> LoadedManifests:
    return load_project_manifests(Project(), [Path("m")], KINDS, {})


def load_pattern(*patterns: str) -> LoadedManifests:
    write(
        "kdeclare.yaml",
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\n"
        f"spec:\n  manifests: {json.dumps(patterns)}\n",
    )
    return load_project_manifests(open_project(None, None, {}), None, KINDS, {})


def get_names(loaded: LoadedManifests) -> list[str]:
    return [item.id.name for item in loaded.desired]


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_manifest_in_folder_is_loaded(indent: int | str | None) -> None:
    write("m/orders.json", json.dumps(_MANIFEST, indent=indent))
    loaded = load_folder()
    assert (get_names(loaded), loaded.diagnostics) == (["orders"], ())
    source = loaded.desired[0].source
    assert source is not None
    line = Path("m/orders.json").read_text().splitlines()[source.line - 1]
    assert line[source.column - 1 :].startswith('"orders"')


def test_error_in_json_manifest_has_position() -> None:
    write("m/orders.json", json.dumps({**_MANIFEST, "spec": {"partitons": 1}}, indent=2))
    problem = next(d for d in load_folder().diagnostics if d.code == "unknown-field")
    assert problem.place == SourcePosition("m/orders.json", 8, 5)


@pytest.mark.parametrize(
    "content",
    [
        {"apiVersion": "apps/v1", "kind": "Deployment"},
        {"$schema": "…", "properties": {"apiVersion": {"const": "kdeclare/v1"}}},
        {"type": "record", "name": "Order"},
        [],
    ],
)
def test_other_json_files_are_left_out_silently(content: object) -> None:
    write_topic("m/orders.yaml")
    write("m/other.json", json.dumps(content))
    loaded = load_folder()
    assert (get_names(loaded), loaded.diagnostics) == (["orders"], ())


@pytest.mark.parametrize(
    "name",
    ["orders.yaml.bak", "orders.YAML", "orders.yml.disabled", "orders.tpl", "orders", "orders.yaml.j2"],
)
def test_file_that_looks_like_a_manifest_is_reported(name: str) -> None:
    write(f"m/{name}", f"# a comment\n{_YAML}")
    loaded = load_folder()
    assert not loaded.desired
    (problem,) = loaded.diagnostics
    assert (problem.code, problem.severity) == ("manifest-ignored", Severity.WARNING)
    assert problem.place == SourcePosition(f"m/{name}", 1, 1)


def test_json_with_other_suffix_is_reported() -> None:
    write("m/orders.json5", json.dumps(_MANIFEST))
    assert [d.code for d in load_folder().diagnostics] == ["manifest-ignored"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", f"```yaml\n{_YAML}```\n"),
        ("notes.txt", _YAML),
        ("orders.yaml~", _YAML),
        ("#orders.yaml#", _YAML),
        (".orders.yaml", _YAML),
        (".orders.yaml.swp", _YAML),
        ("generate.py", f'"""\n{_YAML}"""'),
        ("orders.avsc", '{"type": "record"}'),
        ("values.tpl", "apiVersion: apps/v1\n"),
        ("picture", "\x00\x01"),
    ],
)
def test_other_files_are_left_out_silently(name: str, text: str) -> None:
    write(f"m/{name}", text)
    assert load_folder().diagnostics == ()


def test_pattern_selects_files_in_all_folders() -> None:
    for path in ("m/topics-a.yaml", "m/x/topics-b.yaml", "m/x/y/topics-c.yml", "m/x/other.yaml"):
        write_topic(path)
    assert get_names(load_pattern("m/**/topics-*.yaml")) == ["topics-a", "topics-b"]
    assert get_names(load_pattern("m/**/topics-*.y*ml")) == ["topics-a", "topics-b", "topics-c"]
    assert get_names(load_pattern("m/?/[!t]*.yaml", "m/topics-a.yaml")) == ["other", "topics-a"]


def test_pattern_selects_folders_with_their_manifests() -> None:
    for path in ("teams/a/manifests/one.yaml", "teams/b/manifests/x/two.yaml", "teams/b/values/three.yaml"):
        write_topic(path)
    write("teams/b/manifests/README.md", _YAML)
    assert get_names(load_pattern("teams/*/manifests")) == ["one", "two"]


def test_pattern_skips_hidden_files_overlays_and_the_project_file() -> None:
    for path in ("m/one.yaml", "m/.two.yaml", "m/.x/three.yaml"):
        write_topic(path)
    write(
        "kdeclare.yaml",
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\n"
        "spec: {manifests: ['**'], environments: {e: {overlays: [m/over]}}}\n",
    )
    write("m/over/one.yaml", "kind: Topic\nmetadata: {name: one}\nspec: {partitions: 3}\n")
    loaded = load_project_manifests(open_project(None, None, {}), None, KINDS, {})
    assert (get_names(loaded), loaded.diagnostics) == (["one"], ())


def test_pattern_without_match_is_an_error_with_position() -> None:
    write_topic("m/one.yaml")
    loaded = load_pattern("m", "m/**/topics-*.yaml")
    (problem,) = loaded.diagnostics
    assert (problem.code, problem.is_error) == ("no-such-path", True)
    assert problem.place == SourcePosition("kdeclare.yaml", 5, 20)
    assert "'m/**/topics-*.yaml'" in problem.detail


def test_name_with_brackets_is_no_pattern_if_it_exists() -> None:
    write("m/a[1].yaml", _YAML)
    assert get_names(load_pattern("m/a[1].yaml")) == ["orders"]


def test_pattern_ends_in_folders_that_link_to_each_other() -> None:
    write_topic("m/a.yaml")
    for name in ("up", "loop", "again"):
        Path("m", name).symlink_to(Path.cwd() / "m")
    loaded = load_pattern("m/**/a.yaml")
    assert "a" in get_names(loaded)


_NAMES = st.sampled_from(["a", "b.yaml", "ab.yaml", ".c.yaml", "d.json", "[x]"])
_PARTS = st.sampled_from(["**", "*", "?", "a", "b.yaml", "*.yaml", "[ab]*", "a*"])


@settings(max_examples=60)
@given(
    st.sets(st.lists(_NAMES, min_size=1, max_size=3).map("/".join), max_size=8),
    st.lists(_PARTS, min_size=1, max_size=4),
)
def test_patterns_match_like_their_definition(files: set[str], parts: list[str]) -> None:
    """A second, slower definition: a path matches if its names can be assigned to the parts in order."""
    folder = Path(f"run{len(list(Path().iterdir()))}")
    for file in sorted(files):
        path = folder / file
        if not any(parent.is_file() for parent in path.parents) and not path.is_dir():
            write(str(path), "")
    folder.mkdir(exist_ok=True)
    every = [os.path.relpath(path, folder) for path in folder.rglob("*")]
    expected = {path for path in every if matches(path.split("/"), parts, folder / path)}
    found = {os.path.relpath(path, folder) for path in expand_path_pattern(f"{folder}/{'/'.join(parts)}")}
    assert found == expected


def matches(names: list[str], parts: list[str], path: Path) -> bool:
    """Return whether the names of a path match the parts of a pattern. ``**`` at the end matches files."""
    if not parts:
        return not names
    if parts[0] == "**":
        if matches(names, parts[1:], path) and (len(parts) > 1 or names):
            return True
        if not names or names[0].startswith("."):
            return False
        if len(names) == 1 and set(parts) == {"**"}:
            return path.is_file()
        return matches(names[1:], parts, path)
    return (
        bool(names)
        and not names[0].startswith(".")
        and fnmatch.fnmatchcase(names[0], parts[0])
        and matches(names[1:], parts[1:], path)
    )


def test_edit_of_json_file_stays_json_or_is_refused() -> None:
    data = json.dumps(_MANIFEST, indent=2).encode()
    edited = rewrite_file("m/orders.json", data, {0: [PutEdit(("spec", "partitions"), 6)]})
    assert edited is not None
    assert json.loads(edited) == {**_MANIFEST, "spec": {"partitions": 6}}
    new_field = PutEdit(("spec", "configs", "cleanup.policy"), "compact")
    with pytest.raises(EditRejected):
        rewrite_file("m/orders.json", data, {0: [new_field]})
