"""Evaluating a policy always gives a message, None, or an exception of kdeclare itself."""

import asyncio
import time
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from kdeclare.app.policies import _close_policy
from kdeclare.core.live.faults import Fault
from kdeclare.core.policies.policy_request import UnavailableError
from kdeclare.policy.configured_policy import ConfiguredPolicy
from kdeclare.policy.interface import Action, PolicyViolation, RequestMetadata, TopicActionsPolicy
from kdeclare.policy.isolation import PolicyEvaluator
from tests.unit.policy.doubles import Request

REQUEST = Request(Action.CREATE)


class CallingPolicy(TopicActionsPolicy):
    """A policy that calls a function and returns or raises the same."""

    def __init__(self, ask: Callable[[], object]) -> None:
        self._ask = ask

    def validate(self, request: RequestMetadata) -> Any:
        return self._ask()

    def close(self) -> None:
        self._ask()


class ViolationWithoutText(PolicyViolation):
    def __str__(self) -> str:
        raise ValueError("cannot be said")


def make_raiser(what: BaseException) -> Callable[[], object]:
    def ask() -> object:
        raise what

    return ask


def make_policy(ask: Callable[[], object], **more: Any) -> ConfiguredPolicy:
    return ConfiguredPolicy("x", CallingPolicy(ask), **more)


def ask_policy(ask: Callable[[], object], limit_s: float | None = None, **more: Any) -> str | None:
    with PolicyEvaluator(limit_s) as asking:
        return asking.ask(make_policy(ask, **more), REQUEST)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    "odd",
    [
        ValueError(),
        asyncio.CancelledError(),
        GeneratorExit(),
        SystemExit(0),
        BaseExceptionGroup("many", [SystemExit(0)]),
        ViolationWithoutText(),
    ],
)
def test_policy_exception_denies_request(odd: BaseException, bounded: bool) -> None:
    said = ask_policy(make_raiser(odd), 1.0, bounded=bounded)
    assert said is not None
    assert said.startswith("Policy 'x' failed, so the request is denied: ")


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("own", [UnavailableError(), Fault("GONE", "gone"), KeyboardInterrupt()])
def test_evaluator_passes_on_exceptions_of_kdeclare(own: BaseException, bounded: bool) -> None:
    with pytest.raises(type(own)) as found:
        ask_policy(make_raiser(own), bounded=bounded)
    assert found.value is own


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("returned", "shown"), [(False, "False"), (True, "True"), ("", "''"), (0, "0"), ("no", "'no'")]
)
def test_policy_return_value_denies_request(returned: object, shown: str, bounded: bool) -> None:
    assert ask_policy(lambda: returned, bounded=bounded) == (
        f"Policy 'x' returned {shown}, but a policy must return None, or raise PolicyViolation to deny the "
        "request."
    )
    assert ask_policy(lambda: None, bounded=bounded) is None


def test_evaluator_reads_time_limit_on_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdeclare.policy.isolation.LIMIT_S", 0.1)
    release = Event()
    assert ask_policy(lambda: release.wait(10) and None) == "Policy 'x' timed out after 0.1 s."
    release.set()


def test_time_limit_excludes_time_of_reads() -> None:
    reading = [True]

    def wait_and_read() -> None:
        time.sleep(1.5)
        reading[0] = False

    with PolicyEvaluator(1.0, is_busy=lambda: reading[0]) as asking:
        assert asking.ask(make_policy(wait_and_read), REQUEST) is None


def test_time_limit_includes_time_before_and_after_reads() -> None:
    reading = [False]
    release = Event()

    def wait_and_read() -> None:
        reading[0] = True
        time.sleep(0.3)
        reading[0] = False
        release.wait(60)
        ended.append(True)

    ended: list[bool] = []
    began = time.monotonic()
    with PolicyEvaluator(0.2, is_busy=lambda: reading[0]) as asking:
        said = asking.ask(make_policy(wait_and_read), REQUEST)
    assert not ended
    assert time.monotonic() - began > 0.4
    release.set()
    assert said == "Policy 'x' timed out after 0.2 s."


@pytest.mark.parametrize("odd", [ValueError(), SystemExit(1), asyncio.CancelledError(), GeneratorExit()])
def test_close_policy_ignores_exceptions(odd: BaseException) -> None:
    _close_policy(make_policy(make_raiser(odd)))


def test_close_policy_passes_on_keyboard_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt):
        _close_policy(make_policy(make_raiser(KeyboardInterrupt())))


def test_policy_output_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask_policy(lambda: print("here I am")) is None
    print("data")
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("data\n", "here I am\n")
