"""For any layout of a manifest, edits have their effect and change only the lines of their keys."""

from dataclasses import dataclass

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kdeclare.manifests.editing.documents import rewrite_file
from kdeclare.manifests.editing.edits import AppendEdit, DropEdit, Edit, NodePath, PutEdit

CONFIGS = ("spec", "configs")
KEYS = [f"key.{n}" for n in range(6)]
ODD = [
    "604800000",
    "compact",
    "yes",
    "a: b",
    "x #y",
    "",
    "null",
    "007",
    "it's",
    "-",
    "[",
    "é😀",
    " a ",
    "${b}",
]
TEXTS = st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6))

Model = dict[str, str | list[str]]
"""What stands at the keys."""

Lines = list[tuple[str, str | None]]
"""Lines, each with the key that it belongs to."""


@dataclass(frozen=True)
class Layout:
    """A manifest. last: whether its last line ends with a line break."""

    lines: Lines
    model: Model
    eol: str
    last: bool

    @property
    def text(self) -> str:
        return self.eol.join(line for line, _ in self.lines) + (self.eol if self.last else "")


@st.composite
def draw_layout(draw: st.DrawFn) -> Layout:
    """Generate block-style manifests with comments and blank lines in all allowed places."""
    step = draw(st.integers(1, 4))
    deep = " " * (2 * step)
    head = draw(st.sampled_from(["configs:", "'configs':  # all", "configs: &c"]))
    lines: Lines = make_lines_without_key("# head", "kind: Topic  # it", "spec:", " " * step + head)
    model: Model = {}
    for number, key in enumerate(draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=5, unique=True))):
        above = [(), ("",), (f"{deep}# above {number}",), (f"# far out {number}",)]
        lines += make_lines_without_key(*draw(st.sampled_from(above)))
        written, model[key] = draw(draw_value(deep, key))
        lines += [(line, key) for line in written]
    after = [f"{deep}# tail of it", ""], [f"{' ' * step}partitions: 3  # after"], ["---", "spec: {a: 1}  # 2"]
    for more in after:
        lines += make_lines_without_key(*more) if draw(st.booleans()) else []
    return Layout(lines, model, draw(st.sampled_from(["\n", "\r\n"])), draw(st.booleans()))


def make_lines_without_key(*lines: str) -> Lines:
    """Generate lines that belong to no key."""
    return [(line, None) for line in lines]


@st.composite
def draw_value(draw: st.DrawFn, indent: str, key: str) -> tuple[list[str], str | list[str]]:
    """Generate the lines of a key and its value, and their meaning."""
    head = indent + draw(st.sampled_from([f"{key}:", f"'{key}':", f'"{key}" :']))
    comment = draw(st.sampled_from(["", "  # why", "\t# why"]))
    word = st.from_regex("[a-z]{2,6}", fullmatch=True)
    texts = draw(st.lists(word, min_size=1, max_size=3, unique=True))
    form = draw(st.sampled_from(["", "'", '"', "flow", "block", "block in", "literal", "below"]))
    if form == "flow":
        return [f"{head} [ {', '.join(texts)} ]{comment}"], texts
    if form == "literal":
        lines = [f"{head} |-{comment.expandtabs(2)}", f"{indent} {texts[0]}", f"{indent} second"]
        return lines, f"{texts[0]}\nsecond"
    if form == "below":
        return [f"{head}{comment}", f"{indent}  {texts[0]}"], texts[0]
    if form.startswith("block"):
        more = "  " if form == "block in" else ""
        return [f"{head}{comment}", *(f"{indent}{more}- {text}{comment}" for text in texts)], texts
    return [f"{head}   {form}{texts[0]}{form}{comment}"], texts[0]


