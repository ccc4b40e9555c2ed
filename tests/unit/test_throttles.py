"""Throttle entries as sets: what a move needs, what is missing, what nobody needs any more."""

import copy
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, TopicPartition
from kdeclare.providers.kafka.live import ClusterInfo, ConfigEntry, ConfigSource, ConfigType, KafkaState, Move
from kdeclare.providers.kafka.reassignment import throttles
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import ThrottledReplicas, ThrottleEntries
from kdeclare.providers.kafka.reassignment.throttles import (
    FOLLOWER_REPLICAS_KEY,
    LEADER_REPLICAS_KEY,
    RATE_KEYS,
    REPLICAS_KEYS,
    MissingThrottles,
    ReplicaTransfer,
    build_entries,
    build_transfer,
    find_missing,
    find_unneeded_entries,
    get_current_values,
    merge_entries,
    parse_entity,
    split_unreachable,
    subtract_entries,
)
from tests.jsontypes import Json

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)

Flat = set[tuple[str, ...]]


def flatten(given: ThrottleEntries) -> Flat:
    """Entries as a set: one member a rate, one an element of a list."""
    found: Flat = set()
    for entity, keys in given.items():
        for key, value in keys.items():
            if isinstance(value, ThrottledReplicas):
                found |= {(entity, key, element) for element in value.elements}
            else:
                found.add((entity, key))
    return found


def get_list(given: ThrottleEntries, entity: str, key: str) -> ThrottledReplicas:
    """What is to be in a list."""
    found = given[entity][key]
    assert isinstance(found, ThrottledReplicas)
    return found


_ELEMENTS = [f"{p}:{b}" for p in range(3) for b in (1, 2, 3)]

_list = st.builds(
    ThrottledReplicas,
    st.lists(st.sampled_from([*_ELEMENTS, "*"]), min_size=1, unique=True).map(tuple),
    st.booleans(),
)
_topic = st.dictionaries(st.sampled_from(REPLICAS_KEYS), _list, min_size=1)
_broker = st.dictionaries(st.sampled_from(RATE_KEYS), st.sampled_from(["1", "2"]), min_size=1)
_topics = st.dictionaries(st.sampled_from(["TOPIC/t", "TOPIC/u"]), _topic)
_brokers = st.dictionaries(st.sampled_from(["BROKER/1", "BROKER/2", "BROKER/3"]), _broker)
some_entries = st.builds(lambda a, b: {**a, **b}, _topics, _brokers)
some_moves = st.frozensets(st.builds(TopicPartition, st.sampled_from(["t", "u"]), st.integers(0, 2)))


# algebra


@given(some_entries, some_entries)
def test_merge_entries_is_union(a: ThrottleEntries, b: ThrottleEntries) -> None:
    before = copy.deepcopy((a, b))
    both = merge_entries(a, b)
    assert flatten(both) == flatten(a) | flatten(b)
    assert (a, b) == before
    for entity, keys in both.items():
        for key in keys.keys() & set(RATE_KEYS):
            assert keys[key] == b.get(entity, {}).get(key, a.get(entity, {}).get(key))


@given(some_entries, some_entries)
def test_merged_list_is_fresh_if_either_is(a: ThrottleEntries, b: ThrottleEntries) -> None:
    for entity, keys in merge_entries(a, b).items():
        for key in keys.keys() & set(REPLICAS_KEYS):
            sides = [get_list(side, entity, key).fresh for side in (a, b) if key in side.get(entity, {})]
            assert get_list({entity: keys}, entity, key).fresh == any(sides)


@given(some_entries)
def test_merge_with_nothing_or_itself_changes_nothing(a: ThrottleEntries) -> None:
    assert merge_entries(a, {}) == merge_entries({}, a) == merge_entries(a, a) == a


@given(some_entries, some_entries)
def test_subtract_entries_is_difference(a: ThrottleEntries, b: ThrottleEntries) -> None:
    before = copy.deepcopy((a, b))
    assert flatten(subtract_entries(a, b)) == flatten(a) - flatten(b)
    assert (a, b) == before
    assert all(keys for keys in subtract_entries(a, b).values())


@given(some_entries, some_entries)
def test_subtract_undoes_merge(a: ThrottleEntries, b: ThrottleEntries) -> None:
    assert flatten(subtract_entries(merge_entries(a, b), b)) == flatten(a) - flatten(b)
    assert subtract_entries(merge_entries(a, b), merge_entries(a, b)) == {}


@given(some_entries)
def test_all_entries_are_unneeded_without_moves(own: ThrottleEntries) -> None:
    assert find_unneeded_entries(own, []) == own


