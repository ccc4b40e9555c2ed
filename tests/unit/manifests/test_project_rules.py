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
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("manifests").mkdir()


def project(spec: str = "") -> Project:
    Path("kdeclare.yaml").write_text(PROJECT.replace("SPEC", spec))
    return open_project(None, None, {})


def topic(path: str, name: str) -> None:
    Path(path).write_text(TOPIC.replace("NAME", name))


def rule(path: str, name: str, text: str = "x") -> None:
    Path(path).write_text(RULE.replace("NAME", name).replace("TEXT", text))


def loaded(of: Project, *paths: str) -> LoadedManifests:
    return load_project_manifests(of, [Path(path) for path in paths], KINDS, {}, rules=RULES)


def codes(diagnostics: Iterable[Diagnostic]) -> list[str]:
    return [item.code for item in diagnostics]


def names(of: LoadedManifests) -> list[str]:
    return [item.id.name for item in of.rules]


def test_they_come_by_name_from_wherever_they_are() -> None:
    rule("manifests/1.yaml", "b")
    rule("manifests/2.yaml", "a")
    topic("manifests/3.yaml", "t")
    for paths in ((), ("manifests/3.yaml",), ("manifests/1.yaml",), ("manifests",)):
        assert names(loaded(project(), *paths)) == ["a", "b"]


def test_only_what_was_asked_for_is_counted() -> None:
    rule("manifests/1.yaml", "b")
    topic("manifests/3.yaml", "t")
    assert loaded(project()).files == 2
    assert loaded(project(), "manifests/3.yaml").files == 1


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
def test_they_are_found_in_every_encoding(encoding: str) -> None:
    rule("manifests/r.yaml", "r", "'ä HERE'")
    mark = "\ufeff" if encoding.endswith("be") else ""
    text = Path("manifests/r.yaml").read_text()
    Path("manifests/r.yaml").write_bytes((mark + text).encode(encoding))
    topic("t.yaml", "t")
    for paths in ((), ("t.yaml",)):
        result = loaded(project(), *paths)
        assert names(result) == ["r"]
        assert [item.place for item in result.diagnostics] == [
            SourcePosition("manifests/r.yaml", 1, text.index("HERE") + 1)
        ]


def test_a_file_that_is_given_by_another_name_is_the_same_file() -> None:
    rule("manifests/r.yaml", "r")
    Path("link.yaml").symlink_to("manifests/r.yaml")
    Path("linked").symlink_to("manifests")
    for path in (
        "link.yaml",
        "linked",
        "manifests/../manifests/r.yaml",
        str(Path("manifests/r.yaml").absolute()),
    ):
        result = loaded(project(), path)
        assert names(result) == ["r"]
        assert not result.diagnostics


def test_a_copy_of_a_rule_is_a_second_one() -> None:
    rule("manifests/r.yaml", "r")
    rule("r.yaml", "r")
    assert codes(loaded(project(), "r.yaml").diagnostics) == ["duplicate-resource"]


def test_the_rest_of_the_project_may_be_broken() -> None:
    topic("t.yaml", "t")
    for name, text in {
        "a": "[",
        "b": "kind: Topic",
        "c": "\x01",
        "d": "kind: Nothing\na: {<<: b}",
        "e": "kind: Topic\na: ${var.nowhere}",
    }.items():
        Path(f"manifests/{name}.yaml").write_text(text)
    assert not loaded(project(), "t.yaml").diagnostics
    Path("manifests/f.yaml").write_text("kind: Topic\n---\n# no Rule\n{")
    assert codes(loaded(project(), "t.yaml").diagnostics) == ["yaml-syntax"]


def test_a_rule_without_a_name_is_not_passed_over() -> None:
    topic("t.yaml", "t")
    Path("manifests/r.yaml").write_text("kind: Rule")
    Path("manifests/s.yaml").write_text("{kind: Topic, kind: Rule}")
    assert "missing-field" in codes(loaded(project(), "t.yaml").diagnostics)
    assert "duplicate-key" in codes(loaded(project(), "t.yaml").diagnostics)


def test_what_cannot_be_read_could_hold_one() -> None:
    topic("t.yaml", "t")
    Path("manifests/gone.yaml").symlink_to("nowhere")
    assert codes(loaded(project(), "t.yaml").diagnostics) == ["no-such-path"]
    assert codes(loaded(project(), "t.yaml", "manifests").diagnostics) == ["no-such-path"]
    assert codes(loaded(project("manifests: [nowhere]"), "t.yaml").diagnostics) == ["no-such-path"]


