"""Edits of the text of manifests: the input, the edits, and the resulting text."""

from textwrap import dedent

import pytest

from kdeclare.manifests.editing.documents import EditRejected, rewrite_file
from kdeclare.manifests.editing.edits import AppendEdit, DropEdit, Edit, EditValue, PutEdit

CONFIGS = ("spec", "configs")
RETENTION = (*CONFIGS, "retention.ms")
POLICY = (*CONFIGS, "cleanup.policy")


def apply_edits(text: str, *edits: Edit, document: int = 0) -> str:
    after = rewrite_file("a.yaml", text.encode(), {document: edits})
    assert after is not None
    return after.decode()


def check_edits(before: str, after: str, *edits: Edit) -> None:
    assert apply_edits(dedent(before), *edits) == dedent(after)


def test_put_edit_changes_only_value() -> None:
    check_edits(
        """\
        # Orders as they come in.

        spec:
          partitions:   12  # enough
          configs:
              retention.ms: 604800000   # a week


              'cleanup.policy':  "delete"\t# quoted
        """,
        """\
        # Orders as they come in.

        spec:
          partitions:   24  # enough
          configs:
              retention.ms: 3600000   # a week


              'cleanup.policy':  "compact"\t# quoted
        """,
        PutEdit(RETENTION, "3600000"),
        PutEdit(POLICY, "compact"),
        PutEdit(("spec", "partitions"), 24),
    )


@pytest.mark.parametrize(
    ("before", "value", "after"),
    [
        ("1", "2", "2"),
        ("'1'", "2", "'2'"),
        ('"1"', "2", '"2"'),
        ("'1'", "it's", "'it''s'"),
        ('"1"', 'say "x"', '"say \\"x\\""'),
        ("'1'", "two\nlines", '"two\\nlines"'),
        ("plain", "a: b # c", '"a: b # c"'),
        ("plain", "yes", '"yes"'),
        ("plain", "null", '"null"'),
        ("plain", "~", '"~"'),
        ("plain", "", '""'),
        ("plain", "007", '"007"'),
        ("plain", "1.10", "1.10"),
        ("plain", "grün 😀", '"grün 😀"'),
        ("plain", "\x85\u2028\x7f", '"\\u0085\\u2028\\u007f"'),
        ("plain", "${env.X}", '"$${env.X}"'),
        ("'1'", "$${env.X}", "'$$${env.X}'"),
        ("plain", None, "null"),
        ("null", "5", "5"),
        ("~", "5", "5"),
        ("", "5", "5"),
        ("&anchor 1", "2", "&anchor 2"),
        ("!!str 1", "2", "!!str 2"),
        ("[a, b]", "compact", "compact"),
        ("{append: [a]}", "compact", "compact"),
        ("compact", ["compact", "delete"], "[compact, delete]"),
        ("compact", {"append": ["compact"]}, "{append: [compact]}"),
        ("{append: [a]}", ["compact", "a b"], '[compact, "a b"]'),
    ],
)
def test_put_edit_replaces_any_value(before: str, value: object, after: str) -> None:
    written = apply_edits(f"spec: {before}  # why\n", PutEdit(("spec",), value))  # type: ignore[arg-type]
    assert written == f"spec: {after}  # why\n"
    assert apply_edits(f"a: 1\nspec: {before}", PutEdit(("spec",), value)) == f"a: 1\nspec: {after}"  # type: ignore[arg-type]


def test_put_edit_replaces_multiline_scalars() -> None:
    check_edits(
        """\
        spec:
          configs:
            retention.ms: >-  # folded
              604800000

            # about the next
            cleanup.policy:
              delete
        """,
        """\
        spec:
          configs:
            retention.ms: 5  # folded

            # about the next
            cleanup.policy:
              compact
        """,
        PutEdit(RETENTION, "5"),
        PutEdit(POLICY, "compact"),
    )


def test_put_edit_replaces_block_with_value_on_line_of_key() -> None:
    check_edits(
        """\
        spec:
          configs:
            cleanup.policy: &policy  # parts
              append:
                - compact  # gone with it
            # about the next
            retention.ms: 5
        """,
        """\
        spec:
          configs:
            cleanup.policy: &policy null  # parts
            # about the next
            retention.ms: 5
        """,
        PutEdit(POLICY, None),
    )
    assert apply_edits("spec:\n  a:\n    b: 1", PutEdit(("spec", "a"), "x")) == "spec:\n  a: x"


