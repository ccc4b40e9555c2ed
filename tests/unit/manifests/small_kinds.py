"""Kinds as small as can be, so that the loader's tests do not depend on what real kinds check."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from kdeclare.kinds.base import NAME, Desired, Difference, Kind, Placer, Problem
from kdeclare.kinds.query import Query
from kdeclare.model.changes import Change
from kdeclare.model.diagnostics import error
from kdeclare.model.ids import ResourceId
from kdeclare.model.jsontypes import Json
from kdeclare.model.live import Snapshot
from kdeclare.model.operations import Operation


class Inner(BaseModel):
    """A nested mapping."""

    model_config = ConfigDict(extra="forbid")
    preventDestroy: bool = False  # noqa: N815


class Item(BaseModel):
    """An element of a list of mappings."""

    model_config = ConfigDict(extra="forbid")
    topic: str
    partition: Annotated[int, Field(ge=0)] = 0


class Spec(BaseModel):
    """A bit of everything that real specs have."""

    model_config = ConfigDict(extra="forbid")
    partitions: Annotated[int, Field(ge=1)] | None = None
    ratio: float | None = None
    throttle: int | str | None = None
    assignments: dict[int, list[int]] | None = None
    items: list[Item] = []
    configs: dict[str, Any] = {}
    mode: Literal["keep", "remove"] = "keep"
    lifecycle: Inner = Inner()


@dataclass
class SmallKind:
    """Its body is the spec as plain data; it knows one bad config key and one bad name."""

    name: str
    spec: type[BaseModel] = Spec

    def parse(self, name: str, spec: Spec) -> tuple[Any, tuple[Problem, ...]]:
        problems = []
        if name == "illegal":
            problems.append(Problem(NAME, error("illegal-name", "Illegal name", "'illegal' is no name.")))
        if "wrong" in spec.configs:
            detail = "There is no config 'wrong'."
            problems.append(Problem(("configs", "wrong"), error("no-config", "No such config", detail)))
        if spec.partitions is None and spec.assignments is None:
            detail = "Neither partitions nor assignments."
            problems.append(Problem((), error("no-size", "No size", detail)))
        return spec.model_dump(exclude_unset=True), tuple(problems)

    def query(self, name: str, body: Any | None, owned: Json) -> Query:
        return Query()

    def diff(self, resource: ResourceId, desired: Desired | None, live: Snapshot, owned: Json) -> Difference:
        return Difference(None)

    def operations(
        self, change: Change, desired: Desired | None, live: Snapshot, owned: Json, place: Placer
    ) -> tuple[Operation, ...]:
        return ()

    def settle(self, before: Json, after: Json, done: tuple[Operation, ...], all_done: bool) -> Json:
        return after


KINDS: Mapping[str, Kind] = {name: SmallKind(name) for name in ("Topic", "Broker")}
