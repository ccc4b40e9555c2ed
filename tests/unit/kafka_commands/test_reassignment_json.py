"""Files of Kafka's reassignment tool: the same files are accepted and rejected."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from kdeclare.core.diagnostics import Diagnostic, KdeclareError, SourcePosition, sort_diagnostics
from kdeclare.providers.kafka.commands.reassign.assignments_file import (
    PartitionAssignment,
    dump_assignments,
    parse_assignments,
    parse_broker_list,
    parse_topics_to_move,
)
from kdeclare.providers.kafka.ids import TopicPartition
from tests.cases import case

FILE = "move.json"


def make_entry(topic: Any = "foo", partition: Any = 0, replicas: Any = (1, 2), **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "replicas": replicas, **more}


def make_text(*entries: Any, **more: Any) -> str:
    return json.dumps({"version": 1, "partitions": entries} | more)


def make_assignment(
    topic: str, partition: int, *replicas: int, log_dirs: tuple[str, ...] | None = None
) -> PartitionAssignment:
    return PartitionAssignment(TopicPartition(topic, partition), replicas, log_dirs)


def catch_diagnostics(parse: Callable[[], object]) -> tuple[Diagnostic, ...]:
    with pytest.raises(KdeclareError) as caught:
        parse()
    return caught.value.diagnostics


def find_problems(content: str) -> tuple[Diagnostic, ...]:
    return catch_diagnostics(lambda: parse_assignments(content, FILE))


def find_problem(content: str) -> Diagnostic:
    (problem,) = find_problems(content)
    return problem


def find_topic_problems(content: str) -> list[str]:
    return [d.detail for d in catch_diagnostics(lambda: parse_topics_to_move(content, FILE))]


@case("TOOL-01")
@pytest.mark.parametrize(
    ("content", "code", "detail"),
    [
        (make_text(), "empty-reassignment", "Partition reassignment list cannot be empty"),
        (
            make_text(make_entry(), make_entry()),
            "duplicate-partition",
            "Partition reassignment contains duplicate topic partitions: foo-0 (partitions[1])",
        ),
        (
            make_text(make_entry(replicas=[0, 0])),
            "duplicate-replica",
            "Partition replica lists may not contain duplicate entries: foo-0 contains multiple entries for 0"
            " (partitions[0].replicas)",
        ),
        (
            make_text(make_entry(replicas=[])),
            "empty-replicas",
            "Partition replica list cannot be empty: foo-0 (partitions[0].replicas)",
        ),
        (
            make_text(make_entry(replicas=[0, 1], log_dirs=["any"])),
            "log-dirs-size",
            "Size of replicas list [0, 1] is different from size of log dirs list [any] for partition foo-0"
            " (partitions[0].log_dirs)",
        ),
        (make_text(version=2), "unsupported-version", "Not supported version field value 2 (version)"),
    ],
)
def test_parse_assignments_rejects_same_files_as_kafka(content: str, code: str, detail: str) -> None:
    problem = find_problem(content)
    assert (problem.code, problem.detail) == (code, detail)


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        ("", "The input string shouldn't be empty"),
        (" \n", "The input string shouldn't be empty"),
        ("[]", "Expected JSON object, received []"),
        ("null", "Expected JSON object, received null"),
        ("{}", "Partition reassignment list cannot be empty"),
        ('{"version":1}', "Partition reassignment list cannot be empty"),
        (make_text(partitions=None), "Expected JSON array, received null (partitions)"),
        (make_text(partitions={}), "Expected JSON array, received {} (partitions)"),
        (make_text(make_entry(), version="1"), 'Expected `Integer` value, received "1" (version)'),
        (make_text(make_entry(), version=1.0), "Expected `Integer` value, received 1.0 (version)"),
        (make_text(make_entry(), version=True), "Expected `Integer` value, received true (version)"),
        (make_text(make_entry(), version=None), "Expected `Integer` value, received null (version)"),
        (make_text(3), "Expected JSON object, received 3 (partitions[0])"),
        (make_text(make_entry(topic=3)), "Expected `String` value, received 3 (partitions[0].topic)"),
        (
            make_text(make_entry(partition="0")),
            'Expected `Integer` value, received "0" (partitions[0].partition)',
        ),
        (make_text(make_entry(partition=2**31)), "Expected `Integer` value, received 2147483648"),
        (make_text(make_entry(partition=-1)), "The given partition index -1 is not valid"),
        (
            make_text(make_entry(replicas=1)),
            "Expected `JSON array` value, received 1 (partitions[0].replicas)",
        ),
        (
            make_text(make_entry(replicas=["1"])),
            'Expected `Integer` value, received "1" (partitions[0].replicas[0])',
        ),
        (make_text(make_entry(replicas=[True])), "Expected `Integer` value, received true"),
        (make_text(make_entry(replicas=[1, -1])), "Unknown broker id -1 (partitions[0].replicas[1])"),
        (
            make_text(make_entry(log_dirs=None)),
            "Expected `JSON array` value, received null (partitions[0].log_dirs)",
        ),
        (make_text(make_entry(log_dirs=["any", 3])), "Expected `String` value, received 3"),
        (make_text(make_entry(log_dirs=["any", "data"])), "'data' is neither 'any' nor an absolute path"),
        (make_text(make_entry(log_dirs=["any", ""])), "'' is neither 'any' nor an absolute path"),
        (
            make_text(make_entry(topic="")),
            'The given topic name "" is not a legal topic name (partitions[0].topic)',
        ),
        (make_text(make_entry(topic="a b")), 'The given topic name "a b" is not a legal topic name'),
        (make_text(make_entry(topic="..")), 'The given topic name ".." is not a legal topic name'),
        (make_text(make_entry(topic="\ud800")), 'The given topic name "\\ud800" is not a legal topic name'),
        (make_text(make_entry(replicas="x" * 200)), f'Expected `JSON array` value, received "{"x" * 79}…'),
    ],
)
def test_parse_assignments_reports_one_problem(content: str, detail: str) -> None:
    assert find_problem(content).detail.startswith(detail)


@pytest.mark.parametrize("field", ["topic", "partition", "replicas"])
def test_parse_assignments_rejects_missing_field(field: str) -> None:
    incomplete = {key: value for key, value in make_entry().items() if key != field}
    problem = find_problem(make_text(incomplete))
    assert (problem.code, problem.detail) == (
        "missing-field",
        f"No such field exists: `{field}` (partitions[0])",
    )


@pytest.mark.parametrize(
    ("content", "line", "column"),
    [
        ('{"version":1,\n "partitions":[}', 2, 16),
        ("{", 1, 2),
        (make_text(make_entry()) + "\n" + make_text(make_entry()), 2, 1),
        ("// moves\n" + make_text(make_entry()), 1, 1),
        ("\ufeff" + make_text(make_entry()), 1, 1),
        ('{"NaN": 1,\n "x": NaN}', 2, 7),
        ('{"a\\"": [\n-Infinity]}', 2, 1),
        (f'{{"partitions":\n {"9" * 5000}}}', 2, 2),
        ("[" * 100_000, 1, 1),
    ],
)
def test_parse_assignments_rejects_invalid_json_with_position(content: str, line: int, column: int) -> None:
    problem = find_problem(content)
    assert (problem.code, problem.place) == ("json-syntax", SourcePosition(FILE, line, column))


def test_parse_assignments_limits_nesting() -> None:
    def nest(depth: int) -> str:
        return make_text(make_entry(), x="X").replace('"X"', "[" * depth + "]" * depth)

    assert parse_assignments(nest(99), FILE) == (make_assignment("foo", 0, 1, 2),)
    for depth in (100, 500, *range(900, 1000)):
        assert find_problem(nest(depth)).detail == "Nested more than 100 levels deep"


def test_parse_assignments_reports_all_mistakes_with_position() -> None:
    content = """\
{"comment": [1, {"a": []}], "version": 1,
 "partitions": [
  {"topic": "foo", "partition": 0, "replicas": [1, 1]},
  {"topic": "foo", "partition": "1", "replicas": []},
  {"topic": "foo", "partition": 0,
   "replicas": [-3, 1, 2], "log_dirs": [ "any" ]},
  {"topic": "foo", "partition": 0, "replicas": "all"},
  7,
  {}
]}
"""
    assert [(d.code, str(d.place)) for d in sort_diagnostics(find_problems(content))] == [
        ("duplicate-replica", "move.json:3:48"),
        ("json-type", "move.json:4:33"),
        ("duplicate-partition", "move.json:5:3"),
        ("illegal-broker", "move.json:6:17"),
        ("log-dirs-size", "move.json:6:40"),
        ("json-type", "move.json:7:48"),
        ("json-type", "move.json:8:3"),
        ("missing-field", "move.json:9:3"),
        ("missing-field", "move.json:9:3"),
        ("missing-field", "move.json:9:3"),
    ]


def test_parse_assignments_of_other_version_reports_only_version() -> None:
    assert (
        find_problem(make_text(3, make_entry(replicas=[]), version=0)).detail
        == "Not supported version field value 0 (version)"
    )


def test_parse_assignments_accepts_same_files_as_kafka() -> None:
    content = make_text(
        make_entry("foo", 1, [3, 1]),
        make_entry("a.b_c-d", 0, [0], log_dirs=["any"]),
        make_entry("foo", 0, [2, 3], log_dirs=["/var/lib/kafka", "D:\\kafka"], priority={"x": None}),
        comment="moved by hand",
    )
    assert parse_assignments(content, FILE) == (
        make_assignment("foo", 1, 3, 1),
        make_assignment("a.b_c-d", 0, 0, log_dirs=("any",)),
        make_assignment("foo", 0, 2, 3, log_dirs=("/var/lib/kafka", "D:\\kafka")),
    )


def test_parse_assignments_accepts_missing_version() -> None:
    content = json.dumps({"partitions": [make_entry()]})
    assert parse_assignments(content, FILE) == (make_assignment("foo", 0, 1, 2),)


def test_parse_assignments_uses_last_duplicate_field() -> None:
    content = f'{{"version":2,{make_text(make_entry())[1:]}'
    assert parse_assignments(content, FILE) == (make_assignment("foo", 0, 1, 2),)


@pytest.mark.slow
def test_parse_assignments_reports_many_mistakes_quickly() -> None:
    assert (
        len(find_problems(make_text(*(make_entry(partition=n, replicas=[1, 1]) for n in range(5000)))))
        == 5000
    )


@case("TOOL-07")
def test_dump_assignments_sorts_by_topic_and_partition() -> None:
    written = dump_assignments(
        [
            make_assignment("foo", 1, 1, 2, 3),
            make_assignment("bar", 10, 4),
            make_assignment("bar", 9, 4),
            make_assignment("bar", 0, 4, 5),
        ]
    )
    assert written == (
        '{"version":1,"partitions":['
        '{"topic":"bar","partition":0,"replicas":[4,5],"log_dirs":["any","any"]},'
        '{"topic":"bar","partition":9,"replicas":[4],"log_dirs":["any"]},'
        '{"topic":"bar","partition":10,"replicas":[4],"log_dirs":["any"]},'
        '{"topic":"foo","partition":1,"replicas":[1,2,3],"log_dirs":["any","any","any"]}]}'
    )


def test_dump_assignments_writes_known_log_dirs() -> None:
    assignments = (make_assignment("foo", 0, 1, 2, log_dirs=("/dätä", "any")),)
    written = dump_assignments(assignments)
    assert '"log_dirs":["/dätä","any"]' in written
    assert parse_assignments(written, FILE) == assignments


def test_dump_assignments_writes_empty_document() -> None:
    assert dump_assignments(()) == '{"version":1,"partitions":[]}'


def test_parse_topics_to_move_returns_names() -> None:
    content = '{"topics":[{"topic":"foo","x":1},{"topic":"bar"}],"version":1}'
    assert parse_topics_to_move(content, FILE) == ("foo", "bar")


@pytest.mark.parametrize("content", ["{}", '{"version":1}', '{"topics":[]}'])
def test_parse_topics_to_move_accepts_no_topics(content: str) -> None:
    assert parse_topics_to_move(content, FILE) == ()


@pytest.mark.parametrize(
    ("content", "details"),
    [
        ("", ["The input string shouldn't be empty"]),
        ("[]", ["Expected JSON object, received []"]),
        ('{"topics":[3],"version":2}', ["Not supported version field value 2 (version)"]),
        ('{"topics":null}', ["Expected JSON array, received null (topics)"]),
        (
            '{"topics":["foo",{"topic":3},{"x":3},{"topic":""}]}',
            [
                'Expected JSON object, received "foo" (topics[0])',
                "Expected `String` value, received 3 (topics[1].topic)",
                "No such field exists: `topic` (topics[2])",
                'The given topic name "" is not a legal topic name (topics[3].topic)',
            ],
        ),
        (
            '{"topics":[{"topic":"a"},{"topic":"b"},{"topic":"b"},{"topic":"a"},{"topic":"a"}]}',
            [
                "List of topics to reassign contains duplicate entries: [b] (topics[2])",
                "List of topics to reassign contains duplicate entries: [a] (topics[3])",
            ],
        ),
    ],
)
def test_parse_topics_to_move_rejects_invalid_files(content: str, details: list[str]) -> None:
    assert find_topic_problems(content) == details


@pytest.mark.parametrize(
    ("given", "ids"), [("1,2,3", (1, 2, 3)), ("3", (3,)), ("1,", (1,)), ("+1,02", (1, 2)), ("00,1", (0, 1))]
)
def test_parse_broker_list_returns_ids(given: str, ids: tuple[int, ...]) -> None:
    assert parse_broker_list(given) == ids


@pytest.mark.parametrize(
    ("given", "details"),
    [
        ("1,1,2,3,3", ["Broker list contains duplicate entries: [1, 3]"]),
        ("1, 2", ['For input string: " 2"']),
        ("", ['For input string: ""']),
        (",", ['For input string: ""']),
        (",1", ['For input string: ""']),
        ("1_0", ['For input string: "1_0"']),
        ("3000000000", ['For input string: "3000000000"']),
        ("-1", ["Unknown broker id -1"]),
        (
            "a,-1,2,02",
            ['For input string: "a"', "Unknown broker id -1", "Broker list contains duplicate entries: [2]"],
        ),
    ],
)
def test_parse_broker_list_rejects_invalid_lists(given: str, details: list[str]) -> None:
    assert [d.detail for d in catch_diagnostics(lambda: parse_broker_list(given))] == details
