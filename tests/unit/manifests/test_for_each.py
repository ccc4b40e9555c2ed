"""Manifests with ``forEach`` load like the manifests that they stand for."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.resources.changes import Action, Change, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.manifests.editing.project_edits import build_project_edits
from kdeclare.manifests.for_each import generator
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import Project, open_project
from kdeclare.manifests.provenance import read_sources
from tests.unit.manifests.small_kinds import KINDS
from tests.unit.manifests.test_provenance import show_fields

HEAD = "apiVersion: kdeclare/v1\nkind: Topic\n"
SCALARS = st.one_of(
    st.integers(-5, 10**6), st.booleans(), st.text(st.sampled_from("a1 .:#{}$\\\"'é\n"), max_size=8)
)
NAMES = st.text(st.sampled_from("ab1.-"), min_size=1, max_size=6)
ITEMS = st.dictionaries(
    NAMES,
    st.fixed_dictionaries({"n": st.integers(1, 9), "configs": st.dictionaries(NAMES, SCALARS)}),
    max_size=5,
)


@pytest.fixture
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write("kdeclare.yaml", "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\nspec: {}\n")
    return tmp_path


def write(name: str, text: str) -> None:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def load(**replacements: Any) -> LoadedManifests:
    return load_project_manifests(open_project(None, None, {}), (), KINDS, {}, **replacements)


def load_folder(folder: Path, documents: list[object]) -> LoadedManifests:
    text = "\n---\n".join(map(json.dumps, documents))
    (folder / "all.yaml").write_text(text)
    return load_project_manifests(Project(), [folder / "all.yaml"], KINDS, {})


@given(items=ITEMS)
def test_generated_manifests_equal_written_manifests(
    tmp_path_factory: pytest.TempPathFactory, items: dict[str, Any]
) -> None:
    """This includes the types of values, and texts that look like references or other YAML."""
    folder = tmp_path_factory.mktemp("p")

    def build(name: str, partitions: object, configs: object) -> dict[str, object]:
        metadata = {"name": f"t-{name}", "labels": {"name": name}}
        spec = {"partitions": partitions, "configs": configs}
        return {"apiVersion": "kdeclare/v1", "kind": "Topic", "metadata": metadata, "spec": spec}

    template = build("${each.key}", "${each.value.n}", "${each.value.configs}")
    escaped = json.loads(json.dumps(items).replace("${", "$${"))
    generated = load_folder(folder, [{**template, "forEach": escaped}])
    (folder / "items.json").write_text(json.dumps(escaped))
    from_file = load_folder(folder, [{**template, "forEach": "items.json"}])
    written = load_folder(
        folder, [build(key, value["n"], value["configs"]) for key, value in escaped.items()]
    )

    def describe(loaded: LoadedManifests) -> list[object]:
        assert not [d for d in loaded.diagnostics if d.code not in ("bad-config", "not-ok")], (
            loaded.diagnostics
        )
        return [(item.id, dict(item.labels), item.body) for item in loaded.desired]

    assert describe(generated) == describe(written) == describe(from_file)


@pytest.mark.parametrize(
    ("limit", "value", "items"),
    [("MAX_ITEMS", 2, "[a, b, c]"), ("MAX_NODES", 20, "[a, b, c]"), ("MAX_PROJECT_NODES", 20, "[a, b, c]")],
)
def test_too_many_items_are_refused(
    project_folder: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, items: str
) -> None:
    write(
        "manifests/a.yaml",
        f'{HEAD}forEach: {items}\nmetadata: {{name: "${{each.key}}"}}\nspec: {{partitions: 1}}\n',
    )
    assert not load().has_errors
    monkeypatch.setattr(generator, limit, value)
    assert [d.code for d in load().diagnostics] == ["too-many-items"]


def test_large_values_of_items_are_refused(project_folder: Path) -> None:
    """The template and the item are small, but together they would need a gigabyte."""
    configs = ", ".join(f'k{n}: "${{each.value.text}}"' for n in range(300))
    item = f'{{text: "{"x" * 1_000_000}"}}'
    spec = f"spec: {{partitions: 1, configs: {{{configs}}}}}"
    write("manifests/a.yaml", f'{HEAD}forEach: {{a: {item}}}\nmetadata: {{name: "${{each.key}}"}}\n{spec}\n')
    assert [d.code for d in load().diagnostics] == ["too-many-items"]


def test_item_files_can_be_replaced_for_a_preview(project_folder: Path) -> None:
    write("items.json", "[a]")
    write(
        "manifests/a.yaml",
        f'{HEAD}forEach: ../items.json\nmetadata: {{name: "${{each.key}}"}}\nspec: {{partitions: 1}}\n',
    )
    loaded = load(replacements={"items.json": b"[b, c]"})
    assert [item.id.name for item in loaded.desired] == ["b", "c"]


def test_linked_item_file_outside_the_project_is_refused(project_folder: Path) -> None:
    outside = project_folder.parent / f"{project_folder.name}-outside.json"
    outside.write_text("[a]")
    (project_folder / "items.json").symlink_to(outside)
    write(
        "manifests/a.yaml", f'{HEAD}forEach: ../items.json\nmetadata: {{name: "${{each.key}}"}}\nspec: {{}}\n'
    )
    (problem,) = load().diagnostics
    assert (problem.code, str(problem.place)) == ("bad-for-each", "manifests/a.yaml:3:10")


def test_shown_fields_name_the_parts_of_the_item(project_folder: Path) -> None:
    write("items.yaml", "a:\n  size: 3\n  configs: {k: v}\n")
    write(
        "manifests/a.yaml",
        f'{HEAD}forEach: ../items.yaml\nmetadata: {{name: "t.${{each.key}}"}}\n'
        'spec: {partitions: "${each.value.size}", configs: "${each.value.configs}"}\n',
    )
    shown = show_fields(open_project(None, None, {}), ResourceId("Topic", "t.a"))
    assert yaml.safe_load(shown)["spec"] == {"partitions": 3, "configs": {"k": "v"}}
    assert "${each.key} is from items.yaml:1:1" in shown
    assert "${each.value.size} is from items.yaml:2:9" in shown
    assert "${each.value.configs.k} is from items.yaml:3:16" in shown


def test_list_from_the_item_is_shown_with_one_position(project_folder: Path) -> None:
    write("items.yaml", "a:\n  policy: [compact, delete]\n")
    write(
        "manifests/a.yaml",
        f'{HEAD}forEach: ../items.yaml\nmetadata: {{name: "t.${{each.key}}"}}\n'
        'spec: {partitions: 1, configs: {cleanup.policy: "${each.value.policy}"}}\n',
    )
    shown = show_fields(open_project(None, None, {}), ResourceId("Topic", "t.a"))
    assert yaml.safe_load(shown)["spec"]["configs"] == {"cleanup.policy": ["compact", "delete"]}
    assert [line.split("# ")[1] for line in shown.splitlines() if "value.policy" in line] == [
        "${each.value.policy} is from items.yaml:2:11"
    ]


def test_removal_of_generated_manifest_is_refused(project_folder: Path) -> None:
    write(
        "manifests/a.yaml",
        f'{HEAD}forEach: [a, b]\nmetadata: {{name: "${{each.key}}"}}\nspec: {{partitions: 1}}\n',
    )
    before = Path("manifests/a.yaml").read_bytes()
    change = Change(ResourceId("Topic", "b"), Action.DELETE, Reason.ASKED, Risk.SAFE)
    with pytest.raises(KdeclareError) as refusal:
        build_project_edits(open_project(None, None, {}), {}, [change])
    (problem,) = refusal.value.diagnostics
    assert (problem.code, str(problem.place)) == ("generated-manifest", "manifests/a.yaml:3:14")
    assert "item 'b' at manifests/a.yaml:3:14, by forEach at manifests/a.yaml:3:1" in problem.detail
    assert Path("manifests/a.yaml").read_bytes() == before


def test_sources_omit_generated_manifests_of_other_environments(project_folder: Path) -> None:
    write(
        "manifests/a.yaml",
        f"{HEAD}forEach: {{a: [default], b: [prod]}}\n"
        'metadata: {name: "${each.key}", only: "${each.value}"}\nspec: {partitions: 1}\n',
    )
    assert [id_.name for id_ in read_sources(open_project(None, None, {}), {}).by_id] == ["a"]


def list_codes(manifests: LoadedManifests) -> list[str]:
    return [diagnostic.code for diagnostic in manifests.diagnostics]


def test_path_that_no_file_can_have_is_an_error(project_folder: Path) -> None:
    write("manifests/m.yaml", f'{HEAD}forEach: "../a\\0b.yaml"\nmetadata: {{name: x}}\nspec: {{}}\n')
    assert list_codes(load()) == ["bad-for-each"]


def test_kind_that_is_a_list_is_an_error(project_folder: Path) -> None:
    write(
        "kdeclare.yaml",
        "apiVersion: kdeclare/v1\nkind: Project\nmetadata: {name: p}\n"
        "spec: {variables: {kinds: {type: list, default: [Topic]}}}\n",
    )
    write("manifests/m.yaml", "apiVersion: kdeclare/v1\nkind: ${var.kinds}\nmetadata: {name: x}\nspec: {}\n")
    (problem,) = load().diagnostics
    assert problem.detail == "'kind' takes a string, not the value of ${var.kinds}."