def test_new_key_follows_last_sibling_and_its_comments() -> None:
    check_edits(
        """\
        spec:
            configs:
                retention.ms: 5   # five
                # max.message.bytes: 5

            # about partitions
            partitions: 3
        # the end
        """,
        """\
        spec:
            configs:
                retention.ms: 5   # five
                # max.message.bytes: 5
                cleanup.policy: [compact, delete]
                min.insync.replicas: 2

            # about partitions
            partitions: 3
            replicationFactor: 3
        # the end
        """,
        PutEdit(POLICY, ["compact", "delete"]),
        PutEdit((*CONFIGS, "min.insync.replicas"), "2"),
        PutEdit(("spec", "replicationFactor"), 3),
    )


def test_new_key_follows_block_of_sibling() -> None:
    check_edits(
        """\
        spec:
          configs:
            cleanup.policy:
            - compact
            - delete  # both
          text: |+
            kept

        """,
        """\
        spec:
          configs:
            cleanup.policy:
            - compact
            - delete  # both
            retention.ms: 5
          text: |+
            kept

          partitions: 3
        """,
        PutEdit(RETENTION, "5"),
        PutEdit(("spec", "partitions"), 3),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("kind: Topic\n", "kind: Topic\nspec:\n  configs:\n    retention.ms: 5\n"),
        ("kind: Topic", "kind: Topic\nspec:\n  configs:\n    retention.ms: 5"),
        ("kind: Topic\r\n", "kind: Topic\r\nspec:\r\n  configs:\r\n    retention.ms: 5\r\n"),
        ("spec: # why\n# end\n", "spec: # why\n  configs:\n    retention.ms: 5\n# end\n"),
        ("spec: null  # why\n", "spec:  # why\n  configs:\n    retention.ms: 5\n"),
        ("spec: &it\nk: 1\n", "spec: &it\n  configs:\n    retention.ms: 5\nk: 1\n"),
        (
            "meta:\n   name: a\nspec:\n   configs: ~\n",
            "meta:\n   name: a\nspec:\n   configs:\n      retention.ms: 5\n",
        ),
        ("spec: {}\n", "spec: {configs: {retention.ms: 5}}\n"),
        ("spec: {configs: }\n", "spec: {configs: {retention.ms: 5}}\n"),
        ("spec:\n  configs: {}  # none\n", "spec:\n  configs: {retention.ms: 5}  # none\n"),
        ("{kind: Topic}\n", "{kind: Topic, spec: {configs: {retention.ms: 5}}}\n"),
    ],
)
def test_put_edit_creates_missing_parents(before: str, after: str) -> None:
    assert apply_edits(before, PutEdit(RETENTION, "5")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{a: 1}", "{a: 1, m: 5}"),
        ("{a: 1, }", "{a: 1, m: 5 }"),
        ("{ a: 1 }", "{ a: 1, m: 5 }"),
        ('{"a": 1}', '{"a": 1, "m": 5}'),
        ("{a: 1, b}", "{a: 1, b, m: 5}"),
        ("{\n  a: 1,  # one\n  b: 2  # two\n  }", "{\n  a: 1,  # one\n  b: 2,  # two\n  m: 5\n  }"),
        ("{\n  a: 1,\n  b: 2,  # two\n}", "{\n  a: 1,\n  b: 2,  # two\n  m: 5,\n}"),
        ("{\n  a: 1,\n  b: 2 }", "{\n  a: 1,\n  b: 2, m: 5 }"),
        ("{ # none\n}", "{m: 5 # none\n}"),
    ],
)
def test_new_key_in_flow_mapping_keeps_style(before: str, after: str) -> None:
    assert apply_edits(f"spec: {before}\n", PutEdit(("spec", "m"), "5")) == f"spec: {after}\n"


