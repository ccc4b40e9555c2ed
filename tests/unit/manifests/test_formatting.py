"""``kdeclare fmt`` changes only the layout of manifests."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.manifests.editing.documents import build_tree, compose_text
from kdeclare.manifests.formatting.format_file import format_file
from kdeclare.manifests.load_manifests import load_project_manifests
from kdeclare.manifests.project import Project
from tests.unit.manifests.small_kinds import KINDS

ROOT = Path(__file__).parents[3]
CASES = Path(__file__).with_name("formatting_cases.txt").read_text().split("=== ")[1:]


def format_text(text: str) -> str:
    formatted = format_file("a.yaml", text.encode())
    assert not formatted.unsupported
    return formatted.data.decode()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.partition("\n")[0])
def test_formatted_text_is_as_expected(case: str) -> None:
    _, before, after = re.split("\n--- (?:before|after)\n", case)
    before, after = before.replace("·", " ") + "\n", after.replace("·", " ").rstrip("\n") + "\n"
    assert format_text(before) == after
    assert format_text(after) == after


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("kind: Topic\n? metadata\n: {name: a}\n", "a.yaml:1:1"),
        ("kind: Topic\nmetadata: {name: a}\nspec:\n  ? [a]\n  : b\n", "a.yaml:1:1"),
        ("apiVersion: a\n---\nkind: T\nspec: |\n  no line break at the end", "a.yaml:3:1"),
        ("--- {kind: Topic}\n", "a.yaml:1:5"),
    ],
)
def test_document_that_could_change_its_meaning_is_left_unchanged(text: str, position: str) -> None:
    formatted = format_file("a.yaml", text.encode())
    assert formatted.data.decode() == text
    (notice,) = formatted.unsupported
    assert (notice.code, str(notice.place)) == ("layout-not-formatted", position)


def test_alias_stays_behind_its_anchor() -> None:
    text = "spec:\n    a: &x {b: 1}\nkind: T\nmetadata: *x\n"
    assert format_text(text) == text.replace("    a", "  a")


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encoding_and_line_breaks_are_kept(encoding: str, line_break: str) -> None:
    text = line_break.join(["kind: Tópic", "metadata:", "    name: ä  ", "", ""])
    expected = line_break.join(["kind: Tópic", "metadata:", "  name: ä", ""])
    assert format_file("a.yaml", text.encode(encoding)).data == expected.encode(encoding)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment  \n", "---\n---\n", "a: [1\n"])
def test_file_without_content_is_left_unchanged(text: str) -> None:
    if "[" in text:
        with pytest.raises(KdeclareError):
            format_file("a.yaml", text.encode())
    else:
        assert format_file("a.yaml", text.encode()).data == text.encode()


@pytest.mark.parametrize("folder", ["examples", "manifests"])
def test_manifests_of_this_repository_are_formatted(folder: str) -> None:
    files = [file for file in (ROOT / folder).rglob("*.y*ml") if ".venv" not in file.parts]
    assert len(files) > (40 if folder == "examples" else 2)
    for file in files:
        assert format_file(str(file), file.read_bytes()).data == file.read_bytes(), file


def get_comments(text: str) -> list[str]:
    return re.findall("#c[0-9]+", text)


def describe(text: str) -> Any:
    """Return the content of each document, without the order of its fields, and with their types."""
    return [
        sorted(((key.value, repr(build_tree(value))) for key, value in root.value), key=lambda pair: pair[0])
        for root in compose_text("a.yaml", text)
    ]


SCALARS = st.sampled_from(
    [
        "1",
        "true",
        "~",
        "text",
        "two words",
        '"quoted # text"',
        "'it''s'",
        "${var.x}",
        "[a, b]",
        "{a: 1, b: [2]}",
        "",
    ]
)
BLOCK_SCALARS = st.builds(
    lambda head, first, others: (head, [first, *others]),
    st.sampled_from(["|", ">", "|-", "|+", ">-"]),
    st.sampled_from(["x", "# text", "- y"]),
    st.lists(st.sampled_from(["x", "  more", "", "# text", "- y", "   "]), max_size=3),
)
KEYS = st.sampled_from(["a", "b", "c.d", '"e"', "f"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | BLOCK_SCALARS,
    lambda inner: (
        st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3)
    ),
    max_leaves=4,
)
FIELDS = ["apiVersion", "kind", "metadata", "forEach", "spec", "other"]
DOCUMENTS = st.permutations(FIELDS).flatmap(
    lambda names: st.tuples(*(st.tuples(st.just(name), VALUES) for name in names))
)


class Writer:
    """Writes a document in a layout that the draws determine: indentation, comments and blank lines."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.lines: list[str] = []
        self.comments = 0
        self._draw = draw

    def write(self, pairs: Any, column: int) -> None:
        for key, value in pairs:
            self._write_filler(column)
            self._write_value(" " * column + key + ":", value, column)

    def _write_filler(self, column: int) -> None:
        for kind in self._draw(st.lists(st.sampled_from(["blank", "comment", "odd"]), max_size=2)):
            indent = column if kind == "comment" else self._draw(st.integers(0, 6))
            self.comments += kind != "blank"
            self.lines.append("  " * (indent % 2) if kind == "blank" else f"{' ' * indent}#c{self.comments}")

    def _write_value(self, head: str, value: Any, column: int) -> None:
        if isinstance(value, str):
            self.comments += 1
            comment = self._draw(st.sampled_from(["", "  ", f"   #c{self.comments}"]))
            self.lines.append(f"{head} {value}{comment}")
        elif isinstance(value, tuple):
            indent = column + self._draw(st.integers(1, 4))
            self.lines.append(f"{head} {value[0]}")
            self.lines += [" " * indent + line if line.strip() else line for line in value[1]]
        elif isinstance(value, dict):
            self.lines.append(head)
            self.write(value.items(), column + self._draw(st.integers(1, 4)))
        else:
            self.lines.append(head)
            dash_column = column + self._draw(st.integers(0 if head.endswith(":") else 1, 4))
            for item in value:
                self._write_filler(dash_column)
                self._write_item(item, dash_column)

    def _write_item(self, item: Any, column: int) -> None:
        dash = " " * column + "-"
        if not isinstance(item, dict) or self._draw(st.booleans()):
            self._write_value(dash, item, column)
            return
        spaces = self._draw(st.integers(1, 3))
        (key, value), *others = item.items()
        inner = column + 1 + spaces
        self._write_value(f"{dash}{' ' * spaces}{key}:", value, inner)
        self.write(others, inner)


