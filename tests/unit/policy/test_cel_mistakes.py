"""Mistakes in a rule are found before it is evaluated, and reported with their position."""

import pytest

from kdeclare.policy.cel.checks import compute_pattern_cost, find_unbounded_loop
from kdeclare.policy.cel.errors import RuleProblem
from kdeclare.policy.cel.rule import MAX_LENGTH, RuleError, compile_rule


def find_problems(rule: str) -> tuple[RuleProblem, ...]:
    with pytest.raises(RuleError) as wrong:
        compile_rule(rule)
    return wrong.value.problems


def find_problem(rule: str) -> RuleProblem:
    [found] = find_problems(rule)
    return found


@pytest.mark.parametrize(
    "rule",
    [
        "[topic]" + ".map(x, x + x)" * 25 + ".size() > 0",
        f"['{'x' * 3_900}']" + ".map(x, x + x)" * 13 + " == []",
        "(([[topic]][0]))" + ".map(x, x + x)" * 25 + " == []",
        "[topic]" + "\n .filter(y, true) .map(x, x + x + x + x)" * 10 + " == []",
        "changed.all(c, [topic]" + ".map(x, x + x)" * 16 + " == [])",
        "[topic]" + ".map(x, [x, x])" * 25 + " == []",
        "[topic]" + ".map(x, [0, 0, 0, 0].map(y, x))" * 8 + " == []",
        "[[topic, topic]].exists(a, [[a, a]].exists(b, [[b, b, b, b, b, b]].exists(c, "
        "[[c, c, c, c, c, c]].exists(d, [[d, d, d, d, d, d, d]].exists(e, "
        "[e, e, e, e, e, e, e] == [e, e, e, e, e, e, e, e, e, e, e, e, e, e])))))",
    ],
)
def test_compile_rule_rejects_exponential_growth(rule: str) -> None:
    found = find_problem(rule)
    assert "do not fit into memory" in found.detail
    assert found.offset is not None
    assert rule[found.offset :].startswith(("map", "exists"))


@pytest.mark.parametrize(
    "rule",
    [
        "pre.assignments.all(p, pre.assignments[p].all(b, pre.assignments[p].filter(x, x == b).size() == 1))",
        "post.assignments.map(p, post.assignments[p].map(b, b + p)).size() > 0",
        " && ".join(["labels.exists(c, c == 'a' || c == 'b')"] * 8),
        "[topic]" + ".map(x, x + 'x')" * 20 + ".size() > 0",
        " && ".join(["changed.all(c, " + " || ".join(f"c == 'configs.k{i}'" for i in range(22)) + ")"] * 3),
        " && ".join(f"labels.all(k, k != 'x{i}' && k.size() < 63)" for i in range(14)),
        " && ".join(f"post.configs.all(k, k != 'x{i}' || post.configs[k] == 'y')" for i in range(14)),
        " && ".join(["post.assignments.map(p, post.assignments[p].size()).exists(n, n > 2)"] * 20),
        "post.assignments.all(p, post.assignments[p].map(b, topic + string(b)).size() > 0)",
    ],
)
def test_compile_rule_accepts_common_loops(rule: str) -> None:
    assert find_unbounded_loop(rule) is None
    compile_rule(rule)


@pytest.mark.parametrize(
    "rule", ["(" * 200 + "true" + ")" * 200, "[" * 99 + "]" * 99 + " == []", "1" + "+1" * 500 + " > 0"]
)
def test_compile_rule_rejects_deep_nesting(rule: str) -> None:
    assert find_problem(rule) == RuleProblem("The rule is nested too deeply.")


