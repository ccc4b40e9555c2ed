"""What a rule's variables stand for in a request; only what rules speak of is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kdeclare.policy.interface import RequestMetadata, TopicState

_TEXTS = frozenset({"labels", "pre.configs", "post.configs"})
_NO_STATE = object()
_THERE = "there"
"""Stands for a state that is not null; rules can only compare it with null."""


@dataclass(frozen=True, slots=True)
class Wants:
    """What a rule reads: variables by name, a state's fields as ``post.partitions``.

    keys: of configs that it only looks up by names that stand in it, those names.
    """

    names: tuple[str, ...]
    keys: Mapping[str, frozenset[str]] = field(default_factory=dict)


class Bindings:
    """The variables of one request after another, for rules that are asked about the same requests in turn:
    what one of them has read, the others need not read again."""

    def __init__(self) -> None:
        self._last: tuple[RequestMetadata | None, dict[str, Any]] = (None, {})

    def of(self, request: RequestMetadata, wants: Wants) -> dict[str, Any]:
        """What is wanted, by name; fields of a state that is null are left out.

        Raises what reading the request raises.
        """
        last, known = self._last
        if last is not request:
            known = {}
            self._last = (request, known)
        values = {}
        for name in wants.names:
            if name in known:
                value = known[name]
            else:
                value = READERS[name](request)
                if name in wants.keys and value is not _NO_STATE and type(value) is not dict:
                    # not all of it may be known, and the rule looks at no more than this
                    values[name] = {key: str(value[key]) for key in wants.keys[name] if key in value}
                    continue
                known[name] = value = _texts(value) if name in _TEXTS and value is not _NO_STATE else value
            if value is not _NO_STATE:
                values[name] = value
        return values

    def forget(self) -> None:
        """Let go of the last request."""
        self._last = (None, {})


def _state(request: RequestMetadata, side: str) -> TopicState | None:
    return request.pre_request_state if side == "pre" else request.post_request_state


def _texts(mapping: Mapping[str, str]) -> dict[str, str]:
    # a text that came from ${env…} is a str of its own sort, which CEL does not take
    if type(mapping) is dict and all(type(value) is str for value in mapping.values()):
        return mapping
    return {key: str(value) for key, value in mapping.items()}


def _replicas(state: TopicState) -> dict[int, list[int]]:
    return {partition: list(brokers) for partition, brokers in state.replicas_assignments.items()}


def _field(side: str, read: Callable[[TopicState], Any]) -> Callable[[RequestMetadata], Any]:
    def reader(request: RequestMetadata) -> Any:
        state = _state(request, side)
        return _NO_STATE if state is None else read(state)

    return reader


_FIELDS: Mapping[str, Callable[[TopicState], Any]] = {
    "partitions": lambda state: state.num_partitions,
    "replicationFactor": lambda state: state.replication_factor,
    "assignments": _replicas,
    "configs": lambda state: state.configs,
}
READERS: Mapping[str, Callable[[RequestMetadata], Any]] = {
    "action": lambda request: str(request.action),
    "topic": lambda request: str(request.topic),
    "principal": lambda request: request.principal,
    "labels": lambda request: request.labels,
    "changed": lambda request: sorted(request.changed),
    "pre": lambda request: None if request.pre_request_state is None else _THERE,
    "post": lambda request: None if request.post_request_state is None else _THERE,
    **{f"{side}.{name}": _field(side, read) for side in ("pre", "post") for name, read in _FIELDS.items()},
}
"""All that a rule can speak of, and how it is read."""
