"""Fields of manifests that name a file: the file is read, and problems have positions."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict

from kdeclare.core.diagnostics import SourcePosition, error
from kdeclare.core.resources.file_text import FileText, list_file_fields
from kdeclare.core.resources.kind import SpecProblem
from kdeclare.core.resources.raw_text import RawText
from kdeclare.manifests.document_models import Declarable
from kdeclare.manifests.file_fields import find_file_fields, find_named_files
from kdeclare.manifests.for_each.generator import Generator
from kdeclare.manifests.load_manifests import LoadedManifests, load_project_manifests
from kdeclare.manifests.project import open_project
from kdeclare.manifests.syntax.node_reader import NodeReader


class NoteSpec(BaseModel):
    """A spec with a required file, an optional file, and an ordinary field."""

    model_config = ConfigDict(extra="forbid")
    file: Annotated[FileText, RawText()]
    other: Annotated[FileText | None, RawText()] = None
    size: int = 0


class Note:
    """A kind whose body is its spec. It reports the word 'bad' in the file."""

    name = "Note"
    spec: type[BaseModel] = NoteSpec

    def parse(self, name: str, spec: NoteSpec) -> tuple[NoteSpec, tuple[SpecProblem, ...]]:
        if "bad" not in spec.file.text:
            return spec, ()
        place = SourcePosition(spec.file.path, 2, 3)
        return spec, (SpecProblem(("file",), error("bad-note", "Bad note", "Bad.", place=place)),)


KINDS: Any = {"Note": Note()}


@pytest.fixture(autouse=True)
def _working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("shop/manifests/texts").mkdir(parents=True)
    write_project()


def write_project(references: str = "") -> None:
    Path("shop/kdeclare.yaml").write_text(
        f"apiVersion: kdeclare/v1\nkind: Project\nmetadata: {{name: shop}}\nspec: {{{references}}}\n"
    )


def write_note(spec: str) -> str:
    text = f"apiVersion: kdeclare/v1\nkind: Note\nmetadata: {{name: a}}\nspec:\n  {spec}\n"
    Path("shop/manifests/a.yaml").write_text(text)
    return text


def load(environ: Mapping[str, str] | None = None) -> LoadedManifests:
    environ = environ or {}
    return load_project_manifests(open_project(Path("shop/kdeclare.yaml"), None, environ), (), KINDS, environ)


def read_only_file(loaded: LoadedManifests) -> FileText:
    assert loaded.diagnostics == ()
    (note,) = loaded.desired
    return note.get_body(NoteSpec).file


def describe_only_problem(loaded: LoadedManifests) -> tuple[str, str]:
    (problem,) = loaded.diagnostics
    return problem.code, str(problem.place)


def test_file_is_read_relative_to_the_manifest() -> None:
    Path("shop/manifests/texts/1.0").write_text("hello\n")
    write_note("file: texts/1.0")
    expected = FileText("shop/manifests/texts/1.0", "hello\n")
    assert read_only_file(load()) == expected
    assert read_only_file(load({"CI": "true"})) == expected
    write_note("file: texts/${env.N}")
    assert read_only_file(load({"N": "1.0"})) == expected


def test_missing_file_is_an_error_at_the_field() -> None:
    write_note("file: texts/gone\n  size: x")
    assert [(d.code, str(d.place)) for d in load().diagnostics] == [
        ("unreadable-file", "shop/manifests/a.yaml:5:9"),
        ("wrong-type", "shop/manifests/a.yaml:6:9"),
    ]


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * (1 << 20 | 1)])
def test_unusable_file_is_an_error(content: bytes) -> None:
    Path("shop/manifests/texts/x").write_bytes(content)
    write_note("file: texts/x")
    assert describe_only_problem(load()) == ("unreadable-file", "shop/manifests/a.yaml:5:9")


def test_wrong_type_is_an_error_at_the_field() -> None:
    write_note("file: [a]")
    assert describe_only_problem(load()) == ("wrong-type", "shop/manifests/a.yaml:5:9")


def test_problem_in_the_file_keeps_its_position() -> None:
    Path("shop/manifests/texts/x").write_text("first\n  bad\n")
    write_note("file: texts/x")
    assert describe_only_problem(load()) == ("bad-note", "shop/manifests/texts/x:2:3")


@pytest.mark.parametrize("kind", ["outside", "link", "git", "proc"])
def test_file_outside_the_project_needs_permission_in_ci(kind: str) -> None:
    Path("outside.txt").write_text("secret")
    Path("shop/.git").mkdir()
    Path("shop/.git/config").write_text("secret")
    Path("shop/manifests/link").symlink_to(Path("outside.txt").resolve())
    files = {
        "outside": "../../outside.txt",
        "link": "link",
        "git": "../.git/config",
        "proc": "/proc/self/environ",
    }
    write_note(f"file: {files[kind]}")
    assert describe_only_problem(load({"CI": "true"})) == (
        "reference-not-allowed",
        "shop/manifests/a.yaml:5:9",
    )


def test_file_outside_the_project_is_read_if_references_allow_it() -> None:
    Path("outside.txt").write_text("hello")
    write_note("file: ../../outside.txt")
    assert read_only_file(load()).text == "hello"
    (problem,) = load({"CI": "true"}).diagnostics
    assert problem.hint == "Add 'references: {files: [..]}' to the project file's spec."
    write_project("references: {files: [..]}")
    assert read_only_file(load({"CI": "true"})).text == "hello"


def test_named_files_are_found_without_loading() -> None:
    kinds: Mapping[str, Declarable] = KINDS
    fields = find_file_fields(kinds)
    assert fields == {"Note": ("file", "other")}
    data = write_note("file: texts/x\n  other: ../y")
    generator = Generator(NodeReader(None), None)
    found = find_named_files("shop/manifests/a.yaml", data.encode(), fields, generator)
    assert list(map(str, found)) == ["shop/manifests/texts/x", "shop/y"]
    assert not list(find_named_files("a.yaml", b"kind: [Note", fields, generator))
    assert not list(find_named_files("a.yaml", b"kind: Topic\nspec: {file: x}", fields, generator))


def test_file_field_accepts_only_a_read_file() -> None:
    assert list_file_fields(NoteSpec) == ("file", "other")
    with pytest.raises(ValueError, match="set only in a manifest"):
        NoteSpec.model_validate({"file": "x"})
    assert NoteSpec.model_json_schema()["properties"]["file"]["type"] == ["string", "number", "boolean"]