def test_alone() -> None:
    rule("manifests/r.yaml", "r")
    rule("manifests/s.yaml", "s")
    Path("manifests/broken.yaml").write_text("kind: Topic")
    Path("overlays").mkdir()
    Path("overlays/a.yaml").write_text("{kind: Topic}\n---\n{kind: Topic, metadata: {name: z}}")
    Path("overlays/b.yaml").write_text("[")
    found, diagnostics = load_rules(project(OVERLAYS), RULES, {})
    assert [item.id.name for item in found] == ["r", "s"]
    assert not diagnostics
    rule("manifests/t.yaml", "r", "HERE")
    found, diagnostics = load_rules(project(), RULES, {})
    assert codes(diagnostics) == ["duplicate-resource", "bad-rule"]


def test_alone_without_a_project() -> None:
    rule("manifests/r.yaml", "r")
    assert load_rules(Project(), RULES, {}) == ((), ())


def test_without_kinds_of_rules_all_is_as_before() -> None:
    rule("manifests/r.yaml", "r")
    topic("t.yaml", "t")
    assert not load_project_manifests(project(), [Path("t.yaml")], KINDS, {}).diagnostics
    assert codes(load_project_manifests(project(), [], KINDS, {}).diagnostics) == ["unknown-kind"]


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
def test_the_same_rules_hold_however_much_is_loaded(layout: str) -> None:
    for folder in ("overlays", "given"):
        Path(folder).mkdir()
    rule("manifests/r.yaml", "r")
    rule("manifests/s.yml", "s")
    topic("manifests/t.yaml", "t")
    topic("given/u.yaml", "u")
    Path("overlays/own.yaml").write_text("{kind: Topic, metadata: {name: t}, spec: {partitions: 2}}")
    for link, target in LAYOUTS[layout]:
        Path(link).symlink_to(target)
    links = [Path(link) for link, _ in LAYOUTS[layout]]
    of = project(OVERLAYS)
    complete, alone = loaded(of), load_rules(of, RULES, {})
    everywhere = [Path(p) for p in ("manifests", "given", "overlays", "manifests/r.yaml", "given/u.yaml")]
    parts = [loaded(of, str(path)) for path in (*everywhere, *links)]
    assert names(complete) == ["r", "s"]
    assert [item.id.name for item in alone[0]] == ["r", "s"]
    for part in parts:
        assert names(part) == ["r", "s"]
    for code in ("policy-overlay", "unreadable-file"):
        told = [code in codes(d) for d in (complete.diagnostics, alone[1], *(p.diagnostics for p in parts))]
        assert len(set(told)) == 1, "an error for one is an error for all"


@pytest.mark.parametrize("overlay", ["{kind: Rule, KIND}", "{kind: Topic, kind: Rule, KIND}"])
def test_an_overlay_does_not_change_a_rule(overlay: str) -> None:
    rule("manifests/r.yaml", "r")
    topic("t.yaml", "t")
    Path("overlays").mkdir()
    text = overlay.replace("KIND", "metadata: {name: r}, spec: {rule: HERE}")
    Path("overlays/a.yaml").write_text(text)
    of = project(OVERLAYS)
    expected = ["policy-overlay"] if overlay.count("kind") == 1 else ["duplicate-key", "policy-overlay"]
    for result in (loaded(of), loaded(of, "t.yaml")):
        assert sorted(codes(result.diagnostics)) == expected
        assert [item.get_body(dict)["rule"] for item in result.rules] == ["x"]
    assert sorted(codes(load_rules(of, RULES, {})[1])) == expected


@pytest.mark.parametrize(
    "kind", ["rule", "RULE", "Rules", "Ruel", "'Rul'", "${env.K}", "'${env.K}'", "&a Rul"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_what_was_meant_for_a_rule_is_not_passed_over(kind: str, encoding: str) -> None:
    text = f"apiVersion: kdeclare/v1\nkind: {kind}\nmetadata: {{name: r}}\nspec: {{rule: x}}\n"
    Path("manifests/r.yaml").write_bytes(text.encode(encoding))
    topic("t.yaml", "t")
    of = project()
    code = "undefined-variable" if "env" in kind else "unknown-kind"
    for told in (loaded(of).diagnostics, loaded(of, "t.yaml").diagnostics, load_rules(of, RULES, {})[1]):
        assert code in codes(told)
        assert [item.hint for item in told if item.code == "unknown-kind"] in ([], ["Did you mean 'Rule'?"])
    found = load_project_manifests(of, [Path("t.yaml")], KINDS, {"K": "Rule"}, rules=RULES)
    assert codes(found.diagnostics) == ["hidden-kind" if "env" in kind else code]
