"""What is wrong with a rule is found before it is ever evaluated, and told at its place."""

import pytest

from kdeclare.policy.cel import RuleError, compile_rule
from kdeclare.policy.cel_errors import RuleProblem
from kdeclare.policy.cel_source import growing


def problems(rule: str) -> tuple[RuleProblem, ...]:
    with pytest.raises(RuleError) as wrong:
        compile_rule(rule)
    return wrong.value.problems


def problem(rule: str) -> RuleProblem:
    [found] = problems(rule)
    return found


@pytest.mark.parametrize(
    "rule",
    [
        "[topic]" + ".map(x, x + x)" * 25 + ".size() > 0",
        "[topic]" + ".map(x, [x, x])" * 25 + " == []",
        "[topic]" + ".map(x, [0, 0, 0, 0].map(y, x))" * 8 + " == []",
        "[[topic, topic]].exists(a, [[a, a]].exists(b, [[b, b, b, b, b, b]].exists(c, "
        "[[c, c, c, c, c, c]].exists(d, [[d, d, d, d, d, d, d]].exists(e, "
        "[e, e, e, e, e, e, e] == [e, e, e, e, e, e, e, e, e, e, e, e, e, e])))))",
    ],
)
def test_values_that_double_and_double_are_refused(rule: str) -> None:
    found = problem(rule)
    assert "larger than any memory" in found.detail
    assert found.offset is not None
    assert rule[found.offset :].startswith(("map", "exists"))


@pytest.mark.parametrize(
    "rule",
    [
        "pre.assignments.all(p, pre.assignments[p].all(b, pre.assignments[p].filter(x, x == b).size() == 1))",
        "post.assignments.map(p, post.assignments[p].map(b, b + p)).size() > 0",
        " && ".join(["changed.exists(c, c == 'a' || c == 'b')"] * 8),
        "[topic]" + ".map(x, x + 'x')" * 20 + ".size() > 0",
    ],
)
def test_loops_that_people_write_are_not(rule: str) -> None:
    assert growing(rule) is None
    compile_rule(rule)


@pytest.mark.parametrize(
    "rule", ["(" * 200 + "true" + ")" * 200, "[" * 99 + "]" * 99 + " == []", "1" + "+1" * 500 + " > 0"]
)
def test_deep_nesting_is_refused(rule: str) -> None:
    assert problem(rule) == RuleProblem("The rule is nested too deep.")


def test_a_rule_of_a_hundred_thousand_characters_is_refused() -> None:
    assert problem("topic == '" + "x" * 100_000 + "'") == RuleProblem("The rule is too long.")


@pytest.mark.parametrize(
    ("rule", "at", "detail", "hint"),
    [
        (
            "post.partition >= 3",
            "partition >=",
            "'post' has no field 'partition'.",
            "Did you mean 'partitions'?",
        ),
        ("pre.replicationfactor > 3", "replicationf", "'pre' has no", "Did you mean 'replicationFactor'?"),
        ("post.foo.bar == 1", "foo", "'post' has no field 'foo'.", "It has assignments, configs, part"),
        ("actoin == ''", "actoin", "nothing called 'actoin'", "Did you mean 'action'?"),
        (
            "true && partitions > 3",
            "partitions",
            "nothing called 'partitions'",
            "Did you mean 'post.partitions'?",
        ),
        ("true && Post.partitions > 3", "Post", "nothing called 'Post'", "Did you mean 'post'?"),
        (
            "topic == nothing",
            "nothing",
            "nothing called 'nothing'",
            "Known are action, changed, labels, post",
        ),
        ("action == CREATE", "CREATE", "without quotes", "Write 'CREATE' in quotes."),
        ("topic.startswith('x')", "startswith", "no function 'startswith'", "Did you mean 'startsWith'?"),
        ("changed.exist(c, c == 'x')", "exist(", "no function 'exist'", "Did you mean 'exists'?"),
        ("topic == 'a' and true", "and", "'and' is not expected", "Write &&."),
        ("topic == 'a' &&\n  not true", "true", "'true' is not expected", "Write !."),
        ("topic = 'a'", "=", "'=' is not expected", "Write ==."),
        ("post.partitions => 3", "=>", "'=>' is not expected", "Write >=."),
        ("topic == 'a", "'a", "no closing '", ""),
        ("topic == ‘a’", "‘", "no quotation mark", "Write ' or \"."),
        ("if (true) false", "if", "reserved word", "Write condition ? value : other value."),
        ("post.partitions >", "", "ends too early", ""),
        ("${var.x} > 3", "$", "'$' is not expected", ""),
        (
            "post.partitions >= '3'",
            ">=",
            "'>=' does not take a whole number and text.",
            "convert with int(…)",
        ),
        (
            "post.configs['a'] > 3",
            ">",
            "'>' does not take text and a whole number.",
            "Configs and labels are text",
        ),
        ("post.partitions == 1.0", "==", "a number with a point", "Write whole numbers without a point."),
        ("post.configs['a'] == null", "==", "text and null", "whether a key is there: 'key' in post.configs"),
        ("pre == post", "==", "a whole state", "only be compared with null"),
        ("has(post.partitions) && true", "&&", "'&&' does not take", "write post != null in place of has("),
        ("has(post.configs['x'])", "['x']", "has() takes a field", "'key' in post.configs"),
        (
            "post.configs.retention.ms == '3'",
            "ms",
            "is a key, not fields",
            "Write post.configs['retention.ms'].",
        ),
        ("!topic", "!", "'!' does not take text.", ""),
        ("true ? 1 : 'a'", "?", "before '?'", ""),
        ("post['x'] == 1", "['x']", "'[…]' does not take a whole state and text", ""),
        ("'a' in topic", "in", "'in' does not take text and text.", ""),
        ("topic.matches('(')", "'('", "no regular expression: missing ) in '('", "no look-around"),
        (r"topic == 'x' || matches(topic, r'(?=\d)')", r"r'(?=\d)'", "invalid perl operator in '(?='", "RE2"),
        ("// no rule\n\n  topic == 'ä😀' && foo", "foo", "nothing called 'foo'", ""),
    ],
)
def test_what_is_wrong_is_said_at_its_place(rule: str, at: str, detail: str, hint: str) -> None:
    found = problem(rule)
    assert found.offset is not None
    assert rule[found.offset :].startswith(at)
    assert detail in found.detail
    assert hint in found.hint


def test_all_mistakes_of_a_rule_are_told() -> None:
    assert [p.offset for p in problems("post.partition > 1 && foo && labels.x > 3")] == [5, 22, 38]


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("post.partitions", "a whole number"),
        ("topic", "text"),
        ("null", "null"),
        ("changed", "a list"),
        ("labels", "a mapping"),
        ("post", "a whole state"),
        ("dyn(true)", "of no type that is known before"),
        ("has(post.partitions)", "a whole number"),
    ],
)
def test_a_rule_is_true_or_false(rule: str, kind: str) -> None:
    assert problem(rule).detail == f"A rule must be true or false, and this is {kind}."


@pytest.mark.parametrize("rule", ["", "  \n "])
def test_an_empty_rule(rule: str) -> None:
    assert problem(rule).detail == "The rule is empty."


def test_half_a_character() -> None:
    assert problem("topic == '\ud800'").detail == "The rule is no Unicode text."