@given(some_entries, some_moves)
def test_entries_of_no_move_are_unneeded(own: ThrottleEntries, moves: frozenset[TopicPartition]) -> None:
    gone = flatten(find_unneeded_entries(own, moves))
    kept = flatten(own) - gone
    assert gone <= flatten(own)
    moving = {p.topic for p in moves}
    brokers: set[str] = set()
    for entity, _, *element in (item for item in flatten(own) if len(item) == 3):
        name, number = entity.removeprefix("TOPIC/"), element[0].partition(":")[0]
        needed = name in moving if number == "*" else TopicPartition(name, int(number)) in moves
        assert ((entity, _, *element) in kept) == needed
        if needed:
            brokers.add(element[0].rpartition(":")[2])
    for item in (item for item in flatten(own) if len(item) == 2):
        assert (item in kept) == ("*" in brokers or item[0].removeprefix("BROKER/") in brokers)


@given(some_entries, some_moves, some_moves)
def test_more_moves_leave_fewer_unneeded_entries(
    own: ThrottleEntries, moves: frozenset[TopicPartition], more: frozenset[TopicPartition]
) -> None:
    assert flatten(find_unneeded_entries(own, moves | more)) <= flatten(find_unneeded_entries(own, moves))


def test_rate_on_involved_broker_is_needed() -> None:
    own = {"BROKER/1": {RATE_KEYS[0]: "5"}, "BROKER/2": {RATE_KEYS[0]: "5"}}
    assert find_unneeded_entries(own, [P0], {1}) == {"BROKER/2": {RATE_KEYS[0]: "5"}}


# what a move needs


def test_transfers_equal_those_of_kafka_tool() -> None:
    """ReassignPartitionsUnitTest.testMoveMap."""
    ongoing = Move(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,))
    assert build_transfer(P0, (1, 2, 4), ongoing, (1, 2, 5)) == ReplicaTransfer(P0, (1, 2, 3), (5,))
    assert build_transfer(P0, (4, 5), None, (1, 4)) == ReplicaTransfer(P0, (4, 5), (1,))
    assert build_transfer(P0, (1, 2, 3), None, (3, 2, 1)) == ReplicaTransfer(P0, (1, 2, 3), ())
    assert build_transfer(P0, (1, 2, 3), None, (1,)) == ReplicaTransfer(P0, (1, 2, 3), ())


def test_build_entries_of_transfers() -> None:
    found = build_entries(
        [ReplicaTransfer(P0, (1, 2), (3,)), ReplicaTransfer(P1, (2,), (4,)), ReplicaTransfer(P1, (9,), ())],
        7,
        {1, 2, 3},
    )
    both = dict.fromkeys(RATE_KEYS, "7")
    assert found == {
        "BROKER/1": both,
        "BROKER/2": both,
        "BROKER/3": both,
        "TOPIC/t": {
            LEADER_REPLICAS_KEY: ThrottledReplicas(("0:1", "0:2", "1:2"), False),
            FOLLOWER_REPLICAS_KEY: ThrottledReplicas(("0:3", "1:4"), False),
        },
    }


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True),
    st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True),
)
def test_entries_of_transfer_name_copied_replicas(before: list[int], after: list[int]) -> None:
    item = build_transfer(P0, tuple(before), None, tuple(after))
    assert set(item.destinations) == set(after) - set(before)
    found = build_entries([item], 1, range(10))
    if not item.destinations:
        assert found == {}
        return
    brokers = {int(e.removeprefix("BROKER/")) for e in found if e.startswith("BROKER/")}
    assert brokers == set(before) | (set(after) - set(before))


# what of it is missing


def make_live_state(there: Mapping[str, Mapping[str, str]]) -> KafkaState:
    """A cluster on which these are set."""
    configs = {}
    for entity, values in there.items():
        resource = parse_entity(entity)
        source = ConfigSource.TOPIC if resource.scope is ConfigScope.TOPIC else ConfigSource.BROKER
        configs[resource] = {
            k: ConfigEntry(v, source, ConfigType.LIST if k in REPLICAS_KEYS else ConfigType.SCALAR)
            for k, v in values.items()
        }
    return KafkaState(ClusterInfo("c", ()), configs=configs)


def apply_entries(there: Mapping[str, Mapping[str, str]], todo: ThrottleEntries) -> dict[str, dict[str, str]]:
    """What the cluster has once the entries are put there, by APPEND and SET."""
    result = {entity: dict(values) for entity, values in there.items()}
    for entity, keys in todo.items():
        for key, value in keys.items():
            mine = result.setdefault(entity, {})
            if isinstance(value, ThrottledReplicas):
                held = [e for e in mine.get(key, "").split(",") if e]
                mine[key] = ",".join(dict.fromkeys([*held, *value.elements]))
            else:
                (mine[key],) = throttles.list_rates(value)
    return result


