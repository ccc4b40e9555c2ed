"""Pending cleanup: what runs leave to remove later, in sections that only their provider understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.state import PendingCleanup, State
from kdeclare.core.provider.provider import Cleanup, CleanupRequest, Provider
from kdeclare.core.provider.provider_queries import find_cleanups
from kdeclare.engine.state.document import decode_state, encode_state
from kdeclare.providers.kafka.reassignment.cleanup import find_cleanup
from kdeclare.providers.kafka.reassignment.pending_move_cleanup import (
    PendingMoveCleanup,
    ThrottledReplicas,
    bind_move_cleanup,
    get_move_cleanup,
)
from tests.loaded_providers import replace_load_providers

LAMPS = {"lamps": {"kitchen": "on"}}
"""A section of a provider that is not installed."""

names = st.text("ab", min_size=1, max_size=2)
elements = st.lists(names, unique=True, max_size=2).map(tuple)
throttles = names | elements | st.builds(ThrottledReplicas, elements, st.booleans())
leftovers = st.builds(
    PendingMoveCleanup,
    st.dictionaries(names, st.dictionaries(names, throttles, min_size=1), max_size=2),
    st.dictionaries(names, st.integers(1, 3), max_size=2),
    elements,
)


@given(leftovers)
def test_pending_cleanup_round_trips(left: PendingMoveCleanup) -> None:
    assert bind_move_cleanup(left.merge_into(LAMPS)) == left
    state = State("l", 1, "c", pending_cleanup=left.merge_into(LAMPS))
    assert decode_state(encode_state(state), "state.json") == state


@given(leftovers, leftovers)
def test_merge_keeps_sections_of_other_providers(first: PendingMoveCleanup, then: PendingMoveCleanup) -> None:
    cleanup = then.merge_into(first.merge_into(LAMPS))
    assert cleanup["lamps"] == LAMPS["lamps"]
    assert bind_move_cleanup(cleanup) == then


def test_empty_cleanup_is_not_written() -> None:
    assert PendingMoveCleanup().merge_into(PendingMoveCleanup(moves=("t-0",)).merge_into({})) == {}
    assert "leftovers" not in encode_state(State("l", 1, "c"))
    assert not get_move_cleanup(None)


@pytest.mark.parametrize(
    "damaged",
    [
        {"moves": {}},
        {"moves": [1]},
        {"throttles": []},
        {"throttles": {"TOPIC/t": {"list": {"elements": ["0:1"]}}}},
        {"throttles": {"BROKER/1": {"rate": 1}}},
        {"elections": "x"},
        {"elections": {"t-0": "1"}},
    ],
)
def test_section_of_wrong_type_is_named(damaged: PendingCleanup) -> None:
    with pytest.raises(KdeclareError) as problem:
        bind_move_cleanup(damaged)
    (found,) = problem.value.diagnostics
    assert (found.code, found.detail) == (
        "state-corrupt",
        f"In the state, the value of '{next(iter(damaged))}' under 'leftovers' has the wrong type.",
    )


def test_state_of_earlier_version_keeps_pending_cleanup() -> None:
    text = (
        '{"version": 3, "lineage": "l", "serial": 4, "cluster_id": "c", "resources": {}, "leftovers": '
        '{"elections": {"t-0": 1}, "moves": ["t-0"], "throttles": {"BROKER/1": {"rate": "9"}, '
        '"BROKER/2": {"rate": ["8", "9"]}, "TOPIC/t": {"list": {"elements": ["0:1"], "fresh": true}}}}}'
    )
    state = decode_state(text, "state.json")
    left = get_move_cleanup(state)
    assert left == PendingMoveCleanup(
        {
            "BROKER/1": {"rate": "9"},
            "BROKER/2": {"rate": ("8", "9")},
            "TOPIC/t": {"list": ThrottledReplicas(("0:1",), True)},
        },
        {"t-0": 1},
        ("t-0",),
    )
    assert left.merge_into({}) == state.pending_cleanup


def test_unknown_section_needs_no_cleanup() -> None:
    assert find_cleanup(CleanupRequest(Connections(), LAMPS, PlanOptions())) is None


def test_providers_clean_up_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each provider starts from what the previous one left pending."""

    def make_remover(section: str) -> Provider:
        def find(request: CleanupRequest) -> Cleanup | None:
            if section not in request.pending:
                return None
            rest = {name: value for name, value in request.pending.items() if name != section}
            return Cleanup((), (f"{section} goes on",), rest)

        return Provider(section, (), (), find_cleanup=find)

    providers = (
        make_remover("lamps"),
        Provider("idle", (), ()),
        make_remover("kettles"),
        make_remover("absent"),
    )
    replace_load_providers(monkeypatch, lambda: providers)
    pending: PendingCleanup = {"lamps": ["hall"], "kettles": ["kitchen"], "others": [1]}
    found = find_cleanups(CleanupRequest(Connections(), pending, PlanOptions()))
    assert [cleanup.ongoing for cleanup in found] == [("lamps goes on",), ("kettles goes on",)]
    assert found[-1].pending == {"others": [1]}