def test_drop_edit_removes_key_and_comment_on_its_line() -> None:
    check_edits(
        """\
        spec:
          configs:
            # how long
            retention.ms: 5  # five
            cleanup.policy:
              append: [compact]
              # within
              subtract: [delete]

            # about the next
            max.message.bytes: 5
        """,
        """\
        spec:
          configs:
            # how long

            # about the next
            max.message.bytes: 5
        """,
        DropEdit(RETENTION),
        DropEdit(POLICY),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec:\n  a: 1\n  b: 2", "spec:\n  a: 1"),
        ("spec:\n  b: 2", "spec: {}"),
        ("spec:  # why\n  # above\n  b: 2  # two\nk: 1\n", "spec: {}  # why\n  # above\nk: 1\n"),
        ("spec: {a: 1, b: 2}\n", "spec: {a: 1}\n"),
        ("spec: {b: 2, a: 1}\n", "spec: {a: 1}\n"),
        ("spec: {b: 2}\n", "spec: {}\n"),
        ("spec: {a: 1, b: 2,}\n", "spec: {a: 1, }\n"),
        ("spec: {\n  a: 1,  # one\n  b: 2  # two\n}\n", "spec: {\n  a: 1  # one\n}\n"),
        ("spec: {\n  b: 2,  # two\n  a: 1  # one\n}\n", "spec: {\n  a: 1  # one\n}\n"),
        ("spec: {a: 1, b: 2, # both\n  c: 3}\n", "spec: {a: 1, # both\n  c: 3}\n"),
        ("spec: {a: 1, b}\n", "spec: {a: 1}\n"),
    ],
)
def test_drop_edit_removes_key(before: str, after: str) -> None:
    assert apply_edits(before, DropEdit(("spec", "b"))) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[a, b]", "[b, c]"),
        ("[ 'a' ,'b' ]", "[ 'b', 'c' ]"),
        ("[a]", "[c]"),
        ("[a, [b], ]", "[[b], c ]"),
        ("\n- a  # one\n- b  # two", "\n- b  # two\n- c"),
        ("\n  - a\n  # b\n  - b\n   # of b\n  # tail", "\n  # b\n  - b\n   # of b\n  - c\n  # tail"),
        ("\n- a\n- b\n# about k", "\n- b\n- c\n# about k"),
        ('\n    -   a\n    -   "b"', '\n    -   "b"\n    - "c"'),
        ("[\n  a,  # one\n  b  # two\n]", "[\n  b,  # two\n  c\n]"),
    ],
)
def test_list_edits_keep_list_style(before: str, after: str) -> None:
    edits = AppendEdit(("spec",), "c"), DropEdit(("spec", 0))
    assert apply_edits(f"spec: {before}\nk: 1\n", *edits) == f"spec: {after}\nk: 1\n"


ENTRY: dict[str, EditValue] = {"topic": "a*", "allow": ["READ", "WRITE"], "cluster": True}
ENTRY_TEXT = '{topic: "a*", allow: [READ, WRITE], cluster: true}'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (" [{topic: b}]", f" [{{topic: b}}, {ENTRY_TEXT}]"),
        (" []  # none", f" [{ENTRY_TEXT}]  # none"),
        (
            "\n- topic: b\n  allow: [READ]\n# about k",
            f"\n- topic: b\n  allow: [READ]\n- {ENTRY_TEXT}\n# about k",
        ),
        ("\n  - {topic: b}  # one\n  # tail", f"\n  - {{topic: b}}  # one\n  - {ENTRY_TEXT}\n  # tail"),
    ],
)
def test_append_edit_adds_mapping_on_one_line(before: str, after: str) -> None:
    assert apply_edits(f"spec:{before}\nk: 1\n", AppendEdit(("spec",), ENTRY)) == f"spec:{after}\nk: 1\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spec:\n  a: 1\n", f"spec:\n  a: 1\n  b:\n    - {ENTRY_TEXT}\n    - {ENTRY_TEXT}\n"),
        ("spec: {a: 1}\n", f"spec: {{a: 1, b: [{ENTRY_TEXT}, {ENTRY_TEXT}]}}\n"),
        ("spec:\n  b:  # none yet\n", f"spec:\n  b: [{ENTRY_TEXT}, {ENTRY_TEXT}] # none yet\n"),
        ("spec:\n", f"spec:\n  b:\n    - {ENTRY_TEXT}\n    - {ENTRY_TEXT}\n"),
    ],
)
def test_put_edit_adds_list_of_mappings(before: str, after: str) -> None:
    assert apply_edits(before, PutEdit(("spec", "b"), [ENTRY, ENTRY])) == after