_held_list = st.lists(st.sampled_from(_ELEMENTS), unique=True).map(",".join) | st.just("*")
_there = st.builds(
    lambda a, b: {**a, **b},
    st.dictionaries(
        st.sampled_from(["TOPIC/t", "TOPIC/u"]), st.dictionaries(st.sampled_from(REPLICAS_KEYS), _held_list)
    ),
    st.dictionaries(
        st.sampled_from(["BROKER/1", "BROKER/2"]),
        st.dictionaries(st.sampled_from(RATE_KEYS), st.sampled_from(["1", "2", "3"])),
    ),
)
_wanted_list = st.builds(
    ThrottledReplicas,
    st.lists(st.sampled_from(_ELEMENTS), min_size=1, unique=True).map(tuple),
    st.just(False),
)
_wanted = st.builds(
    lambda a, b: {**a, **b},
    st.dictionaries(
        st.sampled_from(["TOPIC/t", "TOPIC/u"]),
        st.dictionaries(st.sampled_from(REPLICAS_KEYS), _wanted_list, min_size=1),
    ),
    st.dictionaries(
        st.sampled_from(["BROKER/1", "BROKER/2"]),
        st.fixed_dictionaries(dict.fromkeys(RATE_KEYS, st.just("2"))),
    ),
)


@given(_wanted, some_entries, _there)
def test_find_missing_returns_only_required_entries(
    wanted: ThrottleEntries, own: ThrottleEntries, there: dict[str, dict[str, str]]
) -> None:
    found = find_missing(wanted, own, make_live_state(there))
    for entity, keys in found.entries.items():
        for key, value in keys.items():
            now = there.get(entity, {}).get(key)
            if not isinstance(value, ThrottledReplicas):
                assert now != value
                assert now is None or own[entity][key] == now  # only one's own is changed
            else:
                assert now != "*"
                assert not set(value.elements) & set((now or "").split(","))
                assert set(value.elements) <= set(get_list(wanted, entity, key).elements)
                assert value.fresh or now is not None
    assert all(
        there[entity][key] == rate for entity, keys in found.relies_on.items() for key, rate in keys.items()
    )
    assert found.foreign_rates.keys() <= found.relies_on.keys()
    live = make_live_state(apply_entries(there, found.entries))
    again = find_missing(wanted, merge_entries(own, found.entries), live)
    assert (again.entries, again.foreign_rates) == ({}, found.foreign_rates)


def test_rate_of_other_client_is_kept_and_reported() -> None:
    live = make_live_state({"BROKER/1": {RATE_KEYS[0]: "9"}})
    wanted = {"BROKER/1": dict.fromkeys(RATE_KEYS, "5")}
    theirs = {"BROKER/1": {RATE_KEYS[0]: "9"}}
    assert find_missing(wanted, {}, live) == MissingThrottles(
        {"BROKER/1": {RATE_KEYS[1]: "5"}}, theirs, {"BROKER/1": "9"}
    )
    assert find_missing(wanted, theirs, live) == MissingThrottles(
        {"BROKER/1": dict.fromkeys(RATE_KEYS, "5")}, {}, {}
    )


def test_equal_rate_of_other_client_is_used_and_reported() -> None:
    """It may go with their move, and then ours would have none."""
    rates = {"BROKER/1": dict.fromkeys(RATE_KEYS, "5")}
    live = make_live_state(rates)
    assert find_missing(rates, {}, live) == MissingThrottles({}, rates, {"BROKER/1": "5"})
    assert find_missing(rates, rates, live) == MissingThrottles({}, rates, {})


def test_cluster_wide_rate_applies_to_broker_without_rate() -> None:
    entry = ConfigEntry("7", ConfigSource.CLUSTER)
    resource = ConfigResource(ConfigScope.BROKER, "1")
    live = KafkaState(ClusterInfo("c", ()), configs={resource: dict.fromkeys(RATE_KEYS, entry)})
    wanted = {"BROKER/1": dict.fromkeys(RATE_KEYS, "5")}
    assert find_missing(wanted, {}, live) == MissingThrottles(
        {}, {"BROKER/1": dict.fromkeys(RATE_KEYS, "7")}, {"BROKER/1": "7"}
    )


def test_entries_declared_in_plan_are_not_missing() -> None:
    wanted = {"BROKER/1": dict.fromkeys(RATE_KEYS, "5")}
    declared = [f"configs/BROKER/1/{key}" for key in RATE_KEYS]
    assert find_missing(wanted, {}, make_live_state({}), declared) == MissingThrottles({}, {}, {})


