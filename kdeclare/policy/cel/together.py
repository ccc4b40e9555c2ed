"""Asking many rules at once: most requests are in order, and one expression costs less than ten."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from kdeclare.core.policy_subjects import PolicyRequest
from kdeclare.policy.cel.bindings import Bindings, Wants
from kdeclare.policy.cel.rule import SLOW_S, CelPolicy, join_rules


class Together:
    """The rules that one `PolicyKind` has made."""

    def __init__(self, bindings: Bindings) -> None:
        self._bindings = bindings
        self._joined: dict[tuple[CelPolicy, ...], tuple[Wants, Any] | None] = {}

    def passes(self, policies: Sequence[CelPolicy], request: PolicyRequest) -> bool:
        """Whether none of them has anything against a request; False means that they have to be asked.

        Reads what they would read, each of them being asked. Raises what reading the request raises.
        """
        key = tuple(policies)
        if key not in self._joined:
            self._joined[key] = join_rules([policy.rule for policy in key])
        joined = self._joined[key]
        if joined is None:
            return False
        wants, expression = joined
        values = self._bindings.of(request, wants)
        started = perf_counter()
        try:
            passed = expression.eval(data=values).value() is True
        except Exception:  # noqa: BLE001  whoever is asked alone tells what is wrong
            passed = False
        if perf_counter() - started > SLOW_S:
            self._joined[key] = None  # whose fault it is shows when they are asked one by one
        return passed