@given(data=st.data(), documents=st.lists(DOCUMENTS, min_size=1, max_size=2))
def test_formatting_keeps_meaning_and_comments_and_is_idempotent(data: st.DataObject, documents: Any) -> None:
    texts = []
    for document in documents:
        writer = Writer(data.draw)
        writer.write(document, 0)
        texts.append("".join(line + "\n" for line in writer.lines))
    text = "---\n".join(texts)
    try:
        before = describe(text)
    except KdeclareError:
        return  # for example, a comment that ends a scalar of several lines
    formatted = format_file("a.yaml", text.encode())
    assert not formatted.unsupported, text
    result = formatted.data.decode()
    assert describe(result) == before
    assert sorted(get_comments(result)) == sorted(get_comments(text))
    assert format_file("a.yaml", formatted.data).data == formatted.data
    names = [[key.value for key, _ in root.value] for root in compose_text("a.yaml", result)]
    # fields do not move if the blank lines before them would become a part of a text that keeps them
    assert "|+" in text or all(fields == FIELDS for fields in names)


@given(data=st.data())
def test_formatted_manifests_declare_the_same_resources(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    configs = st.dictionaries(KEYS, SCALARS | BLOCK_SCALARS, min_size=1)
    spec = {"partitions": "3", "configs": data.draw(configs)}
    labels = data.draw(st.dictionaries(KEYS, st.sampled_from(["x", "'1'"]), min_size=1))
    fields = {
        "apiVersion": "kdeclare/v1",
        "kind": "Topic",
        "metadata": {"name": "${each.key}", "labels": labels},
        "forEach": data.draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, unique=True)),
        "spec": spec,
    }
    writer = Writer(data.draw)
    writer.write([(name, fields[name]) for name in data.draw(st.permutations(list(fields)))], 0)
    file = tmp_path_factory.mktemp("p") / "a.yaml"
    file.write_text("".join(line + "\n" for line in writer.lines))

    def load() -> Any:
        loaded = load_project_manifests(Project(), [file], KINDS, {})
        problems = sorted((d.code, d.detail) for d in loaded.diagnostics)
        # a position changes, but not what it belongs to
        problems = [(code, re.sub(":[0-9]+", "", detail)) for code, detail in problems]
        return problems, [(item.id, dict(item.labels), item.body) for item in loaded.desired]

    before = load()
    file.write_bytes(format_file(str(file), file.read_bytes()).data)
    assert load() == before


def test_yaml_of_another_parser_agrees() -> None:
    """PyYAML reads the same data before and after, and not only the nodes of kdeclare's own reader."""
    text = "spec:\n    a:\n    - b: |+\n         x\n\n      c: 1\n    -  [1,\n  2]\nkind: T\nmetadata: {}\n"
    assert yaml.safe_load(format_text(text)) == yaml.safe_load(text)