def test_compile_rule_limits_rule_length() -> None:
    compile_rule("topic == '" + "x" * (MAX_LENGTH - 11) + "'")
    found = find_problem("topic == '" + "x" * (MAX_LENGTH - 10) + "'")
    assert found.detail == "The rule has 4,097 characters, but the maximum is 4,096."
    assert "several policies" in found.hint


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
        ("post.foo.bar == 1", "foo", "'post' has no field 'foo'.", "Use assignments, configs, part"),
        ("actoin == ''", "actoin", "name 'actoin' is not defined", "Did you mean 'action'?"),
        (
            "true && partitions > 3",
            "partitions",
            "name 'partitions' is not defined",
            "Did you mean 'post.partitions'?",
        ),
        ("true && Post.partitions > 3", "Post", "name 'Post' is not defined", "Did you mean 'post'?"),
        (
            "topic == nothing",
            "nothing",
            "name 'nothing' is not defined",
            "Use action, changed, impact, labels, post",
        ),
        ("action == CREATE", "CREATE", "without quotes", "Write 'CREATE' in quotes."),
        (
            "topic.startswith('x')",
            "startswith",
            "function 'startswith' does not exist",
            "Did you mean 'startsWith'?",
        ),
        ("changed.exist(c, c == 'x')", "exist(", "function 'exist' does not exist", "Did you mean 'exists'?"),
        ("topic == 'a' and true", "and", "'and' is not expected", "Write &&."),
        ("topic == 'a' &&\n  not true", "true", "'true' is not expected", "Write !."),
        ("topic = 'a'", "=", "'=' is not expected", "Write ==."),
        ("post.partitions => 3", "=>", "'=>' is not expected", "Write >=."),
        ("topic == 'a", "'a", "no closing '", ""),
        (r"topic.matches('a\.b')", "'a", "an invalid backslash escape", "r'…'"),
        (r'topic == "a\.b" && "x" == "', '"a', "an invalid backslash escape", 'r"…"'),
        (r"topic == 'a\'", "'a", "no closing '", ""),
        ("topic == ‘a’", "‘", "not a CEL quotation mark", "Write ' or \"."),
        ("if (true) false", "if", "reserved word", "Write condition ? value : other_value."),
        ("post.partitions >", "", "ends too early", ""),
        ("${var.x} > 3", "$", "'$' is not expected", ""),
        (
            "post.partitions >= '3'",
            ">=",
            "'>=' does not accept a whole number and a string.",
            "Convert the string with int(…)",
        ),
        (
            "post.configs['a'] > 3",
            ">",
            "'>' does not accept a string and a whole number.",
            "because the values of configs and labels are strings",
        ),
        ("labels.keyed == true", "==", "a string and true or false", "Put true and false in quotes"),
        ("post.partitions == 1.0", "==", "a decimal number", "Write whole numbers without a decimal point."),
        (
            "post.configs['a'] == null",
            "==",
            "a string and null",
            "To check that a key exists, write: 'key' in post.configs",
        ),
        ("pre == post", "==", "a state", "Compare a state only with null"),
        ("has(post.partitions) && true", "&&", "'&&' does not accept", "Write post != null instead of has("),
        ("has(post.configs['x'])", "['x']", "has() accepts only a field", "'key' in post.configs"),
        (
            "post.configs.retention.ms == '3'",
            "ms",
            "is one key, not nested fields",
            "Write post.configs['retention.ms'].",
        ),
        ("!topic", "!", "'!' does not accept a string.", ""),
        ("true ? 1 : 'a'", "?", "before '?'", ""),
        ("exists(labels, x, x == 'a')", "exists", "'exists' must be called on a list", "labels.exists(x, …)"),
        ("[1, 2].all(i, v, v > i)", "all", "'all' takes two arguments: a variable", "(x, …)"),
        ("labels.exists('a')", "exists", "'exists' takes two arguments", "(x, …)"),
        (
            "startsWith(topic, 'a')",
            "startsWith",
            "'startsWith' must be called on a string",
            "topic.startsWith(…)",
        ),
        ("topic.contains(1)", "(1)", "'contains' does not accept", ""),
        ("post.configs[?'x'] == '1'", "[?", "is not supported", "'key' in post.configs"),
        ("post?.partitions > 1", "?.", "is not supported", "'key' in post.configs"),
        ("post.?partitions > 1", ".?", "is not supported", "'key' in post.configs"),
        ("post['x'] == 1", "['x']", "'[…]' does not accept a state and a string", ""),
        ("'a' in topic", "in", "'in' does not accept a string and a string.", ""),
        ("topic.matches('(')", "'('", "not a valid regular expression: missing ) in '('", "no look-around"),
        (r"topic == 'x' || matches(topic, r'(?=\d)')", r"r'(?=\d)'", "invalid perl operator in '(?='", "RE2"),
        ("impact.unread == 0", "impact", "'impact' has no field 'unread'", "Did you mean 'unreadGroups'?"),
        ("impact.size == 0", "impact", "'impact' has no field 'size'", "Use impact.records, impact.bytes"),
        ("impact == null", "impact", "'impact' cannot be used without a field", "Use impact.records"),
        ("// no rule\n\n  topic == 'ä😀' && foo", "foo", "name 'foo' is not defined", ""),
    ],
)
def test_compile_rule_reports_mistake_with_offset(rule: str, at: str, detail: str, hint: str) -> None:
    found = find_problem(rule)
    assert found.offset is not None
    assert rule[found.offset :].startswith(at)
    assert detail in found.detail
    assert hint in found.hint


def test_compile_rule_reports_all_mistakes() -> None:
    assert [p.offset for p in find_problems("post.partition > 1 && foo && labels.x > 3")] == [5, 22, 38]


@pytest.mark.parametrize(
    ("rule", "kind"),
    [
        ("post.partitions", "a whole number"),
        ("topic", "a string"),
        ("null", "null"),
        ("changed", "a list"),
        ("labels", "a mapping"),
        ("post", "a state"),
        ("dyn(true)", "a value of unknown type"),
        ("has(post.partitions)", "a whole number"),
    ],
)
def test_compile_rule_requires_boolean_result(rule: str, kind: str) -> None:
    assert find_problem(rule).detail == f"A rule must return true or false, but this rule returns {kind}."


@pytest.mark.parametrize("rule", ["", "  \n "])
def test_compile_rule_rejects_empty_rule(rule: str) -> None:
    assert find_problem(rule).detail == "The rule is empty."


