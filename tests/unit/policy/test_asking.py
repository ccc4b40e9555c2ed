"""Evaluating a policy always gives a message, None, or an exception of kdeclare itself."""

import asyncio
import time
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from kdeclare.app.policies import _close_policy
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.policy_subjects import UnavailableError
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.isolation import PolicyEvaluator
from tests.unit.policy.doubles import Request

REQUEST = Request(Action.CREATE)


class Does(TopicActionsPolicy):
    """A policy that calls a function and returns or raises the same."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> Any:
        return self._ask()

    def close(self) -> None:
        self._ask()


class Unspeakable(PolicyViolation):
    def __str__(self) -> str:
        raise ValueError("cannot be said")


def raising(what: BaseException) -> Callable[[], object]:
    def ask() -> object:
        raise what

    return ask


def policy(ask: Callable[[], object], **more: Any) -> ConfiguredPolicy:
    return ConfiguredPolicy("x", Does(ask), **more)


def answer(ask: Callable[[], object], limit_s: float | None = None, **more: Any) -> str | None:
    with PolicyEvaluator(limit_s) as asking:
        return asking.ask(policy(ask, **more), REQUEST)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    "odd",
    [
        ValueError(),
        asyncio.CancelledError(),
        GeneratorExit(),
        SystemExit(0),
        BaseExceptionGroup("many", [SystemExit(0)]),
        Unspeakable(),
    ],
)
def test_whatever_it_raises_denies(odd: BaseException, bounded: bool) -> None:
    said = answer(raising(odd), 1.0, bounded=bounded)
    assert said is not None
    assert said.startswith("Policy 'x' failed, so the request is denied: ")


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("own", [UnavailableError(), Fault("GONE", "gone"), KeyboardInterrupt()])
def test_what_kdeclare_raises_itself_gets_through(own: BaseException, bounded: bool) -> None:
    with pytest.raises(type(own)) as found:
        answer(raising(own), bounded=bounded)
    assert found.value is own


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("returned", "shown"), [(False, "False"), (True, "True"), ("", "''"), (0, "0"), ("no", "'no'")]
)
def test_whatever_it_returns_denies(returned: object, shown: str, bounded: bool) -> None:
    assert answer(lambda: returned, bounded=bounded) == (
        f"Policy 'x' returned {shown}, but a policy must return None, or raise PolicyViolation to deny the "
        "request."
    )
    assert answer(lambda: None, bounded=bounded) is None


def test_the_limit_is_looked_up_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.policy.isolation.LIMIT_S", 0.1)
    release = Event()
    assert answer(lambda: release.wait(10) and None) == "Policy 'x' timed out after 0.1 s."
    release.set()


def test_time_in_which_something_else_keeps_it_waiting_does_not_count() -> None:
    reading = [True]

    def slow() -> None:
        time.sleep(0.5)
        reading[0] = False

    with PolicyEvaluator(0.2, is_busy=lambda: reading[0]) as asking:
        assert asking.ask(policy(slow), REQUEST) is None


def test_what_it_thinks_before_and_after_it_waits_counts() -> None:
    reading = [False]
    release = Event()

    def slow() -> None:
        reading[0] = True
        time.sleep(0.3)
        reading[0] = False
        release.wait(10)

    began = time.monotonic()
    with PolicyEvaluator(0.2, is_busy=lambda: reading[0]) as asking:
        said = asking.ask(policy(slow), REQUEST)
    release.set()
    assert said == "Policy 'x' timed out after 0.2 s."
    assert 0.4 < time.monotonic() - began < 5


@pytest.mark.parametrize("odd", [ValueError(), SystemExit(1), asyncio.CancelledError(), GeneratorExit()])
def test_whatever_it_raises_when_it_is_closed_changes_nothing(odd: BaseException) -> None:
    _close_policy(policy(raising(odd)))


def test_closing_can_be_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt):
        _close_policy(policy(raising(KeyboardInterrupt())))


def test_what_a_policy_prints_is_kept_from_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(lambda: print("here I am")) is None
    print("data")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("data\n", "here I am\n")