@st.composite
def draw_edits(draw: st.DrawFn, model: Model) -> list[Edit]:
    """Yield random edits in sequence, and apply each to the model."""
    edits: list[Edit] = []
    for _ in range(draw(st.integers(1, 4))):
        key = draw(st.sampled_from(KEYS))
        path: NodePath = (*CONFIGS, key)
        said = model.get(key)
        what = draw(st.sampled_from(["text", "list", "drop", "element"]))
        if what == "text":
            model[key] = text = draw(TEXTS)
            edits.append(PutEdit(path, text))
        elif what == "list":
            model[key] = texts = draw(st.lists(TEXTS, max_size=3))
            edits.append(PutEdit(path, [*texts]))
        elif what == "drop" and said is not None:
            del model[key]
            edits.append(DropEdit(path))
        elif what == "element" and isinstance(said, list) and said and draw(st.booleans()):
            index = draw(st.integers(0, len(said) - 1))
            model[key] = [*said[:index], *said[index + 1 :]]
            edits.append(DropEdit((*path, index)))
        elif what == "element" and isinstance(said, list):
            model[key] = [*said, new := draw(TEXTS)]
            edits.append(AppendEdit(path, new))
    return edits


def format_as_in_file(model: Model) -> list[tuple[str, str | list[str]]]:
    """Return a value as it appears in the file, in order; ``${`` is escaped with two dollars."""

    def escape(text: str) -> str:
        return text.replace("${", "$${")

    return [
        (key, escape(said) if isinstance(said, str) else [escape(text) for text in said])
        for key, said in model.items()
    ]


def list_untouched_lines(layout: Layout, edits: list[Edit]) -> list[str]:
    """Return the lines that no edit affects. Removing all keys affects the line of their mapping, too."""
    edited = {edit.path[2] for edit in edits}
    emptied = set(layout.model) <= edited
    return [
        line
        for line, key in layout.lines
        if key not in edited and not (emptied and line.strip().startswith(("configs", "'configs")))
    ]


@settings(max_examples=3 * settings().max_examples)
@given(st.data(), draw_layout())
def test_edits_change_only_lines_of_their_keys(data: st.DataObject, layout: Layout) -> None:
    wanted = dict(layout.model)
    edits = data.draw(draw_edits(wanted))
    after = rewrite_file("a.yaml", layout.text.encode(), {0: edits})
    assert after is not None
    text = after.decode()

    first, *others = yaml.load_all(text, yaml.CBaseLoader)
    assert list(first["spec"]["configs"].items()) == format_as_in_file(wanted)
    assert others == list(yaml.load_all(layout.text, yaml.CBaseLoader))[1:]

    rest = iter(text.split(layout.eol))
    kept = list_untouched_lines(layout, edits)
    assert all(line in rest for line in kept), text
    assert text.endswith(layout.eol) == layout.last or not kept[-1]
    assert layout.eol == "\r\n" or "\r" not in text
    assert layout.eol == "\n" or "\n" not in text.replace("\r\n", "")


@dataclass(frozen=True)
class Braces:
    """The layout of a mapping between braces."""

    lines: bool
    last_comma: bool
    comments: bool

    def text(self, keys: list[str]) -> str:
        pairs = [f"{key}: value" for key in keys]
        if not self.lines:
            return ", ".join(pairs) + (", " if self.last_comma and pairs else "")
        text = "\n"
        for n, pair in enumerate(pairs):
            comma = "," if self.last_comma or n + 1 < len(pairs) else ""
            text += f"    {pair}{comma}" + (f"  # {keys[n]}\n" if self.comments else "\n")
        return text + "  "


@settings(max_examples=3 * settings().max_examples)
@given(st.data(), st.lists(st.sampled_from(KEYS), max_size=4, unique=True), st.builds(Braces))
def test_edits_in_flow_mapping_change_only_their_keys(
    data: st.DataObject, keys: list[str], braces: Braces
) -> None:
    wanted: Model = dict.fromkeys(keys, "value")
    head, tail = "kind: Topic  # what\nspec:\n  configs: {", "}  # braces\n  partitions: 3  # after\n"
    edits = data.draw(draw_edits(wanted))
    after = rewrite_file("a.yaml", (head + braces.text(keys) + tail).encode(), {0: edits})
    assert after is not None
    text = after.decode()
    assert list(yaml.load(text, yaml.CBaseLoader)["spec"]["configs"].items()) == format_as_in_file(wanted)
    assert text.startswith(head)
    assert text.endswith(tail)
    if braces.lines and braces.comments:
        assert all(f"  # {key}\n" in text for key in set(keys) - {edit.path[2] for edit in edits})
