"""What runs leave to be removed later: sections of the state that only their provider understands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.core.parts import Connections, PlanOptions
from kdeclare.core.plans.state import PendingCleanup, State
from kdeclare.core.provider import registry
from kdeclare.core.provider.provider import Cleanup, CleanupRequest, Provider
from kdeclare.core.provider.registry import find_cleanups
from kdeclare.engine.state.document import decode, encode
from kdeclare.providers.kafka.reassignment.cleanup import find_cleanup
from kdeclare.providers.kafka.reassignment.leftovers import (
    Leftovers,
    ThrottledReplicas,
    leftovers_of,
    read_leftovers,
)

LAMPS = {"lamps": {"kitchen": "on"}}
"""A section of a provider that is not installed."""

names = st.text("ab", min_size=1, max_size=2)
elements = st.lists(names, unique=True, max_size=2).map(tuple)
throttles = names | elements | st.builds(ThrottledReplicas, elements, st.booleans())
leftovers = st.builds(
    Leftovers,
    st.dictionaries(names, st.dictionaries(names, throttles, min_size=1), max_size=2),
    st.dictionaries(names, st.integers(1, 3), max_size=2),
    elements,
)


@given(leftovers)
def test_leftovers_are_read_as_they_were_written(left: Leftovers) -> None:
    assert read_leftovers(left.write_to(LAMPS)) == left
    state = State("l", 1, "c", pending_cleanup=left.write_to(LAMPS))
    assert decode(encode(state), "state.json") == state


@given(leftovers, leftovers)
def test_sections_of_other_providers_stay_as_they_are(first: Leftovers, then: Leftovers) -> None:
    cleanup = then.write_to(first.write_to(LAMPS))
    assert cleanup["lamps"] == LAMPS["lamps"]
    assert read_leftovers(cleanup) == then


def test_nothing_left_writes_nothing() -> None:
    assert Leftovers().write_to(Leftovers(moves=("t-0",)).write_to({})) == {}
    assert "leftovers" not in encode(State("l", 1, "c"))
    assert not leftovers_of(None)


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
def test_section_of_a_wrong_type_is_named(damaged: PendingCleanup) -> None:
    with pytest.raises(KdeclareError) as problem:
        read_leftovers(damaged)
    (found,) = problem.value.diagnostics
    assert (found.code, found.detail) == (
        "state-corrupt",
        f"In its 'leftovers', '{next(iter(damaged))}' is not of its type.",
    )


def test_file_of_an_earlier_version_keeps_its_leftovers() -> None:
    text = (
        '{"version": 3, "lineage": "l", "serial": 4, "cluster_id": "c", "resources": {}, "leftovers": '
        '{"elections": {"t-0": 1}, "moves": ["t-0"], "throttles": {"BROKER/1": {"rate": "9"}, '
        '"BROKER/2": {"rate": ["8", "9"]}, "TOPIC/t": {"list": {"elements": ["0:1"], "fresh": true}}}}}'
    )
    state = decode(text, "state.json")
    left = leftovers_of(state)
    assert left == Leftovers(
        {
            "BROKER/1": {"rate": "9"},
            "BROKER/2": {"rate": ("8", "9")},
            "TOPIC/t": {"list": ThrottledReplicas(("0:1",), True)},
        },
        {"t-0": 1},
        ("t-0",),
    )
    assert left.write_to({}) == state.pending_cleanup


def test_provider_without_leftovers_asks_nothing() -> None:
    assert find_cleanup(CleanupRequest(Connections(), LAMPS, PlanOptions())) is None


def test_providers_clean_up_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each starts from what the one before left pending."""

    def remover(section: str) -> Provider:
        def find(request: CleanupRequest) -> Cleanup | None:
            if section not in request.pending:
                return None
            rest = {name: value for name, value in request.pending.items() if name != section}
            return Cleanup((), (f"{section} goes on",), rest)

        return Provider(section, (), (), find_cleanup=find)

    providers = (remover("lamps"), Provider("idle", (), ()), remover("kettles"), remover("absent"))
    monkeypatch.setattr(registry, "load_providers", lambda: providers)
    pending: PendingCleanup = {"lamps": ["hall"], "kettles": ["kitchen"], "others": [1]}
    found = find_cleanups(CleanupRequest(Connections(), pending, PlanOptions()))
    assert [cleanup.ongoing for cleanup in found] == [("lamps goes on",), ("kettles goes on",)]
    assert found[-1].pending == {"others": [1]}