@pytest.mark.parametrize(
    ("now", "own", "fresh"),
    [(None, False, True), ("", False, False), ("1:1", False, False), ("1:1", True, True)],
)
def test_missing_list_is_fresh_if_it_was_unset(now: str | None, own: bool, fresh: bool) -> None:
    live = make_live_state({"TOPIC/t": {LEADER_REPLICAS_KEY: now}} if now is not None else {})
    wanted = {"TOPIC/t": {LEADER_REPLICAS_KEY: ThrottledReplicas(("0:1",), False)}}
    mine: ThrottleEntries = (
        {"TOPIC/t": {LEADER_REPLICAS_KEY: ThrottledReplicas(("1:1",), True)}} if own else {}
    )
    todo = find_missing(wanted, mine, live).entries
    assert todo == {"TOPIC/t": {LEADER_REPLICAS_KEY: ThrottledReplicas(("0:1",), fresh)}}


def make_wanted_list(count: int) -> ThrottleEntries:
    return {
        "TOPIC/t": {LEADER_REPLICAS_KEY: ThrottledReplicas(tuple(f"{n}:100" for n in range(count)), False)}
    }


def measure_length(todo: ThrottleEntries) -> int:
    return len(",".join(get_list(todo, "TOPIC/t", LEADER_REPLICAS_KEY).elements))


def test_too_long_list_becomes_star() -> None:
    short = find_missing(make_wanted_list(3000), {}, make_live_state({})).entries
    assert 20_000 < measure_length(short) <= 30_000
    long = find_missing(make_wanted_list(5000), {}, make_live_state({})).entries
    assert long == {"TOPIC/t": {LEADER_REPLICAS_KEY: ThrottledReplicas(("*",), True)}}


# what is there


def test_current_values_exclude_inherited_values() -> None:
    resource = ConfigResource(ConfigScope.BROKER, "1")
    inherited = {
        RATE_KEYS[0]: ConfigEntry("7", ConfigSource.CLUSTER),
        RATE_KEYS[1]: ConfigEntry("8", ConfigSource.BROKER),
    }
    live = KafkaState(ClusterInfo("c", ()), configs={resource: inherited})
    assert get_current_values(live, "BROKER/1") == {RATE_KEYS[1]: "8"}
    assert get_current_values(live, "BROKER/2") == {}


@pytest.mark.parametrize(
    ("text", "elements"), [("", []), ("0:1", ["0:1"]), ("0:1, 0:2 ,1:1", ["0:1", "0:2", "1:1"]), ("*", ["*"])]
)
def test_current_lists_are_split_into_elements(text: str, elements: list[str]) -> None:
    assert get_current_values(make_live_state({"TOPIC/t": {LEADER_REPLICAS_KEY: text}}), "TOPIC/t") == {
        LEADER_REPLICAS_KEY: elements
    }


@given(some_entries, st.frozensets(st.integers(1, 3)))
def test_split_unreachable_leaves_out_down_brokers(given_: ThrottleEntries, down: frozenset[int]) -> None:
    here, held = split_unreachable(given_, down)
    assert flatten(here) <= flatten(given_)
    assert {e for e in given_ if e not in here} == {f"BROKER/{b}" for b in held}
    assert set(held) <= down
    assert not set(throttles.list_brokers(here)) & down


@given(some_entries)
def test_selection_contains_affected_resources(given_: ThrottleEntries) -> None:
    asked = throttles.build_selection(given_, ["more"])
    assert {f"{r.scope}/{r.name}" for r in asked.configs} == set(given_)
    assert asked.topics == {e.removeprefix("TOPIC/") for e in given_ if e.startswith("TOPIC/")} | {"more"}
    wanted: Json = {r: (REPLICAS_KEYS if r.scope is ConfigScope.TOPIC else RATE_KEYS) for r in asked.configs}
    assert all(set(q.keys) >= set(wanted[r]) for r, q in asked.configs.items())


def test_uncertain_merge_keeps_both_rates() -> None:
    """What is not known to have taken effect is taken away in either form."""
    before = {"BROKER/1": {RATE_KEYS[0]: "10"}}
    wanted = {"BROKER/1": {RATE_KEYS[0]: "20"}}
    both = merge_entries(before, wanted, is_certain=False)
    assert both == {"BROKER/1": {RATE_KEYS[0]: ("10", "20")}}
    assert merge_entries(both, wanted) == wanted
    assert subtract_entries(both, wanted) == {}