def test_compile_rule_rejects_lone_surrogate() -> None:
    assert find_problem("topic == '\ud800'").detail == "The rule is not valid Unicode text."


LONG = "[" + ",".join(["1"] * 99) + "]"


@pytest.mark.parametrize(
    ("rule", "at"),
    [
        (f"{LONG}.all(a, {LONG}.all(b, topic.matches('{'(a?){100}' * 50}')))", "'(a?)"),
        (f"labels.all(a, topic.matches('{'(a?){100}' * 50}'))", "'(a?)"),
        ("labels.all(a, changed.all(b, matches(b, r'(\\pL?){50}')))", "r'(\\pL"),
        (" && ".join(["topic.matches(r'\\pL{50}')"] * 2), "r'\\pL"),
        (f"{LONG}.all(a, {LONG}.all(b, topic.matches('(' + 'a' + '){{1000}}')))", "matches"),
        (f"{LONG}.all(a, ['((a{{10}}){{10}}){{10}}'].all(p, topic.matches(p)))", "matches"),
    ],
)
def test_compile_rule_rejects_expensive_regular_expressions(rule: str, at: str) -> None:
    found = find_problem(rule)
    assert found.detail == "The regular expressions of this rule could take too long to evaluate."
    assert found.offset is not None
    assert rule[found.offset :].startswith(at)


@pytest.mark.parametrize(
    "rule",
    [
        "topic.matches(r'^[a-z]+(\\.[a-z0-9-]{1,63}){1,3}$')",
        "labels.all(k, k.matches('^[a-z][a-z0-9-]{0,62}$') && labels[k].matches(r'^\\pL+$'))",
        "post.assignments.all(p, post.assignments[p].all(b, string(b).matches('^[0-9]{1,9}$')))",
        "['^a.*$', '^b.*$'].exists(p, topic.matches(p)) || topic.matches(labels.pattern)",
    ],
)
def test_compile_rule_accepts_common_regular_expressions(rule: str) -> None:
    compile_rule(rule)


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("", 0, 0),
        ("abc", 3, 3),
        ("(a?){100}", 100, 400),
        ("((a{10}){10}){10}", 1_000, 2_000),
        (r"\(a{3}[)({]b{2}", 5, 40),
        (r"[[:alpha:]\]x]{100}", 500, 2_000),
        (r"\p{Greek}{5}|\PL", 8_000, 9_000),
        ("(?i)abc", 9, 30),
        ("((", 0, 5),
        ("a)){999999999999999999}b", 1, 200_000),
        (r"(\pL{1000}){1000}", 200_000, 200_000),
    ],
)
def test_pattern_cost_is_within_bounds(pattern: str, least: int, most: int) -> None:
    assert least <= compute_pattern_cost(pattern) <= most


@pytest.mark.parametrize(
    ("rule", "at", "detail", "hint"),
    [
        ("action == 'create'", "'create'", "'action' is never 'create'.", "Did you mean 'CREATE'?"),
        ("'ALTER' != action", "'ALTER'", "'action' is never 'ALTER'.", "Use CREATE, MODIFY or DELETE."),
        ("action in ['CREATE', 'UPDATE']", "'UPDATE'", "never 'UPDATE'", ""),
        ("'retention.ms' in changed", "'ret", "never in 'changed'", "Did you mean 'configs.retention.ms'?"),
        ("!('partition' in changed)", "'part", "'partition' is never in", "Did you mean 'partitions'?"),
        (
            "'x' in changed",
            "'x'",
            "'x' is never in 'changed'.",
            "replicationFactor, assignments, configs.<key>",
        ),
        ("changed.all(c, c != 'retention.ms')", "'ret", "never in", "Did you mean 'configs.retention.ms'?"),
        ("changed.exists(c, c in ['partitions', 'configs.'])", "'configs.'", "never in", ""),
    ],
)
def test_compile_rule_rejects_values_that_never_occur(rule: str, at: str, detail: str, hint: str) -> None:
    test_compile_rule_reports_mistake_with_offset(rule, at, detail, hint)


@pytest.mark.parametrize(
    "rule",
    [
        "action == 'CREATE' || action in ['MODIFY', 'DELETE']",
        "'partitions' in changed || 'configs.some.key' in changed || r'assignments' in changed",
        "action + 'x' == 'CREATEx'",
        "'CRE' + 'ATE' == action || action == 'CRE' + 'ATE'",
        "labels.action == 'create' || 'create' == labels.action",
        "['create'].exists(action, action == 'create')",
        "'x' in [changed].map(c, 'x') || changed.map(c, c + '!').exists(c, c == 'partitions!')",
        "changed[0] == 'partitions' || 'x' in labels",
        "changed.exists(c, labels.c == 'x')",
        "[changed].exists(changed, 'x' in changed)",
    ],
)
def test_compile_rule_accepts_values_that_can_occur(rule: str) -> None:
    compile_rule(rule)
