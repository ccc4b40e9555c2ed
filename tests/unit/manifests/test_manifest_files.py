"""Unusual files and folders, and many of them, load or give a diagnostic, but never a traceback."""

import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError, SourcePosition
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import Project, open_project
from kdeclare.manifests.provenance import build_reader, read_sources
from kdeclare.manifests.syntax.node_reader import AmbiguousScalar, parse_scalar
from kdeclare.manifests.syntax.nodes import MAX_DEPTH
from tests.unit.manifests.small_kinds import KINDS

TOPIC = "apiVersion: kdeclare/v1\nkind: Topic\nmetadata: {{name: {}}}\nspec: {{partitions: 1}}\n"


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def load(*paths: str) -> LoadedManifests:
    return load_project_manifests(Project(), [Path(path) for path in paths or (".",)], KINDS, {})


def get_names(result: LoadedManifests) -> list[str]:
    return [item.id.name for item in result.desired]


def get_codes(result: LoadedManifests) -> list[str]:
    return [item.code for item in result.diagnostics]


def write_topic(path: str, name: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(TOPIC.format(name))


@pytest.fixture
def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every read of a file or folder."""
    seen: list[str] = []

    def make_recorder(read: Callable[..., Any]) -> Callable[..., Any]:
        def record_and_read(path: str, *more: Any) -> Any:
            seen.append(Path(path).name)
            return read(path, *more)

        return record_and_read

    monkeypatch.setattr("kdeclare.manifests.syntax.files.os.open", make_recorder(os.open))
    monkeypatch.setattr("kdeclare.manifests.syntax.files.os.scandir", make_recorder(os.scandir))
    return seen


@pytest.mark.parametrize("paths", [[], ["manifests/a.yaml"], ["manifests/b.yaml", "manifests/a.yaml"]])
def test_load_manifests_reads_each_file_once(read_files: list[str], paths: list[str]) -> None:
    write_project()
    project = open_project(None, None, {})
    read_files.clear()
    result = load_project_manifests(project, [Path(path) for path in paths], KINDS, {})
    assert (result.diagnostics, get_names(result)) == ((), [Path(path).stem for path in paths] or ["a", "b"])
    assert sorted(read_files) == ["a.yaml", "b.yaml", "defaults.yaml", "manifests", "overlay.yaml"]


def test_traced_resource_needs_no_second_read(read_files: list[str]) -> None:
    write_project()
    project = open_project(None, None, {})
    source = read_sources(project, {}, KINDS).by_id[ResourceId("Topic", "a")]
    read_files.clear()
    result = load_project_manifests(project, None, KINDS, {}, traced_resource=ResourceId("Topic", "a"))
    assert len(read_files) == len(set(read_files))
    reader = build_reader(project, {})
    assert result.layers is not None
    assert reader.read(result.layers.effective) == reader.read(source.layers.effective)
    assert [one.name for one in result.layers.defaults] == ["all"]
    assert len(result.layers.overlays) == 1
    assert (
        load_project_manifests(project, None, KINDS, {}, traced_resource=ResourceId("Topic", "x")).layers
        is None
    )


def write_project() -> None:
    """Write a project with two topics, one of them with an overlay, and defaults."""
    write_topic("manifests/a.yaml", "a")
    write_topic("manifests/b.yaml", "b")
    write_topic("overlay.yaml", "a")
    Path("manifests/defaults.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {name: all}\n"
        "spec: {kind: Topic, defaults: {configs: {retention.ms: 1}}}\n"
    )
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\n"
        "spec: {environments: {e: {overlays: [overlay.yaml]}}}\n"
    )


def test_load_manifests_sorts_folders_and_skips_repeated_files() -> None:
    write_topic("b.yaml", "b")
    write_topic("a/2.yml", "a2")
    write_topic("a/1.yaml", "a1")
    assert get_names(load()) == ["a1", "a2", "b"]
    assert get_names(load("b.yaml", "a", ".", str(Path.cwd() / "a"))) == ["b", "a1", "a2"]
    assert load().files == 3


def test_source_position_uses_given_path() -> None:
    write_topic("m/a.yaml", "a")
    for given_path, file in ((".", "m/a.yaml"), ("m", "m/a.yaml"), ("./m/../m/a.yaml", "m/a.yaml")):
        assert load(given_path).desired[0].source == SourcePosition(file, 3, 18)


def test_load_manifests_skips_links_to_parent_folders() -> None:
    write_topic("m/a.yaml", "a")
    Path("m/loop").symlink_to(Path.cwd() / "m")
    Path("m/up").symlink_to("..")
    result = load("m")
    assert get_names(result) == ["a"]
    assert not result.diagnostics


def test_load_manifests_follows_linked_folder() -> None:
    write_topic("elsewhere/a.yaml", "a")
    Path("m").mkdir()
    Path("m/link").symlink_to("../elsewhere")
    assert get_names(load("m")) == ["a"]


def test_load_manifests_reports_dangling_link() -> None:
    Path("a.yaml").symlink_to("gone.yaml")
    assert get_codes(load()) == ["no-such-path"]


def test_load_manifests_reports_circular_links() -> None:
    for name in ("a.yaml", "folder"):
        Path(name).symlink_to(name)
    for paths in (("."), ("a.yaml", "folder")):
        result = load(*paths)
        assert get_codes(result) == ["unreadable-file"] * 2
        assert "too many levels of symbolic links" in result.diagnostics[0].detail


def test_circular_link_in_project_is_reported() -> None:
    Path("kdeclare.yaml").write_text("{apiVersion: kdeclare/v1, kind: Project, metadata: {name: p}}")
    Path("manifests").symlink_to("manifests")
    assert get_codes(load_project_manifests(open_project(None, None, {}), [], KINDS, {})) == [
        "unreadable-file"
    ]
    Path("kdeclare.yaml").unlink()
    Path("kdeclare.yaml").symlink_to("kdeclare.yaml")
    with pytest.raises(KdeclareError, match="cannot be read"):
        open_project(None, None, {})


def test_load_manifests_rejects_pipe() -> None:
    os.mkfifo("a.yaml")
    assert get_codes(load()) == ["unreadable-file"]
    assert get_codes(load("a.yaml")) == ["unreadable-file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_load_manifests_reports_missing_permission() -> None:
    write_topic("a.yaml", "a")
    write_topic("m/a.yaml", "b")
    Path("a.yaml").chmod(0)
    Path("m").chmod(0)
    assert get_codes(load()) == ["unreadable-file", "unreadable-file"]


def test_load_manifests_reads_utf8_and_utf16() -> None:
    for number, encoding in enumerate(("utf-8", "utf-8-sig", "utf-16")):
        Path(f"{number}.yaml").write_bytes(TOPIC.format(f"t{number}").encode(encoding))
    assert get_names(load()) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("shape", ["[", "{a: ", "- ", "? "])
def test_load_manifests_rejects_deep_nesting(shape: str) -> None:
    Path("a.yaml").write_text(shape * 100_000)
    result = load()
    assert get_codes(result) == ["yaml-syntax"]
    assert f"more than {MAX_DEPTH} levels" in result.diagnostics[0].detail


def test_nesting_by_indentation_is_limited() -> None:
    for levels in (80, 120, 2_000):
        Path("a.yaml").write_text("".join(f"{' ' * n}a:\n" for n in range(levels)))
        assert ("levels" in load().diagnostics[0].detail) is (levels > MAX_DEPTH)


def test_load_manifests_rejects_long_alias_chain() -> None:
    chain = "".join(f"a{n + 1}: &a{n + 1} [*a{n}]\n" for n in range(5_000))
    Path("a.yaml").write_text("a0: &a0 [x]\n" + chain)
    assert get_codes(load()) == ["alias-expansion"]


def test_number_with_thousands_of_digits_is_rejected() -> None:
    Path("a.yaml").write_text(TOPIC.format("a").replace("partitions: 1", "partitions: " + "9" * 10_000))
    assert get_codes(load()) == ["wrong-type"]


@pytest.mark.slow
def test_file_with_ten_thousand_resources_is_loaded() -> None:
    Path("a.yaml").write_text("---\n".join(TOPIC.format(f"t{n}") for n in range(10_000)))
    result = load()
    assert len(result.desired) == 10_000
    assert result.desired[-1].source == SourcePosition("a.yaml", 49_998, 18)
    assert not result.diagnostics


def test_desired_resources_can_be_pickled() -> None:
    write_topic("a.yaml", "a")
    desired = load().desired
    assert pickle.loads(pickle.dumps(desired)) == desired


def test_load_manifests_without_project_and_paths_is_rejected() -> None:
    project = open_project(None, None, {})
    assert get_codes(load_project_manifests(project, [], KINDS, {})) == ["no-project"]


def test_load_of_given_paths_is_not_complete() -> None:
    write_topic("manifests/a.yaml", "a")
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\nspec: {}\n"
    )
    project = open_project(None, None, {})
    assert load_project_manifests(project, None, KINDS, {}).complete
    assert not load_project_manifests(project, [Path("manifests")], KINDS, {}).complete


_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="$\x85"), max_size=20)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), _WORDS)


def list_words(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from list_words([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from list_words(item)


def format_as_kafka_text(value: object) -> object:
    if isinstance(value, list):
        return [format_as_kafka_text(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)


@given(
    st.dictionaries(_WORDS, st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3)), max_size=5), st.booleans()
)
def test_any_configs_are_loaded_unchanged(configs: dict[str, object], flow: bool) -> None:
    # PyYAML writes for its own reader, which treats y, n, 089 and 0E0 as text
    meanings = [parse_scalar(word) for word in list_words(configs)]
    assume(not any(isinstance(m, AmbiguousScalar) or isinstance(m[0], float) for m in meanings))
    manifest = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": "a"},
        "spec": {"partitions": 1, "configs": configs},
    }
    Path("a.yaml").write_text(yaml.safe_dump(manifest, default_flow_style=flow, allow_unicode=True))
    result = load("a.yaml")
    if "wrong" not in configs:
        assert not result.diagnostics
    assert result.desired[0].get_body(dict)["configs"] == {
        key: format_as_kafka_text(value) for key, value in configs.items()
    }


@given(st.one_of(st.binary(max_size=200), st.text("{}[]:-?!&*<>|%@`'\"#, \n\ta$0_.~", max_size=80)))
def test_any_bytes_give_diagnostics_with_position(data: bytes | str) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    for text in (raw, TOPIC.format("a").encode() + raw, b"spec: {configs: {a: " + raw + b"}}"):
        Path("a.yaml").write_bytes(text)
        for item in load("a.yaml").diagnostics:
            assert item.place is not None
            assert item.place.file == "a.yaml"


_JSON = st.recursive(
    st.one_of(_SCALARS, st.floats(allow_nan=False)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.integers(), inner, max_size=3),
    max_leaves=8,
)
_FIELDS = st.sampled_from(
    ["partitions", "ratio", "throttle", "assignments", "items", "configs", "mode", "lifecycle"]
)


@given(st.dictionaries(_FIELDS, _JSON), _JSON)
def test_any_spec_gives_diagnostics_or_resource(spec: dict[str, object], metadata: object) -> None:
    manifest = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": metadata, "spec": spec}
    Path("a.yaml").write_text(yaml.safe_dump(manifest, allow_unicode=True))
    result = load("a.yaml")
    assert result.diagnostics or result.desired
    assert all(item.place is not None for item in result.diagnostics)