def test_drop_edit_of_last_element_leaves_empty_list() -> None:
    assert apply_edits("spec:\n- a # one\nk: 1\n", DropEdit(("spec", 0))) == "spec: []\nk: 1\n"
    assert apply_edits("spec: [a]\n", DropEdit(("spec", 0))) == "spec: []\n"


def test_edit_changes_only_given_document() -> None:
    before = (
        "%YAML 1.2\n---\nspec: {a: 1}\n...\n# between\n--- # two\nspec: {a: 1}  # second\n---\nspec: {a: 1}\n"
    )
    after = before.replace("{a: 1}  # second", "{a: 2}  # second")
    assert apply_edits(before, PutEdit(("spec", "a"), 2), document=1) == after


FILE = """\
# License.

# One.
name: one
---
# Two.
name: two
--- # Three.
name: three
"""


@pytest.mark.parametrize(
    ("gone", "after"),
    [
        ({0}, "# License.\n\n# Two.\nname: two\n--- # Three.\nname: three\n"),
        ({1}, "# License.\n\n# One.\nname: one\n--- # Three.\nname: three\n"),
        ({2}, "# License.\n\n# One.\nname: one\n---\n# Two.\nname: two\n"),
        ({0, 1}, "# License.\n\n--- # Three.\nname: three\n"),
        ({0, 2}, "# License.\n\n# Two.\nname: two\n"),
        ({0, 1, 2}, None),
    ],
)
def test_rewrite_file_removes_documents(gone: set[int], after: str | None) -> None:
    found = rewrite_file("a.yaml", FILE.encode(), {}, frozenset(gone))
    assert (found.decode() if found is not None else None) == after


def test_rewrite_file_removes_first_document_after_marker() -> None:
    text = b"# header\n---\nname: one\n---\nname: two\n"
    assert rewrite_file("a.yaml", text, {}, frozenset({0})) == b"# header\n---\nname: two\n"
    assert rewrite_file("a.yaml", b"---\nname: one\n---\n# nothing\n", {}, frozenset({0})) is None


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_rewrite_file_keeps_line_breaks_and_byte_order_mark(mark: bytes, eol: str) -> None:
    before = eol.join(["é: 😀 # 😀", "spec:", "  a: 😀  # ü", ""])
    after = eol.join(["é: 😀 # 😀", "spec:", "  a: 5  # ü", "  b: 6", ""])
    edits = {0: [PutEdit(("spec", "a"), "5"), PutEdit(("spec", "b"), "6")]}
    assert rewrite_file("a.yaml", mark + before.encode(), edits) == mark + after.encode()


@pytest.mark.parametrize(("codec", "mark"), [("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")])
def test_rewrite_file_keeps_utf_16(codec: str, mark: bytes) -> None:
    found = rewrite_file("a.yaml", mark + "a: 😀\n".encode(codec), {0: [PutEdit(("a",), "5")]})
    assert found == mark + "a: 5\n".encode(codec)


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("spec:\n- a: 1\n  b: 2\n", DropEdit(("spec", 0, "a"))),  # it shares its line with the dash
        ("spec: text\n", PutEdit(("spec", "a"), 1)),  # not a mapping
        ("spec: [a]\n", PutEdit(("spec", "a"), 1)),
        ("spec: a\n", AppendEdit(("spec",), "b")),
        ("? spec\n: {a: 1}\n? k\n: 2\n", PutEdit(("n",), 1)),  # keys with a question mark
        ("spec: &a {x: 1}\nk: *a\n", PutEdit(("spec", "x"), 2)),  # would also change k
        ("spec: &a {x: 1}\nk: *a\n", DropEdit(("spec",))),  # would remove the anchor of the alias
        ("a: 1\n", DropEdit(("a",))),  # would leave an empty document
        ("a: 1\n", DropEdit(("b",))),
    ],
)
def test_edit_without_clean_result_is_rejected(text: str, edit: Edit) -> None:
    with pytest.raises(EditRejected) as refused:
        rewrite_file("a.yaml", text.encode(), {0: [edit]})
    assert (refused.value.document, refused.value.edit) == (0, edit)
