"""`kdeclare reassign` on the in-process cluster, compared with Kafka's own tool action by action."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from kdeclare.app.apply import ApplyOptions, roll_back
from kdeclare.app.workspace import Workspace
from kdeclare.core.diagnostics import Diagnostic, KdeclareError
from kdeclare.core.exit_codes import ExitCode
from kdeclare.core.live.faults import Fault
from kdeclare.core.plans.plan import Plan
from kdeclare.engine.executor.progress_tracker import RunOptions
from kdeclare.engine.state.memory_store import MemoryStore
from kdeclare.manifests.project import Project
from kdeclare.providers.kafka.commands.reassign.actions import (
    ReassignOptions,
    ReassignResult,
    cancel,
    execute,
    generate,
    list_moves,
    verify,
)
from kdeclare.providers.kafka.commands.reassign.assignments_file import PartitionAssignment, parse_assignments
from kdeclare.providers.kafka.ids import TopicPartition
from kdeclare.providers.kafka.live import Move
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.request_values import LogDir
from kdeclare.providers.kafka.testing import MemoryCluster
from kdeclare.report.outcome import run_outcome
from tests.beds import SET, MemoryBed, broker_resource, topic_resource
from tests.cases import case
from tests.connections import make_connector
from tests.engine.world import nothing

Ids = tuple[int, ...]
Moves = Mapping[str, Ids]


@dataclass
class Tool:
    """Brokers 0 to 5 on two racks, with moves that continue until the test ticks, and the command at work.

    out, diagnostics, plan: what the last action printed, reported, and asked to confirm.
    """

    cluster: MemoryCluster = field(
        default_factory=lambda: MemoryCluster({n: f"rack-{n % 2}" for n in range(6)}, move_ticks=1)
    )
    store: MemoryStore = field(default_factory=MemoryStore)
    answer: bool = True
    out: str = ""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    plan: Plan | None = None

    def __post_init__(self) -> None:
        self.bed = MemoryBed(self.cluster)
        self.workspace = Workspace(Project(), self.store, "memory", make_connector(self.cluster))

    def create_topic(self, name: str, *partitions: Ids) -> None:
        """Create a topic."""
        self.bed.create(dict(enumerate(partitions)), name=name)

    def execute(
        self, moves: Moves | Sequence[PartitionAssignment], options: ReassignOptions | None = None
    ) -> ReassignResult:
        """--execute"""
        wanted = parse_moves(moves) if isinstance(moves, Mapping) else moves
        return self.run(
            lambda how: execute(self.workspace, wanted, options or ReassignOptions(), how, self._print)
        )

    def cancel(self, *names: str, keep_throttles: bool = False) -> ReassignResult:
        """--cancel"""
        moves = parse_moves(dict.fromkeys(names, (0,)))
        return self.run(
            lambda how: cancel(
                self.workspace, moves, how, self._print, self._tell, keep_throttles=keep_throttles
            )
        )

    def verify(self, moves: Moves, *, keep_throttles: bool = False) -> str:
        """--verify"""
        self.out, self.diagnostics = "", []
        verify(
            self.workspace, parse_moves(moves), "test", self._print, self._tell, keep_throttles=keep_throttles
        )
        return self.out

    def generate(self, topics: Iterable[str], brokers: Iterable[int], *, rack_aware: bool = True) -> str:
        """--generate"""
        text, diagnostics = generate(self.workspace, list(topics), list(brokers), rack_aware=rack_aware)
        self.diagnostics = list(diagnostics)
        return text

    def roll_back(self) -> ReassignResult:
        """Roll back the last run."""
        return self.run(
            lambda how: ReassignResult(roll_back(self.workspace, None, how, allow_data_loss=False, out=None))
        )

    def run(self, act: Callable[[ApplyOptions], ReassignResult]) -> ReassignResult:
        """Run an action that asks for confirmation."""
        self.out, self.diagnostics, self.plan = "", [], None
        return act(ApplyOptions("test", self._confirm, nothing, RunOptions(wait=False, workers=1)))

    def _confirm(self, plan: Plan, notices: tuple[Diagnostic, ...]) -> bool:
        self.plan = plan
        self._tell(notices)
        return self.answer

    def _print(self, text: str) -> None:
        self.out += text

    def _tell(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics += diagnostics

    def find_move(self, name: str) -> Move | None:
        """Start a move that stays in flight."""
        return self.cluster.moves().get(TopicPartition.parse(name))

    def find_replicas(self, name: str) -> Ids:
        """Return where a partition is, according to the controller."""
        return self.cluster.partition(TopicPartition.parse(name)).replicas

    def read_rate(self, broker: int) -> str | None:
        """Return the throttle of a broker."""
        found: str | None = self.cluster.overrides(broker_resource(broker)).get(throttles.RATE_KEYS[0])
        return found

    def read_throttled_replicas(self, topic: str) -> tuple[str | None, str | None]:
        """Return the throttled replicas of a topic, on leaders and on followers."""
        found = self.cluster.overrides(topic_resource(topic))
        return found.get(throttles.LEADER_REPLICAS_KEY), found.get(throttles.FOLLOWER_REPLICAS_KEY)


def parse_moves(moves: Moves) -> tuple[PartitionAssignment, ...]:
    """Return the content of a file."""
    return tuple(PartitionAssignment(TopicPartition.parse(name), ids) for name, ids in moves.items())


def catch_refusal(act: Callable[[], object]) -> KdeclareError:
    """Return the error with which an action ends."""
    with pytest.raises(KdeclareError) as caught:
        act()
    return caught.value


def parse_saved(out: str) -> Moves:
    """Return the file that --execute prints for a rollback."""
    text = next(line for line in out.splitlines() if line.startswith("{"))
    return {str(a.partition): a.replicas for a in parse_assignments(text, "saved")}


MOVES: Moves = {"foo-0": (0, 1, 3), "baz-1": (0, 2, 3)}


@pytest.fixture
def tool() -> Tool:
    made = Tool()
    made.create_topic("foo", (0, 1, 2))
    made.create_topic("baz", (0, 1, 2), (2, 0, 1))
    return made


@case("CAN-07")
def test_cancel_clears_throttles_unless_kept(tool: Tool) -> None:
    tool.execute(MOVES, ReassignOptions(throttle=1))
    assert (tool.find_replicas("foo-0"), tool.find_replicas("baz-1")) == ((0, 1, 3, 2), (0, 2, 3, 1))
    assert tool.read_throttled_replicas("foo") == ("0:0,0:1,0:2", "0:3")
    tool.cancel("foo-0", "baz-1", keep_throttles=True)
    assert tool.out.startswith("Successfully cancelled partition reassignments for: baz-1,foo-0\n")
    assert tool.cluster.moves() == {}
    assert [tool.read_rate(broker) for broker in range(5)] == ["1", "1", "1", "1", None]
    assert tool.read_throttled_replicas("baz") == ("1:2,1:0,1:1", "1:3")
    tool.cancel("foo-0", "baz-1")
    assert tool.out == (
        "None of the specified partition reassignments are active.\n"
        "None of the specified partition moves are active.\n"
        "Clearing broker-level throttles on brokers 0,1,2,3\n"
        "Clearing topic-level throttles on topics baz,foo\n"
    )
    assert [tool.read_rate(broker) for broker in range(5)] == [None] * 5
    assert (tool.read_throttled_replicas("foo"), tool.read_throttled_replicas("baz")) == (
        (None, None),
        (None, None),
    )
    assert tool.cancel("foo-0", "baz-1").run
    assert "Clearing" not in tool.out


@case("THR-06")
def test_verify_clears_throttles_unless_kept(tool: Tool) -> None:
    tool.execute(MOVES, ReassignOptions(throttle=1))
    assert "still in progress" in tool.verify(MOVES)
    assert "Clearing" not in tool.out
    tool.cluster.tick()
    completed = (
        "Status of partition reassignment:\n"
        "Reassignment of partition baz-1 is completed.\nReassignment of partition foo-0 is completed.\n\n"
    )
    assert tool.verify(MOVES, keep_throttles=True) == completed
    assert (tool.read_rate(3), tool.read_throttled_replicas("foo")) == ("1", ("0:0,0:1,0:2", "0:3"))
    assert tool.verify(MOVES) == (
        f"{completed}Clearing broker-level throttles on brokers 0,1,2,3\n"
        "Clearing topic-level throttles on topics baz,foo\n"
    )
    assert (tool.read_rate(3), tool.read_throttled_replicas("foo")) == (None, (None, None))
    assert tool.verify(MOVES) == completed


def test_verify_keeps_throttles_while_moves_are_in_flight(tool: Tool) -> None:
    tool.execute({"foo-0": (0, 1, 3)}, ReassignOptions(throttle=1))
    tool.cluster.tick()
    assert tool.bed.move("baz", 1, (0, 2, 3)) is None
    assert "completed" in tool.verify({"foo-0": (0, 1, 3)})
    assert tool.read_rate(3) == "1"


def test_verify_keeps_and_reports_throttles_of_others(tool: Tool) -> None:
    tool.bed.alter(broker_resource(1), (throttles.RATE_KEYS[0], SET, "5000"))
    tool.bed.alter(topic_resource("foo"), (throttles.LEADER_REPLICAS_KEY, SET, "0:0"))
    assert "Clearing" not in tool.verify({"foo-0": (0, 1, 2)})
    assert [d.code for d in tool.diagnostics] == ["foreign-throttle"] * 2
    assert "--entity-type brokers --entity-name 1 --delete-config leader" in tool.diagnostics[0].hint
    assert (tool.read_rate(1), tool.read_throttled_replicas("foo")[0]) == ("5000", "0:0")


def test_verify_of_missing_partitions(tool: Tool) -> None:
    assert tool.verify({"nope-0": (1, 2), "foo-7": (1,)}) == (
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition foo-7, but replica set is  rather than 1.\n"
        "There is no active reassignment of partition nope-0, but replica set is  rather than 1,2.\n\n"
    )


def test_verify_while_lock_is_held_clears_nothing(tool: Tool) -> None:
    tool.execute(MOVES, ReassignOptions(throttle=1))
    tool.cluster.tick()
    with tool.store.lock("somebody's apply"):
        assert "Clearing" not in tool.verify(MOVES)
    assert "run-under-way" in [d.code for d in tool.diagnostics]


def test_execute_prints_kafka_tool_output(tool: Tool) -> None:
    tool.execute({**MOVES, "baz-0": (0, 1, 2)}, ReassignOptions(throttle=1000))
    head, body, rest = tool.out.split("\n\n")
    assert head == "Current partition replica assignment"
    assert json.loads(body)["partitions"][0] == {
        "topic": "baz",
        "partition": 0,
        "replicas": [0, 1, 2],
        "log_dirs": ["/memory"] * 3,
    }
    assert rest == (
        "Save this to use as the --reassignment-json-file option during rollback\n"
        "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
        "throttle is removed.\n"
        "The inter-broker throttle limit was set to 1000 B/s\n"
        "Successfully started partition reassignments for baz-0,baz-1,foo-0\n"
    )


def test_execute_without_changes_reports_success(tool: Tool) -> None:
    ended = tool.execute({"foo-0": (0, 1, 2)})
    assert "Successfully started partition reassignment for foo-0\n" in tool.out
    assert ended.run is not None
    assert (ended.run.run_id, ended.problems) == (None, ())


def test_execute_declined_changes_nothing(tool: Tool) -> None:
    tool.answer = False
    assert tool.execute(MOVES).run is None
    assert "Successfully" not in tool.out
    assert tool.cluster.moves() == {}


def test_execute_is_refused_while_moves_are_in_flight(tool: Tool) -> None:
    assert tool.bed.move("baz", 1, (0, 2, 3)) is None
    refused = catch_refusal(lambda: tool.execute({"foo-0": (0, 1, 3)}))
    assert refused.exit_code is ExitCode.DENIED
    assert refused.diagnostics[0].detail.startswith(
        "Cannot execute because there is an existing partition assignment.  Use --additional to override"
    )
    assert (tool.out, tool.find_replicas("foo-0")) == ("", (0, 1, 2))


def test_execute_additional_redirects_and_saves_original_replicas(tool: Tool) -> None:
    tool.execute({"foo-0": (0, 1, 3)})
    tool.execute({"foo-0": (0, 1, 4)}, ReassignOptions(additional=True))
    assert parse_saved(tool.out) == {"foo-0": (0, 1, 2)}
    move = tool.find_move("foo-0")
    assert move is not None
    assert move.target == (0, 1, 4)
    tool.cluster.tick()
    assert tool.find_replicas("foo-0") == (0, 1, 4)


def test_execute_again_changes_throttle(tool: Tool) -> None:
    tool.execute(MOVES, ReassignOptions(throttle=1000))
    tool.execute(MOVES, ReassignOptions(additional=True, throttle=2000))
    assert "The inter-broker throttle limit was set to 2000 B/s\n" in tool.out
    assert [tool.read_rate(broker) for broker in range(5)] == ["2000"] * 4 + [None]
    assert tool.read_throttled_replicas("foo") == ("0:0,0:1,0:2", "0:3")
    tool.cluster.tick()
    tool.verify(MOVES)
    assert (tool.read_rate(0), tool.read_throttled_replicas("foo")) == (None, (None, None))


def test_execute_again_with_more_partitions_throttles_all(tool: Tool) -> None:
    tool.execute({"foo-0": (0, 1, 3)})
    tool.execute(MOVES, ReassignOptions(additional=True, throttle=2000))
    assert [tool.read_rate(broker) for broker in range(5)] == ["2000"] * 4 + [None]
    assert (tool.read_throttled_replicas("foo")[1], tool.read_throttled_replicas("baz")[1]) == ("0:3", "1:3")
    assert tool.plan is not None
    assert "throttle.clear" not in [op.verb for op in tool.plan.operations]


def test_execute_keeps_throttle_of_others(tool: Tool) -> None:
    assert tool.bed.move("foo", 0, (0, 1, 3)) is None
    for broker in range(4):
        tool.bed.alter(broker_resource(broker), *((key, SET, "5000") for key in throttles.RATE_KEYS))
    tool.execute({"foo-0": (0, 1, 3)}, ReassignOptions(additional=True, throttle=2000))
    assert tool.read_rate(0) == "5000"
    assert "throttle limit was set" not in tool.out
    assert tool.plan is not None
    assert "foreign-throttle" in [d.code for d in tool.plan.diagnostics]


def test_execute_changes_factor_unless_disallowed(tool: Tool) -> None:
    ended = tool.execute({"foo-0": (0,), "baz-1": (0, 2, 3)}, ReassignOptions(resize=False))
    assert "Successfully started partition reassignment for baz-1\n" in tool.out
    assert [d.detail for d in ended.problems] == ["foo-0: The replication factor is changed from 3 to 1"]
    assert ended.run is not None
    assert run_outcome(ended.run).exit_code is ExitCode.DENIED
    tool.cluster.tick()
    assert (tool.find_replicas("foo-0"), tool.find_replicas("baz-1")) == ((0, 1, 2), (0, 2, 3))
    tool.execute({"foo-0": (0,)})
    assert tool.find_replicas("foo-0") == (0,)


def test_execute_with_only_disallowed_changes_does_nothing(tool: Tool) -> None:
    ended = tool.execute({"foo-0": (0,)}, ReassignOptions(resize=False, throttle=1))
    assert "Successfully" not in tool.out
    assert "Warning" not in tool.out
    assert ended.run is not None
    assert run_outcome(ended.run).exit_code is ExitCode.DENIED
    assert tool.read_rate(0) is None


def test_factor_of_growing_move_is_its_target_size(tool: Tool) -> None:
    tool.execute({"foo-0": (0, 1, 2, 3)})
    tool.execute({"foo-0": (0, 1, 2, 4)}, ReassignOptions(additional=True, resize=False))
    assert "Successfully started partition reassignment for foo-0\n" in tool.out


def test_execute_on_brokers_without_guard() -> None:
    tool = Tool(MemoryCluster(dict.fromkeys(range(4)), move_ticks=1, rf_guard=False))
    tool.create_topic("foo", (0, 1))
    ended = tool.execute({"foo-0": (0, 2)})
    assert ended.problems == ()
    assert tool.find_move("foo-0") is not None
    tool.cluster.tick()
    denied = tool.execute({"foo-0": (0, 3)}, ReassignOptions(resize=False))
    assert "does not support the AllowReplicationFactorChange option" in denied.problems[0].detail
    assert "Successfully" not in tool.out


@pytest.mark.parametrize(
    ("moves", "messages"),
    [
        ({"foo-0": (1, 9, 8)}, ["Unknown broker id 8", "Unknown broker id 9"]),
        ({"nope-0": (1, 8)}, ["Unknown broker id 8"]),
        ({"nope-0": (1, 2), "none-0": (1,)}, ["Topic none not found.", "Topic nope not found."]),
        ({"foo-7": (1, 2), "foo-5": (1, 2)}, ["Unable to find partition: foo-5, foo-7"]),
    ],
)
def test_execute_of_missing_objects_is_refused_like_kafka_tool(
    tool: Tool, moves: Moves, messages: list[str]
) -> None:
    refused = catch_refusal(lambda: tool.execute(moves))
    assert [d.detail for d in refused.diagnostics] == messages
    assert (refused.exit_code, tool.out) == (ExitCode.ERROR, "")


def test_execute_to_fenced_broker_is_refused(tool: Tool) -> None:
    tool.cluster.fence(3)
    (problem,) = catch_refusal(lambda: tool.execute(MOVES)).diagnostics
    assert (problem.code, problem.summary) == ("unknown-broker", "Broker fenced")
    assert problem.detail.startswith("Broker 3 is registered but fenced")


def test_execute_reports_refused_partition_and_moves_the_rest(tool: Tool) -> None:
    tool.cluster.faults.fail(
        Fault("INVALID_REPLICA_ASSIGNMENT", "Not today."), method="reassign", item="foo-0"
    )
    ended = tool.execute(MOVES)
    assert "Successfully started partition reassignment for baz-1\n" in tool.out
    assert [d.detail for d in ended.problems] == ["foo-0: Not today."]
    assert ended.run is not None
    assert run_outcome(ended.run).exit_code is ExitCode.PARTIAL


def test_execute_to_missing_log_directory_is_refused(tool: Tool) -> None:
    target = PartitionAssignment(TopicPartition("foo", 0), (0, 1), ("/memory", "any"))
    tool.execute([target])
    assert "started moving log directory to /memory for replica foo-0 with broker 0 \n" in tool.out
    tool.cluster.tick()
    nowhere = PartitionAssignment(TopicPartition("foo", 0), (0, 1), ("/elsewhere", "any"))
    message = str(catch_refusal(lambda: tool.execute([nowhere])))
    assert message == "Failed to alter dir for foo-0-0: the broker has no log directory /elsewhere"


def test_execute_sets_log_directory_of_new_replica_before_move(tool: Tool) -> None:
    tool.cluster.move_ticks = 0
    tool.execute([PartitionAssignment(TopicPartition("foo", 0), (0, 1, 3), ("any", "any", "/memory"))])
    assert "started moving log directory to /memory for replica foo-0 with broker 3 \n" in tool.out
    assert tool.plan is not None
    assert [op.verb for op in tool.plan.operations] == ["replicas.relocate", "partitions.reassign"]
    assert tool.plan.operations[0].irreversible is None
    tool.roll_back()
    assert tool.find_replicas("foo-0") == (0, 1, 2)


def test_execute_can_be_rolled_back(tool: Tool) -> None:
    tool.cluster.move_ticks = 0
    tool.execute(MOVES)
    before = parse_saved(tool.out)
    tool.roll_back()
    assert {name: tool.find_replicas(name) for name in before} == before


def test_cancel_can_be_rolled_back(tool: Tool) -> None:
    tool.execute(MOVES)
    tool.cancel("foo-0")
    assert tool.plan is not None
    (change,) = tool.plan.changes
    assert [(f.path, f.before, f.after) for f in change.fields] == [("replicas.foo-0", [0, 1, 3], [0, 1, 2])]
    assert tool.find_move("foo-0") is None
    assert tool.find_move("baz-1") is not None
    tool.roll_back()
    move = tool.find_move("foo-0")
    assert move is not None
    assert move.target == (0, 1, 3)


def test_cancel_of_redirected_move_warns_of_remaining_replicas(tool: Tool) -> None:
    """Kafka returns to the union of the stages; a rollback would not."""
    tool.execute(MOVES)
    tool.execute({"foo-0": (0, 1, 4)}, ReassignOptions(additional=True))
    tool.cancel("foo-0", "baz-1")
    assert tool.plan is not None
    (diagnostic,) = tool.plan.diagnostics
    assert (diagnostic.code, diagnostic.subject) == ("cancel-grows", "foo-0")
    left = tool.find_replicas("foo-0")
    assert sorted(left) == [0, 1, 2, 3]
    assert str(list(left)) in diagnostic.detail
    assert sorted(tool.find_replicas("baz-1")) == [0, 1, 2]


def test_refused_cancel_is_reported(tool: Tool) -> None:
    tool.execute(MOVES)
    tool.cluster.faults.fail(
        Fault("INVALID_REPLICA_ASSIGNMENT", "Not today."), method="reassign", item="foo-0"
    )
    ended = tool.cancel("foo-0", "baz-1")
    assert "Successfully cancelled partition reassignment for: baz-1\n" in tool.out
    assert [d.detail for d in ended.problems] == ["foo-0: Not today."]


def test_list_shows_moves(tool: Tool) -> None:
    assert list_moves(tool.workspace) == "No partition reassignments found.\n"
    tool.execute({"foo-0": (0, 1, 3)})
    assert list_moves(tool.workspace).splitlines()[1] == "foo-0: replicas: 0,1,3,2. adding: 3. removing: 2."


def parse_proposed(text: str) -> Moves:
    """Return the second half of the output of --generate."""
    found = parse_assignments(text.split("Proposed partition reassignment configuration\n")[1], "proposed")
    return {str(a.partition): a.replicas for a in found}


def test_generate_uses_named_brokers_evenly(tool: Tool) -> None:
    text = tool.generate(["foo", "baz"], [3, 4, 5])
    assert text.startswith("Current partition replica assignment\n{")
    found = parse_proposed(text)
    assert found.keys() == {"foo-0", "baz-0", "baz-1"}
    assert all(sorted(replicas) == [3, 4, 5] for replicas in found.values())
    assert sorted(replicas[0] for replicas in found.values()) == [3, 4, 5]


def test_generate_spreads_over_racks_unless_disabled(tool: Tool) -> None:
    tool.create_topic("pair", (0, 2))
    (replicas,) = parse_proposed(tool.generate(["pair"], [0, 1, 2, 3, 4, 5])).values()
    assert {broker % 2 for broker in replicas} == {0, 1}
    (replicas,) = parse_proposed(tool.generate(["pair"], [0, 2, 4], rack_aware=False)).values()
    assert len(replicas) == 2


def test_generate_keeps_good_placement(tool: Tool) -> None:
    first = parse_proposed(tool.generate(["foo", "baz"], range(6)))
    tool.cluster.move_ticks = 0
    tool.execute(first)
    assert parse_proposed(tool.generate(["foo", "baz"], range(6))) == first


def test_generate_with_partial_rack_information_is_refused() -> None:
    tool = Tool(MemoryCluster({1: "a", 2: "b", 3: None}))
    tool.create_topic("foo", (1, 2))
    message = str(catch_refusal(lambda: tool.generate(["foo"], [1, 2, 3])))
    assert message == (
        "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
        "assignment without rack information."
    )
    assert parse_proposed(tool.generate(["foo"], [1, 2])) == {"foo-0": (1, 2)}
    assert parse_proposed(tool.generate(["foo"], [1, 2, 3], rack_aware=False))


def test_generate_of_impossible_requests_is_refused(tool: Tool) -> None:
    assert str(catch_refusal(lambda: tool.generate(["nope"], [1]))) == "Topic nope not found."
    few = catch_refusal(lambda: tool.generate(["foo"], [1, 2, 9]))
    assert few.diagnostics[0].summary == "Not enough brokers"
    assert few.diagnostics[0].detail.startswith(
        "The target replication factor of 3 cannot be reached because only 2 broker(s) are registered. "
    )
    none = catch_refusal(lambda: tool.generate(["foo"], [8, 9]))
    assert none.diagnostics[0].summary == "No usable brokers"
    tool.generate(["foo"], [1, 2, 3, 9])
    assert [d.detail.split(",")[0] for d in tool.diagnostics] == ["Broker 9 is not registered"]


def test_generate_without_topics_is_empty(tool: Tool) -> None:
    assert tool.generate([], [1]).count('{"version":1,"partitions":[]}') == 2


def test_log_directory_throttle_stays_until_replicas_arrive(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    foo = TopicPartition("foo", 0)
    others = {n: (LogDir("/memory", {}, {}), LogDir("/new", {}, {})) for n in (1, 2)}
    moving = {**others, 0: (LogDir("/memory", {foo: 9}, {}), LogDir("/new", {}, {foo: 1}))}
    arrived = {**others, 0: (LogDir("/memory", {}, {}), LogDir("/new", {foo: 9}, {}))}
    target = [PartitionAssignment(foo, (0, 1, 2), ("/new", "any", "any"))]

    def run_verify() -> str:
        tool.out = ""
        verify(tool.workspace, target, "test", tool._print, tool._tell, keep_throttles=False)
        return tool.out

    def rate() -> str | None:
        found: str | None = tool.cluster.overrides(broker_resource(0)).get(throttles.LOG_DIRS_RATE_KEY)
        return found

    monkeypatch.setattr(tool.cluster, "log_dirs", lambda topics=None: moving)
    tool.execute(target, ReassignOptions(dirs_throttle=1000))
    assert "The replica-alter-dir throttle limit was set to 1000 B/s\n" in tool.out
    tool.execute({"baz-0": (0, 1, 2)})  # any command cleans up after finished moves
    assert rate() == "1000"
    tool.execute(target, ReassignOptions(dirs_throttle=2000))
    assert rate() == "2000"
    assert "Reassignment of replica foo-0-0 is still in progress." in run_verify()
    assert rate() == "2000"
    monkeypatch.setattr(tool.cluster, "log_dirs", lambda topics=None: arrived)
    assert run_verify().endswith(
        "Reassignment of replica foo-0-0 completed successfully.\n"
        "Clearing broker-level throttles on broker 0\n"
    )
    assert rate() is None
