"""A plan as a comment, checked with a Markdown parser for all kinds of names and values."""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from kdeclare.core.diagnostics import Diagnostic, Severity, SourcePosition, error, warning
from kdeclare.core.operations.operation import Arguments, Operation
from kdeclare.core.plans.plan import ClusterRef, Plan, Summary, Verdict
from kdeclare.core.resources.changes import Action, Change, FieldChange, FieldOp, Reason, Risk
from kdeclare.core.resources.ids import ResourceId
from kdeclare.report.elements.markdown_escape import escape_prose
from kdeclare.report.elements.values import sanitize_for_terminal
from kdeclare.report.plan.plan_markdown import MAX_COMMENT_LENGTH, plan_markdown, render_problem_markdown
from tests.unit.report.golden_files import check_golden
from tests.unit.report.sample_plans import DENY, SAMPLES, UPDATE_PAYMENTS, WARN, make_plan

IDENTITY = "0123456789abcdef" * 4
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
OURS = ["Risks", "Impact", "Access", "Changes", "Policies", "Before and after", "Warnings"]
COLUMNS = {5: "Changes", 4: "an update", 2: "the rest"}
FOLD = re.compile(r"<details><summary>.*</summary>\n|</details>\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_markdown_matches_golden_file(name: str) -> None:
    check_golden(f"plan-{name}", plan_markdown(SAMPLES[name], IDENTITY), "md")


def test_problem_markdown_matches_golden_file() -> None:
    check_golden("problems", render_problem_markdown(SAMPLES["errors"].diagnostics), "md")


def iterate_inline(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def read_text(token: Token) -> str:
    return "".join(child.content for child in token.children or () if child.type == "text")


def read_prose(tokens: list[Token]) -> str:
    """Return all text that is not code, where code hosts look for mentions."""
    parts: list[str] = []
    for block in tokens:
        depth = 0
        for token in block.children or ():
            depth += {"<code>": 1, "</code>": -1}.get(token.content, 0) if token.type == "html_inline" else 0
            parts.append(token.content if token.type == "text" and not depth else "\n")
        parts.append("\n")
    return "".join(parts)


def read_rows(tokens: list[Token]) -> list[list[str]]:
    """Return the texts of the cells, row by row, including headers."""
    rows: list[list[str]] = []
    for token, after in pairwise(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(read_text(after))
    return rows


def check_comment(text: str, diffs: int = 0) -> list[Token]:
    """Check the properties of every comment. diffs: the number of diffs that it contains."""
    assert len(text) <= MAX_COMMENT_LENGTH
    assert text.endswith("\n")
    tokens = PARSER.parse(text)
    for token in tokens:
        if token.type == "html_block":
            assert FOLD.fullmatch(token.content), token.content
            bare = re.sub(r"</?(?:details|summary|code)>", "", token.content)
            assert not re.search(r"[<>\"'`]", bare)
            assert not re.search(r"&(?!#\d+;)", bare)
    assert {t.content for t in iterate_inline(tokens) if t.type == "html_inline"} <= {
        "<code>",
        "</code>",
        "<br>",
    }
    kinds = {t.type for t in (*tokens, *iterate_inline(tokens))}
    assert not kinds & {"link_open", "image", "em_open", "s_open", "code_inline", "code_block", "hr"}
    assert [token.info for token in tokens if token.type == "fence"] == ["diff"] * diffs
    assert not re.search(r"[a-z]://|www\.", text, re.IGNORECASE)
    assert not re.search(r"@\w|[#!$&]\d|[~%][\w\"]|\[[a-z_]+:", read_prose(tokens))
    assert not re.search(r":(?:100|1234|(?!\d+:)[a-z0-9_+-]+):", read_prose(tokens))
    titles = [read_text(tokens[i + 1]) for i, t in enumerate(tokens) if t.type == "heading_open"]
    assert [title for title in titles[1:] if title not in OURS] == []
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.count("|") - 1 in COLUMNS
    return tokens


@pytest.mark.parametrize("name", SAMPLES)
def test_plan_markdown_of_samples_is_well_formed(name: str) -> None:
    check_comment(plan_markdown(SAMPLES[name]))


def make_hostile_plan(text: str) -> Plan:
    """Build a plan with the same text as every name, value and message."""
    resource = ResourceId("Topic", text or "x")
    fields = (
        FieldChange(f"configs.{text}", FieldOp.SET, text, {"a": text}),
        FieldChange("configs.list", FieldOp.APPEND, [text], [text, text], [text]),
        FieldChange(text, FieldOp.DELETE, text, None),
    )
    changes = tuple(
        Change(resource, action, Reason.CHANGED, risk, fields, SourcePosition(text, 1, 2), blocked)
        for action, risk, blocked in (
            (Action.UPDATE, Risk.IRREVERSIBLE, None),
            (Action.CREATE, Risk.SAFE, text or "x"),
            (Action.DELETE, Risk.DESTRUCTIVE, None),
            (Action.NO_OP, Risk.SAFE, None),
        )
    )
    diagnostics = [
        Diagnostic(severity, text, text, text, text, SourcePosition(text, 3, 4), f"Topic/{text}", text)
        for severity in Severity
        if severity is not Severity.ERROR
    ]
    return Plan(
        text,
        text,
        ClusterRef(text, text),
        SAMPLES["create"].base,
        Summary(update=1, blocked=1),
        changes,
        (Operation("a", text, resource, Arguments(), {}, {}, None, text),),
        (),
        (
            Verdict(text, f"Topic/{text}", DENY, text, text),
            Verdict(text, f"Topic/{text}", WARN, text, None, text),
        ),
        tuple(diagnostics),
        {},
        text or None,
    )


NASTY = st.text(st.sampled_from("|`<>@#%*_[]()!~\\&;:/$\n\r\t \"'=-+.0awé\x1b\u202e\u2028"), max_size=40)


@given(NASTY | st.text(max_size=30))
@example("a|b\\|c\\\\|d")
@example("</details></code></summary><script>alert(1)</script><!--")
@example("@everyone #1 a@b.example www.evil.example HTTPS://evil.example")
@example("![x](y) [x](y) [x][y] [^1] [ ] <http://x>")
@example(":boom: t:b:tada::+1: a.yaml:100:5 :white_check_mark: :_: &1 ::")
@example('shop/app!12 shop/app#12 #12 @ann ~bug ~5 %next %"a b" $7 &3 [vulnerability:4] GL-5')
@example("\n\n# title\n\n- item\n\n```\ncode\n```\n\n---\n")
@example("``` ` `` **b** __b__ _i_ ~~s~~ &lt;b&gt; &#60; $x$ a_b_c")
@example("[_")
def test_plan_markdown_escapes_hostile_text(text: str) -> None:
    made = make_hostile_plan(text)
    tokens = check_comment(plan_markdown(made, text))
    rows = read_rows(tokens)
    assert [len(row) for row in rows[:5]] == [5, 5, 5, 5, 2], "one head, three changes, then their values"
    name = sanitize_for_terminal(f"Topic/{text or 'x'}")
    assert [row[1] for row in rows[1:4]] == [name] * 3
    assert rows[1][3] == "destructive"
    assert rows[2][3] == f"blocked {sanitize_for_terminal(text or 'x')}"
    check_comment(render_problem_markdown(made.diagnostics))


@given(NASTY)
def test_plan_markdown_keeps_values_in_their_cells(text: str) -> None:
    """The contents of a <details> element are separate Markdown: GitHub parses it after an empty line."""
    change = replace(UPDATE_PAYMENTS, fields=(FieldChange("configs.k", FieldOp.SET, f"a{text}a", "after"),))
    rows = read_rows(check_comment(plan_markdown(make_plan(changes=(change,)))))
    assert rows[3] == ["k", "SET", sanitize_for_terminal(f"a{text}a"), "after"]


def test_plan_markdown_shows_mentions_without_notifying() -> None:
    verdict = Verdict("p", "Topic/x", DENY, "Ask @platform, see #12 and C#.")
    text = plan_markdown(make_plan(verdicts=(verdict,)))
    tokens = check_comment(text)
    assert "Ask @platform, see #12 and C#." in "".join(read_text(t) for t in tokens if t.type == "inline")


def make_large_plan(count: int) -> Plan:
    changes = tuple(replace(UPDATE_PAYMENTS, id=ResourceId("Topic", f"t{n}")) for n in range(count - 1))
    last = Change(ResourceId("Topic", "gone"), Action.DELETE, Reason.ORPHANED, Risk.IRREVERSIBLE)
    safe = tuple(replace(change, risk=Risk.SAFE) for change in changes)
    return make_plan(changes=(*safe, last), summary=Summary(update=count - 1, delete=1))


def test_plan_markdown_of_five_thousand_changes_fits_limit() -> None:
    begin = time.process_time()
    text = plan_markdown(make_large_plan(5000), IDENTITY)
    assert time.process_time() - begin < 2.0  # takes 0.1 s on an idle core; the limit allows for a busy one
    rows = [row for row in read_rows(check_comment(text)) if len(row) == 5][1:]
    assert rows[0][1] == "Topic/gone"
    left = re.search(r"… and ([\d,]+) more changes \(omitted\): ([\d,]+) update\.", text)
    assert left
    assert left[1] == left[2] == f"{5000 - len(rows):,}"
    folds = text.count("<details>")
    assert f"… and the values of {4999 - folds:,} more changes (omitted)" in text
    assert len(text) > MAX_COMMENT_LENGTH * 0.8, "there was room for more"
    assert len(rows) > 50
    assert folds > 20
    assert text == plan_markdown(make_large_plan(5000), IDENTITY)


def test_plan_markdown_of_few_changes_is_complete() -> None:
    text = plan_markdown(make_large_plan(30))
    assert "(omitted)" not in text
    assert text.count("<details>") == 29


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 2000, "@a|" * 2000, "<&>" * 300, "é"])
def test_plan_markdown_of_large_hostile_plan_fits_limit(text: str) -> None:
    base = make_hostile_plan(text)
    flood = replace(
        base,
        changes=base.changes * 200,
        verdicts=base.verdicts * 200,
        diagnostics=(*base.diagnostics, error("e", text, text, text)) * 200,
        operations=tuple(
            replace(op, id=str(n), irreversible=f"{n} {text}") for op in base.operations for n in range(200)
        ),
    )
    comment = plan_markdown(flood)
    check_comment(comment)
    assert len(comment) > MAX_COMMENT_LENGTH / 4
    risks_fit = "more risks (omitted)" not in comment  # risks get the most room, and have a short form
    assert not risks_fit or comment.count("- **error**") == 200
    for what in ("verdicts", "warnings", "changes"):
        assert re.search(rf"and [\d,]+ more {what} \(omitted\)", comment), what
    problems = render_problem_markdown(flood.diagnostics * 4)
    check_comment(problems)
    assert "more problems (omitted)" in problems


def test_plan_markdown_shortens_change_with_many_fields() -> None:
    fields = tuple(FieldChange(f"replicas.t-{n}", FieldOp.CHANGE, [1], [2]) for n in range(1000))
    text = plan_markdown(make_plan(changes=(replace(UPDATE_PAYMENTS, fields=fields),)))
    check_comment(text)
    assert "996 more |" in text
    assert "… and 960 more fields (omitted)" in text


def test_plan_markdown_separates_warnings_from_risks() -> None:
    text = plan_markdown(make_plan(diagnostics=(warning("w", "Careful", "It is hot."),)))
    assert "### Risks" not in text
    assert "### Warnings\n\n- **warning** Careful<br>It is hot.\n" in text


def test_plan_markdown_shows_error_of_blocked_change_once() -> None:
    text = plan_markdown(SAMPLES["errors"])
    assert text.count("Partitions cannot be taken away") == 1
    assert "- **blocked**" not in text
    unexplained = replace(SAMPLES["errors"], diagnostics=())
    assert "- **blocked** <code>Topic/orders</code>: <code>invalid-partitions</code>" in plan_markdown(
        unexplained
    )


@pytest.mark.parametrize(
    "text",
    ["see GH-12", "gh-7.", f"as of {'0a' * 20}", "by @me in #5", ":boom:", "a:100:5", "a!12", "~bug", "GL-5"],
)
def test_escape_prose_quotes_text_that_code_hosts_link(text: str) -> None:
    assert "<code>" in escape_prose(text)


@pytest.mark.parametrize(
    "text",
    [
        "HIGH-12",
        "GH-x",
        "0a" * 21,
        "x" + "0a" * 20,
        "12:30:45",
        "a.yaml:3:18: b",
        "127.0.0.1:19092: 1",
        "90 % of it",
        "95%.",
    ],
)
def test_escape_prose_keeps_plain_text(text: str) -> None:
    assert escape_prose(text) == text
