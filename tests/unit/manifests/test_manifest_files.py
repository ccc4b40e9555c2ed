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
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(*paths: str) -> LoadedManifests:
    return load_project_manifests(Project(), [Path(path) for path in paths or (".",)], KINDS, {})


def names(result: LoadedManifests) -> list[str]:
    return [item.id.name for item in result.desired]


def codes(result: LoadedManifests) -> list[str]:
    return [item.code for item in result.diagnostics]


def topic(path: str, name: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(TOPIC.format(name))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every read of a file or folder."""
    seen: list[str] = []

    def noted(read: Callable[..., Any]) -> Callable[..., Any]:
        def and_noted(path: str, *more: Any) -> Any:
            seen.append(Path(path).name)
            return read(path, *more)

        return and_noted

    monkeypatch.setattr("kdeclare.manifests.syntax.files.os.open", noted(os.open))
    monkeypatch.setattr("kdeclare.manifests.syntax.files.os.scandir", noted(os.scandir))
    return seen


@pytest.mark.parametrize("paths", [[], ["manifests/a.yaml"], ["manifests/b.yaml", "manifests/a.yaml"]])
def test_nothing_is_read_twice(opened: list[str], paths: list[str]) -> None:
    a_project()
    project = open_project(None, None, {})
    opened.clear()
    result = load_project_manifests(project, [Path(path) for path in paths], KINDS, {})
    assert (result.diagnostics, names(result)) == ((), [Path(path).stem for path in paths] or ["a", "b"])
    assert sorted(opened) == ["a.yaml", "b.yaml", "defaults.yaml", "manifests", "overlay.yaml"]


def test_what_a_resource_is_made_of_is_known_from_the_one_reading(opened: list[str]) -> None:
    a_project()
    project = open_project(None, None, {})
    source = read_sources(project, {}, KINDS).by_id[ResourceId("Topic", "a")]
    opened.clear()
    result = load_project_manifests(project, None, KINDS, {}, traced_resource=ResourceId("Topic", "a"))
    assert len(opened) == len(set(opened))
    reader = build_reader(project, {})
    assert result.layers is not None
    assert reader.read(result.layers.effective) == reader.read(source.layers.effective)
    assert [one.name for one in result.layers.defaults] == ["all"]
    assert len(result.layers.overlays) == 1
    assert (
        load_project_manifests(project, None, KINDS, {}, traced_resource=ResourceId("Topic", "x")).layers
        is None
    )


def a_project() -> None:
    """Write a project with two topics, one of them with an overlay, and defaults."""
    topic("manifests/a.yaml", "a")
    topic("manifests/b.yaml", "b")
    topic("overlay.yaml", "a")
    Path("manifests/defaults.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Defaults\nmetadata: {name: all}\n"
        "spec: {kind: Topic, defaults: {configs: {retention.ms: 1}}}\n"
    )
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\n"
        "spec: {environments: {e: {overlays: [overlay.yaml]}}}\n"
    )


def test_folders_come_in_order_and_each_file_once() -> None:
    topic("b.yaml", "b")
    topic("a/2.yml", "a2")
    topic("a/1.yaml", "a1")
    assert names(loaded()) == ["a1", "a2", "b"]
    assert names(loaded("b.yaml", "a", ".", str(Path.cwd() / "a"))) == ["b", "a1", "a2"]
    assert loaded().files == 3


def test_places_are_as_the_paths_were_given() -> None:
    topic("m/a.yaml", "a")
    for given_path, file in ((".", "m/a.yaml"), ("m", "m/a.yaml"), ("./m/../m/a.yaml", "m/a.yaml")):
        assert loaded(given_path).desired[0].source == SourcePosition(file, 3, 18)


def test_a_link_back_up_is_no_loop() -> None:
    topic("m/a.yaml", "a")
    Path("m/loop").symlink_to(Path.cwd() / "m")
    Path("m/up").symlink_to("..")
    result = loaded("m")
    assert names(result) == ["a"]
    assert not result.diagnostics


def test_a_linked_folder_is_followed() -> None:
    topic("elsewhere/a.yaml", "a")
    Path("m").mkdir()
    Path("m/link").symlink_to("../elsewhere")
    assert names(loaded("m")) == ["a"]


def test_a_dangling_link() -> None:
    Path("a.yaml").symlink_to("gone.yaml")
    assert codes(loaded()) == ["no-such-path"]


def test_links_in_a_circle() -> None:
    for name in ("a.yaml", "folder"):
        Path(name).symlink_to(name)
    for paths in (("."), ("a.yaml", "folder")):
        result = loaded(*paths)
        assert codes(result) == ["unreadable-file"] * 2
        assert "too many levels of symbolic links" in result.diagnostics[0].detail


def test_a_projects_own_folder_that_is_a_circle() -> None:
    Path("kdeclare.yaml").write_text("{apiVersion: kdeclare/v1, kind: Project, metadata: {name: p}}")
    Path("manifests").symlink_to("manifests")
    assert codes(load_project_manifests(open_project(None, None, {}), [], KINDS, {})) == ["unreadable-file"]
    Path("kdeclare.yaml").unlink()
    Path("kdeclare.yaml").symlink_to("kdeclare.yaml")
    with pytest.raises(KdeclareError, match="cannot be read"):
        open_project(None, None, {})


def test_a_pipe_is_not_waited_for() -> None:
    os.mkfifo("a.yaml")
    assert codes(loaded()) == ["unreadable-file"]
    assert codes(loaded("a.yaml")) == ["unreadable-file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_no_permission() -> None:
    topic("a.yaml", "a")
    topic("m/a.yaml", "b")
    Path("a.yaml").chmod(0)
    Path("m").chmod(0)
    assert codes(loaded()) == ["unreadable-file", "unreadable-file"]


def test_utf8_with_and_without_mark_and_utf16() -> None:
    for number, encoding in enumerate(("utf-8", "utf-8-sig", "utf-16")):
        Path(f"{number}.yaml").write_bytes(TOPIC.format(f"t{number}").encode(encoding))
    assert names(loaded()) == ["t0", "t1", "t2"]


@pytest.mark.parametrize("shape", ["[", "{a: ", "- ", "? "])
def test_deep_nesting_is_refused(shape: str) -> None:
    Path("a.yaml").write_text(shape * 100_000)
    result = loaded()
    assert codes(result) == ["yaml-syntax"]
    assert f"more than {MAX_DEPTH} levels" in result.diagnostics[0].detail


def test_indentation_is_nesting_too() -> None:
    for levels in (80, 120, 2_000):
        Path("a.yaml").write_text("".join(f"{' ' * n}a:\n" for n in range(levels)))
        assert ("levels" in loaded().diagnostics[0].detail) is (levels > MAX_DEPTH)


def test_a_long_chain_of_aliases_is_refused() -> None:
    chain = "".join(f"a{n + 1}: &a{n + 1} [*a{n}]\n" for n in range(5_000))
    Path("a.yaml").write_text("a0: &a0 [x]\n" + chain)
    assert codes(loaded()) == ["alias-expansion"]


def test_a_number_of_a_thousand_digits() -> None:
    Path("a.yaml").write_text(TOPIC.format("a").replace("partitions: 1", "partitions: " + "9" * 10_000))
    assert codes(loaded()) == ["wrong-type"]


def test_ten_thousand_resources_in_one_file() -> None:
    Path("a.yaml").write_text("---\n".join(TOPIC.format(f"t{n}") for n in range(10_000)))
    result = loaded()
    assert len(result.desired) == 10_000
    assert result.desired[-1].source == SourcePosition("a.yaml", 49_998, 18)
    assert not result.diagnostics


def test_what_is_declared_can_be_sent_to_other_processes() -> None:
    topic("a.yaml", "a")
    desired = loaded().desired
    assert pickle.loads(pickle.dumps(desired)) == desired


def test_nothing_to_load() -> None:
    project = open_project(None, None, {})
    assert codes(load_project_manifests(project, [], KINDS, {})) == ["no-project"]


def test_given_paths_are_not_all_of_it() -> None:
    topic("manifests/a.yaml", "a")
    Path("kdeclare.yaml").write_text(
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\nspec: {}\n"
    )
    project = open_project(None, None, {})
    assert load_project_manifests(project, None, KINDS, {}).complete
    assert not load_project_manifests(project, [Path("manifests")], KINDS, {}).complete


_WORDS = st.text(st.characters(codec="utf-8", exclude_characters="$\x85"), max_size=20)
_SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), _WORDS)


def words_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from words_in([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from words_in(item)


def kafka_text(value: object) -> object:
    if isinstance(value, list):
        return [kafka_text(item) for item in value]
    if isinstance(value, bool):
        return str(value).lower()
    return value if value is None else str(value)


@given(
    st.dictionaries(_WORDS, st.one_of(_SCALARS, st.lists(_SCALARS, max_size=3)), max_size=5), st.booleans()
)
def test_any_configs_come_through(configs: dict[str, object], flow: bool) -> None:
    # PyYAML writes for its own reader, which treats y, n, 089 and 0E0 as text
    meanings = [parse_scalar(word) for word in words_in(configs)]
    assume(not any(isinstance(m, AmbiguousScalar) or isinstance(m[0], float) for m in meanings))
    manifest = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": "a"},
        "spec": {"partitions": 1, "configs": configs},
    }
    Path("a.yaml").write_text(yaml.safe_dump(manifest, default_flow_style=flow, allow_unicode=True))
    result = loaded("a.yaml")
    if "wrong" not in configs:
        assert not result.diagnostics
    assert result.desired[0].get_body(dict)["configs"] == {
        key: kafka_text(value) for key, value in configs.items()
    }


@given(st.one_of(st.binary(max_size=200), st.text("{}[]:-?!&*<>|%@`'\"#, \n\ta$0_.~", max_size=80)))
def test_no_bytes_cause_a_traceback(data: bytes | str) -> None:
    raw = data if isinstance(data, bytes) else data.encode()
    for text in (raw, TOPIC.format("a").encode() + raw, b"spec: {configs: {a: " + raw + b"}}"):
        Path("a.yaml").write_bytes(text)
        for item in loaded("a.yaml").diagnostics:
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
def test_no_spec_causes_a_traceback(spec: dict[str, object], metadata: object) -> None:
    manifest = {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": metadata, "spec": spec}
    Path("a.yaml").write_text(yaml.safe_dump(manifest, allow_unicode=True))
    result = loaded("a.yaml")
    assert result.diagnostics or result.desired
    assert all(item.place is not None for item in result.diagnostics)
