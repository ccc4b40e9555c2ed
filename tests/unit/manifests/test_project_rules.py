"""Documents that apply to a whole project are found even if only parts of it are loaded."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from kdeclare.core.diagnostics import Diagnostic, SourcePosition
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests, load_rules
from kdeclare.manifests.project import Project, open_project
from tests.unit.manifests.small_kinds import KINDS, RULES

PROJECT = "{apiVersion: kdeclare/v1, kind: Project, metadata: {name: p}, spec: {SPEC}}"
TOPIC = "{apiVersion: kdeclare/v1, kind: Topic, metadata: {name: NAME}, spec: {partitions: 1}}"
OVERLAYS = "environments: {e: {overlays: [overlays]}}"
RULE = "{apiVersion: kdeclare/v1, kind: Rule, metadata: {name: NAME}, spec: {rule: TEXT}}"


@pytest.fixture(autouse=True)
def _project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifests").mkdir()


def make_project(spec: str = "") -> Project:
    Path("kdeclare.yaml").write_text(PROJECT.replace("SPEC", spec))
    return open_project(None, None, {})


def write_topic(path: str, name: str) -> None:
    Path(path).write_text(TOPIC.replace("NAME", name))


def write_rule(path: str, name: str, text: str = "x") -> None:
    Path(path).write_text(RULE.replace("NAME", name).replace("TEXT", text))


def load(of: Project, *paths: str) -> LoadedManifests:
    return load_project_manifests(of, [Path(path) for path in paths], KINDS, {}, rules=RULES)


def get_codes(diagnostics: Iterable[Diagnostic]) -> list[str]:
    return [item.code for item in diagnostics]


def get_rule_names(of: LoadedManifests) -> list[str]:
    return [item.id.name for item in of.rules]


def test_rules_are_loaded_by_name_from_any_file() -> None:
    write_rule("manifests/1.yaml", "b")
    write_rule("manifests/2.yaml", "a")
    write_topic("manifests/3.yaml", "t")
    for paths in ((), ("manifests/3.yaml",), ("manifests/1.yaml",), ("manifests",)):
        assert get_rule_names(load(make_project(), *paths)) == ["a", "b"]


def test_file_count_includes_only_given_files() -> None:
    write_rule("manifests/1.yaml", "b")
    write_topic("manifests/3.yaml", "t")
    assert load(make_project()).files == 2
    assert load(make_project(), "manifests/3.yaml").files == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_rules_are_found_in_all_encodings(encoding: str) -> None:
    write_rule("manifests/r.yaml", "r", "'ä HERE'")
    mark = "\ufeff" if encoding.endswith("be") else ""
    text = Path("manifests/r.yaml").read_text()
    Path("manifests/r.yaml").write_bytes((mark + text).encode(encoding))
    write_topic("t.yaml", "t")
    for paths in ((), ("t.yaml",)):
        result = load(make_project(), *paths)
        assert get_rule_names(result) == ["r"]
        assert [item.place for item in result.diagnostics] == [
            SourcePosition("manifests/r.yaml", 1, text.index("HERE") + 1)
        ]


def test_rule_file_given_by_other_path_is_loaded_once() -> None:
    write_rule("manifests/r.yaml", "r")
    Path("link.yaml").symlink_to("manifests/r.yaml")
    Path("linked").symlink_to("manifests")
    for path in (
        "link.yaml",
        "linked",
        "manifests/../manifests/r.yaml",
        str(Path("manifests/r.yaml").absolute()),
    ):
        result = load(make_project(), path)
        assert get_rule_names(result) == ["r"]
        assert not result.diagnostics


def test_copy_of_rule_is_duplicate() -> None:
    write_rule("manifests/r.yaml", "r")
    write_rule("r.yaml", "r")
    assert get_codes(load(make_project(), "r.yaml").diagnostics) == ["duplicate-resource"]


def test_broken_other_manifests_do_not_affect_given_file() -> None:
    write_topic("t.yaml", "t")
    for name, text in {
        "a": "[",
        "b": "kind: Topic",
        "c": "\x01",
        "d": "kind: Nothing\na: {<<: b}",
        "e": "kind: Topic\na: ${var.nowhere}",
    }.items():
        Path(f"manifests/{name}.yaml").write_text(text)
    assert not load(make_project(), "t.yaml").diagnostics
    Path("manifests/f.yaml").write_text("kind: Topic\n---\n# no Rule\n{")
    assert get_codes(load(make_project(), "t.yaml").diagnostics) == ["yaml-syntax"]


def test_incomplete_rule_is_reported() -> None:
    write_topic("t.yaml", "t")
    Path("manifests/r.yaml").write_text("kind: Rule")
    Path("manifests/s.yaml").write_text("{kind: Topic, kind: Rule}")
    assert "missing-field" in get_codes(load(make_project(), "t.yaml").diagnostics)
    assert "duplicate-key" in get_codes(load(make_project(), "t.yaml").diagnostics)


@pytest.mark.parametrize("kinds", ["kind: Rule, kind: Defaults", "kind: Defaults, kind: Rule"])
def test_document_with_two_kinds_is_not_a_rule(kinds: str) -> None:
    spec = "{kind: Topic, defaults: {partitions: 2}}"
    Path("manifests/r.yaml").write_text(
        f"{{apiVersion: kdeclare/v1, {kinds}, metadata: {{name: x}}, spec: {spec}}}"
    )
    loaded = load(make_project())
    assert "duplicate-key" in get_codes(loaded.diagnostics)
    assert all(rule.id.kind == "Rule" for rule in loaded.rules)


def test_unreadable_manifest_is_reported() -> None:
    write_topic("t.yaml", "t")
    Path("manifests/gone.yaml").symlink_to("nowhere")
    assert get_codes(load(make_project(), "t.yaml").diagnostics) == ["no-such-path"]
    assert get_codes(load(make_project(), "t.yaml", "manifests").diagnostics) == ["no-such-path"]
    assert get_codes(load(make_project("manifests: [nowhere]"), "t.yaml").diagnostics) == ["no-such-path"]


def test_load_rules_ignores_broken_manifests_and_overlays() -> None:
    write_rule("manifests/r.yaml", "r")
    write_rule("manifests/s.yaml", "s")
    Path("manifests/broken.yaml").write_text("kind: Topic")
    Path("overlays").mkdir()
    Path("overlays/a.yaml").write_text("{kind: Topic}\n---\n{kind: Topic, metadata: {name: z}}")
    Path("overlays/b.yaml").write_text("[")
    found, diagnostics = load_rules(make_project(OVERLAYS), RULES, {})
    assert [item.id.name for item in found] == ["r", "s"]
    assert not diagnostics
    write_rule("manifests/t.yaml", "r", "HERE")
    found, diagnostics = load_rules(make_project(), RULES, {})
    assert get_codes(diagnostics) == ["duplicate-resource", "bad-rule"]


def test_load_rules_without_project_file_returns_nothing() -> None:
    write_rule("manifests/r.yaml", "r")
    assert load_rules(Project(), RULES, {}) == ((), ())


def test_load_manifests_without_rule_kinds_ignores_rules() -> None:
    write_rule("manifests/r.yaml", "r")
    write_topic("t.yaml", "t")
    assert not load_project_manifests(make_project(), [Path("t.yaml")], KINDS, {}).diagnostics
    assert get_codes(load_project_manifests(make_project(), [], KINDS, {}).diagnostics) == ["unknown-kind"]


LAYOUTS: dict[str, list[tuple[str, str]]] = {
    "a link in an overlay": [("overlays/x.yaml", "../manifests/r.yaml")],
    "a folder of overlays that is the manifests": [("overlays/all", "../manifests")],
    "a link to an overlay": [("manifests/o.yaml", "../overlays/own.yaml")],
    "overlays within the manifests": [("manifests/overlays", "../overlays")],
    "a link beside": [("given/r.yaml", "../manifests/r.yaml")],
    "a link back up": [("manifests/up", "..")],
    "a link to another folder": [("manifests/given", "../given")],
    "a link in a circle": [("manifests/circle.yaml", "circle.yaml")],
    "nothing": [],
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_rules_apply_to_any_loaded_part(layout: str) -> None:
    for folder in ("overlays", "given"):
        Path(folder).mkdir()
    write_rule("manifests/r.yaml", "r")
    write_rule("manifests/s.yml", "s")
    write_topic("manifests/t.yaml", "t")
    write_topic("given/u.yaml", "u")
    Path("overlays/own.yaml").write_text("{kind: Topic, metadata: {name: t}, spec: {partitions: 2}}")
    for link, target in LAYOUTS[layout]:
        Path(link).symlink_to(target)
    links = [Path(link) for link, _ in LAYOUTS[layout]]
    of = make_project(OVERLAYS)
    complete, alone = load(of), load_rules(of, RULES, {})
    everywhere = [Path(p) for p in ("manifests", "given", "overlays", "manifests/r.yaml", "given/u.yaml")]
    parts = [load(of, str(path)) for path in (*everywhere, *links)]
    assert get_rule_names(complete) == ["r", "s"]
    assert [item.id.name for item in alone[0]] == ["r", "s"]
    for part in parts:
        assert get_rule_names(part) == ["r", "s"]
    for code in ("policy-overlay", "unreadable-file"):
        told = [
            code in get_codes(d) for d in (complete.diagnostics, alone[1], *(p.diagnostics for p in parts))
        ]
        assert len(set(told)) == 1, "an error for one is an error for all"


@pytest.mark.parametrize("overlay", ["{kind: Rule, KIND}", "{kind: Topic, kind: Rule, KIND}"])
def test_overlay_of_rule_is_rejected(overlay: str) -> None:
    write_rule("manifests/r.yaml", "r")
    write_topic("t.yaml", "t")
    Path("overlays").mkdir()
    text = overlay.replace("KIND", "metadata: {name: r}, spec: {rule: HERE}")
    Path("overlays/a.yaml").write_text(text)
    of = make_project(OVERLAYS)
    expected = ["policy-overlay"] if overlay.count("kind") == 1 else ["duplicate-key", "policy-overlay"]
    for result in (load(of), load(of, "t.yaml")):
        assert sorted(get_codes(result.diagnostics)) == expected
        assert [item.get_body(dict)["rule"] for item in result.rules] == ["x"]
    assert sorted(get_codes(load_rules(of, RULES, {})[1])) == expected


@pytest.mark.parametrize(
    "kind", ["rule", "RULE", "Rules", "Ruel", "'Rul'", "${env.K}", "'${env.K}'", "&a Rul"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_misspelled_rule_kind_is_reported(kind: str, encoding: str) -> None:
    text = f"apiVersion: kdeclare/v1\nkind: {kind}\nmetadata: {{name: r}}\nspec: {{rule: x}}\n"
    Path("manifests/r.yaml").write_bytes(text.encode(encoding))
    write_topic("t.yaml", "t")
    of = make_project()
    code = "undefined-variable" if "env" in kind else "unknown-kind"
    for told in (load(of).diagnostics, load(of, "t.yaml").diagnostics, load_rules(of, RULES, {})[1]):
        assert code in get_codes(told)
        assert [item.hint for item in told if item.code == "unknown-kind"] in ([], ["Did you mean 'Rule'?"])
    found = load_project_manifests(of, [Path("t.yaml")], KINDS, {"K": "Rule"}, rules=RULES)
    assert get_codes(found.diagnostics) == ["hidden-kind" if "env" in kind else code]
